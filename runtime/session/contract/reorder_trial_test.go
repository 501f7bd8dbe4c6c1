package contract

// The part of the model for packets far ahead of the window: they form a second window, which replaces the first one once it has received more
// packets since, by the number of packets of a batch, limited to 8 to 256.

type modelTrial struct {
	begun, alone bool // alone: the window has received no packet since it began
	low, top     uint64
	score        int
	open         map[uint64]*modelBlock
}

// expects reports whether a packet of this batch is within the window or advances it by one batch.
func (m *model) expects(ordinal uint64) bool {
	ahead := int64(ordinal - m.low)
	return ahead >= 0 && (ahead < int64(m.window) || int64(ordinal-m.top) <= 1)
}

// whyNot returns the counter for a packet of another batch.
func (m *model) whyNot(ordinal uint64) *int {
	behind := int64(m.low - ordinal)
	switch {
	case behind <= 0 || behind > m.far():
		return &m.outliers
	case m.full[ordinal] && behind <= 64:
		return &m.duplicate
	}
	return &m.late
}

func (m *model) far() int64 { return 16 * int64(m.window) }

// try adds a packet to the trial. It returns false if the window has moved there.
func (m *model) try(ordinal, slot uint64, payload []byte, why *int) bool {
	t := &m.trial
	span := max(t.top, ordinal) - min(t.low, ordinal)
	behind := int64(ordinal - t.top)
	switch {
	case t.begun && span < m.window:
	case t.begun && t.alone && t.score > 0 && behind > 0 && behind <= m.far():
		m.believe()
		return false
	default:
		m.trialEnds()
		*t = modelTrial{begun: true, alone: true, low: ordinal, top: ordinal, open: t.open}
	}
	t.low, t.top = min(t.low, ordinal), max(t.top, ordinal)
	if m.place(t.open, ordinal, slot, payload) {
		t.score++
	}
	if t.score >= min(max(8, int(m.per)), 256) {
		m.believe()
	}
	return true
}

// believe moves the window to the trial.
func (m *model) believe() {
	t := &m.trial
	if ahead := int64(t.low - m.top); ahead <= 0 || ahead > m.far() {
		panic("the stream goes on at another place: the model does not know of that")
	}
	for m.low+m.window <= t.top {
		m.close(false)
	}
	for o, b := range t.open {
		m.open[o] = b
		m.longest = max(m.longest, b.size)
	}
	m.top = t.top
	m.trial = modelTrial{open: map[uint64]*modelBlock{}}
	m.closeFull()
}

// trialLoses records that the window has received a packet.
func (m *model) trialLoses() {
	t := &m.trial
	if t.score, t.alone = t.score-1, false; t.score <= -8 {
		m.trialEnds()
	}
}

// trialEnds drops the packets of the trial.
func (m *model) trialEnds() {
	for o, b := range m.trial.open {
		m.outliers += len(b.slots)
		delete(m.trial.open, o)
	}
	m.trial.begun = false
}
