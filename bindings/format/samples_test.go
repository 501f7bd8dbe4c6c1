package format

import (
	"strings"
	"testing"
)

// TestSampleErrors checks that an error in samples names the format, the key and the nearest name.
func TestSampleErrors(t *testing.T) {
	for _, x := range []struct{ samples, want string }{
		{`7`, `samples: a table with type expected, got the number 7`},
		{`{ typ = "i8" }`, `samples: unknown key 'typ' (did you mean 'type'?)`},
		{`{ type = "i12le" }`, `samples: type: "i12le" is not a valid sample type`},
		{`{ type = "int9" }`, `the nearest one is i9`},
		{`{ type = { of = "kind" } }`, `samples: type: a type's name, { of = FIELD`},
		{`{ type = { [0] = "i8" } }`, `samples: type: a type's name, { of = FIELD`},
		{`{ type = { of = "kind", from = "vrt-context", [0] = "i8" } }`, `samples: type: a type's name, { of = FIELD`},
		{`{ type = { from = "vrt-context", [0] = "i8" } }`, `samples: type: a type's name, { of = FIELD`},
		{`{ type = { of = "knd", [0] = "i8" } }`, `samples: of: unknown field 'knd' (did you mean 'kind'?)`},
		{`{ type = { of = "kind", [0] = 8 } }`, `samples: type: [0] = the number 8: a number and the name of a type expected`},
		{`{ type = { of = "kind", [0.5] = "i8" } }`, `samples: type: [0.5]`},
		{`{ type = "ci8", complex = "kind" }`, `"ci8" is not a valid type beside the key complex`},
		{`{ type = "u12.gev", complex = "kind" }`, `"u12.gev" is not a valid type beside the key complex`},
		{`{ type = "i8", complex = "kid" }`, `samples: complex: unknown field 'kid' (did you mean 'kind'?)`},
		{`{ type = "i8", rate = "rte * 2" }`, `samples: rate: unknown field 'rte'`},
		{`{ type = "i8", rate = true }`, `samples: rate: a number, or one as text, expected, got`},
		{`{ type = "i8", scale = "kind ==" }`, `samples: scale = "kind ==":`},
		{`{ type = "i8", scale = 0 }`, `samples: scale: 0 is not a valid scale`},
		{`{ type = "i8", shape = { "*", "*" } }`, `samples: shape: only one dimension can be "*"`},
		{`{ type = "i8", shape = { "chanels" } }`, `samples: shape[1]: unknown field 'chanels' (did you mean 'channels'?)`},
		{`{ type = "i8", shape = 7 }`, `samples: shape: a list of dimensions`},
		{`{ type = "i8", levels = { 1, 2 } }`, `samples: levels: 2 is not a valid number of levels`},
		{`{ type = "i8", levels = "mulaw" }`, `samples: levels: a list of numbers, or "vlbi", expected`},
	} {
		source := `return { name = "mine", samples = ` + x.samples + `, { "kind", 8 }, { "channels", 8 } }`
		_, err := Load("mine.lua", source)
		if err == nil || !strings.Contains(err.Error(), x.want) || !strings.Contains(err.Error(), "mine.lua:1: format mine: samples") {
			t.Errorf("%s: %v", x.samples, err)
		}
	}
	f, err := Load("mine.lua", `return { name = "mine", samples = { type = { of = "kind", [1] = "o2.lsb", [0] = "o1.lsb" }, levels = "vlbi", scale = 0.5, rate = 250e6,
		shape = { "*", "channels" } }, { "kind", 8 }, { "channels", 8 } }`)
	if err != nil {
		t.Fatal(err)
	}
	if page := f.Page(); !strings.Contains(page, "`kind` chooses the type of samples: 0 `o1.lsb`, 1 `o2.lsb`. The dimensions of a packet's samples are `*`, `channels`. "+
		"Their rate in samples/s is `250000000`. Their scale is `0.5`.") {
		t.Error(page)
	}
}
