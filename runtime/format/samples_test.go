package format

import (
	"math"
	"slices"
	"testing"
)

// sampled has a header of four bytes: bits, complex flag, channels, scale exponent and length.
var sampled = Spec{Name: "sampled", Payload: "size", Data: "bits ~= 15", Per: []string{"stream"}, Rows: []Row{
	{Name: "bits", Bits: 4}, {Name: "complex", Bits: 2}, {Name: "gain", Bits: 2}, {Name: "channels", Bits: 8}, {Name: "stream", Bits: 8}, {Name: "size", Bits: 8},
}, Samples: &Samples{Of: "bits + 1", Types: []Value{{4, "i4"}, {8, "i8"}}, Complex: "complex", Shape: []string{Rest, "channels"}, Scale: "2 ^ -gain",
	Rate: "1000 / channels", Count: "payload_bytes // 2", Levels: [][]float64{{-1, 1}, {-3, -1, 1, 3}}}}

// TestSampled checks the samples of packets assembled by hand.
func TestSampled(t *testing.T) {
	f, err := Compile(sampled, Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, ok := f.Sampled([]byte{0x75, 2, 9, 4, 10, 11, 12, 13})
	if !ok || s.Type != "ci8" || s.Unlisted || s.Short || s.Stream != "9 " || string(s.Data) != "\n\v\f\r" || s.Scale != 0.5 || s.Rate != 500 || s.Count != 2 ||
		!math.IsNaN(s.Offset) || !math.IsNaN(s.Time) {
		t.Errorf("%+v", s)
	}
	if got := s.Shape(6); !slices.Equal(got, []int{3, 2}) || s.Shape(5) != nil || s.Shape(0) != nil && len(s.Shape(0)) != 2 {
		t.Errorf("shapes %v, %v, %v", got, s.Shape(5), s.Shape(0))
	}
	for _, x := range []struct {
		packet          []byte
		name            string
		unlisted, short bool
		data            int
	}{
		{[]byte{0x30, 1, 0, 1, 7}, "i4", false, false, 1},
		{[]byte{0x50, 1, 0, 1, 7}, "", true, false, 1},   // 6 bits are not listed
		{[]byte{0x78, 1, 0, 1, 7}, "", true, false, 1},   // neither real nor complex
		{[]byte{0x70, 1, 0, 3, 7}, "i8", false, true, 0}, // ends before its payload
		{[]byte{0xf0, 1, 0, 1, 7}, "", true, false, 0},   // no data
		{[]byte{0x70, 0, 0}, "i8", false, true, 0},
		{nil, "", false, true, 0},
	} {
		s, ok := f.Sampled(x.packet)
		if !ok || s.Type != x.name || s.Unlisted != x.unlisted || s.Short != x.short || len(s.Data) != x.data {
			t.Errorf("%x: %+v", x.packet, s)
		}
	}
	if s, _ := f.Sampled([]byte{0x70, 0, 0, 0}); !math.IsNaN(s.Rate) {
		t.Errorf("a rate without channels is %v", s.Rate)
	}
}

// TestSampleLevels checks that levels are those of types with as many codes.
func TestSampleLevels(t *testing.T) {
	s := sampled.Samples
	if len(s.LevelsOf(1)) != 2 || len(s.LevelsOf(2)) != 4 || s.LevelsOf(4) != nil || s.LevelsOf(32) != nil {
		t.Error(s.LevelsOf(1), s.LevelsOf(2), s.LevelsOf(4))
	}
}
