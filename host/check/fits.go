package check

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"

	"github.com/daqiri/daqiri-run/bindings/row"
	luavalue "github.com/daqiri/daqiri-run/bindings/value"
	"github.com/daqiri/daqiri-run/runtime/suggest"
)

// report records an error of an argument.
type report func(at ast.PositionHolder, text string)

// fits checks an expression against the type in a row.
func (w *walker) fits(c *callee, t typ, e ast.Expr, fault report) {
	v := w.infer(e, c.s)
	if v.byUser || v.constant == lua.LNil || w.takes(t, "any") {
		return
	}
	switch constant := v.constant.(type) {
	case lua.LString:
		w.word(c, t, string(constant), e, fault)
		return
	case lua.LNumber:
		w.number(c, t, constant, e, fault)
		return
	case lua.LBool:
		if !w.takes(t, "boolean", constant.String()) {
			fault(e, w.expected(t)+" expected, got "+constant.String())
		}
		return
	}
	switch {
	case v.kind == isTable:
		w.table(c, t, e, fault)
	case v.kind == isFunction && !w.takes(t, "function", aHandler), w.api.types[v.kind] != nil && !w.takes(t, v.kind):
		fault(e, w.expected(t)+" expected, got "+describe(v))
	}
}

// takes reports whether a type allows one of these kinds.
func (w *walker) takes(t typ, kinds ...string) bool {
	return slices.ContainsFunc(w.api.plain(t), func(a alternative) bool { return slices.Contains(kinds, a.kind) })
}

// expected names a type for error messages.
func (w *walker) expected(t typ) string {
	var names []string
	for _, a := range t {
		name := a.kind
		switch a.kind {
		case aLiteral:
			name = `"` + a.word + `"`
		case aList, aMap:
			name = "table"
		case aHandler:
			name = "function"
		}
		if !slices.Contains(names, name) {
			names = append(names, strings.ReplaceAll(name, "_", " "))
		}
	}
	return strings.Join(names, " or ")
}

// word checks a string: one of fixed words, or input of a parser.
func (w *walker) word(c *callee, t typ, text string, e ast.Expr, fault report) {
	var words []string
	var readers []parser
	for _, a := range t {
		if a.kind == aLiteral && a.word == text {
			return
		}
		if p := parserOf(a.kind); p != nil {
			readers = append(readers, p)
		}
	}
	for _, a := range w.api.plain(t) {
		if a.kind == aLiteral {
			words = append(words, a.word)
			if a.word == text {
				return
			}
		}
	}
	switch {
	case len(readers) == 1:
		if err := readers[0](w, c, text); err != nil {
			fault(e, err.Error())
		}
	case w.takes(t, "string") || len(readers) > 1:
	case len(words) > 0:
		hint := ""
		if near := suggest.Nearest(text, words); near != "" {
			hint = fmt.Sprintf(" (did you mean '%s'?)", near)
		}
		fault(e, fmt.Sprintf("'%s' is not one of %s%s", text, strings.Join(words, ", "), hint))
	default:
		fault(e, fmt.Sprintf("%s expected, got the string %q", w.expected(t), text))
	}
}

func (w *walker) number(c *callee, t typ, n lua.LNumber, e ast.Expr, fault report) {
	switch {
	case w.takes(t, "number"):
	case !w.takes(t, "integer"):
		fault(e, w.expected(t)+" expected, got the number "+n.String())
	case float64(n) != math.Trunc(float64(n)):
		fault(e, n.String()+" is not a whole number")
	case slices.ContainsFunc(t, func(a alternative) bool { return a.kind == "queue_name" }):
		if err := queueNamed(w, c, n.String()); err != nil {
			fault(e, err.Error())
		}
	}
}

// table checks a table expression against the type's only table alternative. It reports a type without one, and accepts anything if there are
// several.
func (w *walker) table(c *callee, t typ, e ast.Expr, fault report) {
	here, isHere := e.(*ast.TableExpr)
	var tables typ
	for _, a := range w.api.plain(t) {
		if a.kind == aList || a.kind == aMap || len(w.api.shapes[a.kind].Keys) > 0 {
			tables = append(tables, a)
		}
	}
	if slices.ContainsFunc(t, func(a alternative) bool { return a.kind == "match" }) {
		w.match(c, e, fault)
	}
	switch {
	case w.takes(t, "table"):
	case len(tables) == 0:
		fault(e, w.expected(t)+" expected, got a table")
	case len(tables) > 1 || !isHere:
	case tables[0].kind == aList:
		w.elements(c, tables[0], here, fault)
	case tables[0].kind == aMap:
		w.entries(c, tables[0], here, fault)
	default:
		w.keys(c, here, w.api.shapes[tables[0].kind].Keys, fault)
	}
}

// match checks a match with constant values.
func (w *walker) match(c *callee, e ast.Expr, fault report) {
	v, byUser, _ := w.constant(e, c.s)
	if t, ok := v.(*lua.LTable); ok && !byUser {
		if err := luavalue.ReadMatch(t); err != nil {
			fault(e, err.Error())
		}
	}
}

func (w *walker) elements(c *callee, a alternative, e *ast.TableExpr, fault report) {
	for _, f := range e.Fields {
		if f.Key == nil {
			w.fits(c, a.val, f.Value, fault)
		}
	}
}

func (w *walker) entries(c *callee, a alternative, e *ast.TableExpr, fault report) {
	for _, f := range e.Fields {
		if key, ok := f.Key.(*ast.StringExpr); ok {
			w.word(c, a.key, key.Value, key, fault)
			w.fits(c, a.val, f.Value, func(at ast.PositionHolder, text string) { fault(at, key.Value+": "+text) })
		}
	}
}

// keys checks a table against the keys in rows.
func (w *walker) keys(c *callee, t *ast.TableExpr, rows []row.Value, fault report) {
	var names []string
	more := false
	for _, r := range rows {
		if r.OfMore() {
			more = true
		} else {
			names = append(names, r.Name)
		}
	}
	for _, f := range t.Fields {
		key, ok := f.Key.(*ast.StringExpr)
		if !ok {
			continue
		}
		i := slices.IndexFunc(rows, func(r row.Value) bool { return r.Name == key.Value })
		switch {
		case i >= 0:
			w.fits(c, parseType(rows[i].Type), f.Value, func(at ast.PositionHolder, text string) {
				fault(at, fmt.Sprintf("option '%s': %s", key.Value, text))
			})
		case more:
			if fields, known := w.fieldNames(c); known && !slices.Contains(fields, key.Value) {
				fault(key, unknown("option", key.Value, slices.Concat(names, fields)))
			}
		default:
			fault(key, unknown("option", key.Value, names))
		}
	}
	w.missing(c, t, rows, fault)
}

// missing reports absent required keys.
func (w *walker) missing(_ *callee, t *ast.TableExpr, rows []row.Value, fault report) {
	has := map[string]bool{}
	for _, f := range t.Fields {
		key, ok := f.Key.(*ast.StringExpr)
		if f.Key != nil && !ok {
			return // may be any key
		}
		if ok {
			has[key.Value] = true
		}
	}
	for _, r := range rows {
		if !r.Optional && !has[r.Name] {
			fault(t, fmt.Sprintf("option '%s' is missing", r.Name))
			return
		}
	}
}

func keys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
