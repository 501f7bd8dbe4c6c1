package lua51

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
)

// TestMultipleAssignment checks assignments of several values wherever a statement or function may be. The expected results are Lua's.
func TestMultipleAssignment(t *testing.T) {
	for _, c := range []struct{ name, source, want string }{
		{"swap", `local a, b = 1, 2; a, b = b, a; return a, b`, "2 1"},
		{"rotate", `local a, b, c = 1, 2, 3; a, b, c = b, c, a; return a, b, c`, "2 3 1"},
		{"step", `local a, b = 1, 0; a, b = a + 4, a; return a, b`, "5 1"},
		{"globals", `x, y = 1, 2; x, y = y, x; return x, y`, "2 1"},
		{"upvalues", `local a, b = 1, 2; local function f() a, b = b, a end; f(); return a, b`, "2 1"},
		{"elements", `local t = { 1, 2 }; t[1], t[2] = t[2], t[1]; return t[1], t[2]`, "2 1"},
		{"key before its change", `local t, i = { 1, 2 }, 1; i, t[i] = i + 1, 20; return i, t[1], t[2]`, "2 20 2"},
		{"table before its change", `local t = { n = 1 }; local old = t; t, t.n = { n = 5 }, 7; return t.n, old.n`, "5 7"},
		{"too few values", `local a, b, c = 1, 2, 3; a, b, c = c, a; return a, b, tostring(c)`, "3 1 nil"},
		{"too many values", `local a, b = 1, 2; a, b = b, a, print and 3; return a, b`, "2 1"},
		{"a call at the end", `local function f() return 7, 8 end; local a, b, c = 1, 2, 3; a, b, c = b, f(); return a, b, c`, "2 7 8"},
		{"one call", `local function f() return 7, 8 end; local a, b; a, b = f(); return a, b`, "7 8"},
		{"varargs", `local function f(...) local a, b, c = 1; a, b, c = 5, ...; return a, b, c end; return f(6, 7)`, "5 6 7"},
		{"functions", `local a, b = 1, 2; a, b = function() return 3 end, function() return 4 end; return a(), b()`, "3 4"},
		{"in blocks", `local a, b = 1, 2
			for i = 1, 3 do
				if i == 2 then a, b = b, a else while i == 1 do a, b = b, a; break end end
				repeat a, b = b, a until true
			end
			do a, b = b, a end
			return a, b`, "1 2"},
		{"in a function inside a table, a call and an operation", `local t = { f = function(a, b) a, b = b, a; return a end }
			local function id(f) return f end
			local g = id(function(a, b) a, b = b, a; return a end)
			local h = nil or function(a, b) a, b = b, a; return a end
			return t.f(1, 2), g(1, 2), h(1, 2)`, "2 2 2"},
		{"in a method", `local T = { a = 1, b = 2 }; function T:swap() self.a, self.b = self.b, self.a; local x, y = 1, 2; x, y = y, x; return x end
			return T:swap(), T.a, T.b`, "2 2 1"},
		{"loadstring", `return loadstring("local a, b = 1, 2; a, b = b, a; return a")()`, "2"},
		{"load", `local parts = { "local a, b = 1, 2; ", "a, b = b, a; return a" }
			local n = 0
			return load(function() n = n + 1; return parts[n] end)()`, "2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := results(t, c.source); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// results runs a chunk and joins its results.
func results(t *testing.T, source string) string {
	t.Helper()
	L := newState(t)
	RepairNumbers(L)
	ReplaceLoad(L)
	fn, err := Compile(L, "s.lua", source)
	if err != nil {
		t.Fatal(err)
	}
	L.SetTop(0)
	L.Push(fn)
	if err := L.PCall(0, lua.MultRet, nil); err != nil {
		t.Fatal(err)
	}
	return texts(L)
}

// texts returns the stack's values as text.
func texts(L *lua.LState) string {
	var values []string
	for i := 1; i <= L.GetTop(); i++ {
		values = append(values, L.Get(i).String())
	}
	return strings.Join(values, " ")
}

func TestLoadFiles(t *testing.T) {
	dir := t.TempDir()
	file, broken := filepath.Join(dir, "f.lua"), filepath.Join(dir, "broken.lua")
	if err := os.WriteFile(file, []byte("#!/usr/bin/env daqiri-run\nlocal a, b = 1, 2; a, b = b, a; return a, b"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(broken, []byte("return 1 2"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, source, want string }{
		{"dofile", `return dofile("` + file + `")`, "2 1"},
		{"loadfile", `return loadfile("` + file + `")()`, "2 1"},
		{"loadfile of nothing", `return (select(2, loadfile("` + dir + `/gone")))`, "open " + dir + "/gone: no such file or directory"},
		{"loadfile of a broken one", `return (select(2, loadfile("` + broken + `")):match("line:1.*syntax error") ~= nil)`, "true"},
		{"dofile of a broken one", `return (select(2, pcall(dofile, "` + broken + `")):match("syntax error"))`, "syntax error"},
		{"loadstring of a broken one", `return (select(2, loadstring("x ="))):match("syntax error")`, "syntax error"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := results(t, c.source); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestErrorLineInAssignment checks that errors in split assignments have source lines.
func TestErrorLineInAssignment(t *testing.T) {
	L := newState(t)
	fn, err := Compile(L, "s.lua", "local a, b = 1, nil\n\na, b = b.x, a\n")
	if err != nil {
		t.Fatal(err)
	}
	L.Push(fn)
	if err := L.PCall(0, 0, nil); err == nil || !strings.HasPrefix(err.Error(), "s.lua:3:") {
		t.Errorf("error %v, want one at s.lua:3", err)
	}
}
