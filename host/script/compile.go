package script

import (
	"fmt"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"
)

// compile makes a function of Lua source. Everything that runs comes through here: gopher-lua's own compiler gets
// an assignment such as a, b = b, a wrong when it assigns locals (version 1.1.2 writes a before it reads it
// again), so these are rewritten first.
func compile(L *lua.LState, name, source string) (*lua.LFunction, error) {
	chunk, err := parse.Parse(strings.NewReader(skipHead(source)), name)
	if err == nil {
		var proto *lua.FunctionProto
		if proto, err = lua.Compile(rewriteBlock(chunk), name); err == nil {
			return L.NewFunctionFromProto(proto), nil
		}
	}
	return nil, &lua.ApiError{Type: lua.ApiErrorSyntax, Object: lua.LString(err.Error()), Cause: err}
}

// rewriteBlock rewrites every statement of a block, in place.
func rewriteBlock(stmts []ast.Stmt) []ast.Stmt {
	for i, stmt := range stmts {
		stmts[i] = rewriteStmt(stmt)
	}
	return stmts
}

func rewriteStmt(stmt ast.Stmt) ast.Stmt {
	switch stmt := stmt.(type) {
	case *ast.AssignStmt:
		rewriteExprs(stmt.Lhs)
		rewriteExprs(stmt.Rhs)
		if interferes(stmt) {
			return sequence(stmt)
		}
	case *ast.LocalAssignStmt:
		rewriteExprs(stmt.Exprs)
	case *ast.FuncCallStmt:
		rewriteExpr(stmt.Expr)
	case *ast.DoBlockStmt:
		rewriteBlock(stmt.Stmts)
	case *ast.WhileStmt:
		rewriteExpr(stmt.Condition)
		rewriteBlock(stmt.Stmts)
	case *ast.RepeatStmt:
		rewriteExpr(stmt.Condition)
		rewriteBlock(stmt.Stmts)
	case *ast.IfStmt:
		rewriteExpr(stmt.Condition)
		rewriteBlock(stmt.Then)
		rewriteBlock(stmt.Else)
	case *ast.NumberForStmt:
		rewriteExprs([]ast.Expr{stmt.Init, stmt.Limit, stmt.Step})
		rewriteBlock(stmt.Stmts)
	case *ast.GenericForStmt:
		rewriteExprs(stmt.Exprs)
		rewriteBlock(stmt.Stmts)
	case *ast.FuncDefStmt:
		rewriteBlock(stmt.Func.Stmts)
	case *ast.ReturnStmt:
		rewriteExprs(stmt.Exprs)
	}
	return stmt
}

func rewriteExprs(list []ast.Expr) {
	for _, e := range list {
		rewriteExpr(e)
	}
}

// rewriteExpr looks for functions inside an expression.
func rewriteExpr(e ast.Expr) {
	switch e := e.(type) {
	case *ast.FunctionExpr:
		rewriteBlock(e.Stmts)
	case *ast.AttrGetExpr:
		rewriteExprs([]ast.Expr{e.Object, e.Key})
	case *ast.TableExpr:
		for _, f := range e.Fields {
			rewriteExprs([]ast.Expr{f.Key, f.Value})
		}
	case *ast.FuncCallExpr:
		rewriteExprs([]ast.Expr{e.Func, e.Receiver})
		rewriteExprs(e.Args)
	case *ast.LogicalOpExpr:
		rewriteExprs([]ast.Expr{e.Lhs, e.Rhs})
	case *ast.RelationalOpExpr:
		rewriteExprs([]ast.Expr{e.Lhs, e.Rhs})
	case *ast.StringConcatOpExpr:
		rewriteExprs([]ast.Expr{e.Lhs, e.Rhs})
	case *ast.ArithmeticOpExpr:
		rewriteExprs([]ast.Expr{e.Lhs, e.Rhs})
	case *ast.UnaryMinusOpExpr:
		rewriteExpr(e.Expr)
	case *ast.UnaryNotOpExpr:
		rewriteExpr(e.Expr)
	case *ast.UnaryLenOpExpr:
		rewriteExpr(e.Expr)
	}
}

// interferes says whether an assignment may write a local before all of its values have been computed. The values of
// a single call are all there before the first is assigned.
func interferes(stmt *ast.AssignStmt) bool {
	if len(stmt.Lhs) < 2 || len(stmt.Rhs) < 2 {
		return false
	}
	for _, target := range stmt.Lhs {
		if _, ok := target.(*ast.IdentExpr); ok {
			return true
		}
	}
	return false
}

// sequence takes an assignment apart: first everything is computed, into locals with names that no script can have,
// then it is assigned.
func sequence(stmt *ast.AssignStmt) ast.Stmt {
	s := &sequencer{stmt: stmt}
	for _, target := range stmt.Lhs {
		if get, ok := target.(*ast.AttrGetExpr); ok {
			get.Object = s.keep(get.Object)
			get.Key = s.keep(get.Key)
		}
	}
	names := make([]string, len(stmt.Lhs))
	for i := range names {
		names[i] = fmt.Sprintf("(value %d)", i+1)
	}
	s.add(&ast.LocalAssignStmt{Names: names, Exprs: stmt.Rhs})
	for i, target := range stmt.Lhs {
		s.add(&ast.AssignStmt{Lhs: []ast.Expr{target}, Rhs: []ast.Expr{s.name(names[i])}})
	}
	block := &ast.DoBlockStmt{Stmts: s.stmts}
	place(block, stmt)
	return block
}

// sequencer gathers the statements that an assignment becomes.
type sequencer struct {
	stmt  *ast.AssignStmt
	stmts []ast.Stmt
	kept  int
}

func (s *sequencer) add(stmt ast.Stmt) {
	place(stmt, s.stmt)
	s.stmts = append(s.stmts, stmt)
}

func (s *sequencer) name(name string) *ast.IdentExpr {
	e := &ast.IdentExpr{Value: name}
	place(e, s.stmt)
	return e
}

// keep computes e into a local of its own, unless it is a constant.
func (s *sequencer) keep(e ast.Expr) ast.Expr {
	switch e.(type) {
	case *ast.StringExpr, *ast.NumberExpr, *ast.TrueExpr, *ast.FalseExpr, *ast.NilExpr:
		return e
	}
	s.kept++
	name := fmt.Sprintf("(place %d)", s.kept)
	s.add(&ast.LocalAssignStmt{Names: []string{name}, Exprs: []ast.Expr{e}})
	return s.name(name)
}

// place gives a new node the lines of the statement that it stands for.
func place(to, from ast.PositionHolder) {
	to.SetLine(from.Line())
	to.SetLastLine(from.LastLine())
}
