package signal

import (
	"fmt"
	"math"
	"strings"
)

// A Window is the shape by which the samples of a block are multiplied before its transform.
type Window struct {
	Name  string    // as users write it
	Title string    // as pictures have it
	terms []float64 // of cosines with alternating signs
}

// Windows lists the windows. The first is the default.
var Windows = []Window{
	{"hann", "Hann", []float64{0.5, 0.5}},
	{"blackman-harris", "Blackman-Harris", []float64{0.35875, 0.48829, 0.14128, 0.01168}},
	{"none", "none", []float64{1}},
}

// WindowNamed returns the window of that name.
func WindowNamed(name string) (Window, error) {
	var names []string
	for _, w := range Windows {
		if w.Name == name {
			return w, nil
		}
		names = append(names, w.Name)
	}
	return Window{}, fmt.Errorf("%q is not a valid window (expected %s)", name, strings.Join(names, ", "))
}

// values returns the window of n points, periodic, and its mean.
func (w Window) values(n int) ([]float32, float64) {
	out, sum := make([]float32, n), 0.0
	for i := range out {
		v, sign := 0.0, 1.0
		for k, a := range w.terms {
			v += sign * a * math.Cos(2*math.Pi*float64(k*i)/float64(n))
			sign = -sign
		}
		out[i], sum = float32(v), sum+v
	}
	return out, sum / float64(n)
}
