// Package panels shows the figures of streams of samples on a web page: power spectrum, waterfall, histogram, time series, constellation, missing
// samples, and power by stream.
//
// Of returns the figures of a stream as a value that is encoded as JSON. The script of the page, Script, defines panels.draw(container, figures):
// figures is an array of them, and the canvases in the container are created once. Style is the page's style sheet of these panels.
package panels

import (
	_ "embed"
	"math"

	"github.com/daqiri/daqiri-run/runtime/signal"
)

// Script defines panels.draw in a browser.
//
//go:embed panels.js
var Script string

// Style is the style sheet of what panels.draw creates.
//
//go:embed panels.css
var Style string

// Sizes of what a page gets. They limit the bytes per update.
const (
	bins    = 1024 // of a spectrum
	columns = 512  // of a waterfall
	times   = 1024 // columns of a time series
	bars    = 1024 // of a histogram
	points  = 1024 // of a constellation
)

// Stream describes the stream of a signal.Set.
type Stream struct {
	Name      string  // empty: there is one stream
	Type      string  // of its samples
	Unit      string  // of values: codes, or empty
	Window    string  // title of the window of transforms
	Rate      float64 // samples per second; 0: unknown
	Frequency float64 // in Hz, of what has the frequency 0 in the samples
	Packets   uint64
	Now       uint64 // of a live stream: the time in ns; 0: a recording
}

// Figures are the figures of a stream. A figure without data is nil.
type Figures struct {
	Name, Type, Unit          string
	Complex                   bool
	Rate, Frequency           float64
	Packets, Samples, Missing uint64
	NaN, Infinite             uint64
	RMS, Power                float64 // of values; of samples in dBFS
	Mean, Least, Greatest     float64
	Clipped                   float64   // share, from 0 to 1
	Spectrum                  *Spectrum `json:",omitempty"`
	Waterfall                 *Waterfall
	Histogram                 *Histogram
	Time                      *Time
	Points                    [][2]float32 // real and imaginary parts
	Gaps                      *Gaps
}

// Spectrum has levels in dBFS, each of an equal part of the frequencies from From to To, in cycles per sample.
type Spectrum struct {
	From, To         float64
	Average, Max     []float64
	Points, Averages int // of a transform; transforms
	Window           string
}

// Waterfall has the colors of levels, from 1, Low, to 255, High, line by line, the newest first, in so many columns over the axis of the spectrum.
// Lines of periods without a transform are 0.
type Waterfall struct {
	From, To  float64 // in cycles per sample
	Columns   int
	Low, High float64 // in dBFS
	Lines     []byte
	Ages      []float64 // of the first sample of each line, in Unit
	Unit      string    // s or samples
}

// Histogram has the numbers of values in bars of equal width from First on. The values of the first, or of the last, bar are clipped if Ends is set.
type Histogram struct {
	First, Width float64
	Counts       []uint64
	Ends         [2]bool
}

// Time has the least and the greatest value of columns of so many samples, by part: real, imaginary. A column without samples is nil.
type Time struct {
	Per     float64 // samples
	Columns [][]*[2]float32
}

// Gaps has the share of missing samples, from 0 to 1, of columns of so many samples. It covers all samples.
type Gaps struct {
	Per, Samples uint64
	Missing      []float64
}

// Of returns the figures of a stream.
func Of(s *signal.Set, of Stream) Figures {
	l := s.Levels
	f := Figures{Name: of.Name, Type: of.Type, Unit: of.Unit, Complex: s.Complex, Rate: of.Rate, Frequency: of.Frequency, Packets: of.Packets,
		Samples: s.Samples, Missing: s.Missing, NaN: l.NaN, Infinite: l.Infinite, Waterfall: waterfall(s, of)}
	if average := s.Spectrum.Average(); average != nil {
		from, to := extent(s.Spectrum)
		f.Spectrum = &Spectrum{From: from, To: to, Average: levels(average), Max: levels(s.Spectrum.MaxHold()),
			Points: s.Spectrum.Points(), Averages: s.Spectrum.Blocks, Window: of.Window}
	}
	if l.Count > 0 {
		f.RMS, f.Power, f.Mean, f.Least, f.Greatest, f.Clipped = l.RMS(), s.Power(), l.Mean(), l.Least, l.Greatest, l.ClippedShare()
		f.Histogram, f.Time = histogram(l, s.Range), envelope(s)
	}
	if s.Constellation != nil {
		kept := s.Constellation.Kept()
		for i := range min(points, len(kept)) {
			p := kept[i*len(kept)/min(points, len(kept))]
			f.Points = append(f.Points, [2]float32{real(p), imag(p)})
		}
	}
	f.Gaps = &Gaps{Per: s.Shares.Per(), Samples: s.Shares.Samples(), Missing: s.Shares.Missing()}
	return f
}

