package bindings

import (
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/row"
	"github.com/daqiri/daqiri-run/bindings/value"
)

// arg is one argument that a script declares.
type arg struct {
	name, unit, help string
	kind             string // string, number, boolean, list
	missing          lua.LValue
	choices          []string
	required         bool
}

// moduleArgs implements daqiri.args: it parses the declared script arguments and returns them by name. A declaration is a default value, or a
// table with value (or the first element), type, unit, help, choices and required.
func moduleArgs(c *call) int {
	t := c.Table(1, "table of arguments")
	declared := c.declare(t)
	if c.rt.Main {
		c.rt.Shared.setUsage(usage(c.rt.Script, declared))
	}
	given, help, err := splitArgs(c.rt.ScriptArgs, declared)
	if err == nil {
		err = unknownEnv(c.rt.Env, declared)
	}
	if err != nil {
		row.RaiseError(c.L, &ArgsError{fmt.Errorf("%w (--help behind the script lists its arguments)", err)})
	}
	if help {
		_, err := io.WriteString(c.rt.Stdout, c.rt.Shared.Usage())
		c.Check(err)
		c.rt.exit(c.L, 0)
	}
	out := c.L.NewTable()
	names := make([]string, len(declared))
	for i, a := range declared {
		names[i] = a.name
		text, ok := given[a.name]
		if !ok {
			text, ok = c.rt.Env[a.name]
		}
		v := a.missing
		if ok {
			if v, err = c.rt.parseArg(a, text); err != nil {
				row.RaiseError(c.L, &ArgsError{fmt.Errorf("--%s: %w", a.name, err)})
			}
		} else if a.required {
			row.RaiseError(c.L, &ArgsError{fmt.Errorf("--%s is missing: %s", a.name, a.help)})
		}
		out.RawSetString(a.name, v)
	}
	value.Strict(c.rt.root, out, func(_ *lua.LState, key string) string {
		for _, a := range declared {
			if a.name == key {
				return "" // declared without a value
			}
		}
		return row.Unknown("argument", key, names)
	})
	return c.Push(out)
}

// declare reads the table of declarations and returns them sorted by name.
func (c *call) declare(t *lua.LTable) []arg {
	var list []arg
	t.ForEach(func(k, v lua.LValue) {
		name, ok := k.(lua.LString)
		if !ok {
			c.ArgError(1, "names expected as keys, got %s", row.Describe(k))
		}
		a := arg{name: string(name), missing: v}
		if table, ok := v.(*lua.LTable); ok {
			a = c.declaration(string(name), table)
		}
		if a.kind == "" {
			a.kind = a.missing.Type().String()
		}
		switch a.kind {
		case "string", "number", "boolean", "list":
		default:
			c.ArgError(1, "%s: its type is one of string, number, boolean, list, not %s", name, a.kind)
		}
		list = append(list, a)
	})
	sort.Slice(list, func(i, j int) bool { return list[i].name < list[j].name })
	return list
}

func (c *call) declaration(name string, t *lua.LTable) arg {
	o := newOptions(c, 1, c.L.NewTable())
	t.ForEach(func(k, v lua.LValue) {
		if k == lua.LNumber(1) {
			k = lua.LString("value")
		}
		o.Table.RawSet(k, v)
	})
	o.Allow([]string{"value", "type", "unit", "help", "choices", "required"})
	a := arg{name: name, missing: o.Get("value"), kind: o.Str("type", ""), unit: o.Str("unit", ""),
		help: o.Str("help", ""), required: o.Bool("required", false)}
	if list, ok := o.Get("choices").(*lua.LTable); ok {
		list.ForEach(func(_, v lua.LValue) { a.choices = append(a.choices, v.String()) })
	} else if o.Has("choices") {
		o.Wrong("choices", "a list expected, got %s", row.Describe(o.Get("choices")))
	}
	of := "string" // type of the default value
	if a.missing != lua.LNil {
		of = a.missing.Type().String()
	}
	if of == "table" {
		of = "list"
	}
	if a.kind == "" {
		a.kind = of
	}
	if a.missing != lua.LNil && a.kind != of {
		o.Raise("%s: its default is %s, and its type %s", name, row.Describe(a.missing), a.kind)
	}
	if a.missing != lua.LNil && len(a.choices) > 0 && !slices.Contains(a.choices, a.missing.String()) {
		o.Raise("%s: its default is not one of %s", name, strings.Join(a.choices, ", "))
	}
	return a
}
