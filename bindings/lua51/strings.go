package lua51

import (
	"math"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/lua51/pattern"
)

// String functions that search, or whose result may be longer than the arguments: as in Lua 5.1, within the memory limits. They are hot, so they
// do not use call.

// ReplaceStrings installs the functions in the tables string and table.
func ReplaceStrings(L *lua.LState) {
	for library, functions := range map[string]map[string]lua.LGFunction{
		lua.StringLibName: {"byte": stringByte, "find": stringFind, "gmatch": stringGmatch, "gsub": stringGsub, "lower": stringLower,
			"match": stringMatch, "rep": stringRep, "upper": stringUpper},
		lua.TabLibName: {"concat": tableConcat},
	} {
		t, ok := L.GetGlobal(library).(*lua.LTable)
		if !ok {
			continue
		}
		for name, fn := range functions {
			t.RawSetString(name, L.NewFunction(fn))
		}
		t.RawSetString("gfind", t.RawGetString("gmatch")) // name in Lua 5.0; nil for table
	}
}

// argumentError raises an error in the form of Lua's own functions.
func argumentError(L *lua.LState, n int, name, why string) {
	Raise(L, "bad argument #%d to '%s' (%s)", n, name, why)
}

// textArg returns a string argument; numbers are converted.
func textArg(L *lua.LState, n int, name string) string {
	switch v := L.Get(n).(type) {
	case lua.LString:
		return string(v)
	case lua.LNumber:
		return v.String()
	}
	argumentError(L, n, name, "string expected, got "+kind(L, n))
	return ""
}

func kind(L *lua.LState, n int) string {
	if n > L.GetTop() {
		return "no value"
	}
	return L.Get(n).Type().String()
}

// intArg returns a number, or a string that is one, truncated to an integer and clamped to int32; missing if the argument is absent.
func intArg(L *lua.LState, n int, name string, missing int) int {
	v := L.Get(n)
	if v == lua.LNil && missing != required {
		return missing
	}
	f, ok := ToNumber(v)
	if !ok || math.IsNaN(f) {
		argumentError(L, n, name, "number expected, got "+kind(L, n))
	}
	return int(max(min(f, 1<<53), -1<<53))
}

// required is the value of missing for a mandatory argument.
const required = math.MinInt

// from converts the init argument of a search to an index from 0.
func from(init, length int) int {
	if init < 0 {
		init += length + 1
	}
	return min(max(init-1, 0), length)
}

// matcher returns a matcher that the end of the task and the memory limit interrupt.
func matcher(L *lua.LState, src, pat string) *pattern.Matcher {
	ctx := L.Context()
	return pattern.New(src, pat, func() error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		default:
			return nil
		}
	})
}

func checkPattern(L *lua.LState, err error) {
	if err != nil {
		Raise(L, "%s", err.Error())
	}
}

func stringFind(L *lua.LState) int { return search(L, "find") }

func stringMatch(L *lua.LState) int { return search(L, "match") }

// search implements string.find and string.match.
func search(L *lua.LState, name string) int {
	src, pat := textArg(L, 1, name), textArg(L, 2, name)
	at := from(intArg(L, 3, name, 1), len(src))
	find := name == "find"
	if find && (lua.LVAsBool(L.Get(4)) || pattern.Plain(pat)) {
		k := strings.Index(src[at:], pat)
		if k < 0 {
			L.Push(lua.LNil)
			return 1
		}
		L.Push(lua.LNumber(at + k + 1))
		L.Push(lua.LNumber(at + k + len(pat)))
		return 2
	}
	rest, anchored := strings.CutPrefix(pat, "^")
	m := matcher(L, src, rest)
	start, end, err := at, -1, error(nil)
	if anchored {
		end, err = m.At(at)
	} else {
		start, end, err = m.Find(at)
	}
	checkPattern(L, err)
	switch {
	case end < 0:
		L.Push(lua.LNil)
		return 1
	case find:
		L.Push(lua.LNumber(start + 1))
		L.Push(lua.LNumber(end))
		return 2 + pushCaptures(L, m, src)
	case len(m.Captures()) == 0:
		L.Push(lua.LString(src[start:end]))
		return 1
	}
	return pushCaptures(L, m, src)
}

// pushCaptures pushes all captures and returns their number.
func pushCaptures(L *lua.LState, m *pattern.Matcher, src string) int {
	captures := m.Captures()
	for _, c := range captures {
		L.Push(captureValue(c, src))
	}
	return len(captures)
}

func captureValue(c pattern.Capture, src string) lua.LValue {
	if c.End == pattern.Position {
		return lua.LNumber(c.Start + 1)
	}
	return lua.LString(src[c.Start:c.End])
}

func stringGmatch(L *lua.LState) int {
	src, pat := textArg(L, 1, "gmatch"), textArg(L, 2, "gmatch")
	at := 0
	L.Push(L.NewFunction(func(L *lua.LState) int {
		m := matcher(L, src, pat)
		start, end, err := m.Find(at)
		checkPattern(L, err)
		if end < 0 {
			at = len(src) + 1
			return 0
		}
		at = end
		if end == start {
			at++
		}
		if len(m.Captures()) == 0 {
			L.Push(lua.LString(src[start:end]))
			return 1
		}
		return pushCaptures(L, m, src)
	}))
	return 1
}

