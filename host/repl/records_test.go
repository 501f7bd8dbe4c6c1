package repl

import (
	"testing"

	lua "github.com/yuin/gopher-lua"
)

// TestRecords checks that a list of records is shown as rows, and other lists are not.
func TestRecords(t *testing.T) {
	L := lua.NewState()
	defer L.Close()
	for _, c := range []struct{ source, want string }{
		{"{ { port = 7000, from = 'north' }, { port = 71, lost = 2 } }", "   from   lost  port\n1  north        7000\n2         2     71"},
		{"{ { a = 1 } }", "{{a = 1}}"},
		{"{ { a = 1 }, 2 }", "{{a = 1}, 2}"},
		{"{ { a = 1 }, { a = {} } }", "{{a = 1}, {a = {}}}"},
		{"{ { a = 1 }, { a = 2 }, n = 3 }", "{{a = 1}, {a = 2}, n = 3}"},
		{"{ list = { { a = 1 }, { a = 2 } } }", "{list = {{a = 1}, {a = 2}}}"},
		{"setmetatable({}, { __show = function() return 'all of it' end })", "{}"},
	} {
		if got := Format(L, eval(t, L, c.source)); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.source, got, c.want)
		}
	}
	ud := L.NewUserData()
	ud.Metatable = eval(t, L, "{ __tostring = function() return 'short' end, __show = function() return 'all of it' end }")
	L.SetGlobal("ud", ud)
	if got := Format(L, ud); got != "all of it" {
		t.Error(got)
	}
	if got := Format(L, eval(t, L, "{ ud, 1 }")); got != "{short, 1}" {
		t.Error(got)
	}
}
