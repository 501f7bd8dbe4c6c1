package check

import (
	"fmt"
	"reflect"

	"github.com/yuin/gopher-lua/ast"

	"github.com/daqiri/daqiri-run/bindings/row"
)

// member checks the read of a field.
func (w *walker) member(e *ast.AttrGetExpr, s *scope) {
	if key, ok := e.Key.(*ast.StringExpr); ok {
		w.hasMember(e, w.infer(e.Object, s), key.Value)
	}
}

// hasMember reports a name that v lacks, and returns the row of an existing one.
func (w *walker) hasMember(at ast.PositionHolder, of value, name string) *row.Name {
	if of.kind == isArguments && !w.fields[name] {
		if _, ok := of.declared[name]; !ok && of.declared != nil {
			w.faultf(at, "%s", unknown("argument", name, keys(of.declared)))
		}
		return nil
	}
	sec := w.api.section(of)
	if sec == nil || w.fields[name] {
		return nil
	}
	if m := sec.members[name]; m != nil {
		return m
	}
	if sec.Kind == "module" {
		w.faultf(at, "%s in module %s", unknown("function", name, sec.names), sec.Name)
	} else {
		w.faultf(at, "%s of %s", unknown("field or method", name, sec.names), sec.Name)
	}
	return nil
}

// call checks any call.
func (w *walker) call(e *ast.FuncCallExpr, s *scope) {
	w.exprs([]ast.Expr{e.Func, e.Receiver}, s)
	if e.Method != "" {
		w.method(e, s)
	}
	c := w.callee(e, s)
	if c == nil {
		handed := w.handed
		w.handed = w.expectsErrors(e, s)
		w.exprs(e.Args, s)
		w.handed = handed
		return
	}
	handed := w.handed
	w.handed = false
	for i, arg := range e.Args {
		w.handler(c, i, arg)
	}
	w.handed = handed
	w.results(e, 1, s) // for its effects
	w.collect(c)
	w.arguments(c)
}

// handler walks an argument that may be a function called by the API: a function expression, or a local that holds one.
func (w *walker) handler(c *callee, i int, arg ast.Expr) {
	var params []typ
	if i < len(c.row.Args) {
		params = handlerOf(c.row.Args[i].Type)
	}
	if f, ok := arg.(*ast.FunctionExpr); ok {
		w.function(f, params, c.self, c.s)
		return
	}
	w.expr(arg, c.s)
	f := w.infer(arg, c.s).function
	if f == nil || params == nil || w.walk != walkNames {
		return
	}
	if was, ok := w.params[f]; ok && !reflect.DeepEqual(was, params) {
		params = []typ{}
	}
	w.handlers[f]++
	w.params[f] = params
}

// handlerOf returns the parameter types of a function argument.
func handlerOf(kind string) []typ {
	for _, a := range parseType(kind) {
		if a.kind == aHandler {
			return a.params
		}
	}
	return nil
}

// method reports unknown methods, and fields and module functions called with a colon.
func (w *walker) method(e *ast.FuncCallExpr, s *scope) {
	of := w.infer(e.Receiver, s)
	m := w.hasMember(e, of, e.Method)
	switch {
	case m == nil:
	case m.Field && w.api.section(of).Kind == "type":
		w.faultf(e, "'%s' of a %s is a field, not a method: write .%s without ()", m.Name, of.kind, m.Name)
	case of.kind == isModule:
		w.faultf(e, "'%s' is a function of the module %s: write .%s instead of :%s", m.Name, of.name, m.Name, m.Name)
	}
}

// arguments checks the arguments of a call against its row.
func (w *walker) arguments(c *callee) {
	for i, row := range c.row.Args {
		switch {
		case row.Name == "...":
			for k := i; k < len(c.Args); k++ {
				w.argument(c, i, c.Args[k])
			}
			return
		case i < len(c.Args):
			w.argument(c, i, c.Args[i])
		case !row.Optional && !takesNil(row.Type) && (len(c.Args) == 0 || !isMany(c.Args[len(c.Args)-1])):
			w.faultf(c, "bad argument #%d to '%s' (%s is missing)", i+1, c.row.Name, row.Name)
			return
		case len(c.Args) == 0 || !isMany(c.Args[len(c.Args)-1]):
			if err := w.absent(c, row.Type); err != nil {
				w.faultf(c, "bad argument #%d to '%s' (%v)", i+1, c.row.Name, err)
				return
			}
		}
	}
	if len(c.row.Options) == 0 {
		return
	}
	at := len(c.row.Args)
	fault := func(pos ast.PositionHolder, text string) {
		w.faultf(pos, "bad argument #%d to '%s' (%s)", at+1, c.row.Name, text)
	}
	t, known := c.options()
	switch {
	case t != nil:
		w.keys(c, t, c.row.Options, fault)
	case known:
		w.missing(c, &ast.TableExpr{}, c.row.Options, func(_ ast.PositionHolder, text string) { fault(c, text) })
	case at < len(c.Args):
		if v := w.infer(c.Args[at], c.s); !v.byUser && (v.kind == isConstant || w.api.types[v.kind] != nil) {
			fault(c.Args[at], "table of options expected, got "+describe(v))
		}
	}
}

// absent returns an error if an omitted argument requires a single interface or queue and there are several.
func (w *walker) absent(c *callee, kind string) error {
	cfg := c.self.cfg
	if cfg == nil {
		return nil
	}
	for _, a := range parseType(kind) {
		switch a.kind {
		case "interface_name":
			if n := len(cfg.Interfaces); n != 1 {
				return fmt.Errorf("the configuration has %d interfaces: name one", n)
			}
		case "queue_name":
			if i := w.interfaceOf(c); i != nil {
				if n := len(queuesOf(c, i)); n != 1 {
					return fmt.Errorf("interface %s has %d such queues: name one, or give its id", i.Name, n)
				}
			}
		}
	}
	return nil
}

// takesNil reports whether an argument may be nil.
func takesNil(kind string) bool {
	for _, a := range parseType(kind) {
		if a.kind == "any" || a.kind == "nil" {
			return true
		}
	}
	return false
}

// argument checks argument i.
func (w *walker) argument(c *callee, i int, e ast.Expr) {
	w.fits(c, parseType(c.row.Args[i].Type), e, func(at ast.PositionHolder, text string) {
		w.faultf(at, "bad argument #%d to '%s' (%s)", i+1, c.row.Name, text)
	})
}
