package check

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"

	"github.com/daqiri/daqiri-run/bindings"
	"github.com/daqiri/daqiri-run/runtime/format"
	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/spec"
)

// names are those that a script gives.
type names struct {
	stages, metrics map[string]bool
	formats         map[string]session.Fields
	others          bool // stages and metrics also have names that are made while it runs
	otherFormats    bool // so have formats
}

// collect keeps the name of a stage or a metric that a call makes.
func (w *walker) collect(c *callee) {
	if w.walk != walkNames {
		return
	}
	for i, a := range c.row.Args {
		if a.Type == "metric_name" && i < len(c.Args) {
			w.name(w.names.metrics, c.Args[i], c.s)
		}
	}
	if len(c.row.Results) == 0 || c.row.Results[0].Type != "stage" || !hasOption(c.row, "name") {
		return
	}
	if e, known := c.argument("name"); e != nil {
		w.name(w.names.stages, e, c.s)
	} else if !known {
		w.names.others = true
	}
}

func (w *walker) name(list map[string]bool, e ast.Expr, s *scope) {
	if text, byUser, ok := w.constant(e, s); ok && !byUser {
		list[text.String()] = true
	} else {
		w.names.others = true
	}
}

func hasOption(row *bindings.Name, name string) bool {
	for _, o := range row.Options {
		if o.Name == name {
			return true
		}
	}
	return false
}

// effect knows more than the row of what a call returns; nil: of most it does not.
func effect(title string) func(w *walker, c *callee, v value) value {
	switch title {
	case "daqiri.args":
		return declaredArguments
	case "daqiri.format":
		return declaredFormat
	case "daqiri.open":
		return opened
	}
	return nil
}

// declaredArguments are the arguments that a table declares, with their defaults.
func declaredArguments(w *walker, c *callee, v value) value {
	v.kind = isArguments
	if len(c.Args) != 1 {
		return v
	}
	t, ok := c.Args[0].(*ast.TableExpr)
	if !ok {
		return v
	}
	declared := map[string]value{}
	for _, f := range t.Fields {
		key, ok := f.Key.(*ast.StringExpr)
		if !ok {
			return v
		}
		declared[key.Value] = w.argumentDefault(f.Value, c.s)
	}
	v.declared = declared
	return v
}

// argumentDefault is a constant that the command line may replace.
func (w *walker) argumentDefault(e ast.Expr, s *scope) value {
	if t, ok := e.(*ast.TableExpr); ok {
		if len(t.Fields) == 0 || t.Fields[0].Key != nil {
			return value{}
		}
		e = t.Fields[0].Value
	}
	v := w.infer(e, s)
	if v.constant == nil {
		return value{}
	}
	return value{kind: isConstant, constant: v.constant, byUser: true}
}

// declaredFormat is a format that is declared here, or one of the library.
func declaredFormat(w *walker, c *callee, v value) value {
	if len(c.Args) == 0 {
		return v
	}
	if t, ok := c.Args[0].(*ast.TableExpr); ok {
		constant, byUser, ok := w.constant(t, c.s)
		if !ok || byUser {
			w.names.otherFormats = true
			return v
		}
		name, fields, err := bindings.DeclaredFields(constant.(*lua.LTable), w.file, t)
		var fault *format.Fault
		if errors.As(err, &fault) {
			at := &ast.Node{}
			at.SetLine(max(fault.Line, t.Line()))
			w.faultf(at, "%s", faultText(w.file, fault))
		}
		if name != "" {
			w.names.formats[name] = fields
		}
		v.fields = fields
		return v
	}
	if len(c.Args) == 1 { // further ones have names of items
		if name := w.infer(c.Args[0], c.s); !name.byUser && name.constant != nil {
			v.fields, _ = w.formatNamed(name.constant.String())
		}
	}
	return v
}

// formatNamed finds a format of the script or of the library; nil: its fields are not known.
func (w *walker) formatNamed(name string) (fields session.Fields, err error) {
	if f, ok := w.names.formats[name]; ok {
		return f, nil
	}
	f, err := bindings.LibraryFormat(w.opts.Library, name)
	if f != nil && err == nil {
		return bindings.FormatFields(f), nil
	}
	if w.names.otherFormats || err != nil || w.walk != walkFaults {
		return nil, nil
	}
	if text := unknown("format", name, append(keys(w.names.formats), bindings.LibraryFormats(w.opts.Library)...)); strings.Contains(text, "did you mean") {
		return nil, errors.New(text) // of other names a module that the script loads may know something
	}
	return nil, nil
}

// opened is a session with its configuration, where that is a file that is there, a text or a table of constants.
func opened(w *walker, c *callee, v value) value {
	conf, byUser := lua.LValue(lua.LNil), false
	if len(c.Args) > 0 {
		ok := false
		if conf, byUser, ok = w.constant(c.Args[0], c.s); !ok {
			return v
		}
	}
	opts, setByUser, ok := w.openOptions(c)
	if !ok {
		return v
	}
	if text, ok := conf.(lua.LString); ok && !strings.Contains(string(text), "\n") {
		file, found := w.find(string(text))
		if !found {
			return v
		}
		conf = lua.LString(file)
	}
	cfg, err := bindings.ReadConfiguration(conf, opts)
	var faults *spec.Errors
	switch _, file := conf.(lua.LString); {
	case err == nil:
		v.cfg = cfg
	case setByUser:
	case file && errors.As(err, &faults):
		w.faultf(c, "the configuration %s has faults, the first: %v", conf.String(), faults.Issues[0])
	case errors.As(err, &faults) && !byUser:
		for _, fault := range faults.Issues {
			w.faultf(c, "the configuration: %v", fault)
		}
	}
	return v
}

// openOptions are the options of daqiri.open that change the configuration, below those of the command line.
func (w *walker) openOptions(c *callee) (opts spec.Options, byUser, ok bool) {
	opts = w.opts.Spec
	set, known := c.argument("set")
	if set == nil {
		return opts, false, known
	}
	paths, byUser, _ := w.constant(set, c.s)
	table, ok := paths.(*lua.LTable)
	if !ok {
		return opts, false, false
	}
	list, err := bindings.ReadOverrides(table)
	opts.Set = append(list, opts.Set...)
	return opts, byUser, err == nil
}

// find looks for a file here, then beside the script, as daqiri.open does.
func (w *walker) find(name string) (file string, ok bool) {
	for _, file := range []string{name, filepath.Join(filepath.Dir(w.file), name)} {
		if info, err := os.Stat(file); err == nil && !info.IsDir() && (file == name || !filepath.IsAbs(name)) {
			return file, true
		}
	}
	return "", false
}
