package picture

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"

	"github.com/daqiri/daqiri-run/runtime/signal"
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
	tall     = 10 // rows of a spectrum, a histogram and a time series
	deep     = 16 // rows of a waterfall
	square   = 20 // rows of a constellation, which has twice as many columns
	plainLen = 64 // lines of numbers
)

// screenText is the text of a drawing in progress.
type screenText struct {
	strings.Builder
	columns int // right of the margin
	color   bool
}

// Terminal returns a picture of a kind for which Check returns nil, as lines of text: a drawing, or numbers separated by tabs if the screen is plain.
// The waterfall of a plain screen is drawn in shades.
func (f *Figures) Terminal(kind string, screen Screen) string {
	b := screenText{columns: min(80, max(40, screen.Width)) - margin, color: screen.Color}
	if screen.Width == 0 {
		b.columns = 80 - margin
	}
	if screen.Plain {
		b.color = false
		of(kind).numbers(f, &b)
	} else {
		of(kind).drawing(f, &b)
	}
	return b.String()
}

func (f *Figures) spectrumDrawing(b *screenText) {
	average := reduced(f.Spectrum.Average(), 2*b.columns)
	low, high := levels([][]float64{average})
	b.bars("Level (dBFS)", average, low, max(high, slices.Max(average)))
	b.axis(f.frequencies())
}

func (f *Figures) histogramDrawing(b *screenText) {
	counts, first, step := f.Levels.Bins()
	from, to := f.Levels.Used()
	bars := reduced(shares(counts[from:to], f.Levels.Count), 2*b.columns)
	b.bars("Values (%)", bars, 0, slices.Max(bars))
	b.axis(f.valueAxis("Value", first+float64(from)*step, first+float64(to)*step))
}

// partNames are the names of the parts of complex samples.
var partNames = []string{"Real part", "Imaginary part"}

// timeDrawing draws the least and the greatest value of each column, of complex samples those of both parts.
func (f *Figures) timeDrawing(b *screenText) {
	low, high := padded(f.Levels.Least, f.Levels.Greatest)
	row := func(v float32) int { return min(4*tall-1, int((float64(v)-low)/(high-low)*4*tall)) }
	for part := range f.Range.Step() {
		name := "Value"
		if f.Range.Complex {
			name = partNames[part]
		}
		extents := joined(f.Envelope.Columns(part), 2*b.columns)
		b.dots(f.valueAxis(name, low, high), tall, b.columns, func(x, y int) bool {
			e := extents[x]
			return !e.Empty() && row(e.Least) <= y && y <= row(e.Greatest)
		})
	}
	b.axis(f.times(f.Envelope.Samples()))
}

// joined returns so many extents: the join of those that belong to each, or the nearest one if there are fewer.
func joined(columns []signal.Extent, n int) []signal.Extent {
	out := make([]signal.Extent, n)
	for i := range out {
		from := i * len(columns) / n
		out[i] = columns[from]
		for _, e := range columns[from:max(from+1, (i+1)*len(columns)/n)] {
			out[i] = out[i].Joined(e)
		}
	}
	return out
}

