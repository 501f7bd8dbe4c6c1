package recording

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/daqiri/daqiri-run/native"
)

// MaxAttributes is the maximum size of the attributes of a Zarr array that a script sets, in bytes.
const MaxAttributes = 4095

// Zarr is what the metadata of a Zarr array have besides what the engine adds.
type Zarr struct {
	Element    string // data type of the samples' parts; empty: follows from the data
	Complex    bool
	BigEndian  bool
	Attributes string // JSON members
}

var zarrType = regexp.MustCompile(`^(c?)([iuf])(8|16|32|64)(le|be)?$`)

// Zarr returns the metadata of a Zarr array with these samples, of which the type may be empty, and the size and type of a sample. header is JSON, or
// empty.
func (s *Samples) Zarr(header string) (z Zarr, l Layout, err error) {
	if s.Type != "" {
		if z, l, err = zarrElement(s.Type); err != nil {
			return z, l, err
		}
	}
	all := map[string]any{}
	if s.Type != "" {
		all["sample_type"] = s.Type
	}
	if s.Rate != 0 {
		all["sample_rate"] = s.Rate
	}
	if s.Frequency != nil {
		all["center_frequency"] = *s.Frequency
	}
	if header != "" {
		all["header"] = header
		if json.Valid([]byte(header)) {
			all["header"] = json.RawMessage(header)
		}
	}
	text, err := json.Marshal(all)
	z.Attributes = string(text[1 : len(text)-1])
	return z, l, err
}

// zarrElement returns the data type of the parts of a type of samples, and the layout of a sample.
func zarrElement(name string) (z Zarr, l Layout, err error) {
	sample, err := native.ParseSample(name)
	if err != nil {
		return z, l, err
	}
	m := zarrType.FindStringSubmatch(sample.String())
	if m == nil {
		return z, l, fmt.Errorf("%s is not a type of Zarr arrays, which have no packed samples; hint: convert to int8 or int16 by data_types, and write ci8 or ci16le", sample)
	}
	kinds := map[string]string{"i": "int", "u": "uint", "f": "float"}
	z = Zarr{Element: kinds[m[2]] + m[3], Complex: m[1] != "", BigEndian: m[4] == "be"}
	l.Bytes = sample.Bits() / 8
	if z.Complex {
		l.Bytes *= 2
	}
	if !z.BigEndian && m[2] != "u" {
		l.Dtype = native.DtypeNamed(strings.Replace(z.Element, "float", "fp", 1))
	}
	return z, l, nil
}
