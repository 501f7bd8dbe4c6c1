package picture

import (
	"fmt"
	"image"
	"image/color"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/daqiri/daqiri-run/runtime/signal"
)

// Sizes of pictures in pixels.
const (
	width, height = 960, 480
	barSpace      = 96 // right of the plot for a scale of colors
)

// series is a line of a chart: y values at equal distances from the left edge to the right one.
type series struct {
	name   string
	color  color.RGBA
	values []float64
}

// line draws a series: with several values per pixel from the least to the greatest of them.
func (c *chart) line(s series) {
	n, w := len(s.values), c.plot.Dx()
	before := 0
	for px := range w {
		from, to := float64(px)/float64(w)*float64(n-1), float64(px+1)/float64(w)*float64(n-1)
		i, k := int(from), min(n-1, int(to))
		low := s.values[i] + (from-float64(i))*(s.values[min(n-1, i+1)]-s.values[i])
		high := low
		for _, v := range s.values[min(i+1, k):k] {
			low, high = min(low, v), max(high, v)
		}
		y0, y1 := c.row(high), c.row(low)
		if px > 0 { // connects it with the pixel before
			y0, y1 = min(y0, max(before, y0)), max(y1, min(before, y1))
			if before < y0 {
				y0 = before
			} else if before > y1 {
				y1 = before
			}
		}
		before = (c.row(high) + c.row(low)) / 2
		c.column(c.plot, c.plot.Min.X+px, y0, y1, s.color)
	}
}

// legend draws the names of series in the line of the title.
func (c *chart) legend(all []series) {
	x := c.plot.Max.X
	for _, s := range slices.Backward(all) {
		x -= textWidth(s.name)
		c.text(x, lineHeight, s.name, left)
		x -= 20
		c.fill(image.Rect(x, lineHeight-6, x+14, lineHeight-3), s.color)
		x -= 16
	}
}

// title returns the title of a picture of the stream.
func (f *Figures) title(what string) string {
	if f.Name == "" {
		return what
	}
	return what + ", " + f.Name
}

// frequencies returns the axis of the spectrum.
func (f *Figures) frequencies() axis {
	p := f.Spectrum
	from, to := p.Frequency(0), 0.5
	if f.Rate == 0 {
		return axis{label: "Frequency (cycles/sample)", from: from, to: to}
	}
	from, to = from*f.Rate+f.Center, to*f.Rate+f.Center
	factor, prefix := prefixFor(max(math.Abs(from), math.Abs(to)))
	return axis{label: "Frequency (" + prefix + "Hz)", from: from / factor, to: to / factor}
}

// times returns an axis of so many samples.
func (f *Figures) times(samples uint64) axis {
	n := float64(max(1, samples))
	if f.Rate == 0 {
		factor, prefix := prefixFor(n / 10)
		return axis{label: "Time (" + prefix + "samples)", to: n / factor}
	}
	seconds := n / f.Rate
	for _, u := range []struct {
		name   string
		factor float64
	}{{"s", 1}, {"ms", 1e3}, {"µs", 1e6}} {
		if seconds*u.factor >= 1 {
			return axis{label: "Time (" + u.name + ")", to: seconds * u.factor}
		}
	}
	return axis{label: "Time (ns)", to: seconds * 1e9}
}

// valueAxis returns the axis of values.
func (f *Figures) valueAxis(what string, low, high float64) axis {
	if f.Range.Bits > 0 {
		what += " (codes)"
	}
	return axis{label: what, from: low, to: high}
}

// transforms describes how a spectrum was made.
func (f *Figures) transforms() string {
	return fmt.Sprintf("%s of %d points, window %s", Counted(uint64(f.Spectrum.Blocks), "transform"), f.Spectrum.Points(), f.Window.Title)
}

