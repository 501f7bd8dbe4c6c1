package baseline

import "testing"

func TestGaps(t *testing.T) {
	at := []int64{0}
	for i := 1; i <= 100; i++ {
		at = append(at, int64(i)*1000)
	}
	at[50] += 400 // late, and the gap behind it short
	g := gapsOf(at, 1000)
	if g.N != 101 || g.RateError != 0 || g.P50 != 0 || g.P99 != 400 || g.Max != 400 || g.Seconds != 1e-4 {
		t.Errorf("%+v", g)
	}
	if g = gapsOf(at, 900); g.RateError < 0.0999 || g.RateError > 0.1001 || g.P50 != 100 || g.Max != 500 {
		t.Errorf("at another pace: %+v", g)
	}
}

// TestPace: all packets of both senders come, in the order of time.
func TestPace(t *testing.T) {
	for _, c := range []struct {
		name string
		conf Pace
		ok   bool
	}{
		{"engine", Pace{PPS: 1e5, N: 3000, Engine: true}, true},
		{"plain loop", Pace{PPS: 1e5, N: 3000}, true},
		{"two packets", Pace{PPS: 1e3, N: 2, Engine: true}, true},
		{"one packet has no gap", Pace{PPS: 1e3, N: 1}, false},
		{"no pace", Pace{N: 10}, false},
		{"no packets", Pace{PPS: 10}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, err := RunPace(c.conf)
			if (err == nil) != c.ok {
				t.Fatalf("error %v", err)
			}
			if c.ok && (g.N != c.conf.N || g.P50 < 0 || g.P50 > g.P99 || g.P99 > g.Max || g.Seconds <= 0 || g.CPUSeconds <= 0) {
				t.Errorf("%+v", g)
			}
		})
	}
}
