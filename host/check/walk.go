package check

import (
	"fmt"
	"slices"

	"github.com/yuin/gopher-lua/ast"

	"github.com/daqiri/daqiri-run/host/script"
)

// Passes over a script; each uses what the previous passes collected.
const (
	walkAssigned = iota // locals and globals assigned more than once, fields set
	walkNames           // names of stages, metrics and formats
	walkFaults
)

// place identifies a variable: the n-th name that a node declares, or a global's name.
type place struct {
	node   any
	n      int
	global string
}

// variable is a local or a global.
type variable struct {
	at place
	value
}

// scope holds the locals visible at a place.
type scope struct {
	outer *scope
	vars  map[string]*variable
}

func (s *scope) find(name string) *variable {
	for ; s != nil; s = s.outer {
		if v := s.vars[name]; v != nil {
			return v
		}
	}
	return nil
}

// walker walks the syntax tree of a script.
type walker struct {
	file     string
	opts     Options
	api      *api
	walk     int
	quiet    int  // number of enclosing functions that may expect errors
	handed   bool // in arguments of an unknown function, where functions may expect errors
	assigned map[place]int
	fields   map[string]bool // that the script sets on some value
	globals  map[string]*variable
	inside   []*ast.FunctionExpr         // enclosing functions
	catching map[*ast.FunctionExpr]bool  // functions that name pcall or xpcall
	uses     map[*ast.FunctionExpr]int   // uses of functions held by a local, by name
	handlers map[*ast.FunctionExpr]int   // of these, uses as handlers
	params   map[*ast.FunctionExpr][]typ // parameter types of handlers; empty if they differ
	names    names
	made     map[*ast.FuncCallExpr]value // results of calls with effects
	faults   []script.Issue
}

func (w *walker) faultf(at ast.PositionHolder, format string, args ...any) {
	f := script.Issue{Name: w.file, Line: at.Line(), Text: fmt.Sprintf(format, args...)}
	if w.walk == walkFaults && w.quiet == 0 && !slices.Contains(w.faults, f) {
		w.faults = append(w.faults, f)
	}
}

// declare adds a local. A local that is also assigned elsewhere is unknown.
func (w *walker) declare(s *scope, node any, n int, name string, v value) {
	at := place{node: node, n: n}
	if w.walk == walkAssigned || w.assigned[at] > 0 {
		v = value{}
	}
	s.vars[name] = &variable{at, v}
}

// assign handles an assignment to a name.
func (w *walker) assign(name string, v value, s *scope) {
	if local := s.find(name); local != nil {
		w.count(local.at)
		return
	}
	at := place{global: name}
	w.count(at)
	if w.walk == walkAssigned || w.assigned[at] > 1 {
		v = value{}
	}
	w.globals[name] = &variable{at, v}
}

func (w *walker) count(at place) {
	if w.walk == walkAssigned {
		w.assigned[at]++
	}
}

func (w *walker) block(stmts []ast.Stmt, outer *scope) *scope {
	s := &scope{outer: outer, vars: map[string]*variable{}}
	for _, stmt := range stmts {
		w.stmt(stmt, s)
	}
	return s
}

func (w *walker) stmt(stmt ast.Stmt, s *scope) {
	switch stmt := stmt.(type) {
	case *ast.AssignStmt:
		w.exprs(stmt.Rhs, s)
		values := w.inferAll(stmt.Rhs, len(stmt.Lhs), s)
		for i, target := range stmt.Lhs {
			w.target(target, values[i], s)
		}
	case *ast.LocalAssignStmt:
		w.local(stmt, s)
	case *ast.FuncCallStmt:
		w.expr(stmt.Expr, s)
	case *ast.ReturnStmt:
		w.exprs(stmt.Exprs, s)
	case *ast.FuncDefStmt:
		if stmt.Name.Func != nil {
			w.target(stmt.Name.Func, value{}, s)
			w.function(stmt.Func, nil, value{}, s)
			return
		}
		w.expr(stmt.Name.Receiver, s)
		w.fields[stmt.Name.Method] = true
		w.function(stmt.Func, nil, value{}, s)
	default:
		w.control(stmt, s)
	}
}

func (w *walker) local(stmt *ast.LocalAssignStmt, s *scope) {
	if len(stmt.Exprs) == 1 && len(stmt.Names) == 1 {
		if f, ok := stmt.Exprs[0].(*ast.FunctionExpr); ok { // a local function is visible in its own body
			w.declare(s, stmt, 0, stmt.Names[0], value{kind: isFunction, function: f})
		}
	}
	w.exprs(stmt.Exprs, s)
	values := w.inferAll(stmt.Exprs, len(stmt.Names), s)
	for i, name := range stmt.Names {
		w.declare(s, stmt, i, name, values[i])
	}
}

