package script

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"

	"github.com/daqiri/daqiri-run/bindings/lua51"
	"github.com/daqiri/daqiri-run/runtime/suggest"
)

// An Issue is an error or warning found in a script without running it.
type Issue = lua51.Diagnostic

// Check reads a script without running it and returns its errors, sorted by line: a syntax error, reads of globals that are neither in known nor
// set by the script, and comparisons with a u64 that Lua can't make. known are the names of the globals that every script has. A global that is
// never set and only tested for nil is a warning.
func Check(name, source string, known []string) []Issue {
	chunk, err := lua51.Parse(name, source)
	if err != nil {
		return []Issue{syntaxFault(name, source, err)}
	}
	c := &checker{name: name, known: map[string]bool{}, names: slices.Clone(known)}
	for _, k := range known {
		c.known[k] = true
	}
	c.collect = true // first collect all definitions, in any order, then check the uses
	c.block(chunk, nil)
	c.collect = false
	c.block(chunk, nil)
	slices.SortStableFunc(c.faults, func(a, b Issue) int { return a.Line - b.Line })
	return c.faults
}

// syntaxFault converts a parse error; an error at the end of the text is reported at its last line.
func syntaxFault(name, source string, err error) Issue {
	if f, ok := lua51.AsDiagnostic(err); ok {
		return f
	}
	var syntax *parse.Error
	if !errors.As(err, &syntax) {
		return Issue{Name: name, Line: 1, Text: strings.TrimSpace(err.Error())}
	}
	if syntax.Pos.Line == parse.EOF {
		return Issue{Name: name, Line: strings.Count(strings.TrimRight(source, "\n"), "\n") + 1,
			Text: syntax.Message + " at the end of the script"}
	}
	return Issue{Name: name, Line: syntax.Pos.Line, Text: fmt.Sprintf("%s near '%s'", syntax.Message, syntax.Token)}
}

// scope holds the local names visible at a place.
type scope struct {
	outer *scope
	names []string
}

func (s *scope) has(name string) bool {
	for ; s != nil; s = s.outer {
		if slices.Contains(s.names, name) {
			return true
		}
	}
	return false
}

// checker walks a script twice: it collects the assigned globals, then checks the globals that are read.
type checker struct {
	name    string
	known   map[string]bool
	names   []string // known names, for suggestions
	collect bool
	faults  []Issue
}

func (c *checker) faultf(at ast.PositionHolder, format string, args ...any) {
	if !c.collect {
		c.faults = append(c.faults, Issue{Name: c.name, Line: at.Line(), Text: fmt.Sprintf(format, args...)})
	}
}

// define handles an assignment to name.
func (c *checker) define(name string, s *scope) {
	if c.collect && !s.has(name) && !c.known[name] {
		c.known[name] = true
		c.names = append(c.names, name)
	}
}

// use handles a read of name.
func (c *checker) use(e *ast.IdentExpr, s *scope) {
	if c.undefined(e, s) {
		c.faultf(e, "undefined global '%s'%s", e.Value, c.hint(e))
	}
}

func (c *checker) undefined(e *ast.IdentExpr, s *scope) bool {
	return !c.collect && !s.has(e.Value) && !c.known[e.Value]
}

func (c *checker) hint(e *ast.IdentExpr) string {
	if near := suggest.Nearest(e.Value, c.names); near != "" {
		return fmt.Sprintf(" (did you mean '%s'?)", near)
	}
	return ""
}

func (c *checker) block(stmts []ast.Stmt, outer *scope) *scope {
	s := &scope{outer: outer}
	for _, stmt := range stmts {
		c.stmt(stmt, s)
	}
	return s
}

func (c *checker) stmt(stmt ast.Stmt, s *scope) {
	switch stmt := stmt.(type) {
	case *ast.AssignStmt:
		c.exprs(stmt.Rhs, s)
		for _, target := range stmt.Lhs {
			c.target(target, s)
		}
	case *ast.LocalAssignStmt:
		if len(stmt.Exprs) == 1 {
			if _, ok := stmt.Exprs[0].(*ast.FunctionExpr); ok { // a local function is visible in its own body
				s.names = append(s.names, stmt.Names...)
			}
		}
		c.exprs(stmt.Exprs, s)
		s.names = append(s.names, stmt.Names...)
	case *ast.FuncCallStmt:
		c.expr(stmt.Expr, s)
	case *ast.ReturnStmt:
		c.exprs(stmt.Exprs, s)
	case *ast.FuncDefStmt:
		if stmt.Name.Func != nil {
			c.target(stmt.Name.Func, s)
		} else {
			c.expr(stmt.Name.Receiver, s)
		}
		c.function(stmt.Func, s, stmt.Name.Func == nil)
	default:
		c.control(stmt, s)
	}
}

