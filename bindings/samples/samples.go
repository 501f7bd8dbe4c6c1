// Package samples has the samples of packets and aggregates that scripts inspect: their values, codes and spectra. Native code converts them.
package samples

import (
	"fmt"
	"math"
	"sort"

	"github.com/daqiri/daqiri-run/runtime/picture"
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
	n                     int    // elements
	missing               uint64 // samples between the last run and the next one
	apart                 bool   // the next run does not continue the last one
	at                    int    // run that values has; -1: none
	values                []float64
}

// run are consecutive elements: those of a packet, or of a slot.
type run struct {
	src           []byte
	first, n      int
	scale, offset float64
	missing       uint64 // samples before the first one
	apart         bool   // does not continue the run before
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
	s.runs = append(s.runs, run{append([]byte(nil), src[:bytes]...), s.n, n, scale, offset, s.missing, s.apart})
	s.n, s.missing, s.apart = s.n+n, 0, false
	return true
}

// Skip marks that n samples, 0 if their number is unknown, are missing behind the last run.
func (s *Samples) Skip(n int) {
	s.missing += uint64(n)
	s.apart = true
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

// SpectrumOptions describe the blocks of a spectrum, and the samples of a picture.
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
	spectrum, err := signal.NewSpectrum(o.Points, window, s.scaled())
	if err != nil {
		return nil, err
	}
	for k := range s.runs {
		if !o.Continuous || s.runs[k].apart {
			spectrum.Break()
		}
		spectrum.Add(s.thinned(k, o.First, o.Step))
	}
	return spectrum, nil
}

// scaled returns the range of the values in spectra and pictures: codes of integers without levels, otherwise values.
func (s *Samples) scaled() signal.Range {
	r := signal.Range{Complex: s.Type.Complex()}
	if integer, unsigned := s.Type.Integer(); integer && s.Levels == nil {
		if r.Bits = s.Type.Bits(); !unsigned {
			r.Least = -1 << (r.Bits - 1)
		}
	}
	return r
}

// thinned returns samples first, first + step, … of a run, as values of the range that scaled returns.
func (s *Samples) thinned(k, first, step int) (out []float32) {
	x, parts := &s.runs[k], s.Step()
	v := make([]float64, x.n)
	scale, offset := x.scale, x.offset
	if s.scaled().Bits > 0 {
		scale, offset = 1, 0
	}
	s.Type.Values(v, x.src, scale, offset, s.Levels)
	for i := first * parts; i+parts <= len(v); i += step * parts {
		for _, x := range v[i : i+parts] {
			out = append(out, float32(x))
		}
	}
	return out
}

// Figures returns what pictures of the samples show. Missing samples are gaps. Points 0 is the greatest power of two for which there is a transform,
// at most 4096.
func (s *Samples) Figures(o SpectrumOptions) (*picture.Figures, error) {
	window, err := signal.WindowNamed(o.Window)
	if err != nil {
		return nil, err
	}
	f := &picture.Figures{Window: window}
	if !math.IsNaN(s.Rate) {
		f.Rate = s.Rate / float64(o.Step)
		if !math.IsNaN(s.Frequency) {
			f.Center = s.Frequency
		}
	}
	if o.Points == 0 {
		o.Points = picture.PointsFor(s.longest(o))
	}
	if f.Set, err = signal.NewSet(s.scaled(), o.Points, window); err != nil {
		return nil, err
	}
	for k := range s.runs {
		if x := &s.runs[k]; x.missing > 0 {
			f.Gap(x.missing / uint64(o.Step))
		} else if !o.Continuous || x.apart {
			f.Break()
		}
		f.Add(s.thinned(k, o.First, o.Step))
	}
	if s.missing > 0 {
		f.Gap(s.missing / uint64(o.Step))
	}
	return f, nil
}

// longest returns the greatest number of consecutive samples.
func (s *Samples) longest(o SpectrumOptions) (longest int) {
	n := 0
	for k := range s.runs {
		x := &s.runs[k]
		if !o.Continuous || x.apart {
			n = 0
		}
		n += max(0, x.n/s.Step()-o.First+o.Step-1) / o.Step
		longest = max(longest, n)
	}
	return longest
}
