package report

import (
	"math"
	"testing"

	"github.com/daqiri/daqiri-run/runtime/stats"
)

// TestHistory checks that a run of any length has a bounded number of points that preserve the totals.
func TestHistory(t *testing.T) {
	h := &history{step: 1, by: map[string]*track{}}
	const seconds, perSecond = 5000, 7
	for s := int64(1); s <= seconds; s++ {
		lines := []stats.Line{{Kind: stats.Rx, Name: "a", In: uint64(s * perSecond), InBytes: uint64(s * perSecond * 100)}}
		if s > 2500 { // a line added later
			lines = append(lines, stats.Line{Kind: stats.Writer, Name: "disk", Dropped: stats.Counts{{Name: "behind", N: uint64(s - 2500)}}})
		}
		h.look(&stats.Ledger{EndNS: s * 1e9, Lines: lines})
	}
	if n := len(h.seconds); n > mostPoints || n < mostPoints/3 {
		t.Errorf("%d points", n)
	}
	sum := func(title string, of func(*track) []float64) (total float64) {
		before := 0.0
		for i, v := range of(h.by[title]) {
			total += v * (h.seconds[i] - before)
			before = h.seconds[i]
		}
		return total
	}
	open := float64(seconds) - h.seconds[len(h.seconds)-1] // duration of the incomplete point
	if got, want := sum("a.rx.0", func(t *track) []float64 { return t.packets }), perSecond*(seconds-open); math.Abs(got-want) > 1e-6*want {
		t.Errorf("%f packets, want %f", got, want)
	}
	if got, want := sum("disk", func(t *track) []float64 { return t.dropped }), 2500-open; math.Abs(got-want) > 1e-6*want {
		t.Errorf("%f dropped, want %f", got, want)
	}
}