// control handles a statement with nested statements.
func (c *checker) control(stmt ast.Stmt, s *scope) {
	switch stmt := stmt.(type) {
	case *ast.DoBlockStmt:
		c.block(stmt.Stmts, s)
	case *ast.WhileStmt:
		c.tested(stmt.Condition, s)
		c.block(stmt.Stmts, s)
	case *ast.RepeatStmt:
		c.tested(stmt.Condition, c.block(stmt.Stmts, s)) // the block's locals are visible in the condition
	case *ast.IfStmt:
		c.tested(stmt.Condition, s)
		c.block(stmt.Then, s)
		c.block(stmt.Else, s)
	case *ast.NumberForStmt:
		c.exprs([]ast.Expr{stmt.Init, stmt.Limit, stmt.Step}, s)
		c.block(stmt.Stmts, &scope{outer: s, names: []string{stmt.Name}})
	case *ast.GenericForStmt:
		c.exprs(stmt.Exprs, s)
		c.block(stmt.Stmts, &scope{outer: s, names: stmt.Names})
	}
}

// target handles the left side of an assignment.
func (c *checker) target(e ast.Expr, s *scope) {
	if name, ok := e.(*ast.IdentExpr); ok {
		c.define(name.Value, s)
		return
	}
	c.expr(e, s)
}

func (c *checker) function(f *ast.FunctionExpr, s *scope, method bool) {
	inner := &scope{outer: s, names: slices.Clone(f.ParList.Names)}
	if method {
		inner.names = append(inner.names, "self")
	}
	if f.ParList.HasVargs {
		inner.names = append(inner.names, "arg")
	}
	c.block(f.Stmts, inner)
}

func (c *checker) exprs(list []ast.Expr, s *scope) {
	for _, e := range list {
		c.expr(e, s)
	}
}

func (c *checker) expr(e ast.Expr, s *scope) {
	switch e := e.(type) {
	case *ast.IdentExpr:
		c.use(e, s)
	case *ast.AttrGetExpr:
		c.exprs([]ast.Expr{e.Object, e.Key}, s)
	case *ast.TableExpr:
		for _, f := range e.Fields {
			c.exprs([]ast.Expr{f.Key, f.Value}, s)
		}
	case *ast.FuncCallExpr:
		c.exprs([]ast.Expr{e.Func, e.Receiver}, s)
		if name, ok := e.Func.(*ast.IdentExpr); ok && name.Value == "type" && len(e.Args) == 1 {
			c.tested(e.Args[0], s)
			return
		}
		c.exprs(e.Args, s)
	case *ast.FunctionExpr:
		c.function(e, s, false)
	case *ast.RelationalOpExpr:
		c.comparison(e)
		c.compared(e, s)
	default:
		c.operation(e, s)
	}
}

func (c *checker) operation(e ast.Expr, s *scope) {
	switch e := e.(type) {
	case *ast.LogicalOpExpr:
		c.tested(e.Lhs, s)
		c.expr(e.Rhs, s)
	case *ast.StringConcatOpExpr:
		c.exprs([]ast.Expr{e.Lhs, e.Rhs}, s)
	case *ast.ArithmeticOpExpr:
		c.exprs([]ast.Expr{e.Lhs, e.Rhs}, s)
	case *ast.UnaryMinusOpExpr:
		c.expr(e.Expr, s)
	case *ast.UnaryNotOpExpr:
		c.tested(e.Expr, s)
	case *ast.UnaryLenOpExpr:
		c.expr(e.Expr, s)
	}
}

// comparison reports a u64 compared with a number: Lua 5.1 calls no metamethod for operands of different types, so == is always false and <
// raises.
func (c *checker) comparison(e *ast.RelationalOpExpr) {
	instead := map[string]string{"==": "a:eq(b)", "~=": "not a:eq(b)", "<": "a:lt(b)", ">": "b:lt(a)", "<=": "not b:lt(a)",
		">=": "not a:lt(b)"}[e.Operator]
	if isU64(e.Lhs) && isNumber(e.Rhs) || isNumber(e.Lhs) && isU64(e.Rhs) {
		c.faultf(e, "a u64 compared by %s with a number: Lua can't do that; write %s", e.Operator, instead)
	}
}

// isNumber reports whether e is certainly a number.
func isNumber(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.NumberExpr, *ast.UnaryLenOpExpr:
		return true
	case *ast.UnaryMinusOpExpr:
		return isNumber(e.Expr)
	}
	return false
}

// isU64 reports whether e is a call that returns a u64: daqiri.u64(...) or col:u64(...).
func isU64(e ast.Expr) bool {
	call, ok := e.(*ast.FuncCallExpr)
	if !ok {
		return false
	}
	if call.Method != "" {
		return call.Method == "u64"
	}
	get, ok := call.Func.(*ast.AttrGetExpr)
	if !ok {
		return false
	}
	key, ok := get.Key.(*ast.StringExpr)
	return ok && key.Value == "u64"
}