// spectrum draws average and max hold.
func (f *Figures) spectrum() *chart {
	all := []series{{"max hold", orange, f.Spectrum.MaxHold()}, {"average", blue, f.Spectrum.Average()}}
	if f.Range.Complex { // the spectrum is periodic
		for i, x := range all {
			all[i].values = append(x.values, x.values[0])
		}
	}
	lowest := slices.Sorted(slices.Values(all[1].values))
	low, high := padded(lowest[len(lowest)/100], slices.Max(all[0].values))
	c := newChart(width, height, 0, f.title("Power spectrum"), f.transforms(), f.frequencies(), axis{label: "Level (dBFS)", from: low, to: high})
	for _, x := range all {
		c.line(x)
	}
	c.legend(all)
	return c
}

// waterfall draws the lines, the newest on top.
func (f *Figures) waterfall() *chart {
	c := newChart(width, height, barSpace, f.title("Waterfall"), f.transforms()+fmt.Sprintf(", %d a line", f.Waterfall.Per()), f.frequencies(),
		axis{label: "Age (transforms)", from: float64(f.Spectrum.Blocks), to: 0})
	all, low, high := f.newestFirst(c.plot.Dx())
	for y := range c.plot.Dy() {
		for x, level := range all[y*len(all)/c.plot.Dy()] {
			c.SetRGBA(c.plot.Min.X+x, c.plot.Min.Y+y, mapped((level-low)/(high-low)))
		}
	}
	c.bar(axis{label: "Level (dBFS)", from: low, to: high})
	return c
}

// greatest returns the greatest of the values that belong to one of so many columns.
func greatest(values []float64, column, columns int) float64 {
	from := column * len(values) / columns
	return slices.Max(values[from:max(from+1, (column+1)*len(values)/columns)])
}

// newestFirst returns the lines of the waterfall in so many columns, and the range of their colors.
func (f *Figures) newestFirst(columns int) (all [][]float64, low, high float64) {
	all = f.Waterfall.Lines()
	slices.Reverse(all)
	for i, line := range all {
		all[i] = reduced(line, columns)
	}
	low, high = levels(all)
	return all, low, high
}

// levels returns the range of colors: the 5th and the 99th of a hundred parts of the levels.
func levels(lines [][]float64) (low, high float64) {
	all := slices.Concat(lines...)
	slices.Sort(all)
	low, high = all[len(all)*5/100], all[min(len(all)-1, len(all)*99/100)]
	return low, max(high, low+1)
}

// histogram draws the counts of values; bars with clipped values are red.
func (f *Figures) histogram() *chart {
	counts, first, step := f.Levels.Bins()
	from, to := f.Levels.Used()
	counts = counts[from:to]
	w := width - 140
	per := max(1, (len(counts)+w-1)/w) // bins of a bar
	bars := make([]float64, (len(counts)+per-1)/per)
	for i, n := range counts {
		bars[i/per] += float64(n)
	}
	high := slices.Max(bars)
	factor, prefix := prefixFor(high)
	title := map[bool]string{true: "Number", false: "Number (" + prefix + ")"}[prefix == ""]
	low := first + float64(from)*step
	c := newChart(width, height, 0, f.title("Histogram of values"), f.Words(), f.valueAxis("Value", low, low+float64(len(bars)*per)*step),
		axis{label: title, to: high / factor * 1.05})
	r := f.Range
	for i, n := range bars {
		x0, x1 := c.plot.Min.X+i*c.plot.Dx()/len(bars), c.plot.Min.X+(i+1)*c.plot.Dx()/len(bars)
		of := blue
		if bin := from + i*per; f.Levels.ClippedShare() > 0 && r.Bits > 0 && (bin == 0 || bin+per >= 1<<min(r.Bits, 12)) {
			of = red
		}
		if n > 0 {
			c.fill(image.Rect(x0, min(c.row(n/factor), c.plot.Max.Y-1), max(x0+1, x1), c.plot.Max.Y), of)
		}
	}
	return c
}

