package look

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Text writes the figures of each stream in words.
func (r *Result) Text(w io.Writer) error { return r.write(w, func(*strings.Builder, *Stream) {}) }

// write writes the figures of each stream in words, and what more adds to them.
func (r *Result) write(w io.Writer, more func(*strings.Builder, *Stream)) error {
	var b strings.Builder
	for _, s := range r.Streams {
		if s.Name != "" {
			fmt.Fprintf(&b, "%s: ", s.Name)
		}
		b.WriteString(s.words() + "\n")
		for _, line := range s.details() {
			b.WriteString("  " + line + "\n")
		}
		more(&b, s)
	}
	for _, line := range r.notes() {
		b.WriteString(line + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// words returns the figures of a stream in one line.
func (s *Stream) words() string {
	l, unit := s.Levels, s.valueUnit()
	if l.Count == 0 {
		return "no finite values"
	}
	text := fmt.Sprintf("rms %s%s, %s %% clipped", rounded(l.RMS()), unit, percent(l.ClippedShare()))
	if bin, level, ok := s.Spectrum.Peak(); ok {
		text += fmt.Sprintf(", peak %s %s dBFS", s.of.frequency(s.Spectrum.Frequency(bin)), decimals(level, 1))
	}
	return text
}

// details returns further lines about a stream; those without a finding are left out.
func (s *Stream) details() (lines []string) {
	l := s.Levels
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	add("%s of type %s in %s", counted(s.Samples, "sample"), s.of.Type, counted(s.Packets, s.of.container))
	if s.Missing > 0 {
		add("%s missing: %s %%", counted(s.Missing, "sample"), percent(float64(s.Missing)/float64(s.Missing+s.Samples)))
	}
	for _, x := range []struct {
		n    uint64
		text string
	}{{s.Repeated, "%s with a number that another one has"}, {s.Late, "%s displaced too far"}} {
		if x.n > 0 {
			add(x.text, counted(x.n, "packet"))
		}
	}
	if s.Restarts > 0 {
		add("the sequence began again: %s", counted(s.Restarts, "time"))
	}
	if l.Count > 0 {
		add("values from %s to %s, mean %s", significant(l.Least), significant(l.Greatest), rounded(l.Mean()))
	}
	if zeros, ones := l.Stuck(); zeros|ones != 0 {
		add("bits that never change: %s", stuck(zeros, ones))
	}
	if l.NaN+l.Infinite > 0 {
		add("%s NaN, %s infinite", count(l.NaN), count(l.Infinite))
	}
	if p := s.Spectrum; p.Blocks > 0 {
		add("%s of %d points, window %s, %s unused", counted(uint64(p.Blocks), "transform"), p.Points(), s.of.Window.Title, counted(p.Unused, "sample"))
	} else if s.Samples > 0 {
		add("no spectrum: there are no %d consecutive finite samples: set --points", p.Points())
	}
	return lines
}

// notes returns lines about the whole source.
func (r *Result) notes() (lines []string) {
	skipped := r.Skipped()
	for _, why := range slices.Sorted(maps.Keys(skipped)) {
		lines = append(lines, fmt.Sprintf("skipped: %s %s", counted(skipped[why], "packet"), why))
	}
	if r.Example != "" {
		lines = append(lines, "the first one: "+r.Example)
	}
	if r.Rest > 0 {
		lines = append(lines, fmt.Sprintf("unused: %s at the end, which are not whole samples of %s", counted(r.Rest, "byte"), r.Type))
	}
	if r.shape != nil {
		lines = append(lines, fmt.Sprintf("the samples of the first packet have the dimensions %v: spectra are those of all of them, in the order of the packet", r.shape))
	}
	for _, s := range r.Streams {
		if s.Differing > 0 {
			lines = append(lines, fmt.Sprintf("%s with the same %s but other data: separate the streams by a field: --by FIELD", counted(s.Differing, "packet"),
				r.Format.Spec.Sequence))
			break
		}
	}
	return lines
}

// valueUnit returns the unit of values with a space before it: integers are codes, floating-point values have none.
func (s *Stream) valueUnit() string {
	if s.of.Type.Range().Bits > 0 {
		return " codes"
	}
	return ""
}

// stuck describes bits that are always 0 or always 1.
func stuck(zeros, ones uint64) string {
	var parts []string
	for bit := range 64 {
		if zeros>>bit&1 != 0 {
			parts = append(parts, fmt.Sprintf("%d is 0", bit))
		}
		if ones>>bit&1 != 0 {
			parts = append(parts, fmt.Sprintf("%d is 1", bit))
		}
	}
	return strings.Join(parts, ", ")
}

// frequency formats a frequency in cycles per sample, in Hz if the rate is known.
func (r *Result) frequency(cycles float64) string {
	if r.Rate == 0 {
		return decimals(cycles, 4) + " cycles/sample"
	}
	factor, prefix := prefixFor(r.Rate / 2)
	return significant(cycles*r.Rate/factor) + " " + prefix + "Hz"
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

// significant formats v with at most six significant digits.
func significant(v float64) string {
	if a := math.Abs(v); a >= 1e5 && a < 1e15 {
		return strconv.FormatFloat(math.Round(v), 'f', -1, 64)
	}
	return strconv.FormatFloat(v, 'g', 6, 64)
}

// rounded formats v with at most four significant digits.
func rounded(v float64) string {
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

// percent formats a share from 0 to 1 in percent, with two significant digits.
func percent(share float64) string {
	switch {
	case share == 0:
		return "0"
	case share >= 0.1:
		return decimals(100*share, 1)
	}
	return strconv.FormatFloat(100*share, 'g', 2, 64)
}

// count formats an integer with its digits in groups of three.
func count(n uint64) string {
	text := strconv.FormatUint(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// counted formats a number and its noun.
func counted(n uint64, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return count(n) + " " + noun
}
