// Package picture draws samples: spectrum, waterfall, histogram, time series, constellation and gap map, as images, on a terminal, or as numbers.
//
// Figures are a signal.Set with what its pictures are labeled with. A Figures is used by one goroutine at a time.
//
// It may import runtime/signal and golang.org/x/image.
package picture

import (
	"bufio"
	"fmt"
	"image/png"
	"io"
	"math/bits"
	"os"
	"slices"
	"sync"

	"github.com/daqiri/daqiri-run/runtime/signal"
)

// maxPoints is the greatest default number of points of a transform.
const maxPoints = 4096

// Figures has what the pictures of consecutive samples show.
type Figures struct {
	*signal.Set
	Name   string        // in titles; empty: none
	Window signal.Window // of transforms
	Rate   float64       // samples per second; 0: unknown
	Center float64       // frequency of 0 cycles per sample, in Hz
}

// PointsFor returns the default number of points of a transform: the greatest power of two that is not above a run of so many samples, from 2 to 4096.
func PointsFor(run int) int { return 1 << (bits.Len(uint(min(maxPoints, max(2, run)))) - 1) }

// A kind is a kind of picture.
type kind struct {
	name    string
	image   func(*Figures) *chart
	drawing func(*Figures, *screenText)
	numbers func(*Figures, *screenText)
}

var kinds = []kind{
	{"spectrum", (*Figures).spectrum, (*Figures).spectrumDrawing, (*Figures).spectrumNumbers},
	{"waterfall", (*Figures).waterfall, (*Figures).waterfallDrawing, (*Figures).waterfallDrawing},
	{"histogram", (*Figures).histogram, (*Figures).histogramDrawing, (*Figures).histogramNumbers},
	{"time", (*Figures).timeSeries, (*Figures).timeDrawing, (*Figures).timeNumbers},
	{"constellation", (*Figures).constellation, (*Figures).constellationDrawing, (*Figures).constellationNumbers},
}

// Kinds returns the names of the kinds of pictures.
func Kinds() (names []string) {
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return names
}

// Check returns an error if there are no samples for a kind of picture.
func (f *Figures) Check(kind string) error {
	switch {
	case f.Levels.Count == 0:
		return fmt.Errorf("cannot draw the %s: there are no finite samples", kind)
	case (kind == "spectrum" || kind == "waterfall") && f.Spectrum.Blocks == 0:
		return fmt.Errorf("cannot draw the %s: a transform needs %d consecutive finite samples (set fewer points)", kind, f.Spectrum.Points())
	case kind == "constellation" && f.Constellation == nil:
		return fmt.Errorf("cannot draw the constellation: the samples are real (expected complex ones)")
	}
	return nil
}

// of returns the kind of that name, one of Kinds.
func of(name string) kind {
	return kinds[slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })]
}

// PNG writes a picture of a kind for which Check returns nil.
func (f *Figures) PNG(w io.Writer, kind string) error {
	return encode(w, func() *chart { return of(kind).image(f) })
}

// drawing is held while an image is drawn: the font can be used by one goroutine at a time.
var drawing sync.Mutex

// encode draws an image and writes it as PNG.
func encode(w io.Writer, draw func() *chart) error {
	drawing.Lock()
	c := draw()
	drawing.Unlock()
	return png.Encode(w, c.RGBA)
}

// Save creates a file and writes a picture into it, as write does. It returns an error if the file exists, unless overwrite is set. After an error of
// write the file is incomplete, and Save removes it.
func Save(name string, overwrite bool, write func(io.Writer) error) error {
	flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if overwrite {
		flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	f, err := os.OpenFile(name, flags, 0o644)
	if err != nil {
		return fmt.Errorf("cannot create the picture: %w", err)
	}
	w := bufio.NewWriter(f)
	if err = write(w); err == nil {
		err = w.Flush()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		_ = os.Remove(name)
		return fmt.Errorf("cannot write the picture %s: %w", name, err)
	}
	return nil
}
