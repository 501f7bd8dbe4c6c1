package picture

import (
	"image"
	"math"
	"strconv"
)

// axis maps values to pixels.
type axis struct {
	label    string
	from, to float64 // values at the ends
	names    []string
}

// at returns the position of v on an axis of so many pixels.
func (a axis) at(v float64, pixels int) int {
	return int(math.Round((v - a.from) / (a.to - a.from) * float64(pixels-1)))
}

// step returns a distance of ticks, 1, 2 or 5 times a power of ten, with at most so many ticks.
func (a axis) step(ticks int) float64 {
	span := math.Abs(a.to - a.from)
	power := math.Pow(10, math.Floor(math.Log10(span/float64(max(1, ticks)))))
	for _, m := range []float64{1, 2, 5, 10} {
		if span/(m*power) <= float64(ticks) {
			return m * power
		}
	}
	return 20 * power
}

// ticks returns the values at a distance, and their labels.
func (a axis) ticks(step float64) (values []float64, labels []string) {
	digits := max(0, int(-math.Floor(math.Log10(step)+1e-9)))
	low, high := min(a.from, a.to), max(a.from, a.to)
	for k := math.Ceil(low/step - 1e-9); k*step <= high+step*1e-9; k++ {
		v := k*step + 0 // -0 becomes 0
		values = append(values, v)
		text := decimals(v, digits)
		if high >= 1e6 || low <= -1e6 || digits > 4 {
			text = strconv.FormatFloat(v, 'g', 2+int(math.Log10(max(high, -low)/step)), 64)
		}
		labels = append(labels, text)
	}
	return values, labels
}

// wide returns the ticks of a horizontal axis of so many pixels: their labels do not overlap.
func (a axis) wide(pixels int) (values []float64, labels []string) {
	for n := max(2, pixels/60); n > 1; n-- {
		values, labels = a.ticks(a.step(n))
		width := 0
		for _, l := range labels {
			width = max(width, textWidth(l))
		}
		if len(labels) < 2 || a.at(values[1], pixels)-a.at(values[0], pixels) > width+12 {
			break
		}
	}
	return values, labels
}

// padded returns a range that contains both values, is not empty, and has a margin of 5 %.
func padded(low, high float64) (float64, float64) {
	if !(low < high) {
		low, high = low-1, low+1
	}
	margin := (high - low) * 0.05
	return low - margin, high + margin
}

// chart is a picture with axes around a plot.
type chart struct {
	*canvas
	plot image.Rectangle
	x, y axis
}

// newChart returns an empty chart. Its title and the text below it are above the plot; side is the free space right of it in pixels.
func newChart(width, height, side int, title, below string, x, y axis) *chart {
	c := &chart{canvas: newCanvas(width, height), x: x, y: y}
	values, labels := y.named(height - 110)
	broad := 0
	for _, l := range labels {
		broad = max(broad, textWidth(l))
	}
	c.plot = image.Rect(lineHeight+broad+20, 3*lineHeight, width-side-20, height-2*lineHeight-12)
	c.text(c.plot.Min.X, lineHeight, title, left)
	c.text(c.plot.Min.X, 2*lineHeight+2, below, left)
	for i, v := range values {
		at := c.row(v)
		if len(y.names) == 0 {
			c.column(c.plot, c.plot.Min.X, at, at, grid)
			c.fill(image.Rect(c.plot.Min.X, at, c.plot.Max.X, at+1), grid)
		}
		c.text(c.plot.Min.X-6, at+5, labels[i], right)
	}
	c.upwards(lineHeight, (c.plot.Min.Y+c.plot.Max.Y)/2, y.label)
	values, labels = x.wide(c.plot.Dx())
	for i, v := range values {
		at := c.plot.Min.X + x.at(v, c.plot.Dx())
		c.fill(image.Rect(at, c.plot.Min.Y, at+1, c.plot.Max.Y), grid)
		c.text(at, c.plot.Max.Y+lineHeight, labels[i], center)
	}
	c.text((c.plot.Min.X+c.plot.Max.X)/2, c.plot.Max.Y+2*lineHeight+4, x.label, center)
	c.frame(c.plot)
	return c
}

// named returns the ticks of a vertical axis of about so many pixels. An axis of names has one at each whole value, or every few ones.
func (a axis) named(pixels int) (values []float64, labels []string) {
	if len(a.names) == 0 {
		return a.ticks(a.step(max(2, pixels/36)))
	}
	every := (len(a.names)*lineHeight + pixels - 1) / max(1, pixels)
	for i := 0; i < len(a.names); i += max(1, every) {
		values, labels = append(values, float64(i)+0.5), append(labels, a.names[i])
	}
	return values, labels
}

// row returns the pixel row of a value.
func (c *chart) row(v float64) int { return c.plot.Max.Y - 1 - c.y.at(v, c.plot.Dy()) }

// frame draws the border of an area.
func (c *canvas) frame(r image.Rectangle) {
	c.fill(image.Rect(r.Min.X-1, r.Min.Y-1, r.Max.X+1, r.Min.Y), ink)
	c.fill(image.Rect(r.Min.X-1, r.Max.Y, r.Max.X+1, r.Max.Y+1), ink)
	c.fill(image.Rect(r.Min.X-1, r.Min.Y-1, r.Min.X, r.Max.Y+1), ink)
	c.fill(image.Rect(r.Max.X, r.Min.Y-1, r.Max.X+1, r.Max.Y+1), ink)
}

// bar draws the scale of colors in the space right of the plot.
func (c *chart) bar(scale axis) {
	r := image.Rect(c.plot.Max.X+16, c.plot.Min.Y, c.plot.Max.X+32, c.plot.Max.Y)
	for y := r.Min.Y; y < r.Max.Y; y++ {
		c.fill(image.Rect(r.Min.X, y, r.Max.X, y+1), mapped(float64(r.Max.Y-1-y)/float64(r.Dy()-1)))
	}
	c.frame(r)
	values, labels := scale.named(r.Dy())
	broad := 0
	for i, v := range values {
		c.text(r.Max.X+6, r.Max.Y-1-scale.at(v, r.Dy())+5, labels[i], left)
		broad = max(broad, textWidth(labels[i]))
	}
	c.upwards(r.Max.X+6+broad+lineHeight+2, (r.Min.Y+r.Max.Y)/2, scale.label)
}
