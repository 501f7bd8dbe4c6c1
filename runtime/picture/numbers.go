package picture

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Words returns the figures in one line: level, clipped values, and the frequency of the greatest level.
func (f *Figures) Words() string {
	l := f.Levels
	if l.Count == 0 {
		return "no finite values"
	}
	text := fmt.Sprintf("rms %s%s, %s %% clipped", Rounded(l.RMS()), f.valueUnit(), Percent(l.ClippedShare()))
	if bin, level, ok := f.Spectrum.Peak(); ok {
		text += fmt.Sprintf(", peak %s %s dBFS", f.frequency(f.Spectrum.Frequency(bin)), decimals(level, 1))
	}
	return text
}

// valueUnit returns the unit of values with a space before it: integers are codes, floating-point values have none.
func (f *Figures) valueUnit() string {
	if f.Range.Bits > 0 {
		return " codes"
	}
	return ""
}

// frequency formats a frequency in cycles per sample, in Hz if the rate is known.
func (f *Figures) frequency(cycles float64) string {
	if f.Rate == 0 {
		return decimals(cycles, 4) + " cycles/sample"
	}
	factor, prefix := prefixFor(math.Abs(f.Center) + f.Rate/2)
	return Significant((cycles*f.Rate+f.Center)/factor) + " " + prefix + "Hz"
}

// prefixFor returns the decimal prefix for values up to v, and its factor.
func prefixFor(v float64) (float64, string) {
	factor, prefix := 1.0, ""
	for _, p := range []string{"k", "M", "G", "T"} {
		if v < 1000*factor {
			break
		}
		factor, prefix = factor*1000, p
	}
	return factor, prefix
}

// Significant formats v with at most six significant digits.
func Significant(v float64) string {
	if a := math.Abs(v); a >= 1e5 && a < 1e15 {
		return strconv.FormatFloat(math.Round(v), 'f', -1, 64)
	}
	return strconv.FormatFloat(v+0, 'g', 6, 64) // -0 becomes 0
}

// Rounded formats v with at most four significant digits.
func Rounded(v float64) string {
	if a := math.Abs(v); a >= 1e4 && a < 1e15 {
		return strconv.FormatFloat(math.Round(v), 'f', -1, 64)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// decimals formats v with so many digits behind the point, and no negative zero.
func decimals(v float64, digits int) string {
	text := strconv.FormatFloat(v, 'f', digits, 64)
	if strings.Trim(text, "-0.") == "" {
		return strings.TrimPrefix(text, "-")
	}
	return text
}

// Percent formats a share from 0 to 1 in percent, with two significant digits.
func Percent(share float64) string {
	switch {
	case share == 0:
		return "0"
	case share >= 0.1:
		return decimals(100*share, 1)
	}
	return strconv.FormatFloat(100*share, 'g', 2, 64)
}

// Count formats an integer with its digits in groups of three.
func Count(n uint64) string {
	text := strconv.FormatUint(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// Counted formats a number and its noun.
func Counted(n uint64, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return Count(n) + " " + noun
}
