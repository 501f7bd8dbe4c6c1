package signal

import "math"

// An Envelope keeps the least and the greatest value of consecutive samples in at most so many columns. With more samples it combines neighboring
// columns, so that no extreme value is lost. Of complex samples it has both parts.
type Envelope struct {
	r          Range
	limit, per int // columns; samples per column
	samples    uint64
	columns    [][]Extent // by part: 1, or 2 if complex
}

// An Extent is the least and the greatest value of a column. It is empty if Least > Greatest.
type Extent struct{ Least, Greatest float32 }

// Empty reports whether all samples of the column are missing or not finite.
func (e Extent) Empty() bool { return e.Least > e.Greatest }

var emptyExtent = Extent{float32(math.Inf(1)), float32(math.Inf(-1))}

func (e *Extent) add(o Extent) {
	e.Least, e.Greatest = min(e.Least, o.Least), max(e.Greatest, o.Greatest)
}

// NewEnvelope returns an empty envelope of at most limit columns, an even number.
func NewEnvelope(limit int, r Range) *Envelope {
	return &Envelope{r: r, limit: limit, per: 1, columns: make([][]Extent, r.Step())}
}

// Add adds consecutive samples.
func (e *Envelope) Add(values []float32) {
	for i, v := range values {
		part := i % e.r.Step()
		if part == 0 {
			e.next(1)
		}
		if finite(v) {
			c := e.columns[part]
			c[len(c)-1].add(Extent{v, v})
		}
	}
}

// Gap adds missing samples.
func (e *Envelope) Gap(samples uint64) {
	for samples > 0 {
		n := min(samples, uint64(e.per)-e.samples%uint64(e.per))
		e.next(n)
		samples -= n
	}
}

// next counts n samples of one column, which begins with them if the last one is complete.
func (e *Envelope) next(n uint64) {
	if e.samples%uint64(e.per) == 0 {
		if len(e.columns[0]) == e.limit {
			e.halve()
		}
		for p := range e.columns {
			e.columns[p] = append(e.columns[p], emptyExtent)
		}
	}
	e.samples += n
}

func (e *Envelope) halve() {
	for p, c := range e.columns {
		for i := range e.limit / 2 {
			c[2*i].add(c[2*i+1])
			c[i] = c[2*i]
		}
		e.columns[p] = c[:e.limit/2]
	}
	e.per *= 2
}

// Per returns the number of samples per column. The last column may have fewer.
func (e *Envelope) Per() int { return e.per }

// Samples returns the number of samples, missing ones included.
func (e *Envelope) Samples() uint64 { return e.samples }

// Columns returns the columns of a part: 0, or 1 for the imaginary part of complex samples.
func (e *Envelope) Columns(part int) []Extent { return e.columns[part] }

// Joined returns the extent of both.
func (e Extent) Joined(o Extent) Extent {
	e.add(o)
	return e
}
