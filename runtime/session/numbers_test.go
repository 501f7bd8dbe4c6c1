package session

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestNumbers stores lists of every width and reads them back.
func TestNumbers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 2000 {
		v, upper := make([]uint64, r.IntN(70)), r.Uint64()
		width := round % 65
		for i := range v {
			v[i] = upper>>width<<width | r.Uint64()&(1<<width-1)
		}
		n := NewNumbers(v)
		if n.Len() != len(v) || !slices.Equal(n.List(), v) {
			t.Fatalf("%d bits: %x came back as %x", width, v, n.List())
		}
		if fewest := max((width+7)/8, 1); len(v) > 0 && len(n.low) >= 2*fewest*len(v) {
			t.Fatalf("%d numbers of %d bits take %d bytes", len(v), width, len(n.low))
		}
	}
}
