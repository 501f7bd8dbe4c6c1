package picture

import (
	"image"
	"image/color"
	"image/draw"
	"math"
	"sync"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
)

// Colors of pictures.
var (
	white  = color.RGBA{255, 255, 255, 255}
	ink    = color.RGBA{40, 40, 40, 255}
	grid   = color.RGBA{225, 225, 225, 255}
	blue   = color.RGBA{31, 119, 180, 255}
	orange = color.RGBA{230, 120, 20, 255}
	red    = color.RGBA{200, 30, 30, 255}
	gray   = color.RGBA{190, 190, 190, 255}
)

// viridis is the color map: ten colors at equal distances, darkest first.
var viridis = []color.RGBA{{68, 1, 84, 255}, {72, 40, 120, 255}, {62, 73, 137, 255}, {49, 104, 142, 255}, {38, 130, 142, 255}, {31, 158, 137, 255},
	{53, 183, 121, 255}, {110, 206, 88, 255}, {181, 222, 43, 255}, {253, 231, 37, 255}}

// mapped returns the color of v, from 0 to 1; values beyond are those at the ends.
func mapped(v float64) color.RGBA {
	v = min(1, max(0, v)) * float64(len(viridis)-1)
	i := min(int(v), len(viridis)-2)
	return mix(viridis[i], viridis[i+1], v-float64(i))
}

// mix returns the color at t from a, 0, to b, 1.
func mix(a, b color.RGBA, t float64) color.RGBA {
	part := func(x, y uint8) uint8 { return uint8(math.Round(float64(x) + t*(float64(y)-float64(x)))) }
	return color.RGBA{part(a.R, b.R), part(a.G, b.G), part(a.B, b.B), 255}
}

// face is the font of labels, used while drawing is held.
var face = sync.OnceValue(func() font.Face {
	parsed, err := opentype.Parse(goregular.TTF)
	if err != nil {
		panic("the embedded font is invalid: " + err.Error())
	}
	f, err := opentype.NewFace(parsed, &opentype.FaceOptions{Size: 13, DPI: 72, Hinting: font.HintingFull})
	if err != nil {
		panic("the embedded font is invalid: " + err.Error())
	}
	return f
})

// lineHeight is the distance of lines of text in pixels.
const lineHeight = 17

// canvas is a picture in progress.
type canvas struct{ *image.RGBA }

func newCanvas(width, height int) *canvas {
	c := &canvas{image.NewRGBA(image.Rect(0, 0, width, height))}
	draw.Draw(c, c.Bounds(), image.NewUniform(white), image.Point{}, draw.Src)
	return c
}

func (c *canvas) fill(r image.Rectangle, of color.RGBA) {
	draw.Draw(c, r, image.NewUniform(of), image.Point{}, draw.Src)
}

// textWidth returns the width of a text in pixels.
func textWidth(text string) int { return font.MeasureString(face(), text).Ceil() }

// Alignments of a text at x.
const (
	left   = 0
	center = 1
	right  = 2
)

// text draws a text whose lower edge of letters is at y.
func (c *canvas) text(x, y int, text string, align int) {
	x -= textWidth(text) * align / 2
	d := font.Drawer{Dst: c, Src: image.NewUniform(ink), Face: face(), Dot: fixed.P(x, y)}
	d.DrawString(text)
}

// upwards draws a text from bottom to top, centered at y, with its baseline at x.
func (c *canvas) upwards(x, y int, text string) {
	w := textWidth(text)
	side := newCanvas(w, lineHeight)
	side.text(0, lineHeight-4, text, left)
	for i := range w {
		for k := range lineHeight {
			c.SetRGBA(x-lineHeight+4+k, y+w/2-i, side.RGBAAt(i, k))
		}
	}
}

// shade draws a vertical line as column does, through which what is below remains visible.
func (c *canvas) shade(r image.Rectangle, x, y0, y1 int, of color.RGBA) {
	for y := max(r.Min.Y, min(y0, y1)); y <= min(r.Max.Y-1, max(y0, y1)); y++ {
		c.SetRGBA(x, y, mix(c.RGBAAt(x, y), of, 0.65))
	}
}

// column draws a vertical line from y to another one, inside of r.
func (c *canvas) column(r image.Rectangle, x, y0, y1 int, of color.RGBA) {
	c.fill(image.Rect(x, min(y0, y1), x+1, max(y0, y1)+1).Intersect(r), of)
}