func (f *Figures) constellationDrawing(b *screenText) {
	limit := f.reach()
	dot := func(v float32) int { return min(4*square-1, int((float64(v)/limit+1)/2*4*square)) }
	var on [4 * square][4 * square]bool
	for _, p := range f.Constellation.Kept() {
		on[dot(real(p))][dot(imag(p))] = true
	}
	b.dots(f.valueAxis(partNames[1], -limit, limit), square, 2*square, func(x, y int) bool { return on[x][y] })
	b.columns = 2 * square
	b.axis(f.valueAxis(partNames[0], -limit, limit))
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

// bars draws values, two per character, as columns of dots from the lower edge.
func (b *screenText) bars(label string, values []float64, low, high float64) {
	b.dots(axis{label: label, from: low, to: high}, tall, len(values)/2, func(x, y int) bool {
		n := int((values[x] - low) / max(high-low, 1e-30) * 4 * tall)
		return y < n || y == 0 && values[x] > low
	})
}

// dots draws the dots for which on returns true, in braille characters below the label of the vertical axis. x and y count dots from the lower left.
func (b *screenText) dots(y axis, rows, columns int, on func(x, y int) bool) {
	fmt.Fprintf(b, "%s\n", y.label)
	for row := range rows {
		text := ""
		switch row {
		case 0:
			text = significant3(y.to)
		case rows - 1:
			text = significant3(y.from)
		}
		fmt.Fprintf(b, "%*s ", margin-1, text)
		for x := range columns {
			cell := rune(0x2800)
			for d, bits := range dotBits {
				for k, bit := range bits {
					if on(2*x+k, 4*(rows-1-row)+3-d) {
						cell |= bit
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

// axis writes the ends of a horizontal axis and its label below a drawing.
func (b *screenText) axis(a axis) {
	from, to := significant3(a.from), significant3(a.to)
	space := max(2, b.columns-len(from)-len(to)-len(a.label))
	fmt.Fprintf(b, "%*s%s%*s%s%*s%s\n", margin, "", from, space/2, "", a.label, space-space/2, "", to)
}

// waterfallDrawing draws the waterfall, the newest line on top: two lines per row in colors, otherwise one in shades.
func (f *Figures) waterfallDrawing(b *screenText) {
	all, low, high := f.newestFirst(b.columns)
	rows := min(deep, len(all))
	if b.color {
		rows = min(2*deep, len(all))
	}
	at := func(y, x int) float64 { return (all[y*len(all)/rows][x] - low) / (high - low) }
	fmt.Fprintf(b, "Level from %s to %s dBFS, the newest on top\n", significant3(low), significant3(high))
	for y := 0; y < rows; y++ {
		fmt.Fprintf(b, "%*s", margin, "")
		for x := range b.columns {
			if !b.color {
				b.WriteRune([]rune(" ░▒▓█")[min(4, max(0, int(5*at(y, x))))])
				continue
			}
			upper, lower := mapped(at(y, x)), mapped(at(min(y+1, rows-1), x))
			b.WriteString(escape(38, upper) + escape(48, lower) + "▀")
		}
		if b.color {
			b.WriteString("\x1b[0m")
			y++
		}
		b.WriteByte('\n')
	}
	b.axis(f.frequencies())
}

// escape returns the sequence that sets the color of the foreground, 38, or the background, 48.
func escape(what int, c color.RGBA) string {
	return fmt.Sprintf("\x1b[%d;2;%d;%d;%dm", what, c.R, c.G, c.B)
}

func (f *Figures) spectrumNumbers(b *screenText) {
	average, most, least := f.Spectrum.Average(), f.Spectrum.MaxHold(), f.Spectrum.MinHold()
	a, n := f.frequencies(), min(plainLen, len(average))
	fmt.Fprintf(b, "%s\taverage (dBFS)\tmax hold\tmin hold\n", a.label)
	for i := range n {
		fmt.Fprintf(b, "%s\t%s\t%s\t%s\n", Significant(a.part(i, n)), decimals(greatest(average, i, n), 1), decimals(greatest(most, i, n), 1), decimals(greatest(least, i, n), 1))
	}
}

// part returns the value at which the part i of n begins.
func (a axis) part(i, n int) float64 { return a.from + (a.to-a.from)*float64(i)/float64(n) }

func (f *Figures) histogramNumbers(b *screenText) {
	counts, first, step := f.Levels.Bins()
	from, to := f.Levels.Used()
	n := min(plainLen, to-from)
	fmt.Fprintf(b, "%s\tnumber\n", f.valueAxis("Value", 0, 0).label)
	for i := range n {
		k0, k1 := from+i*(to-from)/n, from+(i+1)*(to-from)/n
		sum := uint64(0)
		for _, c := range counts[k0:k1] {
			sum += c
		}
		fmt.Fprintf(b, "%s\t%d\n", Significant(first+float64(k0)*step), sum)
	}
}

func (f *Figures) timeNumbers(b *screenText) {
	a, n := f.times(f.Envelope.Samples()), min(plainLen, len(f.Envelope.Columns(0)))
	fmt.Fprint(b, a.label)
	var parts [][]signal.Extent
	for part := range f.Range.Step() {
		name := ""
		if f.Range.Complex {
			name = strings.ToLower(partNames[part]) + ", "
		}
		fmt.Fprintf(b, "\t%sleast\t%sgreatest", name, name)
		parts = append(parts, joined(f.Envelope.Columns(part), n))
	}
	for i := range n {
		fmt.Fprintf(b, "\n%s", Significant(a.part(i, n)))
		for _, p := range parts {
			if p[i].Empty() {
				b.WriteString("\t-\t-")
			} else {
				fmt.Fprintf(b, "\t%s\t%s", Significant(float64(p[i].Least)), Significant(float64(p[i].Greatest)))
			}
		}
	}
	b.WriteByte('\n')
}

func (f *Figures) constellationNumbers(b *screenText) {
	points := f.Constellation.Kept()
	n := min(plainLen, len(points))
	fmt.Fprintf(b, "%s\t%s\n", f.valueAxis(partNames[0], 0, 0).label, f.valueAxis(partNames[1], 0, 0).label)
	for i := range n {
		p := points[i*len(points)/n]
		fmt.Fprintf(b, "%s\t%s\n", Significant(float64(real(p))), Significant(float64(imag(p))))
	}
}

// reach returns the greatest value of an axis of a constellation, with a margin of 5 %.
func (f *Figures) reach() float64 {
	return max(math.Abs(f.Levels.Least), math.Abs(f.Levels.Greatest), 1e-30) * 1.05
}
