package format

import (
	"strings"

	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"
)

// tableLines gives the source lines of a table constructor and its elements, which a Lua table does not record. nil: unknown.
type tableLines struct {
	t  *ast.TableExpr
	at int
}

func (l *tableLines) line() int {
	if l == nil {
		return 0
	}
	return l.at
}

// row returns the lines of the i-th positional element, counted from 1.
func (l *tableLines) row(i int) *tableLines {
	if l == nil || l.t == nil {
		return l
	}
	for _, f := range l.t.Fields {
		if f.Key != nil {
			continue
		}
		if i--; i > 0 {
			continue
		}
		in, _ := f.Value.(*ast.TableExpr)
		if f.Value.Line() == 0 {
			return l
		}
		return &tableLines{in, f.Value.Line()}
	}
	return l
}

// returnedTable finds the table constructor that a chunk returns; nil if there is none or the source does not parse.
func returnedTable(name, source string) *tableLines {
	chunk, err := parse.Parse(strings.NewReader(source), name)
	if err != nil || len(chunk) == 0 {
		return nil
	}
	if r, ok := chunk[len(chunk)-1].(*ast.ReturnStmt); ok && len(r.Exprs) == 1 {
		if t, ok := r.Exprs[0].(*ast.TableExpr); ok {
			return &tableLines{t, t.Line()}
		}
	}
	return nil
}

// calledTable finds the table constructor that is the first argument of a call of the named function: the last call that begins on that line or
// before.
func calledTable(name, source, function string, line int) *tableLines {
	chunk, err := parse.Parse(strings.NewReader(source), name)
	if err != nil {
		return nil
	}
	var found *tableLines
	eachCall(chunk, func(c *ast.FuncCallExpr) {
		attr, ok := c.Func.(*ast.AttrGetExpr)
		if !ok || len(c.Args) == 0 {
			return
		}
		key, ok := attr.Key.(*ast.StringExpr)
		t, table := c.Args[0].(*ast.TableExpr)
		if ok && table && key.Value == function && c.Line() <= line && (found == nil || c.Line() >= found.at) {
			found = &tableLines{t, c.Line()}
		}
	})
	return found
}
