package lua51

import (
	"fmt"
	"slices"

	"github.com/yuin/gopher-lua/ast"
)

// assign rewrites an assignment if the compiler would miscompile it.
func (r *rewriter) assign(stmt *ast.AssignStmt) ast.Stmt {
	r.exprs(stmt.Lhs)
	r.exprs(stmt.Rhs)
	switch {
	case len(stmt.Lhs) > 1 && interferes(stmt), len(stmt.Rhs) == 1 && r.early(stmt.Lhs[0], stmt.Rhs[0]), constantObject(stmt):
		return sequence(stmt)
	}
	return stmt
}

// interferes reports whether an assignment to several targets may write a local before all values and targets have been evaluated. The values of
// a single call are complete before the first is assigned.
func interferes(stmt *ast.AssignStmt) bool {
	names := 0
	for _, target := range stmt.Lhs {
		if _, ok := target.(*ast.IdentExpr); ok {
			names++
		}
	}
	return names > 0 && (len(stmt.Rhs) > 1 || names < len(stmt.Lhs))
}

// early reports whether the value of a single assignment to a local would be written to it before it is complete: "and" and "or" jump away
// midway, "..." clears the registers above, and a call assigned to the last parameter stores its arguments there.
func (r *rewriter) early(target, value ast.Expr) bool {
	name, ok := target.(*ast.IdentExpr)
	if !ok || !r.fn.locals[name.Value] {
		return false
	}
	switch value.(type) {
	case *ast.LogicalOpExpr, *ast.Comma3Expr:
		return true
	case *ast.FuncCallExpr:
		return name.Value == r.fn.lastParam
	}
	return false
}

// constantObject reports an assignment to a field of a constant, ("x").y = 1: the compiler would use the constant's index as a register.
func constantObject(stmt *ast.AssignStmt) bool {
	for _, target := range stmt.Lhs {
		if get, ok := target.(*ast.AttrGetExpr); ok && isConstant(get.Object) {
			return true
		}
	}
	return false
}

// sequence splits an assignment: first it evaluates everything into locals whose names no script can use, then it assigns.
func sequence(stmt *ast.AssignStmt) ast.Stmt {
	s := &sequencer{at: stmt}
	for _, target := range stmt.Lhs {
		if get, ok := target.(*ast.AttrGetExpr); ok {
			get.Object = s.local(get.Object)
			get.Key = s.keep(get.Key)
		}
	}
	names := make([]string, len(stmt.Lhs))
	for i := range names {
		names[i] = fmt.Sprintf("(value %d)", i+1)
	}
	s.add(&ast.LocalAssignStmt{Names: names, Exprs: stmt.Rhs})
	for i, target := range slices.Backward(stmt.Lhs) { // in Lua's order
		s.add(&ast.AssignStmt{Lhs: []ast.Expr{target}, Rhs: []ast.Expr{s.name(names[i])}})
	}
	block := &ast.DoBlockStmt{Stmts: s.stmts}
	place(block, stmt)
	return block
}

// sequencer collects the statements that replace an assignment.
type sequencer struct {
	at    ast.PositionHolder // position of the new statements
	stmts []ast.Stmt
	kept  int
}

func (s *sequencer) add(stmt ast.Stmt) {
	place(stmt, s.at)
	s.stmts = append(s.stmts, stmt)
}

func (s *sequencer) name(name string) *ast.IdentExpr {
	e := &ast.IdentExpr{Value: name}
	place(e, s.at)
	return e
}

// keep evaluates e into a new local, unless it is a constant.
func (s *sequencer) keep(e ast.Expr) ast.Expr {
	if isConstant(e) {
		return e
	}
	return s.local(e)
}

func (s *sequencer) local(e ast.Expr) ast.Expr {
	s.kept++
	name := fmt.Sprintf("(place %d)", s.kept)
	s.add(&ast.LocalAssignStmt{Names: []string{name}, Exprs: []ast.Expr{e}})
	return s.name(name)
}
