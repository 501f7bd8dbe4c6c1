package picture

import (
	"bytes"
	"errors"
	"image/png"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/runtime/signal"
)

// TestLabels checks that the labels of an axis exist and do not overlap, for ranges of any size.
func TestLabels(t *testing.T) {
	for _, pixels := range []int{300, 800} {
		for e := -30; e < 38; e++ {
			for _, a := range []axis{{from: 0, to: math.Pow10(e)}, {from: -3 * math.Pow10(e), to: 4.5 * math.Pow10(e)}, {from: math.Pow10(e), to: 1.07 * math.Pow10(e)}, {from: -0.01 * math.Pow10(e), to: math.Pow10(e)}} {
				values, labels := a.wide(pixels)
				if len(labels) == 0 {
					t.Errorf("no label from %g to %g", a.from, a.to)
				}
				if slices.Contains(labels, "-0") {
					t.Errorf("labels %q", labels)
				}
				for i := 1; i < len(values); i++ {
					if a.at(values[i], pixels)-a.at(values[i-1], pixels) < (textWidth(labels[i])+textWidth(labels[i-1]))/2 {
						t.Errorf("labels %q and %q overlap on %d pixels", labels[i-1], labels[i], pixels)
					}
				}
			}
		}
	}
}

func figures(t *testing.T, r signal.Range, points int) *Figures {
	t.Helper()
	set, err := signal.NewSet(r, points, signal.Windows[0])
	if err != nil {
		t.Fatal(err)
	}
	return &Figures{Set: set, Window: signal.Windows[0]}
}

// tone returns figures of 8-bit complex samples: a tone of so many cycles per sample at half of full scale.
func tone(t *testing.T, frequency float64, samples int) *Figures {
	t.Helper()
	f := figures(t, signal.Range{Complex: true, Bits: 8, Least: -128}, PointsFor(samples))
	var values []float32
	for k := range samples {
		sin, cos := math.Sincos(2 * math.Pi * frequency * float64(k))
		values = append(values, float32(math.Round(64*cos)), float32(math.Round(64*sin)))
	}
	f.Add(values)
	return f
}

// dotsOf returns the rows of braille characters of a drawing, without labels.
func dotsOf(text string) (rows [][]rune) {
	for line := range strings.Lines(text) {
		if at := strings.IndexFunc(line, func(r rune) bool { return r >= 0x2800 && r < 0x2900 }); at >= 0 {
			rows = append(rows, []rune(strings.TrimSpace(line[at:])))
		}
	}
	return rows
}

// TestTone checks that a tone is at its frequency on a terminal, and not at its mirror.
func TestTone(t *testing.T) {
	f := tone(t, 0.25, 4096)
	rows := dotsOf(f.Terminal("spectrum", Screen{}))
	if len(rows) != tall {
		t.Fatalf("%d rows", len(rows))
	}
	at := slices.IndexFunc(rows[0], func(r rune) bool { return r != 0x2800 })
	if want := 3 * len(rows[0]) / 4; at < want-1 || at > want+1 {
		t.Errorf("the tone is in column %d of %d, expected %d", at, len(rows[0]), want)
	}
	f.Rate, f.Center = 1e6, 100e6
	if got := f.Words(); got != "rms 45.25 codes, 0 % clipped, peak 100.25 MHz -6.0 dBFS" {
		t.Error(got)
	}
	if text := f.Terminal("spectrum", Screen{Plain: true}); !strings.Contains(text, "Frequency (MHz)") || !strings.Contains(text, "\n100.25\t-6.0\t-6.0\t-6.0\n") {
		t.Error(text)
	}
}

// TestDots checks the time series and the constellation of a tone of a quarter of the rate, which has four points.
func TestDots(t *testing.T) {
	f := tone(t, 0.25, 64)
	points := dotsOf(f.Terminal("constellation", Screen{}))
	on := 0
	for _, row := range points {
		for _, r := range row {
			if r != 0x2800 {
				on++
			}
		}
	}
	if len(points) != square || len(points[0]) != 2*square || on != 4 {
		t.Errorf("%d characters with dots in %d rows:\n%s", on, len(points), f.Terminal("constellation", Screen{}))
	}
	if text := f.Terminal("constellation", Screen{Plain: true}); !strings.HasPrefix(text, "Real part (codes)\tImaginary part (codes)\n64\t0\n0\t64\n-64\t0\n0\t-64\n") {
		t.Error(text)
	}
	if rows := dotsOf(f.Terminal("time", Screen{})); len(rows) != 2*tall {
		t.Errorf("%d rows of both parts", len(rows))
	}
	f.Gap(64)
	text := f.Terminal("time", Screen{Plain: true})
	if !strings.HasPrefix(text, "Time (samples)\treal part, least\treal part, greatest\timaginary part, least\timaginary part, greatest\n0\t0\t64\t0\t64\n") ||
		!strings.HasSuffix(text, "\n126\t-\t-\t-\t-\n") {
		t.Error(text)
	}
	rows := dotsOf(f.Terminal("time", Screen{}))
	for _, row := range rows {
		for x, r := range row {
			if x > len(row)/2 && r != 0x2800 {
				t.Errorf("a dot in column %d of %d, where samples are missing", x, len(row))
			}
		}
	}
}

// TestKinds checks which pictures are possible, and that each of these is a PNG file.
func TestKinds(t *testing.T) {
	f := tone(t, 0.1, 64)
	for _, kind := range Kinds() {
		var b bytes.Buffer
		if err := errors.Join(f.Check(kind), f.PNG(&b, kind)); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		if _, err := png.Decode(&b); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		for _, screen := range []Screen{{}, {Width: 60, Color: true}, {Plain: true}} {
			if !strings.Contains(f.Terminal(kind, screen), "\n") {
				t.Errorf("%s on %+v is empty", kind, screen)
			}
		}
	}
	real := figures(t, signal.Range{Bits: 8, Least: -128}, 16)
	wantError(t, real.Check("time"), "there are no finite samples")
	real.Add(make([]float32, 15))
	wantError(t, real.Check("waterfall"), "cannot draw the waterfall: a transform needs 16 consecutive finite samples")
	wantError(t, real.Check("constellation"), "the samples are real")
	if err := real.Check("histogram"); err != nil {
		t.Error(err)
	}
}

func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, expected %q", err, want)
	}
}

// TestSave checks that an existing file stays unless it may be replaced, and that a file of which a part could not be written does not.
func TestSave(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x.png")
	content := func(text string) func(io.Writer) error {
		return func(w io.Writer) error {
			_, err := io.WriteString(w, text)
			return err
		}
	}
	if err := Save(name, false, content("first")); err != nil {
		t.Fatal(err)
	}
	if err := Save(name, false, content("second")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("error %v", err)
	}
	if got, _ := os.ReadFile(name); string(got) != "first" {
		t.Errorf("the file has %q", got)
	}
	if err := Save(name, true, content("third")); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(name); string(got) != "third" {
		t.Errorf("the file has %q", got)
	}
	wantError(t, Save(name+"2", false, func(io.Writer) error { return io.ErrShortWrite }), "cannot write the picture "+name+"2: short write")
	if _, err := os.Stat(name + "2"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the incomplete file: %v", err)
	}
}
