package samples

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/runtime/signal"
)

func TestAppend(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct {
		name, payload string
		want          []float32
		r             signal.Range
	}{
		{"i12", "\x7f\xf8\x00", []float32{2047, -2048}, signal.Range{Bits: 12, Least: -2048}},
		{"ci12", "\x7f\xf8\x00", []float32{2047, -2048}, signal.Range{Complex: true, Bits: 12, Least: -2048}},
		{"u10.lsb", "\xff\x07\x00\x00\x00", []float32{1023, 1, 0, 0}, signal.Range{Bits: 10}},
		{"o4", "\x88\x0f", []float32{0, 0, -8, 7}, signal.Range{Bits: 4, Least: -8}},
		{"qi8", "\x01\x02", []float32{2, 1}, signal.Range{Complex: true, Bits: 8, Least: -128}},
		{"int16", "\x01\x80", []float32{-32767}, signal.Range{Bits: 16, Least: -32768}},
		{"f32be", "\x3f\x80\x00\x00\x7f\xc0\x00\x00", []float32{1, nan}, signal.Range{}},
		{"cf16le", "\x00\x3c\x01\x80", []float32{1, -0x1p-24}, signal.Range{Complex: true}},
		{"qf16be", "\x3c\x00\xfc\x00", []float32{float32(math.Inf(-1)), 1}, signal.Range{Complex: true}},
		{"bf16le", "\x80\x3f", []float32{1}, signal.Range{}},
		{"f64le", "\x00\x00\x00\x00\x00\x00\x04\xc0", []float32{-2.5}, signal.Range{}},
		{"i8", "", nil, signal.Range{Bits: 8, Least: -128}},
	} {
		t.Run(c.name, func(t *testing.T) {
			typ, err := Parse(c.name)
			if err != nil {
				t.Fatal(err)
			}
			got, err := typ.Append([]float32{7}, []byte(c.payload))
			same := func(a, b float32) bool { return a == b || a != a && b != b }
			if err != nil || got[0] != 7 || !slices.EqualFunc(got[1:], c.want, same) || typ.Range() != c.r {
				t.Errorf("%v of %+v, %v; expected 7 and %v of %+v", got, typ.Range(), err, c.want, c.r)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	if _, err := Parse("ci12le"); err == nil || !strings.Contains(err.Error(), "ci12") {
		t.Errorf("error %v", err)
	}
	typ, err := Parse("ci12")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := typ.Append(nil, make([]byte, 100)); err == nil || err.Error() != "100 bytes are not whole samples of ci12, which are multiples of 3 bytes" {
		t.Errorf("error %v", err)
	}
}
