package scriptargs

import (
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
