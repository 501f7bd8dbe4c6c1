package look

import (
	"fmt"
	"image/color"
	"io"
	"slices"
	"strings"
)

// Screen describes a terminal.
type Screen struct {
	Width int  // columns; 0: 80
	Color bool // 24-bit colors
	Plain bool // not a terminal: numbers instead of drawings
}

// Sizes of drawings in characters.
const (
	margin   = 10 // left of a drawing, for labels
	tall     = 10 // rows of a spectrum and a histogram
	deep     = 16 // rows of a waterfall
	plainLen = 64 // lines of numbers
)

// Terminal draws spectrum, waterfall and histogram of each stream below its figures in words.
func (r *Result) Terminal(w io.Writer, screen Screen) error {
	return r.write(w, func(b *strings.Builder, s *Stream) {
		if screen.Plain {
			s.numbers(b)
		} else {
			s.drawings(b, screen)
		}
	})
}

// drawings draws a stream.
func (s *Stream) drawings(b *strings.Builder, screen Screen) {
	columns := min(80, max(40, screen.Width))
	if screen.Width == 0 {
		columns = 80
	}
	columns -= margin
	if s.Spectrum.Blocks > 0 {
		average := reduced(s.Spectrum.Average(), 2*columns)
		low, high := levels([][]float64{average})
		high = max(high, slices.Max(average))
		braille(b, "Level (dBFS)", average, low, high, columns)
		s.frequencies().below(b, columns)
		s.fall(b, columns, screen.Color)
		s.frequencies().below(b, columns)
	}
	if s.Levels.Count > 0 {
		counts, first, step := s.Levels.Bins()
		from, to := s.used(counts)
		bars := reduced(shares(counts[from:to], s.Levels.Count), 2*columns)
		braille(b, "Values (%)", bars, 0, slices.Max(bars), columns)
		s.valueAxis("Value", first+float64(from)*step, first+float64(to)*step).below(b, columns)
	}
}

// shares returns counts in percent of all.
func shares(counts []uint64, all uint64) []float64 {
	out := make([]float64, len(counts))
	for i, n := range counts {
		out[i] = 100 * float64(n) / float64(all)
	}
	return out
}

// reduced returns so many values: the greatest of those that belong to each, or the nearest one if there are fewer.
func reduced(values []float64, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = greatest(values, i, n)
	}
	return out
}

// dotBits are the bits of the dots of a braille character, by row and column.
var dotBits = [4][2]rune{{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}

// braille draws values, two per character, as columns of dots from the lower edge.
func braille(b *strings.Builder, label string, values []float64, low, high float64, columns int) {
	fmt.Fprintf(b, "%s\n", label)
	for row := range tall {
		text := ""
		switch row {
		case 0:
			text = significant3(high)
		case tall - 1:
			text = significant3(low)
		}
		fmt.Fprintf(b, "%*s ", margin-1, text)
		for x := range columns {
			cell := rune(0x2800)
			for k := range 2 {
				dots := int((values[2*x+k] - low) / max(high-low, 1e-30) * 4 * tall)
				for d := range 4 {
					if above := 4*(tall-1-row) + 3 - d; above < dots || above == 0 && values[2*x+k] > low {
						cell |= dotBits[d][k]
					}
				}
			}
			b.WriteRune(cell)
		}
		b.WriteByte('\n')
	}
}

// significant3 formats a label with three significant digits.
func significant3(v float64) string { return fmt.Sprintf("%.3g", v) }

// below writes the ends of an axis and its label below a drawing.
func (a axis) below(b *strings.Builder, columns int) {
	from, to := significant3(a.from), significant3(a.to)
	space := max(2, columns-len(from)-len(to)-len(a.label))
	fmt.Fprintf(b, "%*s%s%*s%s%*s%s\n", margin, "", from, space/2, "", a.label, space-space/2, "", to)
}

// fall draws the waterfall, the newest line on top: two lines per row in colors, otherwise one in shades.
func (s *Stream) fall(b *strings.Builder, columns int, colors bool) {
	all, low, high := s.newestFirst(columns)
	rows := min(deep, len(all))
	if colors {
		rows = min(2*deep, len(all))
	}
	at := func(y, x int) float64 { return (all[y*len(all)/rows][x] - low) / (high - low) }
	fmt.Fprintf(b, "Level from %s to %s dBFS, the newest on top\n", significant3(low), significant3(high))
	for y := 0; y < rows; y++ {
		fmt.Fprintf(b, "%*s", margin, "")
		for x := range columns {
			if !colors {
				b.WriteRune([]rune(" ░▒▓█")[min(4, max(0, int(5*at(y, x))))])
				continue
			}
			upper, lower := mapped(at(y, x)), mapped(at(min(y+1, rows-1), x))
			b.WriteString(escape(38, upper) + escape(48, lower) + "▀")
		}
		if colors {
			b.WriteString("\x1b[0m")
			y++
		}
		b.WriteByte('\n')
	}
}

// escape returns the sequence that sets the color of the foreground, 38, or the background, 48.
func escape(what int, c color.RGBA) string {
	return fmt.Sprintf("\x1b[%d;2;%d;%d;%dm", what, c.R, c.G, c.B)
}

// numbers writes spectrum and histogram as numbers, separated by tabs.
func (s *Stream) numbers(b *strings.Builder) {
	if s.Spectrum.Blocks > 0 {
		average, most, least := s.Spectrum.Average(), s.Spectrum.MaxHold(), s.Spectrum.MinHold()
		n := min(plainLen, len(average))
		fmt.Fprintf(b, "%s\taverage (dBFS)\tmax hold\tmin hold\n", s.frequencies().label)
		a := s.frequencies()
		for i := range n {
			at := a.from + (a.to-a.from)*float64(i)/float64(n)
			fmt.Fprintf(b, "%s\t%s\t%s\t%s\n", significant(at), decimals(greatest(average, i, n), 1), decimals(greatest(most, i, n), 1), decimals(greatest(least, i, n), 1))
		}
	}
	if s.Levels.Count > 0 {
		counts, first, step := s.Levels.Bins()
		from, to := s.used(counts)
		n := min(plainLen, to-from)
		fmt.Fprintf(b, "%s\tnumber\n", s.valueAxis("Value", 0, 0).label)
		for i := range n {
			k0, k1 := from+i*(to-from)/n, from+(i+1)*(to-from)/n
			sum := uint64(0)
			for _, c := range counts[k0:k1] {
				sum += c
			}
			fmt.Fprintf(b, "%s\t%d\n", significant(first+float64(k0)*step), sum)
		}
	}
}
