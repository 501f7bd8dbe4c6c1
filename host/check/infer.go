package check

import (
	"strconv"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"

	"github.com/daqiri/daqiri-run/bindings/row"
)

// made returns a value of a type, bound to the session of another value.
func made(t typ, of value) value {
	a := t.only()
	v := value{cfg: of.cfg}
	switch {
	case reference().types[a.kind] != nil:
		v.kind = a.kind
	case a.kind == aList:
		v.kind, v.elem = isList, a.val
	}
	return v
}

// infer returns what is known of an expression's value.
func (w *walker) infer(e ast.Expr, s *scope) value {
	switch e := e.(type) {
	case *ast.IdentExpr:
		return w.named(e.Value, s)
	case *ast.NilExpr:
		return value{kind: isConstant, constant: lua.LNil}
	case *ast.TrueExpr:
		return value{kind: isConstant, constant: lua.LTrue}
	case *ast.FalseExpr:
		return value{kind: isConstant, constant: lua.LFalse}
	case *ast.StringExpr:
		return value{kind: isConstant, constant: lua.LString(e.Value)}
	case *ast.NumberExpr:
		return numeral(e.Value)
	case *ast.TableExpr:
		return value{kind: isTable}
	case *ast.FunctionExpr:
		return value{kind: isFunction, function: e}
	case *ast.AttrGetExpr:
		return w.read(e, s)
	case *ast.FuncCallExpr:
		return w.results(e, 1, s)[0]
	case *ast.StringConcatOpExpr, *ast.ArithmeticOpExpr, *ast.UnaryMinusOpExpr:
		if c, byUser, ok := w.constant(e, s); ok {
			return value{kind: isConstant, constant: c, byUser: byUser}
		}
	}
	return value{}
}

// numeral parses a number like gopher-lua's compiler.
func numeral(text string) value {
	if n, err := strconv.ParseInt(text, 0, 64); err == nil {
		return value{kind: isConstant, constant: lua.LNumber(n)}
	}
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		return value{kind: isConstant, constant: lua.LNumber(n)}
	}
	return value{}
}

func (w *walker) named(name string, s *scope) value {
	if v := s.find(name); v != nil {
		return v.value
	}
	if v := w.globals[name]; v != nil {
		return v.value
	}
	if w.assigned[place{global: name}] == 0 && w.api.modules[name] != nil && name != "daqiri" { // bit is also a global
		return value{kind: isModule, name: name}
	}
	return value{}
}

// read infers a field or element.
func (w *walker) read(e *ast.AttrGetExpr, s *scope) value {
	of := w.infer(e.Object, s)
	key, named := e.Key.(*ast.StringExpr)
	switch {
	case of.kind == isList && !named:
		return made(of.elem, of)
	case of.kind == isArguments && named:
		return of.declared[key.Value]
	case named:
		if sec := w.api.section(of); sec != nil {
			if m := sec.members[key.Value]; m != nil && m.Field {
				return made(parseType(m.Results[0].Type), of)
			}
		}
	}
	return value{}
}

// iterated infers the second variable of a loop over ipairs or pairs of a list.
func (w *walker) iterated(e ast.Expr, s *scope) value {
	call, ok := e.(*ast.FuncCallExpr)
	if !ok || len(call.Args) != 1 || !w.isGlobal(call.Func, "ipairs", s) && !w.isGlobal(call.Func, "pairs", s) {
		return value{}
	}
	if list := w.infer(call.Args[0], s); list.kind == isList {
		return made(list.elem, list)
	}
	return value{}
}

// isGlobal reports whether e names a global that the script does not assign.
func (w *walker) isGlobal(e ast.Expr, name string, s *scope) bool {
	id, ok := e.(*ast.IdentExpr)
	return ok && id.Value == name && s.find(name) == nil && w.assigned[place{global: name}] == 0
}

// expectsErrors reports whether the callee may catch errors of a function argument: pcall, a script function that names it, and any unknown
// function.
func (w *walker) expectsErrors(e *ast.FuncCallExpr, s *scope) bool {
	switch f := e.Func.(type) {
	case *ast.FunctionExpr:
		return w.catching[f]
	case *ast.IdentExpr:
		if v := w.named(f.Value, s); v.function != nil {
			return w.catching[v.function]
		}
		return !w.isGlobal(f, f.Value, s) || f.Value == "pcall" || f.Value == "xpcall"
	case *ast.AttrGetExpr:
		library, ok := f.Object.(*ast.IdentExpr)
		return !ok || !w.isGlobal(library, library.Value, s)
	}
	return true
}

