package script

import (
	"fmt"

	"github.com/yuin/gopher-lua/ast"
)

// Globals that a script only tests for nil: reading them does not raise (bindings/lua51/unset.go).

// tested handles an expression that is only tested for nil or false.
func (c *checker) tested(e ast.Expr, s *scope) {
	switch e := e.(type) {
	case *ast.IdentExpr:
		if c.undefined(e, s) {
			c.faults = append(c.faults, Issue{Name: c.name, Line: e.Line(), Warning: true,
				Text: fmt.Sprintf("global '%s' is never set: it is nil here%s", e.Value, c.hint(e))})
		}
	case *ast.LogicalOpExpr:
		c.tested(e.Lhs, s)
		c.tested(e.Rhs, s)
	default:
		c.expr(e, s)
	}
}

// compared handles a comparison; == and ~= with nil are tests.
func (c *checker) compared(e *ast.RelationalOpExpr, s *scope) {
	_, left := e.Lhs.(*ast.NilExpr)
	_, right := e.Rhs.(*ast.NilExpr)
	if (left || right) && (e.Operator == "==" || e.Operator == "~=") {
		c.tested(e.Lhs, s)
		c.tested(e.Rhs, s)
		return
	}
	c.exprs([]ast.Expr{e.Lhs, e.Rhs}, s)
}
