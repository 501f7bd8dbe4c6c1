package scriptargs

import (
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
)

func TestParseArgNumber(t *testing.T) {
	L := lua.NewState()
	defer L.Close()
	for text, want := range map[string]string{"5": "5", "-0.5": "-0.5", "1e3": "1000", "010": "10", "0x10": "16",
		"": "", "nan": "", "inf": "", "1e400": "", "0x": "", "5ms": ""} {
		v, err := Parse(L, Argument{Name: "n", kind: "number"}, text)
		got := ""
		if err == nil {
			got = v.String()
		}
		if got != want {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
}

func TestSplitLetter(t *testing.T) {
	declared := []Argument{{Name: "p", kind: "number", Default: lua.LNil}, {Name: "bytes", kind: "number", Default: lua.LNil}}
	for _, words := range [][]string{{"-p", "1"}, {"--p", "1"}, {"-p=1"}, {"p=1"}} {
		if given, _, err := Split(words, declared); err != nil || given["p"] != "1" {
			t.Errorf("%q: %v, %v", words, given, err)
		}
	}
	for _, words := range [][]string{{"-b", "1"}, {"-bytes", "1"}, {"-p"}} {
		if given, _, err := Split(words, declared); err == nil {
			t.Errorf("%q: %v", words, given)
		}
	}
	if text := Usage("x.lua", declared); !strings.Contains(text, "\n  -p NUMBER ") || !strings.Contains(text, "\n  --bytes NUMBER ") {
		t.Error(text)
	}
}
