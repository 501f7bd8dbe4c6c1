package format

import (
	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"

	"github.com/daqiri/daqiri-run/runtime/format"
	"github.com/daqiri/daqiri-run/runtime/session"
)

// Evaluation of declarations in a script without running it.

// DeclaredFields returns the name and the fields of the format that a table declares, as daqiri.format reads it. at is the table's constructor in
// file. Errors of the table are of type *format.Error.
func DeclaredFields(t *lua.LTable, file string, at *ast.TableExpr) (name string, fields session.Fields, err error) {
	if IsPlaces(t) {
		return "", nil, nil
	}
	f, err := declared(t, file, &tableLines{at, at.Line()})
	if err != nil {
		return "", nil, err
	}
	return f.Spec.Name, (&Format{Declared: f}).Fields(), nil
}

// Fields returns a resolver of a format's names for conditions and expressions.
func Fields(f *format.Format) session.Fields { return (&Format{Declared: f}).Fields() }

// Declares reports whether the table returned by a chunk is a format declaration: it has a key of one, and its list part has fields, or
// names for a struct's fields.
func Declares(t *ast.TableExpr) bool {
	keys, rows := map[string]bool{}, false
	for _, f := range t.Fields {
		switch key := f.Key.(type) {
		case nil:
			rows = rows || isRow(f.Value)
		case *ast.StringExpr:
			keys[key.Value] = true
		}
	}
	return keys["struct"] || rows && (keys["name"] || keys["title"])
}

// isRow reports whether an element of a table is { NAME, ... }, { reserved = ... }, { list = ... } or { when = ..., ... }.
func isRow(e ast.Expr) bool {
	t, ok := e.(*ast.TableExpr)
	if !ok || len(t.Fields) == 0 {
		return false
	}
	switch key := t.Fields[0].Key.(type) {
	case nil:
		_, name := t.Fields[0].Value.(*ast.StringExpr)
		return name
	case *ast.StringExpr:
		return key.Value == "reserved" || key.Value == "list" || key.Value == "when"
	}
	return false
}
