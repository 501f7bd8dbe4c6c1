// Package signal computes what pictures of samples show: averaged spectra, the lines of a waterfall, the distribution of values, the least and the
// greatest value per column of time, and points of a constellation.
//
// Samples are float32 values in codes, as a conversion without scale returns them: one value per real sample, real and imaginary part in turn of
// complex samples. All calls take consecutive samples; Break and Gap mark missing ones, and no result combines samples of both sides. NaN and
// infinite values are counted and not drawn.
//
// The package is pure: it imports the standard library.
package signal

import "math"

// A Range describes the values of a type of samples. Its zero value has real floating-point samples.
type Range struct {
	Complex bool // values are real and imaginary parts in turn
	Bits    int  // of a code; 0: floating point, whose full scale is 1
	Least   int  // the least code: 0, or -2^(Bits-1)
}

// Full returns the amplitude of a tone of full scale.
func (r Range) Full() float64 {
	if r.Bits == 0 {
		return 1
	}
	return math.Ldexp(1, r.Bits-1)
}

// Zero returns the value that an unsigned type has in the middle of its range, and 0 for others.
func (r Range) Zero() float64 {
	if r.Bits == 0 {
		return 0
	}
	return float64(r.Least) + r.Full()
}

// Step returns the number of values per sample.
func (r Range) Step() int {
	if r.Complex {
		return 2
	}
	return 1
}

// finite reports whether v is neither NaN nor infinite.
func finite(v float32) bool { return v-v == 0 }

// Levels in dB are limited: floor is that of no power at all, and an overflow has the level ceiling.
const floor, ceiling = -200, 1000

// decibels returns the level of a power relative to a full-scale tone.
func decibels(power float64) float64 {
	if !(power > 0) {
		return floor
	}
	return min(ceiling, max(floor, 10*math.Log10(power)))
}
