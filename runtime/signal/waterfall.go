package signal

// A Waterfall keeps the power of blocks in at most so many lines. With more blocks it combines neighboring lines, by the greatest power of each bin,
// so that a short signal stays visible.
type Waterfall struct {
	limit, per int // lines; blocks per line
	in         int // blocks in the last line
	lines      [][]float64
}

// NewWaterfall returns an empty waterfall of at most limit lines, an even number.
func NewWaterfall(limit int) *Waterfall { return &Waterfall{limit: limit, per: 1} }

// Add adds the power of a block, as Spectrum.Each gets it.
func (w *Waterfall) Add(power []float64) {
	if w.in > 0 {
		highest(w.lines[len(w.lines)-1], power)
	} else {
		if len(w.lines) == w.limit {
			w.halve()
		}
		w.lines = append(w.lines, append([]float64(nil), power...))
	}
	w.in = (w.in + 1) % w.per
}

// halve combines each two lines. All lines are complete then.
func (w *Waterfall) halve() {
	for i := range w.limit / 2 {
		highest(w.lines[2*i], w.lines[2*i+1])
		w.lines[i] = w.lines[2*i]
	}
	clear(w.lines[w.limit/2:])
	w.lines = w.lines[:w.limit/2]
	w.per *= 2
}

func highest(line, power []float64) {
	for i, p := range power {
		line[i] = max(line[i], p)
	}
}

// Per returns the number of blocks per line. The last line may have fewer.
func (w *Waterfall) Per() int { return w.per }

// Lines returns the levels in dBFS, the oldest line first.
func (w *Waterfall) Lines() [][]float64 {
	out := make([][]float64, len(w.lines))
	for i, line := range w.lines {
		out[i] = make([]float64, len(line))
		for k, p := range line {
			out[i][k] = decibels(p)
		}
	}
	return out
}
