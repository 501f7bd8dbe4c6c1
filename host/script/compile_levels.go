package script

import (
	"github.com/yuin/gopher-lua/ast"
)

// Limits of what is inside what. The parser, the rewriter and the compiler go along these by calling themselves.
const (
	maxLevels = 200    // of blocks, functions, tables and operands in each other, as in C Lua
	maxChain  = 20_000 // operators, fields, calls or elseif in a row
)

// checkLevels looks for what is nested too deep, or a row too long, and itself goes no deeper.
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

// levels counts along the way from a chunk to the node that is looked at.
type levels struct {
	name  string
	depth int
	chain int
}

// inside looks at what is one level deeper.
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

// branch goes along a chain of elseif.
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

// elseif is the next of a chain of conditions, or nil: what is in an else alone counts as one.
func elseif(stmt *ast.IfStmt) *ast.IfStmt {
	if len(stmt.Else) != 1 {
		return nil
	}
	next, _ := stmt.Else[0].(*ast.IfStmt)
	return next
}

// link is one more in a row.
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

// expr goes along a row of left operands, to look at what else belongs to each.
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

// operands looks at the operands of e but the first, which it returns.
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
