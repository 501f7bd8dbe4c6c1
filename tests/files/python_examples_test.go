package files

import (
	"image"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/daqiri/daqiri-run/tests/harness"
	"github.com/daqiri/daqiri-run/tests/tree"
)

// examples runs the programs in python/examples in a folder of its own.
type examples struct {
	t                            *testing.T
	dir, folder, python, program string
}

func newExamples(t *testing.T) *examples {
	harness.Need(t, "numpy")
	python, err := harness.PythonWith("numpy")
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs(tree.Root)
	if err != nil {
		t.Fatal(err)
	}
	return &examples{t, t.TempDir(), filepath.Join(root, "python"), python, harness.Built(t)}
}

// command returns a command in the folder, whose streams are there, too.
func (e *examples) command(argv ...string) *exec.Cmd {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = e.dir
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+e.dir, "PYTHONDONTWRITEBYTECODE=1",
		"PYTHONPATH="+e.folder+":"+filepath.Join(e.folder, "examples"))
	cmd.Stderr = &strings.Builder{}
	return cmd
}

// output runs a command and returns what it printed.
func (e *examples) output(argv ...string) string {
	e.t.Helper()
	cmd := e.command(argv...)
	out, err := cmd.Output()
	if err != nil {
		e.t.Fatalf("%v: %v\n%s%s", argv, err, out, cmd.Stderr)
	}
	return string(out)
}

func (e *examples) file(name string) string { return filepath.Join(e.folder, "examples", name) }

// image reads a picture that an example wrote.
func (e *examples) image(name string) image.Image {
	e.t.Helper()
	f, err := os.Open(filepath.Join(e.dir, name))
	if err != nil {
		e.t.Fatal(err)
	}
	defer f.Close()
	m, err := png.Decode(f)
	if err != nil {
		e.t.Fatal(err)
	}
	return m
}

// light returns the sum of the colours of a pixel.
func light(m image.Image, x, y int) uint32 {
	r, g, b, _ := m.At(x, y).RGBA()
	return r + g + b
}

// TestExampleWaterfall attaches to a script with a tone: in each line of the picture the tone's column is the brightest.
func TestExampleWaterfall(t *testing.T) {
	e := newExamples(t)
	script := e.command(e.program, "--summary", "none", e.file("tone.lua"), "--cycles", "40", "--blocks", "24")
	if err := script.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- script.Wait() }()
	t.Cleanup(func() { _ = script.Process.Kill() })
	for socket := filepath.Join(e.dir, "daqiri-run", "live"); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(socket); err == nil {
			break
		}
		select {
		case err := <-ended:
			t.Fatalf("the script ended before it had a stream: %v\n%s", err, script.Stderr)
		default:
		}
	}
	out := e.output(e.python, e.file("waterfall.py"), "live", "w.png")
	if err := <-ended; err != nil {
		t.Fatalf("%v\n%s", err, script.Stderr)
	}
	m := e.image("w.png")
	if size := m.Bounds().Size(); size != image.Pt(256, 24) || out != "24 lines in w.png\n" {
		t.Fatalf("%q: a picture of %v", out, size)
	}
	for y := range m.Bounds().Dy() {
		brightest := 0
		for x := range m.Bounds().Dx() {
			if light(m, x, y) > light(m, brightest, y) {
				brightest = x
			}
		}
		if brightest != 128+40 {
			t.Errorf("line %d: column %d is the brightest", y, brightest)
		}
	}
}

// TestExampleWaterfallOrder checks that the newest line is the first, and that missed blocks are lines without values.
func TestExampleWaterfallOrder(t *testing.T) {
	e := newExamples(t)
	out := e.output(e.python, "-c", `
import numpy as np, daqiri_run, waterfall, picture
class Block:
    def __init__(self, at, missed): self.at, self.missed = at, missed
    def samples(self): return np.exp(2j * np.pi * self.at * np.arange(512) / 256).astype(np.complex64).view(np.float32)
class Live:
    def __enter__(self): return iter([Block(10, 0), Block(-20, 2)])
    def __exit__(self, *_): pass
daqiri_run.attach = lambda name: Live()
lines = waterfall.waterfall("live")
assert lines.shape == (4, 256) and np.isnan(lines[1:3]).all() and lines[0].argmax() == 108 and lines[3].argmax() == 138, lines
image = picture.colours(lines)
assert (image[1:3] == 128).all() and image[0, 108].sum() > 700 and image[0, 0].sum() < 200, image
print("right")
`)
	if out != "right\n" {
		t.Error(out)
	}
}

// TestExampleSpectrum averages block files with a tone of a negative frequency: the curve's peak is in its column, and all packets that came count.
func TestExampleSpectrum(t *testing.T) {
	e := newExamples(t)
	if err := os.Mkdir(filepath.Join(e.dir, "captures"), 0o755); err != nil {
		t.Fatal(err)
	}
	e.output(e.program, "--summary", "none", e.file("tone.lua"), "--readers", "0", "--dir", "captures", "--cycles", "-25", "--blocks", "24", "--loss", "0.1")
	out := e.output(e.python, e.file("spectrum.py"), "captures/disk_000000.dqb", "s.png")
	count := e.output(e.python, "-c", `import daqiri_run; print(daqiri_run.blocks("captures/disk_000000.dqb")["packets"].sum())`)
	if want := "mean of " + strings.TrimSpace(count) + " packets: highest at -25 of -128 to 127\n"; out != want {
		t.Errorf("%q, want %q", out, want)
	}
	m := e.image("s.png")
	for x := range m.Bounds().Dx() {
		if black := light(m, x, 0) == 0; black != (x == 128-25 || x == 128-24) { // up in one column, down in the next
			t.Errorf("column %d at the top: %v", x, black)
		}
	}
}

// TestExampleNotebook runs the cells: the blocks that they get are those of the summary, and the power is that of the tone.
func TestExampleNotebook(t *testing.T) {
	e := newExamples(t)
	out := e.output(e.python, e.file("notebook.py"), e.program)
	for _, want := range []string{"32 blocks, mean power 6", "    live stage    in     32 out     32\n", "exit code 0\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
}