// inferAll infers n values of a list of expressions, of which the last may be a call with several results.
func (w *walker) inferAll(list []ast.Expr, n int, s *scope) []value {
	values := make([]value, 0, n)
	for i, e := range list {
		if call, ok := e.(*ast.FuncCallExpr); ok && i == len(list)-1 {
			values = append(values, w.results(call, max(1, n-i), s)...)
			continue
		}
		values = append(values, w.infer(e, s))
	}
	for len(values) < n {
		values = append(values, value{})
	}
	return values
}

// results infers n results of a call.
func (w *walker) results(e *ast.FuncCallExpr, n int, s *scope) []value {
	values := make([]value, n)
	if n == 0 {
		return values
	}
	switch {
	case w.isGlobal(e.Func, "require", s) && len(e.Args) == 1:
		if name, ok := e.Args[0].(*ast.StringExpr); ok && w.api.modules[name.Value] != nil {
			values[0] = value{kind: isModule, name: name.Value}
		}
		return values
	case w.isGlobal(e.Func, "assert", s) && len(e.Args) > 0:
		values[0] = w.infer(e.Args[0], s)
		return values
	}
	c := w.callee(e, s)
	if c == nil {
		return values
	}
	for i := range min(n, len(c.row.Results)) {
		values[i] = made(parseType(c.row.Results[i].Type), c.self)
	}
	if more := effect(c.title()); more != nil {
		if _, ok := w.made[e]; !ok {
			w.made[e] = more(w, c, values[0])
		}
		values[0] = w.made[e]
	}
	return values
}

// callee is a called function that has a row.
type callee struct {
	*ast.FuncCallExpr
	row     *row.Name
	section *section
	self    value // object or module
	s       *scope
}

// title returns "session:rx_queue" or "daqiri.open".
func (c *callee) title() string {
	if c.section.Kind == "module" {
		return c.section.Name + "." + c.row.Name
	}
	return c.section.Name + ":" + c.row.Name
}

// callee returns the row of the called function; nil if it has none or is unknown.
func (w *walker) callee(e *ast.FuncCallExpr, s *scope) *callee {
	c := &callee{FuncCallExpr: e, s: s}
	name := e.Method
	if name != "" {
		c.self = w.infer(e.Receiver, s)
	} else {
		get, ok := e.Func.(*ast.AttrGetExpr)
		if !ok {
			return nil
		}
		key, ok := get.Key.(*ast.StringExpr)
		if !ok {
			return nil
		}
		name, c.self = key.Value, w.infer(get.Object, s)
	}
	c.section = w.api.section(c.self)
	if c.section == nil || (c.self.kind == isModule) == (e.Method != "") {
		return nil // module function called as a method, or the reverse: arguments are shifted
	}
	if c.row = c.section.members[name]; c.row == nil || c.row.Field {
		return nil
	}
	return c
}

// argument returns the expression of an argument or option by name; nil: absent. known: the result is certain.
func (c *callee) argument(name string) (e ast.Expr, known bool) {
	for i, a := range c.row.Args {
		if a.Name == name {
			if i < len(c.Args) {
				return c.Args[i], true
			}
			return nil, true
		}
	}
	t, known := c.options()
	if t == nil {
		return nil, known
	}
	for _, f := range t.Fields {
		if key, ok := f.Key.(*ast.StringExpr); ok && key.Value == name {
			return f.Value, true
		}
	}
	return nil, true
}

// options returns the table of options in the call; known and nil: there is none.
func (c *callee) options() (t *ast.TableExpr, known bool) {
	at := len(c.row.Args)
	if at >= len(c.Args) {
		return nil, len(c.Args) == 0 || !isMany(c.Args[len(c.Args)-1])
	}
	if _, none := c.Args[at].(*ast.NilExpr); none {
		return nil, true
	}
	t, known = c.Args[at].(*ast.TableExpr)
	return t, known
}

// isMany reports whether an expression may yield several values.
func isMany(e ast.Expr) bool {
	switch e.(type) {
	case *ast.FuncCallExpr, *ast.Comma3Expr:
		return true
	}
	return false
}
