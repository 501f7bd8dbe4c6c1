package bindings

import (
	"errors"
	"fmt"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"

	"github.com/daqiri/daqiri-run/bindings/row"
	"github.com/daqiri/daqiri-run/runtime/format"
	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/spec"
)

// Evaluation of constants in a script without running it, with the parsers of the calls that would receive them.

// DeclaredFields returns the name and the fields of the format that a table declares, as daqiri.format reads it. at is the table's constructor in
// file. Errors of the table are of type *format.Fault.
func DeclaredFields(t *lua.LTable, file string, at *ast.TableExpr) (name string, fields session.Fields, err error) {
	if isPlaces(t) {
		return "", nil, nil
	}
	f, err := declared(t, file, &tableLines{at, at.Line()})
	if err != nil {
		return "", nil, err
	}
	return f.Spec.Name, (&packetFormat{f: f}).fields(), nil
}

// FormatFields returns a resolver of a format's names for conditions and expressions.
func FormatFields(f *format.Format) session.Fields { return (&packetFormat{f: f}).fields() }

// DeclaresFormat reports whether the table returned by a chunk is a format declaration: it has a key of one, and its list part has fields, or
// names for a struct's fields.
func DeclaresFormat(t *ast.TableExpr) bool {
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

// ReadConfiguration reads the first argument of daqiri.open: a table, YAML with more than one line, nil, or a file name.
func ReadConfiguration(v lua.LValue, opts spec.Options) (cfg *spec.Config, err error) {
	switch v := v.(type) {
	case *lua.LNilType:
		cfg, _, err = spec.ParseText("default", spec.Default(), opts)
	case lua.LString:
		if strings.Contains(string(v), "\n") {
			cfg, _, err = spec.ParseText("text", string(v), opts)
		} else {
			cfg, _, err = spec.ParseFile(string(v), opts)
		}
	case *lua.LTable:
		table, wrong := goValue(v, 0)
		if wrong != nil {
			return nil, wrong
		}
		cfg, _, err = spec.ParseTable(table, opts)
	default:
		err = fmt.Errorf("file name, YAML text, table or nothing expected, got %s", row.Describe(v))
	}
	return cfg, err
}

// ReadOverrides reads the option set of daqiri.open.
func ReadOverrides(t *lua.LTable) (list []spec.Override, err error) {
	t.ForEach(func(k, v lua.LValue) {
		value, wrong := goValue(v, 0)
		err = errors.Join(err, wrong)
		list = append(list, spec.Override{Path: k.String(), Value: value, Source: "set"})
	})
	return list, err
}

// ReadMatch checks a match of a flow or filter.
func ReadMatch(t *lua.LTable) error {
	v, err := goValue(t, 0)
	if err == nil {
		_, err = spec.ParseMatch(v)
	}
	return err
}

// ReadDuration checks a time span argument.
func ReadDuration(v lua.LValue) error {
	_, err := row.Duration(v)
	return err
}