func stringGsub(L *lua.LState) int {
	src, pat := textArg(L, 1, "gsub"), textArg(L, 2, "gsub")
	replacement := L.Get(3)
	switch v := replacement.(type) {
	case lua.LNumber:
		replacement = lua.LString(v.String())
	case lua.LString, *lua.LTable, *lua.LFunction:
	default:
		argumentError(L, 3, "gsub", "string/function/table expected, got "+kind(L, 3))
	}
	most := intArg(L, 4, "gsub", math.MaxInt)
	rest, anchored := strings.CutPrefix(pat, "^")
	m := matcher(L, src, rest)
	out := growing{L: L}
	at, n := 0, 0
	for n < most {
		end, err := m.At(at)
		checkPattern(L, err)
		if end >= 0 {
			n++
			replace(L, &out, m, src, at, end, replacement)
		}
		switch {
		case end > at:
			at = end
		case at < len(src):
			out.byte(src[at])
			at++
		default:
			at++
		}
		if anchored || at > len(src) {
			break
		}
	}
	if n == 0 {
		L.Push(lua.LString(src))
	} else {
		out.str(src[min(at, len(src)):])
		L.Push(out.value())
	}
	L.Push(lua.LNumber(n))
	return 2
}

// replace appends the replacement of the match start..end.
func replace(L *lua.LState, out *growing, m *pattern.Matcher, src string, start, end int, replacement lua.LValue) {
	var v lua.LValue
	switch r := replacement.(type) {
	case lua.LString:
		fillIn(L, out, m, src, start, end, string(r))
		return
	case *lua.LTable:
		v = L.GetTable(r, firstCapture(m, src, start, end))
	case *lua.LFunction:
		L.Push(r)
		n := pushCaptures(L, m, src)
		if n == 0 {
			L.Push(lua.LString(src[start:end]))
			n = 1
		}
		L.Call(n, 1)
		v = L.Get(-1)
		L.Pop(1)
	}
	switch v := v.(type) {
	case lua.LString:
		out.str(string(v))
	case lua.LNumber:
		out.str(v.String())
	default:
		if !lua.LVIsFalse(v) {
			Raise(L, "invalid replacement value (a %s)", v.Type().String())
		}
		out.str(src[start:end])
	}
}

func firstCapture(m *pattern.Matcher, src string, start, end int) lua.LValue {
	if c := m.Captures(); len(c) > 0 {
		return captureValue(c[0], src)
	}
	return lua.LString(src[start:end])
}

// fillIn appends a replacement string, with %0 to %9 replaced by captures.
func fillIn(L *lua.LState, out *growing, m *pattern.Matcher, src string, start, end int, text string) {
	for {
		k := strings.IndexByte(text, '%')
		if k < 0 || k+1 == len(text) {
			out.str(strings.TrimSuffix(text, "%"))
			return
		}
		out.str(text[:k])
		c := text[k+1]
		text = text[k+2:]
		captures := m.Captures()
		switch {
		case c < '0' || c > '9':
			out.byte(c)
		case c == '0' || c == '1' && len(captures) == 0:
			out.str(src[start:end])
		case int(c-'0') > len(captures):
			Raise(L, "invalid capture index")
		default:
			out.str(lua.LVAsString(captureValue(captures[c-'1'], src)))
		}
	}
}

// fromEnd resolves a position from 1; a negative one counts from the end, and 0 is before the first byte.
func fromEnd(at, length int) int {
	if at < 0 {
		return max(at+length+1, 0)
	}
	return at
}

// stringByte implements string.byte: the codes of the bytes from..to.
func stringByte(L *lua.LState) int {
	s := textArg(L, 1, "byte")
	start := fromEnd(intArg(L, 2, "byte", 1), len(s))
	end := min(fromEnd(intArg(L, 3, "byte", start), len(s)), len(s))
	start = max(start, 1)
	if start > end {
		return 0
	}
	for _, c := range []byte(s[start-1 : end]) {
		L.Push(lua.LNumber(c))
	}
	return end - start + 1
}

func stringRep(L *lua.LState) int {
	s, n := textArg(L, 1, "rep"), intArg(L, 2, "rep", required)
	if n <= 0 || s == "" {
		L.Push(lua.LString(""))
		return 1
	}
	if n > math.MaxInt/len(s) {
		n = math.MaxInt / len(s)
	}
	Reserve(L, uint64(len(s)*n))
	L.Push(lua.LString(strings.Repeat(s, n)))
	return 1
}

func stringLower(L *lua.LState) int { return mapBytes(L, "lower", 'A', 'Z') }

func stringUpper(L *lua.LState) int { return mapBytes(L, "upper", 'a', 'z') }

// mapBytes changes the case of the ASCII letters lo..hi and no other byte, as strings may hold packets.
func mapBytes(L *lua.LState, name string, lo, hi byte) int {
	s := textArg(L, 1, name)
	Reserve(L, uint64(len(s)))
	out := []byte(s)
	for i, c := range out {
		if c >= lo && c <= hi {
			out[i] = c ^ 0x20
		}
	}
	L.Push(lua.LString(out))
	return 1
}

func tableConcat(L *lua.LState) int {
	t, ok := L.Get(1).(*lua.LTable)
	if !ok {
		argumentError(L, 1, "concat", "table expected, got "+kind(L, 1))
	}
	separator := ""
	if L.Get(2) != lua.LNil {
		separator = textArg(L, 2, "concat")
	}
	first := intArg(L, 3, "concat", 1)
	last := t.Len()
	if L.Get(4) != lua.LNil {
		last = intArg(L, 4, "concat", required)
	}
	out := growing{L: L}
	for i := first; i <= last; i++ {
		switch v := t.RawGetInt(i).(type) {
		case lua.LString:
			out.str(string(v))
		case lua.LNumber:
			out.str(v.String())
		default:
			Raise(L, "invalid value (%s) at index %d in table for 'concat'", v.Type().String(), i)
		}
		if i < last {
			out.str(separator)
		}
	}
	L.Push(out.value())
	return 1
}
