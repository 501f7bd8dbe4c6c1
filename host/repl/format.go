package repl

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// Limits of Format, which keep the display of a large object to about a screen.
const (
	formatWidth  = 80   // columns
	formatDepth  = 4    // nested tables
	formatItems  = 20   // elements of an array
	formatKeys   = 60   // other keys of a table
	formatValues = 1000 // total values
	formatString = 1000 // bytes of a string
)

// Format formats a value for display: quoted strings, tables with sorted keys on one line if they fit and indented otherwise, userdata through
// __tostring. It calls __tostring and must run on the task that owns L.
func Format(L *lua.LState, v lua.LValue) string {
	f := formatter{L: L, open: map[*lua.LTable]bool{}, left: formatValues}
	var b strings.Builder
	f.node(v, 0).write(&b, 0, 0)
	return b.String()
}

type formatter struct {
	L    *lua.LState
	open map[*lua.LTable]bool // enclosing tables, to detect cycles
	left int
}

func (f *formatter) node(v lua.LValue, depth int) node {
	f.left--
	switch v := v.(type) {
	case lua.LString:
		return node{text: quote(string(v))}
	case *lua.LTable:
		brief := f.brief(v)
		if text, ok := f.tostring(v); ok && brief == v {
			return node{text: text}
		}
		return f.table(brief, depth)
	case *lua.LUserData:
		if text, ok := f.meta("__show", v); ok && depth == 0 {
			return node{text: text}
		}
		if text, ok := f.tostring(v); ok {
			return node{text: text}
		}
		return node{text: "userdata"}
	case *lua.LFunction:
		return node{text: describeFunction(v)}
	}
	return node{text: v.String()}
}

func describeFunction(fn *lua.LFunction) string {
	if fn.IsG || fn.Proto == nil {
		return "function: built in"
	}
	return fmt.Sprintf("function: %s:%d", fn.Proto.SourceName, fn.Proto.LineDefined)
}

// tostring calls v's __tostring, if there is one.
func (f *formatter) tostring(v lua.LValue) (string, bool) { return f.meta("__tostring", v) }

// meta returns the text returned by a metamethod of v, if v has it. __show replaces the whole display of a value at the prompt.
func (f *formatter) meta(name string, v lua.LValue) (string, bool) {
	meta := f.L.GetMetaField(v, name)
	if meta == lua.LNil {
		return "", false
	}
	out, err := call(f.L, meta, v)
	if err != nil {
		return fmt.Sprintf("%s (its %s raised: %s)", v.Type(), name, message(f.L, err)), true
	}
	return lua.LVAsString(out), true
}

// brief returns the table that t's __brief returns, with the relevant fields, or t itself.
func (f *formatter) brief(t *lua.LTable) *lua.LTable {
	if meta := f.L.GetMetaField(t, "__brief"); meta != lua.LNil {
		if out, err := call(f.L, meta, t); err == nil {
			if shorter, ok := out.(*lua.LTable); ok {
				return shorter
			}
		}
	}
	return t
}

// call calls fn with one argument and returns one result; Lua errors are returned.
func call(L *lua.LState, fn, arg lua.LValue) (lua.LValue, error) {
	if err := L.CallByParam(lua.P{Fn: fn, NRet: 1, Protect: true}, arg); err != nil {
		return lua.LNil, err
	}
	out := L.Get(-1)
	L.Pop(1)
	return out, nil
}

func (f *formatter) table(t *lua.LTable, depth int) node {
	if f.open[t] {
		return node{text: "{… itself}"}
	}
	n := arrayLen(t)
	keys := otherKeys(t, n)
	if n+len(keys) == 0 {
		return node{text: "{}"}
	}
	if depth >= formatDepth {
		return node{text: "{…}"}
	}
	if text, ok := f.records(t, n, len(keys)); ok && depth == 0 {
		return node{text: text}
	}
	f.open[t] = true
	defer delete(f.open, t)
	var items []node
	for i := 1; i <= min(n, formatItems) && f.left > 0; i++ {
		items = append(items, f.node(t.RawGetInt(i), depth+1))
	}
	if len(items) < n {
		items = append(items, node{text: fmt.Sprintf("… %d more", n-len(items))})
	}
	shown := 0
	for ; shown < min(len(keys), formatKeys) && f.left > 0; shown++ {
		item := f.node(t.RawGet(keys[shown]), depth+1)
		item.key = f.key(keys[shown]) + " = "
		items = append(items, item)
	}
	if shown < len(keys) {
		items = append(items, node{text: fmt.Sprintf("… %d more keys", len(keys)-shown)})
	}
	return node{items: items}
}

// arrayLen counts the elements up to the first nil; t.Len may count beyond holes.
func arrayLen(t *lua.LTable) int {
	for i := 1; i <= t.Len(); i++ {
		if t.RawGetInt(i) == lua.LNil {
			return i - 1
		}
	}
	return t.Len()
}

// otherKeys returns the sorted keys of t outside its array part 1..n.
func otherKeys(t *lua.LTable, n int) []lua.LValue {
	var keys []lua.LValue
	t.ForEach(func(k, _ lua.LValue) {
		if i, ok := k.(lua.LNumber); ok && i >= 1 && float64(i) <= float64(n) && float64(i) == math.Trunc(float64(i)) {
			return
		}
		keys = append(keys, k)
	})
	slices.SortFunc(keys, compareKeys)
	return keys
}

// compareKeys orders numbers first, then strings, then other keys by their text.
func compareKeys(a, b lua.LValue) int {
	x, xIsNumber := a.(lua.LNumber)
	y, yIsNumber := b.(lua.LNumber)
	if xIsNumber && yIsNumber {
		return cmp.Compare(x, y)
	}
	return cmp.Or(cmp.Compare(keyRank(a), keyRank(b)), strings.Compare(a.String(), b.String()))
}

func keyRank(k lua.LValue) int {
	switch k.Type() {
	case lua.LTNumber:
		return 0
	case lua.LTString:
		return 1
	}
	return 2
}

func (f *formatter) key(k lua.LValue) string {
	if s, ok := k.(lua.LString); ok && isName(string(s)) {
		return string(s)
	}
	if t, ok := k.(*lua.LTable); ok {
		return "[" + t.String() + "]" // a table as a key is shown by identity
	}
	return "[" + f.node(k, formatDepth).text + "]"
}
