// Package recording describes the samples of recordings for other programs: types and the texts in the files' headers.
package recording

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/daqiri/daqiri-run/native"
)

// Samples describes the samples of a stream.
type Samples struct {
	Type      string   // name of a type of samples
	Rate      float64  // samples/s; 0: unknown
	Frequency *float64 // center, in Hz; nil: unknown
}

// Layout is the size and element type of samples.
type Layout struct {
	Bytes int          // of one sample, complex ones with both parts
	Dtype native.Dtype // of its parts; DtypeBytes: a type that no stage makes
}

// Largest is the largest sample rate and frequency of a recording, in samples/s and Hz (SigMF's limit).
const Largest = 1e12

// Check returns what is wrong with the rate or the frequency, after the name of the key.
func (s *Samples) Check() (key string, err error) {
	switch {
	case s.Rate != 0 && !(s.Rate > 0 && s.Rate <= Largest):
		return "rate", fmt.Errorf("%v is not a valid sample rate (expected samples/s, above 0 and at most %.0e)", s.Rate, Largest)
	case s.Frequency != nil && !(math.Abs(*s.Frequency) <= Largest):
		return "frequency", fmt.Errorf("%v is not a valid frequency (expected Hz, at most %.0e)", *s.Frequency, Largest)
	}
	return "", nil
}

// sigmfTypes are the types of a SigMF recording by the names of this program, without the "c" of complex ones.
var sigmfTypes = map[string]struct {
	name  string
	bytes int
	dtype string
}{
	"i8": {"i8", 1, "int8"}, "u8": {"u8", 1, ""},
	"i16le": {"i16_le", 2, "int16"}, "u16le": {"u16_le", 2, ""}, "i16be": {"i16_be", 2, ""}, "u16be": {"u16_be", 2, ""},
	"i32le": {"i32_le", 4, "int32"}, "u32le": {"u32_le", 4, ""}, "i32be": {"i32_be", 4, ""}, "u32be": {"u32_be", 4, ""},
	"f32le": {"f32_le", 4, "fp32"}, "f32be": {"f32_be", 4, ""}, "f64le": {"f64_le", 8, "fp64"}, "f64be": {"f64_be", 8, ""},
}

// sigmfType returns the type's name in SigMF and its layout.
func sigmfType(name string) (string, Layout, error) {
	sample, err := native.ParseSample(name)
	if err != nil {
		return "", Layout{}, err
	}
	part, isComplex := strings.CutPrefix(sample.String(), "c")
	t, ok := sigmfTypes[part]
	switch {
	case !ok && strings.HasPrefix(part, "f"):
		return "", Layout{}, fmt.Errorf("%s is not a type of SigMF recordings; hint: convert to fp32 by s:convert or data_types, and write cf32le or f32le", sample)
	case !ok:
		return "", Layout{}, fmt.Errorf("%s is not a type of SigMF recordings, which have no packed samples; hint: convert to int8 or int16 by s:convert or data_types, and write ci8 or ci16le", sample)
	}
	l := Layout{Bytes: t.bytes, Dtype: native.DtypeNamed(t.dtype)}
	if !isComplex {
		return "r" + t.name, l, nil
	}
	l.Bytes *= 2
	return "c" + t.name, l, nil
}

// sigmfOwn are the keys of the global object that the writer sets, or that do not fit its files.
var sigmfOwn = []string{"core:data_doi", "core:datatype", "core:dataset", "core:metadata_only", "core:num_channels", "core:offset", "core:recorder",
	"core:sample_rate", "core:sha512", "core:trailing_bytes", "core:version"}

// Header is the members of a global object that a script sets, by key.
type Header map[string]json.RawMessage

// ParseHeader returns the members of the JSON object text; empty: none.
func ParseHeader(text string) (Header, error) {
	members := Header{}
	if text != "" && json.Unmarshal([]byte(text), &members) != nil {
		return nil, errors.New(`it is not a table of keys and values, such as { ["core:description"] = "test" }`)
	}
	for key := range members {
		space, name, ok := strings.Cut(key, ":")
		switch {
		case !ok || space == "" || name == "":
			near := ""
			if slices.Contains(sigmfFree, "core:"+key) {
				near = fmt.Sprintf(" (did you mean %q?)", "core:"+key)
			}
			return nil, fmt.Errorf("%q is not a valid key (expected one with a namespace, such as core:description or site:antenna)%s", key, near)
		case slices.Contains(sigmfOwn, key):
			return nil, fmt.Errorf("%q can't be set: the writer sets it, or it does not fit its files", key)
		}
	}
	return members, nil
}

// SigMF returns JSON members of the global object and of each capture of a SigMF recording, and the size and type of a sample. version is the
// program's.
func (s *Samples) SigMF(members Header, version string) (global, capture string, l Layout, err error) {
	datatype, l, err := sigmfType(s.Type)
	if err != nil {
		return "", "", l, err
	}
	all := maps.Clone(members)
	if all == nil {
		all = Header{}
	}
	set := func(key string, value any) { all[key], _ = json.Marshal(value) }
	set("core:datatype", datatype)
	set("core:version", "1.2.0")
	set("core:recorder", "daqiri-run "+version)
	if s.Rate != 0 {
		set("core:sample_rate", s.Rate)
	}
	if s.Frequency != nil {
		f, _ := json.Marshal(*s.Frequency)
		capture = `"core:frequency":` + string(f)
	}
	text, err := json.Marshal(all)
	return string(text[1 : len(text)-1]), capture, l, err
}

// sigmfFree are keys of the core namespace that scripts may set.
var sigmfFree = []string{"core:author", "core:collection", "core:description", "core:extensions", "core:geolocation", "core:hw", "core:license", "core:meta_doi"}
