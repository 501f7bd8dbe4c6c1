package recording

import (
	"strings"
	"testing"
)

// TestZarrTypes checks the data types of Zarr's specification, what is refused, and the attributes.
func TestZarrTypes(t *testing.T) {
	for name, want := range map[string]struct {
		z     Zarr
		bytes int
		dtype string
	}{
		"ci16le": {Zarr{Element: "int16", Complex: true}, 4, "int16"}, "i16be": {Zarr{Element: "int16", BigEndian: true}, 2, ""},
		"u8": {Zarr{Element: "uint8"}, 1, ""}, "cf32le": {Zarr{Element: "float32", Complex: true}, 8, "fp32"}, "f16le": {Zarr{Element: "float16"}, 2, "fp16"},
		"f64be": {Zarr{Element: "float64", BigEndian: true}, 8, ""}, "ci8": {Zarr{Element: "int8", Complex: true}, 2, "int8"},
	} {
		s := Samples{Type: name}
		z, l, err := s.Zarr("")
		dtype := l.Dtype.String()
		if l.Dtype == 0 {
			dtype = ""
		}
		want.z.Attributes = `"sample_type":"` + name + `"`
		if err != nil || z != want.z || l.Bytes != want.bytes || dtype != want.dtype {
			t.Errorf("%s: %+v, %+v, %v", name, z, l, err)
		}
	}
	for _, name := range []string{"ci4", "i12/16le", "o8", "qi16le", "bf16"} {
		s := Samples{Type: name}
		if _, _, err := s.Zarr(""); err == nil || !strings.Contains(err.Error(), "is not a type of Zarr arrays") {
			t.Errorf("%s: %v", name, err)
		}
	}
	f := -1.5
	for header, want := range map[string]string{"": "", `{"a":[1]}`: `"header":{"a":[1]},`, `say "x"`: `"header":"say \"x\"",`} {
		s := Samples{Rate: 2e6, Frequency: &f}
		z, l, err := s.Zarr(header)
		if err != nil || z.Element != "" || l.Bytes != 0 || z.Attributes != `"center_frequency":-1.5,`+want+`"sample_rate":2000000` {
			t.Errorf("%s: %+v, %v", header, z, err)
		}
	}
	s := Samples{}
	if z, _, err := s.Zarr(""); err != nil || z.Attributes != "" {
		t.Errorf("%+v, %v", z, err)
	}
}
