package samples

import (
	"encoding/binary"
	"hash/crc32"
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

// longVectors are the floats that 4096 pseudo-random bytes become, computed elsewhere: their number, sum and CRC-32 of IEEE 802.3.
var longVectors = []struct {
	name string
	n    int
	sum  float64
	crc  uint32
}{
	{"i2", 16384, -7971, 0x11c36af1}, {"i2.lsb", 16384, -7971, 0xda57037f}, {"o2.lsb", 16384, -8119, 0x0b65fb04},
	{"i4", 8192, -3337, 0x10f568e6}, {"i4.lsb", 8192, -3337, 0x79cd79e0}, {"o4", 8192, -3945, 0x35710cd9},
	{"i10", 3276, -4190, 0xb9f51b22}, {"u10.lsb", 3276, 1683015, 0xbd76ce70}, {"i12", 2730, 7703, 0x737b9d04},
	{"i12.w32le", 2730, 36178, 0x12096212}, {"u12.lsb", 2730, 5612748, 0xd58361ed}, {"u14", 2340, 19311816, 0x95c30189},
	{"i16be", 2048, 418915, 0xb4adc4f7}, {"i16le", 2048, 1861488, 0xd1f8fecc}, {"o8", 4096, -1837, 0x0e5c8e7b},
	{"o16be", 2048, 549987, 0x09146d55},
}

func TestLongVectors(t *testing.T) {
	data, x := make([]byte, 4096), uint32(1)
	for i := range data {
		x = (1103515245*x + 12345) & (1<<31 - 1)
		data[i] = byte(x >> 16)
	}
	if crc32.ChecksumIEEE(data) != 0x4641a512 {
		t.Fatal("the bytes are others")
	}
	for _, v := range longVectors {
		typ, err := Parse(v.name)
		if err != nil {
			t.Fatal(err)
		}
		units := (len(data) + typ.Unit() - 1) / typ.Unit()
		got, err := typ.Append(nil, append(data[:len(data):len(data)], make([]byte, typ.Unit())...)[:units*typ.Unit()]) // the last one may be longer than the data
		if err != nil || len(got) < v.n {
			t.Fatalf("%s: %d numbers, %v", v.name, len(got), err)
		}
		sum, bytes := 0.0, []byte(nil)
		for _, f := range got[:v.n] {
			sum += float64(f)
			bytes = binary.LittleEndian.AppendUint32(bytes, math.Float32bits(f))
		}
		if crc := crc32.ChecksumIEEE(bytes); sum != v.sum || crc != v.crc {
			t.Errorf("%s: sum %g, CRC %#x; want %g, %#x", v.name, sum, crc, v.sum, v.crc)
		}
	}
}