// control handles a statement that contains statements.
func (w *walker) control(stmt ast.Stmt, s *scope) {
	switch stmt := stmt.(type) {
	case *ast.DoBlockStmt:
		w.block(stmt.Stmts, s)
	case *ast.WhileStmt:
		w.expr(stmt.Condition, s)
		w.block(stmt.Stmts, s)
	case *ast.RepeatStmt:
		w.expr(stmt.Condition, w.block(stmt.Stmts, s)) // locals of the block are visible in the condition
	case *ast.IfStmt:
		w.expr(stmt.Condition, s)
		w.block(stmt.Then, s)
		w.block(stmt.Else, s)
	case *ast.NumberForStmt:
		w.exprs([]ast.Expr{stmt.Init, stmt.Limit, stmt.Step}, s)
		inner := &scope{outer: s, vars: map[string]*variable{}}
		w.declare(inner, stmt, 0, stmt.Name, value{})
		w.block(stmt.Stmts, inner)
	case *ast.GenericForStmt:
		w.exprs(stmt.Exprs, s)
		inner := &scope{outer: s, vars: map[string]*variable{}}
		for i, name := range stmt.Names {
			v := value{}
			if i == 1 {
				v = w.iterated(stmt.Exprs[0], s)
			}
			w.declare(inner, stmt, i, name, v)
		}
		w.block(stmt.Stmts, inner)
	}
}

// target handles the left side of an assignment.
func (w *walker) target(e ast.Expr, v value, s *scope) {
	switch e := e.(type) {
	case *ast.IdentExpr:
		w.assign(e.Value, v, s)
	case *ast.AttrGetExpr:
		w.exprs([]ast.Expr{e.Object, e.Key}, s)
		if key, ok := e.Key.(*ast.StringExpr); ok {
			w.fields[key.Value] = true
		}
	}
}

// function walks a function with parameters of these types, bound to the session of the value of.
func (w *walker) function(f *ast.FunctionExpr, params []typ, of value, s *scope) {
	if params == nil && w.uses[f] == w.handlers[f] { // used only as a handler
		params = w.params[f]
	}
	inner := &scope{outer: s, vars: map[string]*variable{}}
	for i, name := range f.ParList.Names {
		v := value{}
		if i < len(params) {
			v = made(params[i], of)
		}
		w.declare(inner, f, i, name, v)
	}
	for _, name := range []string{"self", "arg"} {
		if inner.vars[name] == nil {
			w.declare(inner, f, -1, name, value{})
		}
	}
	w.inside = append(w.inside, f)
	w.block(f.Stmts, inner)
	w.inside = w.inside[:len(w.inside)-1]
}

func (w *walker) exprs(list []ast.Expr, s *scope) {
	for _, e := range list {
		w.expr(e, s)
	}
}

func (w *walker) expr(e ast.Expr, s *scope) {
	switch e := e.(type) {
	case *ast.IdentExpr:
		if e.Value == "pcall" || e.Value == "xpcall" {
			for _, f := range w.inside {
				w.catching[f] = true
			}
		}
		if f := w.named(e.Value, s).function; f != nil && w.walk == walkNames {
			w.uses[f]++
		}
	case *ast.AttrGetExpr:
		w.exprs([]ast.Expr{e.Object, e.Key}, s)
		w.member(e, s)
	case *ast.TableExpr:
		for _, f := range e.Fields {
			w.exprs([]ast.Expr{f.Key, f.Value}, s)
		}
	case *ast.FuncCallExpr:
		w.call(e, s)
	case *ast.FunctionExpr:
		if w.handed {
			w.quiet++
			defer func() { w.quiet-- }()
		}
		w.function(e, nil, value{}, s)
	case *ast.RelationalOpExpr:
		w.exprs([]ast.Expr{e.Lhs, e.Rhs}, s)
	case *ast.LogicalOpExpr:
		w.exprs([]ast.Expr{e.Lhs, e.Rhs}, s)
	case *ast.StringConcatOpExpr:
		w.exprs([]ast.Expr{e.Lhs, e.Rhs}, s)
	case *ast.ArithmeticOpExpr:
		w.exprs([]ast.Expr{e.Lhs, e.Rhs}, s)
	case *ast.UnaryMinusOpExpr:
		w.expr(e.Expr, s)
	case *ast.UnaryNotOpExpr:
		w.expr(e.Expr, s)
	case *ast.UnaryLenOpExpr:
		w.expr(e.Expr, s)
	}
}
