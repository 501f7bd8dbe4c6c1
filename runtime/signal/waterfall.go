package signal

import (
	"math"
	"slices"
)

// A Waterfall keeps the power of blocks in at most so many lines. With more blocks it combines neighboring lines, by the greatest power of each bin,
// so that a short signal stays visible. That of a live stream has a line per period instead, and drops the oldest.
type Waterfall struct {
	limit, per int // lines; blocks per line, 0: a line per period
	in         int // blocks in the last line
	lines      []line
	now        uint64 // position of the next block
}

// line is a line of a waterfall. Its power is nil if the period had no block.
type line struct {
	power []float64
	from  uint64 // position of its first sample, or the time at which its period began
}

// NewWaterfall returns an empty waterfall of at most limit lines, an even number.
func NewWaterfall(limit int) *Waterfall { return &Waterfall{limit: limit, per: 1} }

// newScroll returns an empty waterfall of a live stream, of at most limit lines.
func newScroll(limit int) *Waterfall { return &Waterfall{limit: limit} }

// next begins a line of a live stream at a time.
func (w *Waterfall) next(now uint64) {
	if len(w.lines) == w.limit {
		w.lines = slices.Delete(w.lines, 0, 1)
	}
	w.lines, w.in = append(w.lines, line{from: now}), 0
}

// Add adds the power of a block, as Spectrum.Each gets it.
func (w *Waterfall) Add(power []float64) {
	if w.in == 0 && w.per > 0 {
		if len(w.lines) == w.limit {
			w.halve()
		}
		w.lines = append(w.lines, line{from: w.now})
	}
	w.lines[len(w.lines)-1].add(power)
	if w.in++; w.in == w.per {
		w.in = 0
	}
}

// halve combines each two lines. All lines are complete then.
func (w *Waterfall) halve() {
	for i := range w.limit / 2 {
		w.lines[2*i].add(w.lines[2*i+1].power)
		w.lines[i] = w.lines[2*i]
	}
	clear(w.lines[w.limit/2:])
	w.lines = w.lines[:w.limit/2]
	w.per *= 2
}

// add combines the line with the power of further blocks, which it copies if it has none.
func (l *line) add(power []float64) {
	if l.power == nil {
		l.power = slices.Clone(power)
		return
	}
	for i, p := range power {
		l.power[i] = max(l.power[i], p)
	}
}

// Per returns the number of blocks per line, or 0 for a live stream. The last line may have fewer.
func (w *Waterfall) Per() int { return w.per }

// Begins returns the position of the first sample of each line, or the time at which its period began, the oldest line first.
func (w *Waterfall) Begins() []uint64 {
	out := make([]uint64, len(w.lines))
	for i, l := range w.lines {
		out[i] = l.from
	}
	return out
}

// Lines returns the levels in dBFS, the oldest line first. A period without a block is nil.
func (w *Waterfall) Lines() [][]float64 { return w.Reduced(math.MaxInt) }

// Reduced returns the lines in at most so many columns: the greatest level of the bins of each.
func (w *Waterfall) Reduced(columns int) [][]float64 {
	out := make([][]float64, len(w.lines))
	for i, l := range w.lines {
		if l.power == nil {
			continue
		}
		out[i] = Reduced(l.power, columns)
		for k, p := range out[i] {
			out[i][k] = decibels(p)
		}
	}
	return out
}

// Reduced returns at most so many values: the greatest of those that belong to each.
func Reduced(values []float64, columns int) []float64 {
	n := len(values)
	if n <= columns {
		return slices.Clone(values)
	}
	out := make([]float64, columns)
	for i := range out {
		out[i] = slices.Max(values[i*n/columns : (i+1)*n/columns])
	}
	return out
}
