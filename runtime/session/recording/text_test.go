package recording

import (
	"strings"
	"testing"
)

// TestTextHeaders checks lines and cards, and which keys and values a script may set.
func TestTextHeaders(t *testing.T) {
	f := 1.4e9
	s := Samples{Type: "ci8", Rate: 250e6, Frequency: &f}
	keys, err := ParseKeys(`{"NPOL": 2, "BW": -0.25, "NAME": "it's", "OK": false}`)
	if err != nil {
		t.Fatal(err)
	}
	text, dtype, err := s.DADA(keys)
	if want := "BW -0.25\nFREQ 1400\nNAME it's\nNBIT 8\nNDIM 2\nNPOL 2\nOK false\nTSAMP 0.004\n"; err != nil || text != want || dtype.String() != "int8" {
		t.Errorf("%q, %s, %v", text, dtype, err)
	}
	text, dtype, err = s.GUPPI(keys)
	want := ""
	for _, card := range []string{"BW      =                -0.25", "NAME    = 'it''s   '", "NBITS   =                    8", "NPOL    =                    2",
		"OBSFREQ =                 1400", "OK      =                    F", "TBIN    =                4E-09"} {
		want += card + strings.Repeat(" ", 80-len(card))
	}
	if err != nil || text != want || dtype.String() != "int8" {
		t.Errorf("%q, %s, %v", text, dtype, err)
	}
	for _, c := range []struct{ keys, kind, want string }{
		{`[1]`, "dada", "not a table of keys and values"},
		{`{"npol": 2}`, "dada", `"npol" is not a valid key (expected capital letters, digits and _)`},
		{`{"TOOLONGKEY": 2}`, "guppi", "expected up to 8 capital letters"},
		{`{"OBS_OFFSET": 2}`, "dada", "OBS_OFFSET can't be set: the writer sets it"},
		{`{"NBIT": 2}`, "dada", "NBIT can't be set: it follows from 'samples'"},
		{`{"TBIN": 2}`, "guppi", "it follows from 'samples'"},
		{`{"BLOCSIZE": 2}`, "guppi", "the writer sets it"},
		{`{"A": "x # y"}`, "dada", "expected a line of text without #"},
		{`{"A": ""}`, "dada", "expected a line of text"},
		{`{"A": "é"}`, "guppi", "expected at most 68 characters of ASCII"},
		{`{"A": [1]}`, "guppi", "A is not a valid value (expected a string, a number or a boolean)"},
		{`{"A": "` + strings.Repeat("x", 3100) + `"}`, "dada", "at most 3040 fit"},
	} {
		keys, err := ParseKeys(c.keys)
		if err == nil && c.kind == "dada" {
			_, _, err = s.DADA(keys)
		} else if err == nil {
			_, _, err = s.GUPPI(keys)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.40s: %v, want %q", c.keys, err, c.want)
		}
	}
	if text, _, err := (&Samples{Type: "f32le"}).DADA(nil); err != nil || text != "NBIT -32\nNDIM 1\n" {
		t.Errorf("%q, %v", text, err)
	}
	for name, want := range map[string]string{"i8": "hint: ci8", "ci12": "hint: convert by data_types", "co8": "not a type of GUPPI", "ci16be": "not a type", "cf32le": "not a type"} {
		if _, _, err := (&Samples{Type: name}).GUPPI(nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}
