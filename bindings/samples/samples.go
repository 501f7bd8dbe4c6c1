// Package samples has the samples of packets and aggregates that scripts inspect: their values, codes and spectra. Native code converts them.
package samples

import (
	"fmt"
	"math"
	"sort"

	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/signal"
)

// Samples are samples of one type, in runs. They are a copy and outlive the burst.
type Samples struct {
	Type                  session.SampleType
	Levels                []float64 // value of each code; nil: none
	Shape                 []int     // dimensions of the first run, the outermost first; nil: unknown
	Rate, Time, Frequency float64   // of the first run: samples/s, s, Hz; NaN: unknown
	Raw                   int       // packets and slots whose samples are not here
	runs                  []run
	n                     int // elements
	at                    int // run that values has; -1: none
	values                []float64
}

// run are consecutive elements: those of a packet, or of a slot.
type run struct {
	src           []byte
	first, n      int
	scale, offset float64
}

// New returns no samples of a type.
func New(t session.SampleType, levels []float64) *Samples {
	if t.Bits() > 8 || len(levels) != 1<<t.Bits() {
		levels = nil
	}
	return &Samples{Type: t, Levels: levels, Rate: math.NaN(), Time: math.NaN(), Frequency: math.NaN(), at: -1}
}

// LuaType returns "samples".
func (*Samples) LuaType() string { return "samples" }

// Step returns the number of elements of a sample.
func (s *Samples) Step() int {
	if s.Type.Complex() {
		return 2
	}
	return 1
}

// Len returns the number of samples.
func (s *Samples) Len() int { return s.n / s.Step() }

// Add appends a copy of n elements of src. A scale of 0 is that of the full range. It returns false if src is shorter.
func (s *Samples) Add(src []byte, n int, scale, offset float64) bool {
	bytes := s.Type.Bytes(n)
	if n < 0 || bytes > len(src) {
		return false
	}
	if scale == 0 {
		scale = math.Ldexp(1, 1-s.Type.Bits())
		if _, unsigned := s.Type.Integer(); unsigned {
			scale /= 2
		}
	}
	s.runs = append(s.runs, run{append([]byte(nil), src[:bytes]...), s.n, n, scale, offset})
	s.n += n
	return true
}

// convert returns the values of a run, valid until the next call.
func (s *Samples) convert(k int) []float64 {
	if r := s.runs[k]; s.at != k {
		if cap(s.values) < r.n {
			s.values = make([]float64, r.n)
		}
		s.values, s.at = s.values[:r.n], k
		s.Type.Values(s.values, r.src, r.scale, r.offset, s.Levels)
	}
	return s.values
}

// At returns sample i, from 0, and its imaginary part, 0 for real samples.
func (s *Samples) At(i int) (re, im float64) {
	at := i * s.Step()
	k := sort.Search(len(s.runs), func(k int) bool { return s.runs[k].first+s.runs[k].n > at })
	v := s.convert(k)[at-s.runs[k].first:]
	if s.Step() == 2 {
		im = v[1]
	}
	return v[0], im
}

// Mean returns the mean of the samples, NaN if there are none.
func (s *Samples) Mean() (re, im float64) {
	step := s.Step()
	for k := range s.runs {
		v := s.convert(k)
		for i := 0; i < len(v); i += step {
			re += v[i]
			im += v[i+step-1]
		}
	}
	if step == 1 {
		im = 0
	}
	return re / float64(s.Len()), im / float64(s.Len())
}

// Power returns the mean of |x|^2, NaN if there are no samples.
func (s *Samples) Power() float64 {
	sum := 0.0
	for k := range s.runs {
		for _, x := range s.convert(k) {
			sum += x * x
		}
	}
	return sum / float64(s.Len())
}

// Histogram returns how often each code is there, both parts of complex samples counted. Its error names types without codes.
func (s *Samples) Histogram() ([]uint64, error) {
	if !s.Type.Counts() {
		return nil, fmt.Errorf("%s has no codes to count (expected integers of up to 16 bits)", s.Type)
	}
	counts := make([]uint64, 1<<s.Type.Bits())
	for _, r := range s.runs {
		s.Type.Count(counts, r.src, r.n)
	}
	return counts, nil
}

// SpectrumOptions describe the blocks of a spectrum.
type SpectrumOptions struct {
	Points      int
	Window      string
	First, Step int  // samples First, First + Step, …, from 0, of each run
	Continuous  bool // runs continue the ones before
}

// Spectrum returns the spectrum of the samples. Levels are relative to the full scale of integers without levels, and to 1 for other types.
func (s *Samples) Spectrum(o SpectrumOptions) (*signal.Spectrum, error) {
	window, err := signal.WindowNamed(o.Window)
	if err != nil {
		return nil, err
	}
	r := signal.Range{Complex: s.Type.Complex()}
	integer, unsigned := s.Type.Integer()
	if codes := integer && s.Levels == nil; codes {
		if r.Bits = s.Type.Bits(); !unsigned {
			r.Least = -1 << (r.Bits - 1)
		}
	}
	spectrum, err := signal.NewSpectrum(o.Points, window, r)
	if err != nil {
		return nil, err
	}
	part := s.Step()
	for _, x := range s.runs {
		v := make([]float64, x.n)
		scale, offset := 1.0, 0.0
		if r.Bits == 0 {
			scale, offset = x.scale, x.offset
		}
		s.Type.Values(v, x.src, scale, offset, s.Levels)
		if !o.Continuous {
			spectrum.Break()
		}
		spectrum.Add(thinned(v, part, o.First, o.Step))
	}
	return spectrum, nil
}

// thinned returns samples first, first + step, … of v, whose samples have so many parts.
func thinned(v []float64, parts, first, step int) []float32 {
	var out []float32
	for i := first * parts; i+parts <= len(v); i += step * parts {
		for _, x := range v[i : i+parts] {
			out = append(out, float32(x))
		}
	}
	return out
}
