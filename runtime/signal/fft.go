package signal

import (
	"fmt"
	"math"
	"math/bits"
)

// An FFT transforms blocks of a fixed number of points, a power of two. It may be used by several goroutines.
type FFT struct {
	n       int
	reverse []uint32
	twiddle []complex64 // exp(-2 pi i k/n) of the first half
}

// NewFFT returns a transform of n points; n is a power of two, at least 2.
func NewFFT(n int) (*FFT, error) {
	if n < 2 || n > 1<<24 || n&(n-1) != 0 {
		return nil, fmt.Errorf("%d is not a valid number of points (expected a power of two from 2 to %d)", n, 1<<24)
	}
	f := &FFT{n: n, reverse: make([]uint32, n), twiddle: make([]complex64, n/2)}
	for i := range f.reverse {
		f.reverse[i] = bits.Reverse32(uint32(i)) >> (32 - bits.Len(uint(n-1)))
	}
	for k := range f.twiddle {
		sin, cos := math.Sincos(-2 * math.Pi * float64(k) / float64(n))
		f.twiddle[k] = complex(float32(cos), float32(sin))
	}
	return f, nil
}

// Transform replaces the n points of x by their spectrum, from frequency 0. It does not scale.
func (f *FFT) Transform(x []complex64) {
	for i, j := range f.reverse {
		if int(j) > i {
			x[i], x[j] = x[j], x[i]
		}
	}
	for half := 1; half < f.n; half *= 2 {
		stride := f.n / (2 * half)
		for at := 0; at < f.n; at += 2 * half {
			low, high := x[at:at+half], x[at+half:at+2*half]
			for k := range low {
				w, v := f.twiddle[k*stride], high[k]
				t := complex(real(w)*real(v)-imag(w)*imag(v), real(w)*imag(v)+imag(w)*real(v))
				low[k], high[k] = low[k]+t, low[k]-t
			}
		}
	}
}
