package lua51

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/tests/require"
)

// wrongWithout lists programs that gopher-lua miscompiles without the rewriter, with Lua 5.1's results.
var wrongWithout = []struct{ name, source, want string }{
	{"and of a call", `local function f() return false end local d = 5; d = f() and 9; return d`, "false"},
	{"and of a field", `local o, d = { b = false }, 7; d = o.b and d; return d`, "false"},
	{"and of not", `local d = 7; d = not 1 and d; return d`, "false"},
	{"and of an element", `local o, d = { false }, 7; d = o[1] and d; return d`, "false"},
	{"and, or of calls", `local function f() return false end local x, d = 3, 7; d = (f() and x) or (f() and 8); return d`, "false"},
	{"and of a call in between", `local function f() return false end local x, d = 3, 7; d = x and f() and d; return d`, "false"},
	{"and over two lines", "local function f() return false end local ok = true; ok = f()\n and ok; return ok", "false"},
	{"last assigned first", `local x; x, x = 3, 4; return x`, "3"},
	{"two that change places", `local a, b = 1, 2; a, b = b, a; return a, b`, "2 1"},
	{"table changed beside its field", `local t = { n = 1 }; local old = t; local function f() return 7, 8 end t.n, t = f(); return old.n, t`, "7 8"},
	{"local not seen by its own function", `local f = function() return "outer" end; do local f = function() return f() end; return f() end`, "outer"},
	{"if false in a generic for", `local n = 0 for _ in pairs{ 1, 2 } do if false then local x end n = n + 1 end return n`, "2"},
	{"while false", `local n = 0 repeat while nil do local x end n = n + 1 until n == 3 return n`, "3"},
	{"not not nil first in a loop", `local n = 0 for _ in pairs{ 1, 2 } do if not not nil then local x end n = n + 1 end return n`, "2"},
	{"break behind empty blocks", `local n = 0 for _ in pairs{ 1, 2 } do n = n + 1 for _ in pairs{ 1, 2 } do do do end end break end end return n`, "2"},
	{"loop's state is nil", `local seen local function f(s, c) seen = tostring(s) .. tostring(c) end do local a, b, c, d, e = 9, 9, 9, 9, 9 end for a in f do end return seen`,
		"nilnil"},
	{"loop's state from a call", `local function g() return 5, 1 end local function f(s, c) if c < s then return c + 1 end end local n = 0 for a in f, g() do n = n + a end return n`,
		"14"},
	{"loop over what operators give", `local function e() return nil end local n = 0 for k in (e() or next), (e() or { 7, 8 }) do n = n + k end return n`, "3"},
	{"break out of a block with a closure", `local f for i = 1, 3 do do local x = i * 10; f = function() return x end if i == 2 then break end end end local a, b, c, d, e, g = 1, 2, 3, 4, 5, 6 return f()`,
		"20"},
	{"call after a key in a constructor", `local function f() return 7, 8, 9 end local t = { 1, 2, x = f() }; return #t, t.x, tostring(t[3])`, "2 7 nil"},
	{"key behind fifty items", `local function f() return 5 end local t = {` + strings.Repeat("1, ", 50) + `x = f(), y = 3, 9}; return t[1], t[2], t[50], t[51], #t, t.x, t.y`, "1 1 1 9 51 5 3"},
	{"call behind fifty items", `local function f() return 5, nil, 7 end local t = {` + strings.Repeat("1, ", 50) + `f()}; return t[1], t[50], t[51], tostring(t[52]), t[53]`, "1 1 5 nil 7"},
	{"numerals", `return 0010, 1e999 == 1/0, 0xffffffffffffffff == 2^64, 0x10, 1e2, .5`, "10 true true 16 100 0.5"},
}

// besideWrong lists similar programs that gopher-lua compiles correctly, and that the rewriter must not break.
var besideWrong = []struct{ name, source, want string }{
	{"field of a constant", `return pcall(function() ("x").y = 1 end)`, "false s.lua:1: attempt to index a non-table object(string) with key 'y'"},
	{"call to the last parameter", `local function f(p) local q = 1; p = tostring(5); return q, p end return f(2)`, "1 5"},
	{"... to a local", `local function f(...) local a, b, c = 1, 2, 3; a = ...; return tostring(a), b, c end return f(7)`, "7 2 3"},
	{"local function seen by itself", `local function f(n) return n == 0 and "end" or f(n - 1) end return f(3)`, "end"},
	{"break first in a generic for", `for _ in pairs{ 1, 2 } do break end return 1`, "1"},
	{"constant first in a loop", `local n, y = 0, 5 repeat local x = nil and y; n = n + 1 until n == 3 and not x return n`, "3"},
	{"key that an item has, too", `local t = { [1] = "k", "i", [60] = "k", ` + strings.Repeat("1, ", 59) + `[61] = "late", "j", "last" }; return t[1], t[60], t[61], t[62]`, "i 1 j last"},
}