// levels returns the levels that a page gets, in hundredths of a dB.
func levels(all []float64) []float64 {
	out := signal.Reduced(all, bins)
	for i, v := range out {
		out[i] = math.Round(100*v) / 100
	}
	return out
}

// extent returns the ends of an axis on which each bin is centered on its frequency.
func extent(s *signal.Spectrum) (from, to float64) {
	width := s.Frequency(1) - s.Frequency(0)
	from = s.Frequency(0) - width/2
	return from, from + float64(s.Bins())*width
}

// waterfall returns the lines in colors, or nil if there is none.
func waterfall(s *signal.Set, of Stream) *Waterfall {
	lines := s.Waterfall.Reduced(columns)
	low, high, ok := colorRange(lines)
	if !ok {
		return nil
	}
	from, to := extent(s.Spectrum)
	w := &Waterfall{From: from, To: to, Low: low, High: high, Unit: "samples"}
	now, scale := s.Spectrum.Position, 1.0
	switch {
	case of.Now > 0:
		now, scale, w.Unit = of.Now, 1e-9, "s"
	case of.Rate > 0:
		scale, w.Unit = 1/of.Rate, "s"
	}
	for _, line := range lines {
		w.Columns = max(w.Columns, len(line))
	}
	begins := s.Waterfall.Begins()
	for i := len(lines) - 1; i >= 0; i-- {
		w.Ages = append(w.Ages, float64(now-begins[i])*scale)
		if lines[i] == nil {
			w.Lines = append(w.Lines, make([]byte, w.Columns)...)
		}
		for _, level := range lines[i] {
			w.Lines = append(w.Lines, byte(1+math.Round(254*min(1, max(0, (level-low)/(high-low))))))
		}
	}
	return w
}

// leastSpan is the least range of colors in dB: noise alone has only the lowest ones.
const leastSpan = 20

// colorRange returns the range of colors of levels: the 5th and the 99th of a hundred parts of them, in tenths of a dB, and at least leastSpan. It
// returns false if there is no level.
func colorRange(lines [][]float64) (low, high float64, ok bool) {
	const floor, tenths = -250, 5000
	counts, n := make([]int, tenths), 0
	for _, line := range lines {
		for _, level := range line {
			counts[min(tenths-1, max(0, int((level-floor)*10)))]++
			n++
		}
	}
	at := func(part int) float64 {
		sum := 0
		for i, c := range counts {
			if sum += c; sum > part {
				return floor + float64(i)/10
			}
		}
		return floor
	}
	low, high = at(n*5/100), at(min(n-1, n*99/100))
	return low, max(high, low+leastSpan), n > 0
}

// histogram returns the bars of the bins that have values.
func histogram(l *signal.Levels, r signal.Range) *Histogram {
	counts, first, width := l.Bins()
	from, to := l.Used()
	per := (to - from + bars - 1) / bars
	h := &Histogram{First: first + float64(from)*width, Width: width * float64(per), Counts: make([]uint64, (to-from+per-1)/per)}
	for i, n := range counts[from:to] {
		h.Counts[i/per] += n
	}
	h.Ends = [2]bool{r.Bits > 1 && from == 0, r.Bits > 1 && to == len(counts)}
	return h
}

// envelope returns the time series.
func envelope(s *signal.Set) *Time {
	n := len(s.Envelope.Columns(0))
	per := (n + times - 1) / times
	t := &Time{Per: float64(per * s.Envelope.Per())}
	for part := range s.Step() {
		all := s.Envelope.Columns(part)
		var out []*[2]float32
		for i := 0; i < n; i += per {
			x := all[i]
			for _, o := range all[i:min(n, i+per)] {
				x = x.Joined(o)
			}
			if x.Empty() {
				out = append(out, nil)
			} else {
				out = append(out, &[2]float32{x.Least, x.Greatest})
			}
		}
		t.Columns = append(t.Columns, out)
	}
	return t
}
