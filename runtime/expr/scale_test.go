package expr

import "testing"

func TestScale(t *testing.T) {
	for text, want := range map[string]struct {
		factor float64
		number string
		power  bool
	}{
		"gain":                {1, "gain", false},
		"gain / 4096":         {1.0 / 4096, "gain", false},
		"2^-4 * (a + b) / 2":  {1.0 / 32, "a + b", false},
		"2 ^ -shift":          {1, "-shift", true},
		"3 * 2 ^ (shift - 1)": {3, "shift - 1", true},
		"gain * 2 * 0.25":     {0.5, "gain", false},
	} {
		factor, number, power, err := Scale(text)
		if err != nil || factor != want.factor || number != want.number || power != want.power {
			t.Errorf("%s: %g, %q, %v, %v; want %+v", text, factor, number, power, err, want)
		}
	}
	for _, text := range []string{"3", "gain ==", "gain == 1", ""} {
		if _, _, _, err := Scale(text); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}
