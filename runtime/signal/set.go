package signal

// Sizes of a Set. They are larger than the pictures drawn from it.
const (
	setLines   = 512  // of the waterfall of a recording
	liveLines  = 120  // of the waterfall of a live stream
	setColumns = 2048 // of time
	setPoints  = 4096 // of the constellation
)

// A Set has all figures of the consecutive samples of one stream.
type Set struct {
	Range
	Samples, Missing uint64
	Levels           *Levels
	Spectrum         *Spectrum
	Waterfall        *Waterfall
	Envelope         *Envelope
	Constellation    *Points // nil: real samples
	Shares           *Shares
	old              bool // the figures of one period are those of the period before
}

// NewSet returns an empty set of figures, with transforms of so many points, a power of two.
func NewSet(r Range, points int, w Window) (*Set, error) {
	s := &Set{Range: r, Waterfall: NewWaterfall(setLines), Shares: NewShares(setColumns)}
	var err error
	if s.Spectrum, err = NewSpectrum(points, w, r); err != nil {
		return nil, err
	}
	s.Spectrum.Each = func(power []float64) {
		s.Waterfall.now = s.Spectrum.Position - uint64(points)
		s.Waterfall.Add(power)
	}
	s.empty()
	return s, nil
}

// empty creates the figures of one period.
func (s *Set) empty() {
	s.old = false
	s.Levels, s.Envelope = NewLevels(s.Range), NewEnvelope(setColumns, s.Range)
	if s.Complex {
		s.Constellation = NewPoints(setPoints)
	}
}

// Add adds consecutive samples.
func (s *Set) Add(values []float32) {
	n := uint64(len(values) / s.Step())
	if s.old {
		s.empty()
	}
	s.Samples += n
	s.Levels.Add(values)
	s.Spectrum.Add(values)
	s.Envelope.Add(values)
	s.Shares.Add(n, false)
	if s.Constellation != nil {
		s.Constellation.Add(values)
	}
}

// Gap marks missing samples.
func (s *Set) Gap(samples uint64) {
	if s.old {
		s.empty()
	}
	s.Missing += samples
	s.Break()
	s.Spectrum.Position += samples
	s.Envelope.Gap(samples)
	s.Shares.Add(samples, true)
}

// Break marks the end of consecutive samples.
func (s *Set) Break() { s.Spectrum.Break() }

// Follow makes the empty set that of a live stream, which begins at a time in ns.
func (s *Set) Follow(now uint64) {
	s.Waterfall = newScroll(liveLines)
	s.Waterfall.next(now)
}

// Renew begins the next period of a live stream at a time in ns: the average spectrum, the distribution, the envelope and the constellation are those
// of the samples from now on, and the waterfall begins a line. Max hold, counts of samples and shares of missing ones continue. Figures stay those of
// the period before until the next sample, and the spectrum until the next transform.
func (s *Set) Renew(now uint64) {
	s.Waterfall.next(now)
	s.Spectrum.old, s.old = true, true
}

// Power returns the mean power of the samples in dBFS: a tone of full scale has 0 dB. The mean square of the values of both kinds of tone is half the
// square of their amplitude.
func (s *Set) Power() float64 {
	share := s.Levels.RMS() / s.Full()
	return decibels(2 * share * share)
}
