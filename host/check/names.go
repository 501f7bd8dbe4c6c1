package check

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"

	luaformat "github.com/daqiri/daqiri-run/bindings/format"
	"github.com/daqiri/daqiri-run/bindings/row"
	luavalue "github.com/daqiri/daqiri-run/bindings/value"
	"github.com/daqiri/daqiri-run/runtime/format"
	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/spec"
)

// names are the names that a script defines.
type names struct {
	stages, metrics map[string]bool
	formats         map[string]session.Fields
	others          bool // further stages and metrics are named at run time
	otherQueues     bool // queues are added at run time
	otherRegions    bool // memory regions are added at run time
	otherFormats    bool // further formats are declared at run time
}

// collect records the name of a stage or metric that a call creates, and calls that add queues or regions.
func (w *walker) collect(c *callee) {
	if w.walk != walkNames {
		return
	}
	switch c.row.Name {
	case "add_rx_queue", "add_tx_queue":
		w.names.otherQueues = true
	case "add_region":
		w.names.otherRegions = true
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

func hasOption(row *row.Name, name string) bool {
	for _, o := range row.Options {
		if o.Name == name {
			return true
		}
	}
	return false
}

// effect returns a function that refines the result of a call beyond its row; nil for most calls.
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

// declaredArguments returns the arguments declared by a table, with their defaults.
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

// argumentDefault returns a constant that the command line may override.
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

// declaredFormat returns a format declared in the script, or one of the library.
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
		name, fields, err := luaformat.DeclaredFields(constant.(*lua.LTable), w.file, t)
		var fault *format.Error
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
	if len(c.Args) == 1 { // further arguments name items
		if name := w.infer(c.Args[0], c.s); !name.byUser && name.constant != nil {
			v.fields, _ = w.formatNamed(name.constant.String())
		}
	}
	return v
}

// formatNamed returns the fields of a format of the script or library; nil if unknown.
func (w *walker) formatNamed(name string) (fields session.Fields, err error) {
	if f, ok := w.names.formats[name]; ok {
		return f, nil
	}
	f, err := luaformat.FromLibrary(w.opts.Library, name)
	if f != nil && err == nil {
		return luaformat.Fields(f), nil
	}
	if w.names.otherFormats || err != nil || w.walk != walkFaults {
		return nil, nil
	}
	if text := unknown("format", name, append(keys(w.names.formats), luaformat.LibraryNames(w.opts.Library)...)); strings.Contains(text, "did you mean") {
		return nil, errors.New(text) // other names may be defined by a loaded module
	}
	return nil, nil
}

// opened returns a session with its configuration, if that is an existing file, a text, or a table of constants.
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
	cfg, err := luavalue.ReadConfiguration(conf, opts)
	var faults *spec.Errors
	switch _, file := conf.(lua.LString); {
	case err == nil:
		v.cfg = cfg
	case setByUser:
	case file && errors.As(err, &faults):
		w.faultf(c, "the configuration %s has errors, the first: %v", conf.String(), faults.Issues[0])
	case errors.As(err, &faults) && !byUser:
		for _, fault := range faults.Issues {
			w.faultf(c, "the configuration: %v", fault)
		}
	}
	return v
}

// openOptions returns the options of daqiri.open that change the configuration; those of the command line take precedence.
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
	list, err := luavalue.ReadOverrides(table)
	opts.Set = append(list, opts.Set...)
	return opts, byUser, err == nil
}

// find searches the current folder, then the script's, like daqiri.open.
func (w *walker) find(name string) (file string, ok bool) {
	for _, file := range []string{name, filepath.Join(filepath.Dir(w.file), name)} {
		if info, err := os.Stat(file); err == nil && !info.IsDir() && (file == name || !filepath.IsAbs(name)) {
			return file, true
		}
	}
	return "", false
}
