package exit

import "testing"

func TestWorse(t *testing.T) {
	for _, c := range []struct {
		name                string
		before, found, want Code
	}{
		{"first cause", OK, Threshold, Threshold},
		{"threshold over signal", Interrupted, Threshold, Threshold},
		{"storage over threshold", Threshold, Storage, Storage},
		{"script over storage", Storage, Script, Script},
		{"script stays", Script, Storage, Script},
		{"script over device", Script, Device, Script},
		{"internal over all", Script, Internal, Internal},
	} {
		if got := Worse(c.before, c.found); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}
