package signal

import (
	"math"
	"slices"
	"testing"
)

var int8Complex = Range{Complex: true, Bits: 8, Least: -128}

// tone returns complex samples of a tone in codes.
func tone(samples int, frequency, amplitude float64) []float32 {
	out := make([]float32, 0, 2*samples)
	for i := range samples {
		sin, cos := math.Sincos(2 * math.Pi * frequency * float64(i))
		out = append(out, float32(amplitude*cos), float32(amplitude*sin))
	}
	return out
}

func spectrum(t *testing.T, points int, r Range) *Spectrum {
	t.Helper()
	s, err := NewSpectrum(points, Windows[0], r)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestFullScale(t *testing.T) {
	s := spectrum(t, 64, int8Complex)
	s.Add(tone(128, -0.25, 128))
	bin, level, ok := s.Peak()
	if !ok || s.Frequency(bin) != -0.25 || math.Abs(level) > 1e-4 {
		t.Errorf("a full-scale tone at -0.25 is at %g with %g dBFS", s.Frequency(bin), level)
	}
	r := Range{Bits: 12}
	s = spectrum(t, 64, r)
	values := make([]float32, 64)
	for i := range values {
		values[i] = float32(2048 + 2048*math.Sin(2*math.Pi*0.125*float64(i)))
	}
	s.Add(values)
	bin, level, _ = s.Peak()
	if s.Frequency(bin) != 0.125 || math.Abs(level) > 1e-4 || len(s.Average()) != 33 {
		t.Errorf("a full-scale sine of unsigned codes is at %g of %d bins with %g dBFS", s.Frequency(bin), len(s.Average()), level)
	}
}

// TestNoBlockAcrossGap checks that a jump of the phase, which would widen the line of a tone, is in no block.
func TestNoBlockAcrossGap(t *testing.T) {
	s := spectrum(t, 64, int8Complex)
	for k := range 10 {
		values := tone(96+k, 0.25, 100)
		s.Add(values[2*k:])
		s.Break()
	}
	if s.Blocks != 10 || s.Unused != 320 {
		t.Errorf("%d blocks, %d samples unused, expected 10 and 320", s.Blocks, s.Unused)
	}
	if far := s.MaxHold()[16]; far > -100 {
		t.Errorf("%g dBFS far from the tone", far)
	}
}

func TestNotFinite(t *testing.T) {
	s, l := spectrum(t, 4, Range{}), NewLevels(Range{})
	e, p := NewEnvelope(4, Range{}), NewPoints(4)
	values := []float32{1, float32(math.NaN()), 0, 0, 0.5, 0.5, 0.5, 0.5, 0, float32(math.Inf(-1)), 0, 0}
	s.Add(values)
	l.Add(values)
	e.Add(values)
	p.Add(values)
	if s.Blocks != 1 || s.Unused != 8 || l.NaN != 1 || l.Infinite != 1 || l.Count != 10 || l.Clipped != 1 {
		t.Errorf("spectrum %d, %d; levels %+v", s.Blocks, s.Unused, l)
	}
	for _, c := range e.Columns(0) {
		if !(c.Greatest <= 1) || !(c.Least >= 0) {
			t.Errorf("column %v", c)
		}
	}
	if got := p.Kept(); len(got) != 4 || got[0] != 0 || got[1] != complex(0.5, 0.5) {
		t.Errorf("points %v", got)
	}
}

func TestLevels(t *testing.T) {
	r := Range{Bits: 12, Least: -2048}
	l := NewLevels(r)
	l.Add([]float32{-2048, 2047, 2047, 16, 0})
	if l.Clipped != 3 || l.Least != -2048 || l.Greatest != 2047 || l.ClippedShare() != 0.6 {
		t.Errorf("%+v", l)
	}
	l = NewLevels(r)
	l.Add([]float32{0x10 | 2, 0x20 | 2, -0x40 | 2})
	if zeros, ones := l.Stuck(); zeros != 0xd || ones != 2 {
		t.Errorf("bits %x always 0, %x always 1", zeros, ones)
	}
	l = NewLevels(Range{})
	l.Add([]float32{0, 0.001, -300, 0.002})
	bins, first, width := l.Bins()
	if bins[int((-300-first)/width)] != 1 || bins[int((0.001-first)/width)] != 3 || first != -512 {
		t.Errorf("bins from %g, width %g", first, width)
	}
	wide := NewLevels(Range{Bits: 32, Least: -1 << 31})
	wide.Add([]float32{math.MaxInt32, -1 << 31})
	if wide.Clipped != 2 || wide.bins[0] != 1 || wide.bins[maxBins-1] != 1 {
		t.Errorf("%+v", wide)
	}
}

func TestEnvelope(t *testing.T) {
	e := NewEnvelope(8, Range{})
	for i := range 100 {
		e.Add([]float32{float32(i)})
	}
	e.Gap(150)
	e.Add([]float32{-7})
	if e.Samples() != 251 || e.Per() != 32 {
		t.Fatalf("%d samples, %d per column", e.Samples(), e.Per())
	}
	c := e.Columns(0)
	if len(c) != 8 || c[0] != (Extent{0, 31}) || c[3] != (Extent{96, 99}) || !c[5].Empty() || c[7] != (Extent{-7, -7}) {
		t.Errorf("%v", c)
	}
	e.Gap(1 << 50)
	if e.Samples() != 1<<50+251 || len(e.Columns(0)) > 8 {
		t.Errorf("%d samples in %d columns", e.Samples(), len(e.Columns(0)))
	}
}

func TestWaterfall(t *testing.T) {
	w := NewWaterfall(4)
	for i := range 9 {
		power := []float64{0, 1e-4}
		if i == 5 {
			power[0] = 1 // a single block stays visible
		}
		w.now = uint64(i)
		w.Add(power)
	}
	lines := w.Lines()
	if !slices.Equal(w.Begins(), []uint64{0, 4, 8}) || len(lines) != 3 || w.Per() != 4 || lines[1][0] != 0 || lines[0][0] != floor || math.Abs(lines[2][1]+40) > 1e-9 {
		t.Errorf("%d blocks per line from %v: %v", w.Per(), w.Begins(), lines)
	}
	if least := w.Reduced(1); least[0][0] != lines[0][1] || least[1][0] != 0 {
		t.Errorf("one column: %v", least)
	}
}

// TestLive checks that each period of a live stream has figures of its own, beside those that continue.
func TestLive(t *testing.T) {
	s, err := NewSet(int8Complex, 4, Windows[2])
	if err != nil {
		t.Fatal(err)
	}
	s.Follow(1000)
	loud, quiet := slices.Repeat([]float32{127, 0}, 8), slices.Repeat([]float32{1, 0}, 8)
	s.Add(loud)
	s.Renew(2000)
	s.Gap(4)
	s.Add(quiet)
	if average, hold := s.Spectrum.Average()[2], s.Spectrum.MaxHold()[2]; math.Abs(average+42.1) > 0.1 || math.Abs(hold+0.07) > 0.01 {
		t.Errorf("average %g, max hold %g dBFS", average, hold)
	}
	if s.Levels.Greatest != 1 || s.Envelope.Samples() != 12 || s.Constellation.Kept()[0] != 1 || s.Shares.Samples() != 20 || s.Samples != 16 || s.Missing != 4 || s.Spectrum.Position != 20 {
		t.Errorf("up to %g in %d samples, %d of %d missing", s.Levels.Greatest, s.Samples, s.Missing, s.Shares.Samples())
	}
	for i := range uint64(3) {
		s.Renew(3000 + 1000*i) // the stream is interrupted
	}
	lines, begins := s.Waterfall.Lines(), s.Waterfall.Begins()
	if !slices.Equal(begins, []uint64{1000, 2000, 3000, 4000, 5000}) || lines[0][2] < -1 || lines[1][2] > -40 || lines[3] != nil {
		t.Errorf("lines from %v: %v", begins, lines)
	}
	for range 200 {
		s.Renew(6000)
	}
	if n := len(s.Waterfall.Lines()); n != liveLines {
		t.Errorf("%d lines", n)
	}
}

// TestPoints checks that points are evenly spread, in order, and that a periodic signal keeps each of its values.
func TestPoints(t *testing.T) {
	p := NewPoints(8)
	for i := range 100 {
		p.Add([]float32{float32(i), 0})
	}
	for k, got := range p.Kept() {
		if i := int(real(got)); i/16 != k {
			t.Errorf("point %d is sample %d, expected one of %d to %d", k, i, 16*k, 16*k+15)
		}
	}
	if n := len(p.Kept()); n < 6 || n > 7 {
		t.Errorf("%d points", n)
	}
	p = NewPoints(256)
	for i := range 10000 {
		p.Add([]float32{float32(i % 8), 0})
	}
	values := map[complex64]int{}
	for _, x := range p.Kept() {
		values[x]++
	}
	for v := range 8 {
		if n := values[complex(float32(v), 0)]; n < len(p.Kept())/16 || len(p.Kept()) < 128 {
			t.Errorf("%d of %d points have the value %d, expected about an eighth", n, len(p.Kept()), v)
		}
	}
}

func TestInvalid(t *testing.T) {
	for _, n := range []int{-1, 0, 1, 1000, 1 << 25} {
		if _, err := NewSpectrum(n, Windows[0], Range{}); err == nil {
			t.Errorf("%d points are accepted", n)
		}
	}
	if _, err := WindowNamed("flat"); err == nil {
		t.Error("a window \"flat\" is accepted")
	}
	if s := spectrum(t, 64, Range{}); s.Average() != nil || s.MaxHold() != nil {
		t.Error("an empty spectrum has levels")
	}
	if l := NewLevels(int8Complex); l.Mean() != 0 || l.RMS() != 0 || l.ClippedShare() != 0 {
		t.Error("empty levels have figures")
	}
}

func TestShares(t *testing.T) {
	s := NewShares(4)
	s.Add(3, false)
	s.Add(3, true)
	if got := s.Missing(); s.Per() != 2 || len(got) != 3 || got[0] != 0 || got[1] != 0.5 || got[2] != 1 {
		t.Errorf("%d samples per column: %v", s.Per(), got)
	}
	s.Add(11, false)
	if got := s.Missing(); s.Per() != 8 || s.Samples() != 17 || len(got) != 3 || got[0] != 3.0/8 || got[2] != 0 {
		t.Errorf("%d samples per column: %v", s.Per(), got)
	}
}
