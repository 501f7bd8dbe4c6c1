package lua51

import (
	"github.com/yuin/gopher-lua/ast"
)

// Limits of nesting. The parser, the rewriter and the compiler recurse once per level.
const (
	maxLevels = 200    // nested blocks, functions, tables and operands, as in C Lua
	maxChain  = 20_000 // consecutive operators, fields, calls or elseif
)

// checkLevels checks these limits; its own recursion is bounded by them.
func checkLevels(name string, chunk []ast.Stmt) (err error) {
	defer func() {
		if v := recover(); v != nil {
			e, ok := v.(*sourceError)
			if !ok {
				panic(v)
			}
			err = e
		}
	}()
	l := &levels{name: name}
	l.block(chunk)
	return nil
}

// levels counts the levels from the chunk to the current node.
type levels struct {
	name  string
	depth int
	chain int
}

// inside calls look one level deeper.
func (l *levels) inside(at ast.PositionHolder, look func()) {
	if l.depth++; l.depth > maxLevels {
		panic(syntaxError(l.name, at.Line(), "chunk has too many syntax levels (at most %d things inside each other)", maxLevels))
	}
	look()
	l.depth--
}

func (l *levels) block(stmts []ast.Stmt) {
	for _, stmt := range stmts {
		l.inside(stmt, func() { l.stmt(stmt) })
	}
}

func (l *levels) stmt(stmt ast.Stmt) {
	switch stmt := stmt.(type) {
	case *ast.AssignStmt:
		l.exprs(stmt.Lhs...)
		l.exprs(stmt.Rhs...)
	case *ast.LocalAssignStmt:
		l.exprs(stmt.Exprs...)
	case *ast.FuncCallStmt:
		l.exprs(stmt.Expr)
	case *ast.DoBlockStmt:
		l.block(stmt.Stmts)
	case *ast.WhileStmt:
		l.exprs(stmt.Condition)
		l.block(stmt.Stmts)
	case *ast.RepeatStmt:
		l.exprs(stmt.Condition)
		l.block(stmt.Stmts)
	case *ast.IfStmt:
		l.branch(stmt)
	case *ast.NumberForStmt:
		l.exprs(stmt.Init, stmt.Limit, stmt.Step)
		l.block(stmt.Stmts)
	case *ast.GenericForStmt:
		l.exprs(stmt.Exprs...)
		l.block(stmt.Stmts)
	case *ast.FuncDefStmt:
		l.exprs(stmt.Name.Func, stmt.Name.Receiver)
		l.block(stmt.Func.Stmts)
	case *ast.ReturnStmt:
		l.exprs(stmt.Exprs...)
	}
}

// branch walks a chain of elseif.
func (l *levels) branch(stmt *ast.IfStmt) {
	before := l.chain
	defer func() { l.chain = before }()
	for {
		l.exprs(stmt.Condition)
		l.block(stmt.Then)
		next := elseif(stmt)
		if next == nil {
			l.block(stmt.Else)
			return
		}
		l.link(next)
		stmt = next
	}
}

// elseif returns the next condition of a chain, or nil; an if that is alone in an else block counts as elseif.
func elseif(stmt *ast.IfStmt) *ast.IfStmt {
	if len(stmt.Else) != 1 {
		return nil
	}
	next, _ := stmt.Else[0].(*ast.IfStmt)
	return next
}

// link counts one more element of a chain.
func (l *levels) link(at ast.PositionHolder) {
	if l.chain++; l.chain > maxChain {
		panic(syntaxError(l.name, at.Line(), "more than %d operators, fields, calls or elseif in a row: take it apart", maxChain))
	}
}

func (l *levels) exprs(list ...ast.Expr) {
	for _, e := range list {
		if e != nil {
			l.inside(e, func() { l.expr(e) })
		}
	}
}

// expr walks a chain of left operands and checks the other operands of each.
func (l *levels) expr(e ast.Expr) {
	before := l.chain
	defer func() { l.chain = before }()
	for e != nil {
		e = l.operands(e)
		if e != nil {
			l.link(e)
		}
	}
}

// operands checks the operands of e except the first, which it returns.
func (l *levels) operands(e ast.Expr) (first ast.Expr) {
	switch e := e.(type) {
	case *ast.AttrGetExpr:
		l.exprs(e.Key)
		return e.Object
	case *ast.FuncCallExpr:
		l.exprs(e.Args...)
		if e.Func == nil {
			return e.Receiver
		}
		return e.Func
	case *ast.TableExpr:
		for _, f := range e.Fields {
			l.exprs(f.Key, f.Value)
		}
	case *ast.FunctionExpr:
		l.block(e.Stmts)
	case *ast.LogicalOpExpr:
		l.exprs(e.Rhs)
		return e.Lhs
	case *ast.RelationalOpExpr:
		l.exprs(e.Rhs)
		return e.Lhs
	case *ast.StringConcatOpExpr:
		l.exprs(e.Rhs)
		return e.Lhs
	case *ast.ArithmeticOpExpr:
		l.exprs(e.Rhs)
		return e.Lhs
	case *ast.UnaryMinusOpExpr:
		l.exprs(e.Expr)
	case *ast.UnaryNotOpExpr:
		l.exprs(e.Expr)
	case *ast.UnaryLenOpExpr:
		l.exprs(e.Expr)
	}
	return nil
}