// timeSeries draws the least and the greatest value of each column.
func (f *Figures) timeSeries() *chart {
	low, high := padded(f.Levels.Least, f.Levels.Greatest)
	e := f.Envelope
	c := newChart(width, height, 0, f.title("Time series"), fmt.Sprintf("least and greatest of %s", Counted(uint64(e.Per()), "sample")),
		f.times(e.Samples()), f.valueAxis("Value", low, high))
	parts := []series{{name: "value", color: blue}}
	if f.Range.Complex {
		parts = []series{{name: "imaginary part", color: orange}, {name: "real part", color: blue}}
	}
	for i, p := range parts {
		columns := e.Columns(len(parts) - 1 - i)
		before := signal.Extent{Least: 1}
		for px := range c.plot.Dx() {
			from := px * len(columns) / c.plot.Dx()
			x := columns[from]
			for _, o := range columns[from:max(from+1, (px+1)*len(columns)/c.plot.Dx())] {
				x = x.Joined(o)
			}
			if x.Empty() {
				before = x
				continue
			}
			y0, y1 := c.row(float64(x.Greatest)), c.row(float64(x.Least))
			if px > 0 && !before.Empty() { // connects it with the pixel before
				y0, y1 = min(y0, c.row(float64(before.Least))), max(y1, c.row(float64(before.Greatest)))
			}
			c.shade(c.plot, c.plot.Min.X+px, y0, y1, p.color)
			before = x
		}
	}
	if len(parts) > 1 {
		c.legend(parts)
	}
	return c
}

// constellation draws single samples; a pixel with more of them is darker.
func (f *Figures) constellation() *chart {
	points := f.Constellation.Kept()
	limit := f.reach()
	c := newChart(560, 560, 0, f.title("Constellation"), Counted(uint64(len(points)), "sample"), f.valueAxis("Real part", -limit, limit), f.valueAxis("Imaginary part", -limit, limit))
	for _, p := range points {
		x, y := c.plot.Min.X+c.x.at(float64(real(p)), c.plot.Dx()), c.row(float64(imag(p)))
		for dx := range 2 {
			for dy := range 2 {
				if at := image.Pt(x+dx, y+dy); at.In(c.plot) {
					c.SetRGBA(at.X, at.Y, mix(c.RGBAAt(at.X, at.Y), blue, 0.4))
				}
			}
		}
	}
	return c
}

// GapMap writes a picture of the share of missing samples of each stream over time. by are the fields that separate the streams.
func GapMap(w io.Writer, streams []*Figures, by []string) error {
	return encode(w, func() *chart { return gapMap(streams, by) })
}

func gapMap(streams []*Figures, by []string) *chart {
	var names []string
	samples := uint64(1)
	for _, s := range streams {
		names = append(names, s.Name)
		samples = max(samples, s.Shares.Samples())
	}
	label := "Stream"
	if len(by) > 0 && len(names) > 0 {
		label = fmt.Sprintf("Stream (%s)", strings.Join(by, ", "))
	}
	n := len(names)
	c := newChart(width, max(200, min(height, 110+40*n)), barSpace, "Missing samples", gapWords(streams), streams[0].times(samples),
		axis{label: label, from: float64(n), to: 0, names: names})
	for i, s := range streams {
		y0, y1 := c.plot.Min.Y+i*c.plot.Dy()/n, c.plot.Min.Y+(i+1)*c.plot.Dy()/n
		shares, per := s.Shares.Missing(), s.Shares.Per()
		for px := range c.plot.Dx() {
			from, to := uint64(px)*samples/uint64(c.plot.Dx())/per, uint64(px+1)*samples/uint64(c.plot.Dx())/per
			of := gray // the stream has ended
			if from < uint64(len(shares)) {
				of = mapped(slices.Max(shares[from:min(uint64(len(shares)), max(from+1, to))]))
			}
			c.fill(image.Rect(c.plot.Min.X+px, y0, c.plot.Min.X+px+1, y1), of)
		}
	}
	c.bar(axis{label: "Missing (%)", to: 100})
	return c
}

// gapWords returns the share of missing samples of all streams.
func gapWords(streams []*Figures) string {
	var missing, all uint64
	for _, s := range streams {
		missing, all = missing+s.Missing, all+s.Missing+s.Samples
	}
	return fmt.Sprintf("%s of %s: %s %%", Count(missing), Counted(all, "sample"), Percent(float64(missing)/float64(max(1, all))))
}
