package panels

import (
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/runtime/signal"
	"github.com/daqiri/daqiri-run/tests/require"
)

var int8Complex = signal.Range{Complex: true, Bits: 8, Least: -128}

// set returns figures of so many blocks of 64 samples: a tone of half of full scale at a frequency in cycles per sample.
func set(t *testing.T, frequency float64, blocks int) *signal.Set {
	t.Helper()
	s, err := signal.NewSet(int8Complex, 64, signal.Windows[0])
	if err != nil {
		t.Fatal(err)
	}
	for i := range blocks {
		var values []float32
		for k := range 64 {
			phase := 2 * math.Pi * frequency * float64(64*i+k)
			values = append(values, float32(math.Round(64*math.Cos(phase))), float32(math.Round(64*math.Sin(phase))))
		}
		s.Add(values)
	}
	return s
}

func TestOf(t *testing.T) {
	s := set(t, 0.125, 8)
	s.Gap(512)
	s.Add([]float32{127, -128})
	f := Of(s, Stream{Name: "antenna 1", Type: "ci8", Unit: "codes", Window: "Hann", Rate: 1e6, Frequency: 1e9, Packets: 9})
	if len(f.Spectrum.Average) != 64 || math.Abs(f.Spectrum.Average[40]+6) > 0.1 || f.Spectrum.From != -0.5-0.5/64 || f.Spectrum.Averages != 8 {
		t.Errorf("spectrum %+v", f.Spectrum)
	}
	w := f.Waterfall
	if w.Columns != 64 || len(w.Lines) != 8*64 || w.Lines[40] != 255 || w.Lines[10] > 128 || w.Unit != "s" || math.Abs(w.Ages[0]-577e-6) > 1e-9 || math.Abs(w.Ages[7]-1025e-6) > 1e-9 {
		t.Errorf("waterfall of %d columns, ages %v %s, colors %v", w.Columns, w.Ages, w.Unit, w.Lines[:64])
	}
	h, sum := f.Histogram, uint64(0)
	for _, n := range h.Counts {
		sum += n
	}
	if sum != 2*513 || h.First != -128 || h.Width != 1 || h.Counts[0] != 1 || h.Ends != [2]bool{true, true} || f.Clipped != 2.0/1026 {
		t.Errorf("%d values from %g: %+v, %g clipped", sum, h.First, h, f.Clipped)
	}
	if f.Samples != 513 || f.Missing != 512 || f.Gaps.Samples != 1025 || math.Abs(f.Power+6) > 0.1 || len(f.Points) != 513 {
		t.Errorf("%d samples, %d missing, %g dBFS, %d points", f.Samples, f.Missing, f.Power, len(f.Points))
	}
	if x := f.Time.Columns[1]; f.Time.Per != 2 || x[300] != nil || x[512][0] != -128 {
		t.Errorf("time series of %d columns of %g samples", len(x), f.Time.Per)
	}
	live := set(t, 0.125, 0)
	live.Follow(1e9)
	live.Renew(2e9)
	if f := Of(live, Stream{Now: 3e9}); f.Waterfall != nil || f.Histogram != nil || f.Spectrum != nil {
		t.Errorf("figures of nothing: %+v", f)
	}
	live.Add(make([]float32, 128))
	live.Renew(3e9)
	if w := Of(live, Stream{Now: 35e8}).Waterfall; w == nil || len(w.Ages) != 3 || w.Ages[0] != 0.5 || w.Ages[2] != 2.5 || len(w.Lines) != 3*64 || w.Lines[0] != 0 || w.Lines[64] != 1 {
		t.Errorf("live waterfall %+v", w)
	}
}

