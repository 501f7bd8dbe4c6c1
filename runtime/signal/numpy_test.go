package signal

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os/exec"
	"testing"

	"github.com/daqiri/daqiri-run/tests/require"
)

// fromNumpy reads float32 values and computes the same figures in float64.
const fromNumpy = `
import json, sys, numpy as np
points, window, full, zero, pairs = int(sys.argv[1]), sys.argv[2], float(sys.argv[3]), float(sys.argv[4]), sys.argv[5] == "true"
v = np.frombuffer(sys.stdin.buffer.read(), "<f4").astype(float)
x = v - zero
if pairs: x = x[::2] + 1j * x[1::2]
t = 2 * np.pi * np.arange(points) / points
w = {"none": np.ones(points), "hann": 0.5 - 0.5 * np.cos(t),
     "blackman-harris": 0.35875 - 0.48829 * np.cos(t) + 0.14128 * np.cos(2 * t) - 0.01168 * np.cos(3 * t)}[window]
b = x[:len(x) // points * points].reshape(-1, points) * w
X = np.fft.fftshift(np.fft.fft(b), axes=1) if pairs else np.fft.rfft(b)
a = np.abs(X) / (points * w.mean() * full)
if not pairs: a[:, 1:-1] *= 2
db = lambda p: list(10 * np.log10(np.maximum(p, 1e-20)))
p = a ** 2
json.dump({"average": db(p.mean(0)), "most": db(p.max(0)), "least": db(p.min(0)), "rms": float(np.sqrt(((v - zero) ** 2).mean())),
           "mean": float(v.mean()), "histogram": np.histogram(v, bins=int(sys.argv[6]), range=(float(sys.argv[7]), float(sys.argv[8])))[0].tolist()}, sys.stdout)
`

type figures struct {
	Average, Most, Least []float64
	RMS, Mean            float64
	Histogram            []uint64
}

func numpy(t *testing.T, values []float32, points int, w Window, r Range, least, most float64, bins int) (f figures) {
	t.Helper()
	python := ""
	for _, p := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(p, "-c", "import numpy").Run() == nil {
			python = p
			break
		}
	}
	if python == "" {
		require.Lack(t, "numpy", "no python3 has numpy")
	}
	cmd := exec.Command(python, "-c", fromNumpy, fmt.Sprint(points), w.Name, fmt.Sprint(r.Full()), fmt.Sprint(r.Zero()), fmt.Sprint(r.Complex),
		fmt.Sprint(bins), fmt.Sprint(least), fmt.Sprint(most))
	var in, errs bytes.Buffer
	if err := binary.Write(&in, binary.LittleEndian, values); err != nil {
		t.Fatal(err)
	}
	cmd.Stdin, cmd.Stderr = &in, &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, errs.Bytes())
	}
	if err := json.Unmarshal(out, &f); err != nil {
		t.Fatal(err)
	}
	return f
}

// codes returns a tone in noise as codes of r.
func codes(r Range, samples int) []float32 {
	rng := rand.New(rand.NewPCG(1, 2))
	out := make([]float32, 0, samples*r.Step())
	for i := range samples {
		for part := range r.Step() {
			phase := 2*math.Pi*0.1234*float64(i) - math.Pi/2*float64(part)
			v := 0.4*math.Cos(phase) + 0.05*rng.NormFloat64()
			if r.Bits > 0 {
				v = math.Round(v*r.Full() + r.Zero())
			}
			out = append(out, float32(v))
		}
	}
	return out
}

func TestAgainstNumpy(t *testing.T) {
	for _, c := range []struct {
		name   string
		r      Range
		window int
		points int
	}{
		{"complex, 12 bits", Range{Complex: true, Bits: 12, Least: -2048}, 0, 1024},
		{"real, unsigned", Range{Bits: 10}, 1, 512},
		{"real, 8 bits, no window", Range{Bits: 8, Least: -128}, 2, 64},
		{"complex floats", Range{Complex: true}, 1, 256},
	} {
		t.Run(c.name, func(t *testing.T) {
			values := codes(c.r, 8*c.points+5)
			s, err := NewSpectrum(c.points, Windows[c.window], c.r)
			if err != nil {
				t.Fatal(err)
			}
			l := NewLevels(c.r)
			for rest := values; len(rest) > 0; { // in pieces of no whole number of blocks
				n := min(len(rest), 2*77)
				s.Add(rest[:n])
				l.Add(rest[:n])
				rest = rest[n:]
			}
			s.Break()
			if s.Blocks != 8 || s.Unused != 5 {
				t.Errorf("%d blocks and %d unused samples, expected 8 and 5", s.Blocks, s.Unused)
			}
			bins, first, width := l.Bins()
			want := numpy(t, values, c.points, Windows[c.window], c.r, first, first+width*float64(len(bins)), len(bins))
			near(t, "average", s.Average(), want.Average, 0.05)
			near(t, "max hold", s.MaxHold(), want.Most, 0.05)
			near(t, "min hold", s.MinHold(), want.Least, 0.5)
			near(t, "rms and mean", []float64{l.RMS(), l.Mean()}, []float64{want.RMS, want.Mean}, 1e-4)
			for i := range bins {
				if bins[i] != want.Histogram[i] {
					t.Errorf("bin %d has %d values, numpy's %d", i, bins[i], want.Histogram[i])
				}
			}
		})
	}
}

func near(t *testing.T, what string, got, want []float64, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, expected %d", what, len(got), len(want))
	}
	for i := range got {
		if math.Abs(got[i]-want[i]) > tolerance {
			t.Errorf("%s: value %d is %g, expected %g", what, i, got[i], want[i])
		}
	}
}
