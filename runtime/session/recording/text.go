package recording

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/daqiri/daqiri-run/native"
)

// MaxHeader is the maximum size of the keys in a text header, in bytes: the engine adds others.
const MaxHeader = 3040

// Keys are the keys of a text header that a script sets: a value is a string, a number or a boolean.
type Keys map[string]any

// ParseKeys returns the keys of the JSON object text; empty: none.
func ParseKeys(text string) (Keys, error) {
	keys := Keys{}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if text != "" && d.Decode(&keys) != nil {
		return nil, fmt.Errorf(`it is not a table of keys and values, such as { TELESCOPE = "test" }`)
	}
	return keys, nil
}

// textKind is a kind of text header: its keys, and how a key is written.
type textKind struct {
	key  *regexp.Regexp
	want string   // description of key
	own  []string // keys of the engine
	line func(key string, value any) (string, error)
}

var dada = textKind{regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,31}$`), "capital letters, digits and _",
	[]string{"FILE_NUMBER", "HDR_SIZE", "HDR_VERSION", "HEADER", "MJD_START", "OBS_OFFSET", "PICOSECONDS", "RESOLUTION", "UTC_START"}, dadaLine}

var guppi = textKind{regexp.MustCompile(`^[A-Z][A-Z0-9_-]{0,7}$`), "up to 8 capital letters, digits, - and _",
	[]string{"BLOCSIZE", "COMMENT", "DIRECTIO", "DROPBLK", "END", "PKTIDX", "STT_IMJD", "STT_OFFS", "STT_SMJD"}, guppiCard}

func dadaLine(key string, value any) (string, error) {
	text, ok := value.(string)
	if !ok {
		return fmt.Sprintf("%s %v\n", key, value), nil
	}
	if strings.TrimSpace(text) == "" || strings.ContainsAny(text, "#\n\x00") {
		return "", fmt.Errorf("%s: %q is not a valid value (expected a line of text without #)", key, text)
	}
	return fmt.Sprintf("%s %s\n", key, text), nil
}

// card is the size of a card, cardText the maximum of a string in it, in bytes.
const card, cardText = 80, 68

func guppiCard(key string, value any) (string, error) {
	shown := fmt.Sprintf("%20v", value)
	switch v := value.(type) {
	case string:
		quoted := strings.ReplaceAll(v, "'", "''")
		if len(quoted) > cardText || strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r > '~' }) {
			return "", fmt.Errorf("%s: %q is not a valid value (expected at most %d characters of ASCII)", key, v, cardText)
		}
		shown = fmt.Sprintf("'%-8s'", quoted)
	case bool:
		shown = fmt.Sprintf("%20s", strings.ToUpper(strconv.FormatBool(v)[:1]))
	}
	return fmt.Sprintf("%-*s", card, fmt.Sprintf("%-8s= %s", key, shown)), nil
}

// text returns the header: the given keys in front, then those of the script.
func (k *textKind) text(given, keys Keys) (string, error) {
	var b strings.Builder
	all := maps.Clone(keys)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		_, fixed := given[key]
		switch v := keys[key]; {
		case !k.key.MatchString(key):
			return "", fmt.Errorf("%q is not a valid key (expected %s)", key, k.want)
		case fixed:
			return "", fmt.Errorf("%s can't be set: it follows from 'samples'", key)
		case slices.Contains(k.own, key):
			return "", fmt.Errorf("%s can't be set: the writer sets it", key)
		default:
			switch v.(type) {
			case string, bool, json.Number:
			default:
				return "", fmt.Errorf("%s is not a valid value (expected a string, a number or a boolean)", key)
			}
		}
	}
	if all == nil {
		all = Keys{}
	}
	maps.Copy(all, given)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		line, err := k.line(key, all[key])
		if err != nil {
			return "", err
		}
		b.WriteString(line)
	}
	if b.Len() > MaxHeader {
		return "", fmt.Errorf("the keys have %d bytes, at most %d fit", b.Len(), MaxHeader)
	}
	return b.String(), nil
}

// number returns the text of a number with at most 15 digits, so that 0.004 is not 0.0040000000000000001.
func number(v float64) json.Number { return json.Number(strconv.FormatFloat(v, 'G', 15, 64)) }

var textType = regexp.MustCompile(`^(c?)(i)(2|4|8|16|32)(le)?$|^(c?)(f)(32)(le)$`)

// textType returns the bits of the samples' parts, negative for floats, whether they are complex, and their element type.
func (s *Samples) textType(format string, widths []int) (bits int, isComplex bool, d native.Dtype, err error) {
	sample, err := native.ParseSample(s.Type)
	if err != nil {
		return 0, false, d, err
	}
	name := sample.String()
	bits = sample.Bits()
	if strings.Contains(name, "f") {
		bits = -bits
	}
	if !textType.MatchString(name) || !slices.Contains(widths, bits) {
		return 0, false, d, fmt.Errorf("%s is not a type of %s; hint: convert by data_types, and write ci8", name, format)
	}
	kinds := map[int]string{8: "int8", 16: "int16", 32: "int32", -32: "fp32"}
	return bits, sample.Complex(), native.DtypeNamed(kinds[bits]), nil
}

// DADA returns the lines of a PSRDADA header, and the element type of the samples.
func (s *Samples) DADA(keys Keys) (string, native.Dtype, error) {
	bits, isComplex, d, err := s.textType("PSRDADA files", []int{2, 4, 8, 16, 32, -32})
	if err != nil {
		return "", d, err
	}
	given := Keys{"NBIT": bits, "NDIM": 1}
	if isComplex {
		given["NDIM"] = 2
	}
	if s.Rate != 0 {
		given["TSAMP"] = number(1e6 / s.Rate)
	}
	if s.Frequency != nil {
		given["FREQ"] = number(*s.Frequency / 1e6)
	}
	text, err := dada.text(given, keys)
	return text, d, err
}

// GUPPI returns the cards of a GUPPI RAW header, and the element type of the samples.
func (s *Samples) GUPPI(keys Keys) (string, native.Dtype, error) {
	bits, isComplex, d, err := s.textType("GUPPI RAW files", []int{2, 4, 8, 16})
	switch {
	case err != nil:
		return "", d, err
	case !isComplex:
		return "", d, fmt.Errorf("%s is not a type of GUPPI RAW files, which have complex samples; hint: c%s", s.Type, s.Type)
	}
	given := Keys{"NBITS": bits}
	if s.Rate != 0 {
		given["TBIN"] = number(1 / s.Rate)
	}
	if s.Frequency != nil {
		given["OBSFREQ"] = number(*s.Frequency / 1e6)
	}
	text, err := guppi.text(given, keys)
	return text, d, err
}
