package script

import (
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	known := []string{"print", "require", "string", "pairs", "type"}
	for _, c := range []struct{ name, source, want string }{
		{"nothing wrong", `local d = require "daqiri"; for k in pairs(d) do print(k) end`, ""},
		{"shebang", "#!/usr/bin/env daqiri-run\nprint(1)", ""},
		{"shebang alone", "#!x", ""},
		{"undefined", "print(1)\nlocal x = pritn(2)", "s.lua:2: undefined global 'pritn' (did you mean 'print'?)"},
		{"undefined, nothing near", "return quux", "s.lua:1: undefined global 'quux'"},
		{"in a table", "return { a = 1, [b] = c }", "s.lua:1: undefined global 'b'\ns.lua:1: undefined global 'c'"},
		{"defined later", "local function f() return count end\ncount = 1", ""},
		{"defined as a function", "f()\nfunction f() end", ""},
		{"own global suggested", "counter = 1\nprint(conter)", "s.lua:2: undefined global 'conter' (did you mean 'counter'?)"},
		{"local out of sight", "do local x = 1 end\nprint(x)", "s.lua:2: undefined global 'x'"},
		{"local sees not itself", "local x = x", "s.lua:1: undefined global 'x'"},
		{"local function sees itself", "local function f() return f end", ""},
		{"parameters", "local f = function(a, ...) return a, arg end", ""},
		{"self", "local T = {}; function T:m() return self end; function T.f() return self end",
			"s.lua:1: undefined global 'self'"},
		{"repeat sees its locals", "repeat local done = true until done", ""},
		{"loops", "for i = 1, 2, step do print(i) end\nwhile on < 5 do end", "s.lua:1: undefined global 'step'\ns.lua:2: undefined global 'on'"},
		{"operators", "return -a .. b + #c and not d", "s.lua:1: undefined global 'a'\ns.lua:1: undefined global 'b'\n" +
			"s.lua:1: undefined global 'c'\nwarning: s.lua:1: global 'd' is never set: it is nil here"},
		{"set where it is tested", "seen = (seen or 0) + 1\nlist = list or {}\nif not up then up = true end", ""},
		{"only tested", "if a then print(1) end\nlocal x = b or c == nil or {}\nwhile not d and (e ~= nil or type(f) == 'table') do end\nrepeat until prnt",
			"warning: s.lua:1: global 'a' is never set: it is nil here\nwarning: s.lua:2: global 'b' is never set: it is nil here\n" +
				"warning: s.lua:2: global 'c' is never set: it is nil here\nwarning: s.lua:3: global 'd' is never set: it is nil here\n" +
				"warning: s.lua:3: global 'e' is never set: it is nil here\nwarning: s.lua:3: global 'f' is never set: it is nil here\n" +
				"warning: s.lua:4: global 'prnt' is never set: it is nil here (did you mean 'print'?)"},
		{"tested and used", "local x = a or b\nif c == 5 then end", "warning: s.lua:1: global 'a' is never set: it is nil here\n" +
			"s.lua:1: undefined global 'b'\ns.lua:2: undefined global 'c'"},
		{"u64 and a number", "local c = {}\nif c:u64(1) == 7 then end", "s.lua:2: a u64 compared by == with a number: Lua can't do that; write a:eq(b)"},
		{"a u64 and what may be one", "local c, d = {}, {}\nreturn c:u64(1) == d.big, c:u64(2) ~= nil", ""},
		{"two u64", "local d = {}\nreturn d.u64('1') < d.u64('2')", ""},
		{"syntax", "print(1)\nprint(1 2)", "s.lua:2: syntax error near '2'"},
		{"unfinished", "if true then\n  print(1)\n", "s.lua:2: syntax error at the end of the script"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, f := range Check("s.lua", c.source, known) {
				text := f.Error()
				if f.Warning {
					text = "warning: " + text
				}
				got = append(got, text)
			}
			if text := strings.Join(got, "\n"); text != c.want {
				t.Errorf("got\n%s\nwant\n%s", text, c.want)
			}
		})
	}
}
