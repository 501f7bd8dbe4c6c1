package script

import (
	"slices"
	"strconv"
	"strings"

	"github.com/yuin/gopher-lua/ast"

	"github.com/daqiri/daqiri-run/bindings/lua51"
)

// Description is the documentation of a script, read without running it: its first comment, and the arguments declared by daqiri.args.
type Description struct {
	Summary string   `json:"summary"`         // first line of the comment, without the script's name
	Words   []string `json:"words,omitempty"` // following lines
	Args    []Arg    `json:"args"`
}

// Arg is a declared argument of a script.
type Arg struct {
	Name     string   `json:"name"`
	Type     string   `json:"type"`              // string, number, boolean or list
	Default  string   `json:"default,omitempty"` // as text; empty: none, or computed by the script
	Unit     string   `json:"unit,omitempty"`
	Help     string   `json:"help,omitempty"`
	Choices  []string `json:"choices,omitempty"`
	Required bool     `json:"required,omitempty"`
}

// Describe reads a script. It returns an error if the syntax is invalid.
func Describe(name, source string) (Description, error) {
	d := Description{Args: []Arg{}}
	d.comment(source)
	chunk, err := lua51.Parse(name, source)
	if err != nil {
		return d, syntaxFault(name, source, err)
	}
	for _, stmt := range chunk {
		if t := declared(stmt); t != nil {
			d.arguments(t)
		}
	}
	slices.SortFunc(d.Args, func(a, b Arg) int { return strings.Compare(a.Name, b.Name) })
	return d, nil
}

// Configuration returns the file that the script opens by default: the default of its argument config.
func (d *Description) Configuration() string {
	for _, a := range d.Args {
		if a.Name == "config" {
			return a.Default
		}
	}
	return ""
}

// comment parses the first comment: "-- name.lua: summary" and the following lines.
func (d *Description) comment(source string) {
	for line := range strings.Lines(strings.TrimLeft(lua51.SkipHead(source), "\n")) {
		text, ok := strings.CutPrefix(strings.TrimSpace(line), "--")
		if !ok || strings.HasPrefix(text, "[[") {
			break
		}
		d.Words = append(d.Words, strings.TrimPrefix(text, " "))
	}
	if len(d.Words) == 0 {
		return
	}
	d.Summary, d.Words = d.Words[0], d.Words[1:]
	if name, rest, ok := strings.Cut(d.Summary, ": "); ok && !strings.Contains(name, " ") {
		d.Summary = rest
	}
}

// declared returns the table in a statement such as local args = daqiri.args{...}.
func declared(stmt ast.Stmt) *ast.TableExpr {
	var list []ast.Expr
	switch s := stmt.(type) {
	case *ast.LocalAssignStmt:
		list = s.Exprs
	case *ast.AssignStmt:
		list = s.Rhs
	case *ast.FuncCallStmt:
		list = []ast.Expr{s.Expr}
	}
	for _, e := range list {
		call, ok := e.(*ast.FuncCallExpr)
		if !ok || len(call.Args) != 1 || call.Func == nil {
			continue
		}
		get, ok := call.Func.(*ast.AttrGetExpr)
		if !ok || textOf(get.Key) != "args" {
			continue
		}
		if t, ok := call.Args[0].(*ast.TableExpr); ok {
			return t
		}
	}
	return nil
}

func (d *Description) arguments(t *ast.TableExpr) {
	for _, f := range t.Fields {
		a := Arg{Name: textOf(f.Key)}
		if a.Name == "" {
			continue
		}
		inner, ok := f.Value.(*ast.TableExpr)
		if !ok {
			a.Type, a.Default = constant(f.Value)
		} else {
			a.declaration(inner)
		}
		if a.Type == "" {
			a.Type = "string"
		}
		d.Args = append(d.Args, a)
	}
}

// declaration reads {value, type, unit, help, choices, required}.
func (a *Arg) declaration(t *ast.TableExpr) {
	doc := ""
	for k, f := range t.Fields {
		switch key := textOf(f.Key); {
		case f.Key == nil && k == 0, key == "value":
			a.Type, a.Default = constant(f.Value)
		case key == "type":
			doc = textOf(f.Value)
		case key == "unit":
			a.Unit = textOf(f.Value)
		case key == "help":
			a.Help = textOf(f.Value)
		case key == "required":
			_, a.Required = f.Value.(*ast.TrueExpr)
		case key == "choices":
			a.Choices = textsOf(f.Value)
		}
	}
	if doc != "" {
		a.Type = doc
	}
}

// textOf returns the value of a string literal, or "" for other expressions.
func textOf(e ast.Expr) string {
	if s, ok := e.(*ast.StringExpr); ok {
		return s.Value
	}
	return ""
}

func textsOf(e ast.Expr) (all []string) {
	if t, ok := e.(*ast.TableExpr); ok {
		for _, f := range t.Fields {
			_, text := constant(f.Value)
			all = append(all, text)
		}
	}
	return all
}

// constant returns the type and text of a constant expression.
func constant(e ast.Expr) (kind, text string) {
	switch e := e.(type) {
	case *ast.StringExpr:
		return "string", e.Value
	case *ast.NumberExpr:
		return "number", e.Value
	case *ast.TrueExpr:
		return "boolean", "true"
	case *ast.FalseExpr:
		return "boolean", "false"
	case *ast.TableExpr:
		return "list", strings.Join(textsOf(e), ",")
	case *ast.UnaryMinusOpExpr:
		if kind, text := constant(e.Expr); kind == "number" {
			return kind, "-" + text
		}
	case *ast.ArithmeticOpExpr:
		return "number", product(e)
	case *ast.StringConcatOpExpr:
		return "string", ""
	}
	return "", ""
}

// product returns the value of a product of two numbers; other operations are not evaluated.
func product(e *ast.ArithmeticOpExpr) string {
	_, a := constant(e.Lhs)
	_, b := constant(e.Rhs)
	x, err := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	if err != nil || err2 != nil || e.Operator != "*" {
		return ""
	}
	return strconv.FormatFloat(x*y, 'f', -1, 64)
}
