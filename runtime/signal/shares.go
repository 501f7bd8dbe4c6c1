package signal

// Shares keeps the share of missing samples in at most so many columns of time. With more samples it combines neighboring columns.
type Shares struct {
	limit   int
	per     uint64 // samples per column
	samples uint64
	missing []uint64 // by column
}

// NewShares returns an empty record of at most limit columns, an even number.
func NewShares(limit int) *Shares { return &Shares{limit: limit, per: 1} }

// Add adds consecutive samples, which are all present or all missing.
func (s *Shares) Add(samples uint64, missing bool) {
	for samples > 0 {
		if s.samples%s.per == 0 {
			if len(s.missing) == s.limit {
				s.halve()
			}
			s.missing = append(s.missing, 0)
		}
		n := min(samples, s.per-s.samples%s.per)
		if missing {
			s.missing[len(s.missing)-1] += n
		}
		s.samples += n
		samples -= n
	}
}

func (s *Shares) halve() {
	for i := range s.limit / 2 {
		s.missing[i] = s.missing[2*i] + s.missing[2*i+1]
	}
	s.missing = s.missing[:s.limit/2]
	s.per *= 2
}

// Samples returns the number of samples, missing ones included.
func (s *Shares) Samples() uint64 { return s.samples }

// Per returns the number of samples per column. The last column may have fewer.
func (s *Shares) Per() uint64 { return s.per }

// Missing returns the share of missing samples of each column, from 0 to 1.
func (s *Shares) Missing() []float64 {
	out := make([]float64, len(s.missing))
	for i, m := range s.missing {
		out[i] = float64(m) / float64(min(s.per, s.samples-uint64(i)*s.per))
	}
	return out
}
