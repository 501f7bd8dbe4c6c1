package session

// The model of reorder_model_test.go where packets are far ahead of the window: they are of a second window, which takes the
// place of the first one once its packets are more than those of the first since, by as many as a batch has.

type modelTrial struct {
	begun, alone bool // alone: the window had no packet since it began
	low, top     uint64
	score        int
	open         map[uint64]*modelBlock
}

// expects is whether a packet of this batch belongs to the window, or pushes it by one batch.
func (m *model) expects(ordinal uint64) bool {
	ahead := int64(ordinal - m.low)
	return ahead >= 0 && (ahead < int64(m.window) || int64(ordinal-m.top) <= 1)
}

// whyNot is the count that a packet of another batch goes to.
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

// try places a packet in the trial. False: the window has moved there.
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

// trialLoses: the window has got a packet.
func (m *model) trialLoses() {
	t := &m.trial
	if t.score, t.alone = t.score-1, false; t.score <= -8 {
		m.trialEnds()
	}
}

// trialEnds drops its packets.
func (m *model) trialEnds() {
	for o, b := range m.trial.open {
		m.outliers += len(b.slots)
		delete(m.trial.open, o)
	}
	m.trial.begun = false
}
