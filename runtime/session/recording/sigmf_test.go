package recording

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

// TestSigMFTypes checks names and sizes of types against the list of the SigMF specification, and what is refused.
func TestSigMFTypes(t *testing.T) {
	for name, want := range map[string]struct {
		name, dtype string
		bytes       int
	}{
		"ci16le": {"ci16_le", "int16", 4}, "sc16": {"ci16_le", "int16", 4}, "i16be": {"ri16_be", "unconverted", 2}, "ci8": {"ci8", "int8", 2}, "u8": {"ru8", "unconverted", 1},
		"cu8": {"cu8", "unconverted", 2}, "fc32": {"cf32_le", "fp32", 8}, "f64le": {"rf64_le", "fp64", 8}, "ci32be": {"ci32_be", "unconverted", 8},
	} {
		s := Samples{Type: name}
		global, capture, l, err := s.SigMF(nil, "1")
		var members map[string]any
		if err == nil {
			err = json.Unmarshal([]byte("{"+global+"}"), &members)
		}
		dtype := l.Dtype.String()
		if l.Dtype == 0 {
			dtype = "unconverted"
		}
		if err != nil || members["core:datatype"] != want.name || dtype != want.dtype || l.Bytes != want.bytes || capture != "" || members["core:sample_rate"] != nil {
			t.Errorf("%s: %s, %+v, %q, %v", name, global, l, capture, err)
		}
	}
	for name, want := range map[string]string{
		"ci4": "no packed samples; hint: convert to int8 or int16", "i12/16le": "no packed", "o8": "no packed", "qi16le": "no packed", "f16le": "hint: convert to fp32", "ci16": "ci16",
	} {
		s := Samples{Type: name}
		if _, _, _, err := s.SigMF(nil, "1"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

// TestSigMFHeader checks which members of the global object a script may set.
func TestSigMFHeader(t *testing.T) {
	for text, want := range map[string]string{
		`["core:author"]`:      "not a table of keys and values",
		`{"author": "x"}`:      `did you mean "core:author"?`,
		`{":x": 1}`:            "expected one with a namespace",
		`{"core:sha512": "0"}`: "can't be set",
	} {
		if _, err := ParseHeader(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	members, err := ParseHeader(`{"core:author": "}{", "a:b": {"c": [1]}}`)
	f := 1.4e9
	s := Samples{Type: "ci8", Rate: 250e6, Frequency: &f}
	if err != nil {
		t.Fatal(err)
	}
	global, capture, _, err := s.SigMF(members, "1.2")
	const want = `"a:b":{"c":[1]},"core:author":"}{","core:datatype":"ci8","core:recorder":"daqiri-run 1.2","core:sample_rate":250000000,"core:version":"1.2.0"`
	if err != nil || global != want || capture != `"core:frequency":1400000000` {
		t.Errorf("%s\n%s, %v", global, capture, err)
	}
}

// TestSamplesCheck refuses numbers that no recording has.
func TestSamplesCheck(t *testing.T) {
	inf, nan, low := math.Inf(1), math.NaN(), -1e9
	for _, s := range []Samples{{Rate: inf}, {Rate: nan}, {Rate: -1}, {Rate: 1.1e12}, {Frequency: &inf}, {Frequency: &nan}} {
		if key, err := s.Check(); err == nil || (key == "rate") != (s.Rate != 0) {
			t.Errorf("%+v: %s, %v", s, key, err)
		}
	}
	s := Samples{Rate: 1e12, Frequency: &low}
	if _, err := s.Check(); err != nil {
		t.Error(err)
	}
}
