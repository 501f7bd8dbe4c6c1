package bindings

import (
	"strings"

	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"
)

// tableLines says on which lines of its source a table constructor and its elements stand, which a table itself does not
// know. nil: not known.
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

// row is the i-th element without a key, from 1.
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

// returnedTable finds the table that a chunk returns; nil: it returns none as a constructor, or does not parse.
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

// calledTable finds the table that a call of a function of that name has as its first argument, on that line of a
// source: the last one that begins there or before.
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
