package signal

import (
	"math"
	"math/bits"
	"slices"
)

// maxBins is the number of bins of a histogram: the codes of 12 bits.
const maxBins = 4096

// Levels is the distribution of values. Real and imaginary parts are values of the same distribution.
//
// Integers of up to 12 bits have a bin per code, wider ones the same number of bins of several codes. Floating-point values have bins of a range
// around 0, which doubles when a value is outside.
type Levels struct {
	Count           uint64 // finite values
	NaN, Infinite   uint64
	Clipped         uint64 // values at the ends of the range of codes; of floating-point values those of at least full scale
	Least, Greatest float64

	r         Range
	bins      []uint64
	shift     int     // codes per bin: 2^shift
	limit     float64 // of floating-point values: bins are from -limit to limit; 0: before the first value
	sum, sum2 float64
	ones, any uint64 // bits that all codes have, that any code has
}

// NewLevels returns an empty distribution.
func NewLevels(r Range) *Levels {
	l := &Levels{r: r, ones: math.MaxUint64}
	if r.Bits == 0 {
		l.bins = make([]uint64, maxBins)
	} else {
		l.shift = max(0, r.Bits-bits.Len(maxBins-1))
		l.bins = make([]uint64, 1<<(r.Bits-l.shift))
	}
	return l
}

// Add adds values. Those of a type of integers must be codes of its range.
func (l *Levels) Add(values []float32) {
	for _, v := range values {
		switch {
		case v != v:
			l.NaN++
			continue
		case !finite(v):
			l.Infinite++
			continue
		}
		x := float64(v)
		if l.Count == 0 {
			l.Least, l.Greatest = x, x
		}
		l.Count++
		l.Least, l.Greatest = min(l.Least, x), max(l.Greatest, x)
		l.sum += x
		l.sum2 += x * x
		if l.r.Bits == 0 {
			l.float(x)
		} else {
			l.code(int64(x))
		}
	}
}

func (l *Levels) code(x int64) {
	u := uint64(x - int64(l.r.Least))
	last := uint64(1)<<l.r.Bits - 1
	u = min(u, last) // a float32 rounds the greatest codes of more than 24 bits up
	if u == 0 || u == last {
		l.Clipped++
	}
	l.bins[u>>l.shift]++
	l.ones &= uint64(x)
	l.any |= uint64(x)
}

func (l *Levels) float(x float64) {
	if math.Abs(x) >= 1 {
		l.Clipped++
	}
	if l.limit == 0 && x != 0 {
		_, e := math.Frexp(x)
		l.limit = math.Ldexp(1, e)
	}
	for math.Abs(x) > l.limit {
		l.double()
	}
	at := len(l.bins) / 2
	if l.limit > 0 {
		at = min(len(l.bins)-1, int((x/l.limit+1)/2*float64(len(l.bins))))
	}
	l.bins[at]++
}

// double doubles the range of floating-point values.
func (l *Levels) double() {
	n, old := len(l.bins), l.bins
	l.bins = make([]uint64, n)
	for i, c := range old {
		l.bins[n/4+i/2] += c
	}
	l.limit *= 2
}

// Mean returns the mean value in codes.
func (l *Levels) Mean() float64 { return l.sum / float64(max(1, l.Count)) }

// RMS returns the root mean square in codes, relative to the middle of the range.
func (l *Levels) RMS() float64 {
	zero := l.r.Zero()
	n := float64(max(1, l.Count))
	return math.Sqrt(max(0, l.sum2/n-2*zero*l.sum/n+zero*zero*float64(min(1, l.Count))))
}

// ClippedShare returns the share of clipped values, from 0 to 1. Types of 1 bit have none, because both codes are ends.
func (l *Levels) ClippedShare() float64 {
	if l.r.Bits == 1 {
		return 0
	}
	return float64(l.Clipped) / float64(max(1, l.Count))
}

// Stuck returns the bits of a code below its highest changing bit that were 0, and that were 1, in every value. Codes of offset binary are in two's
// complement here. It returns 0 for values that are all equal, for floating-point values, and for types of more than 24 bits, which a float32 rounds.
func (l *Levels) Stuck() (zeros, ones uint64) {
	changing := l.any &^ l.ones & (1<<l.r.Bits - 1)
	if changing == 0 || l.r.Bits > 24 {
		return 0, 0
	}
	below := uint64(1)<<(bits.Len64(changing)-1) - 1
	return below &^ l.any, below & l.ones
}

// Bins returns the counts, and the value at which bin i begins: first + i*width. The last bin contains its end.
func (l *Levels) Bins() (counts []uint64, first, width float64) {
	if l.r.Bits == 0 {
		limit := l.limit
		if limit == 0 {
			limit = 1
		}
		return l.bins, -limit, 2 * limit / float64(len(l.bins))
	}
	return l.bins, float64(l.r.Least), math.Ldexp(1, l.shift)
}

// Used returns the range of bins that have values, with a margin of a twentieth.
func (l *Levels) Used() (from, to int) {
	from = max(0, slices.IndexFunc(l.bins, func(n uint64) bool { return n > 0 }))
	for to = len(l.bins); to > from+1 && l.bins[to-1] == 0; {
		to--
	}
	margin := max(1, (to-from)/20)
	return max(0, from-margin), min(len(l.bins), to+margin)
}