// TestExtremes checks that values of any size are encoded.
func TestExtremes(t *testing.T) {
	s, err := signal.NewSet(signal.Range{}, 4, signal.Windows[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []float32{0, math.MaxFloat32, -math.MaxFloat32, math.SmallestNonzeroFloat32, float32(math.NaN()), float32(math.Inf(1))} {
		s.Add([]float32{v, v, v, v})
		if _, err := json.Marshal(Of(s, Stream{})); err != nil {
			t.Errorf("with %g: %v", v, err)
		}
	}
}

// look is a script that describes the canvases: their colors in the middle row, and what the cursor shows after keys were pressed.
const look = `
const found = { kinds: [] }, of = kind => document.querySelector("[data-kind=" + kind + "]");
for (const f of document.querySelectorAll(".panel")) if (!f.hidden) found.kinds.push(f.dataset.kind);
const canvas = of("waterfall").querySelector("canvas"), g = canvas.getContext("2d");
const plot = { x: 64, y: 8, w: canvas.width - 64 - 90, h: canvas.height - 52 };
const row = g.getImageData(plot.x, plot.y + plot.h / 2, plot.w, 1).data;
let most = -1;
for (let x = 0; x < plot.w; x++) {
  const sum = row[4 * x] + row[4 * x + 1] + row[4 * x + 2];
  if (sum > most) { most = sum; found.brightest = x / plot.w; found.color = [...row.slice(4 * x, 4 * x + 3)]; }
}
const gaps = of("gaps").querySelector("canvas"), left = 110, right = gaps.width - 90, height = gaps.height - 52, h = gaps.getContext("2d");
found.gap = [0.25, 0.75].map(u => [0.25, 0.75].map(v => [...h.getImageData(left + u * (right - left), 8 + v * height, 1, 1).data.slice(0, 3)]));
const spectrum = of("spectrum");
spectrum.querySelector("canvas").dispatchEvent(new KeyboardEvent("keydown", { key: "Home" }));
for (let i = 0; i < 40; i++) spectrum.querySelector("canvas").dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight" }));
found.cursor = spectrum.querySelector("output").textContent;
canvas.dispatchEvent(new PointerEvent("pointermove", { clientX: canvas.getBoundingClientRect().left + 64 + 0.63 * plot.w, clientY: canvas.getBoundingClientRect().top + 20 }));
found.pointer = of("waterfall").querySelector("output").textContent;
const before = document.querySelectorAll("canvas");
document.querySelector("select").value = "b";
document.querySelector("select").dispatchEvent(new Event("change"));
panels.draw(document.getElementById("x"), figures);
found.same = before.length === document.querySelectorAll("canvas").length && [...before].every(c => c.isConnected);
found.title = of("spectrum").querySelector("figcaption").firstChild.textContent;
document.getElementById("found").textContent = JSON.stringify(found);
`

// TestDraw draws two streams in a browser, one with a gap, and finds tones and gaps in the pixels.
func TestDraw(t *testing.T) {
	if _, err := exec.LookPath("chromium"); err != nil {
		require.Lack(t, "chromium", err.Error())
	}
	a, b := set(t, 0.125, 8), set(t, -0.25, 4)
	b.Gap(256)
	figures, err := json.Marshal([]Figures{Of(a, Stream{Name: "a", Unit: "codes"}), Of(b, Stream{Name: "b", Unit: "codes"})})
	if err != nil {
		t.Fatal(err)
	}
	page := "<!DOCTYPE html><meta charset=utf-8><style>" + Style + "</style><div id=x></div><pre id=found></pre><script>" + Script + "\nconst figures = " + string(figures) +
		";panels.draw(document.getElementById('x'), figures);" + look + "</script>"
	name := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(name, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir="+t.TempDir(), "--virtual-time-budget=1000", "--dump-dom", "file://"+name).Output()
	if err != nil {
		t.Fatalf("chromium: %v", err)
	}
	text := regexp.MustCompile(`<pre id="found">(.*)</pre>`).FindSubmatch(out)
	var found struct {
		Kinds                  []string
		Brightest              float64
		Color                  [3]int
		Gap                    [2][2][3]int
		Cursor, Pointer, Title string
		Same                   bool
	}
	if text == nil || json.Unmarshal(text[1], &found) != nil {
		t.Fatalf("the script failed:\n%s", out)
	}
	if got := strings.Join(found.Kinds, " "); got != "spectrum waterfall histogram time constellation gaps power" {
		t.Errorf("panels: %s", got)
	}
	if math.Abs(found.Brightest-40.0/64) > 0.005 || found.Color != [3]int{253, 231, 37} {
		t.Errorf("the brightest column of the waterfall is at %g of its width, with the color %v", found.Brightest, found.Color)
	}
	dark, bright := [3]int{68, 1, 84}, [3]int{253, 231, 37}
	if want := [2][2][3]int{{dark, dark}, {dark, bright}}; found.Gap != want {
		t.Errorf("the map of missing samples has the colors %v, expected %v", found.Gap, want)
	}
	if !strings.HasPrefix(found.Cursor, "0.125 cycles/sample: average -6.05 dBFS") || !strings.HasPrefix(found.Pointer, "0.125 cycles/sample, age 64 samples: -6.1 dBFS") {
		t.Errorf("cursor %q, pointer %q", found.Cursor, found.Pointer)
	}
	if !found.Same || found.Title != "Power spectrum, b" {
		t.Errorf("the canvases are the same: %v; title %q", found.Same, found.Title)
	}
}
