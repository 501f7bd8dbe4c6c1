package look

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/daqiri/daqiri-run/runtime/picture"
)

// Text writes the figures of each stream in words.
func (r *Result) Text(w io.Writer) error { return r.write(w, func(*strings.Builder, *Stream) {}) }

// Terminal draws spectrum, waterfall and histogram of each stream below its figures in words. A plain screen gets numbers, without the waterfall.
func (r *Result) Terminal(w io.Writer, screen picture.Screen) error {
	return r.write(w, func(b *strings.Builder, s *Stream) {
		for _, kind := range []string{"spectrum", "waterfall", "histogram"} {
			if s.Check(kind) == nil && !(screen.Plain && kind == "waterfall") {
				b.WriteString(s.Figures.Terminal(kind, screen))
			}
		}
	})
}

// write writes the figures of each stream in words, and what more adds to them.
func (r *Result) write(w io.Writer, more func(*strings.Builder, *Stream)) error {
	var b strings.Builder
	for _, s := range r.Streams {
		if s.Name != "" {
			fmt.Fprintf(&b, "%s: ", s.Name)
		}
		b.WriteString(s.Words() + "\n")
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

// details returns further lines about a stream; those without a finding are left out.
func (s *Stream) details() (lines []string) {
	l := s.Levels
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	add("%s of type %s in %s", picture.Counted(s.Samples, "sample"), s.of.Type, picture.Counted(s.Packets, s.of.container))
	if s.Missing > 0 {
		add("%s missing: %s %%", picture.Counted(s.Missing, "sample"), picture.Percent(float64(s.Missing)/float64(s.Missing+s.Samples)))
	}
	for _, x := range []struct {
		n    uint64
		text string
	}{{s.Repeated, "%s with a number that another one has"}, {s.Late, "%s displaced too far"}} {
		if x.n > 0 {
			add(x.text, picture.Counted(x.n, "packet"))
		}
	}
	if s.Restarts > 0 {
		add("the sequence began again: %s", picture.Counted(s.Restarts, "time"))
	}
	if l.Count > 0 {
		add("values from %s to %s, mean %s", picture.Significant(l.Least), picture.Significant(l.Greatest), picture.Rounded(l.Mean()))
	}
	if zeros, ones := l.Stuck(); zeros|ones != 0 {
		add("bits that never change: %s", stuck(zeros, ones))
	}
	if l.NaN+l.Infinite > 0 {
		add("%s NaN, %s infinite", picture.Count(l.NaN), picture.Count(l.Infinite))
	}
	if p := s.Spectrum; p.Blocks > 0 {
		add("%s of %d points, window %s, %s unused", picture.Counted(uint64(p.Blocks), "transform"), p.Points(), s.Window.Title, picture.Counted(p.Unused, "sample"))
	} else if s.Samples > 0 {
		add("no spectrum: there are no %d consecutive finite samples: set --points", p.Points())
	}
	return lines
}

// notes returns lines about the whole source.
func (r *Result) notes() (lines []string) {
	skipped := r.Skipped()
	for _, why := range slices.Sorted(maps.Keys(skipped)) {
		lines = append(lines, fmt.Sprintf("skipped: %s %s", picture.Counted(skipped[why], "packet"), why))
	}
	if r.Example != "" {
		lines = append(lines, "the first one: "+r.Example)
	}
	if r.Rest > 0 {
		lines = append(lines, fmt.Sprintf("unused: %s at the end, which are not whole samples of %s", picture.Counted(r.Rest, "byte"), r.Type))
	}
	if r.shape != nil {
		lines = append(lines, fmt.Sprintf("the samples of the first packet have the dimensions %v: spectra are those of all of them, in the order of the packet", r.shape))
	}
	for _, s := range r.Streams {
		if s.Differing > 0 {
			lines = append(lines, fmt.Sprintf("%s with the same %s but other data: separate the streams by a field: --by FIELD", picture.Counted(s.Differing, "packet"),
				r.Format.Spec.Sequence))
			break
		}
	}
	return lines
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
