package repl

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	lua "github.com/yuin/gopher-lua"
)

// eval returns the value of a Lua expression, or of a chunk that returns one.
func eval(t *testing.T, L *lua.LState, source string) lua.LValue {
	t.Helper()
	if prepared, _ := prepare(source); prepared != "" {
		source = prepared
	}
	fn, err := L.Load(strings.NewReader(source), "test.lua")
	if err != nil {
		t.Fatal(err)
	}
	v, err := call(L, fn, lua.LNil)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestFormat(t *testing.T) {
	L := lua.NewState()
	defer L.Close()
	ud, broken, bare := L.NewUserData(), L.NewUserData(), L.NewUserData()
	ud.Metatable = eval(t, L, `{__tostring = function() return "burst (64 packets)" end}`)
	broken.Metatable = eval(t, L, `{__tostring = function() error("gone") end}`)
	L.SetGlobal("ud", ud)
	L.SetGlobal("broken", broken)
	L.SetGlobal("bare", bare)
	for _, c := range []struct{ name, source, want string }{
		{"nil", "nil", "nil"},
		{"boolean", "true", "true"},
		{"integer", "2^53", "9007199254740992"},
		{"fraction", "0.5", "0.5"},
		{"string", `"a\"b\\c\n\1é\255"`, `"a\"b\\c\n\001é\255"`},
		{"long string", `("x"):rep(2000)`, `"` + strings.Repeat("x", 1000) + `"… (2000 bytes)`},
		{"long string cut within a character", `("x"):rep(999) .. "é"`, `"` + strings.Repeat("x", 999) + `"… (1001 bytes)`},
		{"empty", "{}", "{}"},
		{"array", "{1, 'a', {}}", `{1, "a", {}}`},
		{"keys sorted", "{b = 1, a = 2, [10] = 3, [2.5] = 4, ['no name'] = 5, ['end'] = 6, [true] = 7, 8}",
			`{8, [2.5] = 4, [10] = 3, a = 2, b = 1, ["end"] = 6, ["no name"] = 5, [true] = 7}`},
		{"long array", "(function() local t = {} for i = 1, 100 do t[i] = i end return t end)()",
			"{\n  1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20,\n  … 80 more,\n}"},
		{"array with a hole", "{1, nil, 3}", "{1, [3] = 3}"},
		{"wide", "{name = ('n'):rep(40), list = {('a'):rep(30), ('b'):rep(30), ('c'):rep(30)}, n = 1}",
			"{\n  list = {\n    \"" + strings.Repeat("a", 30) + "\",\n    \"" + strings.Repeat("b", 30) + "\",\n    \"" +
				strings.Repeat("c", 30) + "\",\n  },\n  n = 1,\n  name = \"" + strings.Repeat("n", 40) + "\",\n}"},
		{"deep", "{{{{{{1}}}}}}", "{{{{{…}}}}}"},
		{"cycle", "(function() local t = {1} t.me = t return t end)()", "{1, me = {… itself}}"},
		{"shared is no cycle", "(function() local t = {1} return {t, t} end)()", "{{1}, {1}}"},
		{"table with __tostring", "setmetatable({1}, {__tostring = function() return 'point' end})", "point"},
		{"table with __brief", "setmetatable({n = 1, zero = 0}, {__brief = function(t) return {n = t.n} end})", "{n = 1}"},
		{"broken __brief", "setmetatable({n = 1}, {__brief = function(t) error('no') end})", "{n = 1}"},
		{"function", "(function()\n\n local function f() end return f end)()", "function: test.lua:3"},
		{"built in", "print", "function: built in"},
		{"userdata", "ud", "burst (64 packets)"},
		{"userdata within", "{ud}", "{burst (64 packets)}"},
		{"userdata that raises", "broken", "userdata (its __tostring raised: test.lua:1: gone)"},
		{"bare userdata", "bare", "userdata"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Format(L, eval(t, L, c.source))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFormatIsBounded(t *testing.T) {
	L := lua.NewState()
	defer L.Close()
	v := eval(t, L, `(function()
		local function tree(n) local t = {} for i = 1, 20 do t["k" .. i] = n > 0 and tree(n - 1) or i end return t end
		local wide = {} for i = 1, 5000 do wide["key" .. i] = i end
		return {tree(3), wide}
	end)()`)
	out := Format(L, v)
	if n := strings.Count(out, "\n"); n > 2*formatValues || !strings.Contains(out, "more keys") {
		t.Errorf("%d lines for a large table", n)
	}
	if L.GetTop() != 0 {
		t.Errorf("%d values left on the stack", L.GetTop())
	}
}

func TestComplete(t *testing.T) {
	L := lua.NewState()
	defer L.Close()
	ud, asked, loop := L.NewUserData(), L.NewUserData(), L.NewUserData()
	ud.Metatable = eval(t, L, `{__index = {send = print, size = 3, __gc = print}}`)
	asked.Metatable = eval(t, L, `{__index = function(_, k) touched = k if k == "rx" then return {free = 1} end error("no " .. k) end,
		__names = function(o) return {"rx", "run", "reset"} end}`)
	loop.Metatable = eval(t, L, `(function() local a = {} a.__index = setmetatable({here = 1}, a) return a end)()`)
	L.SetGlobal("burst", ud)
	L.SetGlobal("session", asked)
	L.SetGlobal("loop", loop)
	L.SetGlobal("text", lua.LString("x"))
	eval(t, L, `(function() cfg = {rx = {queues = 1, quiet = 2}, ["not a name"] = 1, run = print, __hidden = 1} end)()`)
	eval(t, L, `(function() listed = setmetatable({own = 1}, {__index = function() error("touched") end, __names = {"far"}}) end)()`)
	eval(t, L, `(function() sealed = setmetatable({}, {__index = function() return print end, __names = {"measure", "metric"},
		__metatable = "session"}) end)()`)
	eval(t, L, `(function() failing = setmetatable({}, {__index = function() end, __names = function() error("no") end}) end)()`)
	for _, c := range []struct {
		name, line string // the bar marks the cursor; default: the end
		head       string
		want       []string
		tail       string
	}{
		{"global", "bur", "", []string{"burst"}, ""},
		{"global within", "print(bur|) -- x", "print(", []string{"burst"}, ") -- x"},
		{"all fields", "cfg.", "cfg.", []string{"run", "rx"}, ""},
		{"deeper", "x = cfg.rx.qu", "x = cfg.rx.", []string{"queues", "quiet"}, ""},
		{"hidden on request", "cfg.__", "cfg.", []string{"__hidden"}, ""},
		{"colon wants functions", "cfg:r", "cfg:", []string{"run"}, ""},
		{"userdata", "burst.s", "burst.", []string{"send", "size"}, ""},
		{"userdata methods", "burst:", "burst:", []string{"send"}, ""},
		{"string methods", "text:rep", "text:", []string{"rep"}, ""},
		{"named by __names", "session:r", "session:", []string{"reset", "run", "rx"}, ""},
		{"through a named property", "session.rx.", "session.rx.", []string{"free"}, ""},
		{"own and listed", "listed.", "listed.", []string{"far", "own"}, ""},
		{"behind __metatable", "sealed:m", "sealed:", []string{"measure", "metric"}, ""},
		{"names that raise", "failing.", "failing.", nil, ""},
		{"a loop of metatables", "loop.h", "loop.", []string{"here"}, ""},
		{"unknown", "nothing.", "nothing.", nil, ""},
		{"property that no one lists", "session.zz.", "session.zz.", nil, ""},
		{"after a call", "f().se", "f().se", nil, ""},
		{"after a number", "12ab", "12ab", nil, ""},
		{"after a concatenation", `"a"..bur`, `"a"..`, []string{"burst"}, ""},
		{"wide characters before", "print('é', bur|x)", "print('é', ", []string{"burst"}, "x)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			line, rest, _ := strings.Cut(c.line, "|")
			head, words, tail := CompleteValue(L, line+rest, len([]rune(line)))
			if diff := cmp.Diff(c.want, words); diff != "" || head != c.head || tail != c.tail {
				t.Errorf("head %q, tail %q; want %q, %q\n%s", head, tail, c.head, c.tail, diff)
			}
		})
	}
	if got := L.GetGlobal("touched"); got != lua.LString("rx") {
		t.Errorf("__index was asked for %v, want only rx", got)
	}
	if L.GetTop() != 0 {
		t.Errorf("%d values left on the stack", L.GetTop())
	}
}
