package lua51

import (
	"strconv"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
)

// mostItems is the maximum number of list items in a constructor; above it, the compiler encodes an operand wrongly.
const mostItems = 25000

// table rewrites a constructor. The compiler stores list items in groups of 50, and does so wrongly if another kind of field or the results of a
// last call follow immediately after a group; from item 25,551 on, items are lost.
func (r *rewriter) table(e *ast.TableExpr) ast.Expr {
	items, wrong := 0, false
	for i, f := range e.Fields {
		last := i == len(e.Fields)-1
		if f.Key != nil {
			f.Key, f.Value = r.expr(f.Key), one(r.expr(f.Value))
			wrong = wrong || items > 0 && items%lua.FieldsPerFlush == 0
			continue
		}
		f.Value = r.expr(f.Value)
		if last && isMany(f.Value) {
			wrong = wrong || items > 0 && items%lua.FieldsPerFlush == 0
		} else {
			items++
		}
	}
	if !wrong && items <= mostItems {
		return e
	}
	r.functions++
	return r.assemble(e)
}

// isMany reports whether e returns a variable number of values.
func isMany(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.FuncCallExpr:
		return !e.AdjustRet
	case *ast.Comma3Expr:
		return !e.AdjustRet
	}
	return false
}

// one truncates e to one value: the compiler would add all results of a call in a last keyed field to the list.
func one(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case *ast.FuncCallExpr:
		e.AdjustRet = true
	case *ast.Comma3Expr:
		e.AdjustRet = true
	}
	return e
}

// assemble builds a table in a separate function: keyed fields are set in order; list items go into separate lists that are copied after 50 items
// or at the end, as in Lua.
func (r *rewriter) assemble(e *ast.TableExpr) ast.Expr {
	a := &assembly{at: e}
	a.declare("(table)", &ast.TableExpr{})
	for i, f := range e.Fields {
		switch {
		case f.Key != nil:
			a.endRun(false)
			a.add(&ast.AssignStmt{Lhs: []ast.Expr{a.field("(table)", f.Key)}, Rhs: []ast.Expr{f.Value}})
			a.keyed = true
		default:
			if a.keyed && a.waiting == lua.FieldsPerFlush || len(a.run) == mostItems {
				a.flush()
			}
			many := i == len(e.Fields)-1 && isMany(f.Value)
			if many {
				a.endRun(false)
			}
			a.run = append(a.run, f)
			a.waiting++
			if many {
				a.endRun(true)
			}
		}
	}
	a.flush()
	a.add(&ast.ReturnStmt{Exprs: []ast.Expr{a.name("(table)")}})
	fn := &ast.FunctionExpr{ParList: &ast.ParList{HasVargs: r.fn.varargs}, Stmts: a.stmts}
	call := &ast.FuncCallExpr{Func: fn, AdjustRet: true}
	if r.fn.varargs {
		all := &ast.Comma3Expr{}
		place(all, e)
		call.Args = []ast.Expr{all}
	}
	place(fn, e)
	place(call, e)
	return call
}

// assembly is the function that builds a table.
type assembly struct {
	at      ast.PositionHolder
	stmts   []ast.Stmt
	run     []*ast.Field // items of the next list
	lists   []int        // lengths of the lists not copied yet; -1: known at run time
	waiting int          // items in run and lists
	stored  int
	keyed   bool // a keyed field has occurred
}

func (a *assembly) add(stmt ast.Stmt) {
	place(stmt, a.at)
	a.stmts = append(a.stmts, stmt)
}

func (a *assembly) name(name string) ast.Expr {
	e := &ast.IdentExpr{Value: name}
	place(e, a.at)
	return e
}

func (a *assembly) number(n int) ast.Expr {
	e := &ast.NumberExpr{Value: strconv.Itoa(n)}
	place(e, a.at)
	return e
}

func (a *assembly) field(table string, key ast.Expr) ast.Expr {
	e := &ast.AttrGetExpr{Object: a.name(table), Key: key}
	place(e, a.at)
	return e
}

func (a *assembly) declare(name string, value ast.Expr) {
	place(value, a.at)
	a.add(&ast.LocalAssignStmt{Names: []string{name}, Exprs: []ast.Expr{value}})
}

func listName(i int) string { return "(list " + strconv.Itoa(i) + ")" }

// endRun evaluates the items of a run into a list.
func (a *assembly) endRun(many bool) {
	if len(a.run) == 0 {
		return
	}
	a.declare(listName(len(a.lists)), &ast.TableExpr{Fields: a.run})
	n := len(a.run)
	if many {
		n = -1
	}
	a.lists, a.run = append(a.lists, n), nil
}

// flush copies pending lists: for i = 1, n do table[stored + i] = list[i] end. For a list of unknown length, # ends at the last item that is not
// nil, even if earlier items are nil.
func (a *assembly) flush() {
	a.endRun(false)
	for i, n := range a.lists {
		limit := a.number(n)
		if n < 0 {
			limit = &ast.UnaryLenOpExpr{Expr: a.name(listName(i))}
			place(limit, a.at)
		}
		key := &ast.ArithmeticOpExpr{Operator: "+", Lhs: a.number(a.stored), Rhs: a.name("(i)")}
		place(key, a.at)
		move := &ast.AssignStmt{Lhs: []ast.Expr{a.field("(table)", key)}, Rhs: []ast.Expr{a.field(listName(i), a.name("(i)"))}}
		place(move, a.at)
		a.add(&ast.NumberForStmt{Name: "(i)", Init: a.number(1), Limit: limit, Stmts: []ast.Stmt{move}})
		a.stored += n
	}
	a.lists, a.waiting = nil, 0
}