func TestWrongWithout(t *testing.T) {
	for _, c := range wrongWithout {
		t.Run(c.name, func(t *testing.T) {
			if got := results(t, c.source); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			if alone(c.source) == c.want {
				t.Error("gopher-lua alone gets it right: the repair is not seen here")
			}
		})
	}
	for _, c := range besideWrong {
		if got := results(t, c.source); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

// alone returns the result of a program compiled without the rewriter, or how it fails. Some do not terminate.
func alone(source string) (got string) {
	defer func() {
		if v := recover(); v != nil {
			got = fmt.Sprint("panic: ", v)
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	L := lua.NewState()
	defer L.Close()
	L.SetContext(ctx)
	if err := L.DoString(source); err != nil {
		return err.Error()
	}
	return texts(L)
}

// TestWrongWithoutInLua checks the expected results against Lua 5.1.
func TestWrongWithoutInLua(t *testing.T) {
	path := require.Lua51(t)
	for _, c := range slices.Concat(wrongWithout, besideWrong) {
		script := "local function f(...) " + c.source + " end local t = { f() } for i = 1, select('#', f()) do t[i] = tostring(t[i]) end io.write(table.concat(t, ' '))"
		out, err := exec.Command(path, "-e", script).CombinedOutput()
		if got := string(out); err != nil || got != c.want && !strings.Contains(c.want, "non-table object") {
			t.Errorf("%s: Lua 5.1 gives %s, %v; want %s", c.name, got, err, c.want)
		}
	}
}

func TestLongConstructor(t *testing.T) {
	for _, n := range []int{25_000, 25_001, 25_550, 25_551, 60_000} {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "%d, ", i%7)
		}
		source := "local t = {" + b.String() + "(...)} local wrong = 0 for i = 1, " + fmt.Sprint(n) + " do if t[i] ~= (i - 1) % 7 then wrong = wrong + 1 end end return #t, wrong"
		if got, want := results(t, source), fmt.Sprint(n, 0); got != want {
			t.Errorf("%d items: #t and wrong are %s, want %s", n, got, want)
		}
	}
}

// TestManyConstants compiles 80,000 constants of all kinds, in lists, fields, statements and operations.
func TestManyConstants(t *testing.T) {
	const n = 20_000
	var b strings.Builder
	b.WriteString("local t, s, last, f, neg = {}, 0, nil, {}, 0\nlocal l = {")
	for i := range n {
		fmt.Fprintf(&b, "'s%d', ", i)
	}
	b.WriteString("}\n")
	for i := range n {
		fmt.Fprintf(&b, "t['k%d'] = %d.5 + %d * 2 s = s + -%d.25\n", i, i, i, i)
	}
	fmt.Fprintf(&b, "f.x, f.y = 2 ^ 3 + 4, -0 if 'a' == 'b' then s = nil end for i = 1, 3, 1 do f[i] = function() return 'inner', i end end\n")
	fmt.Fprintf(&b, "return #l, l[1], l[%d], t.k0, t.k%d, s, f.x, f.y, ('%%d'):format(4711), f[2]()", n, n-1)
	want := fmt.Sprint(n, " s0 s", n-1, " 0.5 ", float64(n-1)*3+0.5, " ", -(n*(n-1)/2 + n/4), " 12 0 4711 inner 2")
	if got := results(t, b.String()); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestManyConstantsLines checks that errors and debug.traceback report the source lines of outlined constants.
func TestManyConstantsLines(t *testing.T) {
	var b strings.Builder
	b.WriteString("local t = {}\n")
	for i := range 3000 {
		fmt.Fprintf(&b, "t[%d] = 's%d'\n", i, i)
	}
	b.WriteString("t.x = 'last' + 1\n")
	L := newState(t)
	fn, err := Compile(L, "s.lua", b.String())
	if err != nil {
		t.Fatal(err)
	}
	L.Push(fn)
	if err := L.PCall(0, 0, nil); err == nil || !strings.HasPrefix(err.Error(), "s.lua:3002:") {
		t.Errorf("error %.80v, want one at s.lua:3002", err)
	}
}

func TestSourceLimits(t *testing.T) {
	for _, c := range []struct{ name, source, want string }{
		{"tables", "return " + strings.Repeat("{", 2_000_000) + strings.Repeat("}", 2_000_000), "too many syntax levels"},
		{"functions", strings.Repeat("return function() ", 201) + strings.Repeat("end ", 201), "too many syntax levels"},
		{"blocks", "\n" + strings.Repeat("do ", 300_000) + strings.Repeat("end ", 300_000), "s.lua:2: chunk has too many syntax levels"},
		{"nots", "return " + strings.Repeat("not ", 10_000) + "1", "too many syntax levels"},
		{"calls inside calls", "return " + strings.Repeat("f(", 300_000) + strings.Repeat(")", 300_000), "too many syntax levels"},
		{"operators in a row", "local a = 1 return " + strings.Repeat("a+", 3_000_000) + "1", "in a row"},
		{"fields in a row", "return a" + strings.Repeat(".b", 30_000), "in a row"},
		{"calls in a row", "return a" + strings.Repeat("()", 30_000), "in a row"},
		{"elseif in a row", "if a then " + strings.Repeat("elseif a then ", 30_000) + "end", "in a row"},
		{"parentheses", "return " + strings.Repeat("(", 300_000) + "1" + strings.Repeat(")", 300_000), "too many syntax levels"},
		{"concatenations in a row", "\n\nlocal a = 'x' return " + strings.Repeat("f(a)..", 1_000_000) + "a", "s.lua:3: more than 20000 operators in a row"},
		{"what looks like brackets", "local s = '" + strings.Repeat("({[", 2000) + "' --[[" + strings.Repeat("(", 2000) + "]] --" + strings.Repeat("{", 2000) +
			"\ns = [==[" + strings.Repeat("]] [[ do ", 2000) + "]==] .. \"\\\"" + strings.Repeat("function ", 2000) + "\" return s", ""},
		{"many of each, side by side", strings.Repeat("if a then x = {f(a)} end repeat local g = function() while a do end end until a ", 3000), ""},
		{"goto beside a function", "local x = 1 local f = function() return x end\nfor i = 1, 2 do if i == 1 then goto c end x = x + 1 ::c:: end", "s.lua:2: goto in a function"},
		{"goto", "for i = 1, 2 do if i == 1 then goto c end x = x + 1 ::c:: end", ""},
		{"190 levels", "return " + strings.Repeat("{", 190) + strings.Repeat("}", 190), ""},
		{"19,000 operators", "local a = 1 return " + strings.Repeat("a+", 19_000) + "1", ""},
		{"19,000 constants in operators", "return " + strings.Repeat("2+", 19_000) + "1", ""},
		{"5,000 elseif", "if a then " + strings.Repeat("elseif a then ", 5_000) + "end", ""},
		{"malformed number", "\nreturn 3e", "s.lua:2: malformed number near '3e'"},
		{"... in a function without", "return function() return nil and ... end", "cannot use '...'"},
		{"far jump", "while x do " + strings.Repeat("x = y ", 70_000) + "end", "too long"},
		{"far loop", "for i = 1, 2 do " + strings.Repeat("x = y ", 70_000) + "end", "too long"},
		{"long but no loop", strings.Repeat("x = y ", 70_000), ""},
		{"upvalues", manyUpvalues(256), "more than 255 locals of the functions around it"},
		{"255 upvalues", manyUpvalues(255), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			L := newState(t)
			_, err := Compile(L, "s.lua", c.source)
			switch {
			case c.want == "" && err != nil:
				t.Errorf("error %.200v", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("error %.200v, want %s", err, c.want)
			}
			if _, err := Parse("s.lua", c.source); strings.Contains(c.want, "levels") && err == nil {
				t.Error("a parse alone has no error")
			}
		})
	}
	if got := results(t, "local a = 1 return "+strings.Repeat("a+", 19_000)+"1, "+strings.Repeat("2+", 19_000)+"1"); got != "19001 38001" {
		t.Errorf("long sums are %s", got)
	}
}

// manyUpvalues returns a function that uses n locals of two enclosing functions.
func manyUpvalues(n int) string {
	var a, b, use strings.Builder
	for i := range n {
		into := &a
		if i >= n/2 {
			into = &b
		}
		fmt.Fprintf(into, "local v%d ", i)
		fmt.Fprintf(&use, "v%d = 1 ", i)
	}
	return a.String() + "return function() " + b.String() + "return function() " + use.String() + "end end"
}

// TestCompileInterrupted checks that compiling long source can be interrupted.
func TestCompileInterrupted(t *testing.T) {
	L := newState(t)
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(fmt.Errorf("stopped"))
	L.SetContext(ctx)
	if _, err := Compile(L, "s.lua", "return 1"); err == nil || !strings.Contains(err.Error(), "stopped") {
		t.Errorf("error %v, want the context's", err)
	}
}
