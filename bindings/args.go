package bindings

import (
	"slices"
	"sort"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/row"
)

// arg is one argument that a script declares.
type arg struct {
	name, unit, help string
	kind             string // string, number, boolean, list
	missing          lua.LValue
	choices          []string
	required         bool
}

// declareArgs reads the table of declarations and returns them sorted by name.
func declareArgs(c *row.Call, t *lua.LTable) []arg {
	var list []arg
	t.ForEach(func(k, v lua.LValue) {
		name, ok := k.(lua.LString)
		if !ok {
			c.ArgError(1, "names expected as keys, got %s", row.Describe(k))
		}
		a := arg{name: string(name), missing: v}
		if table, ok := v.(*lua.LTable); ok {
			a = declaration(c, string(name), table)
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

func declaration(c *row.Call, name string, t *lua.LTable) arg {
	o := c.OptionsOf(1, c.L.NewTable())
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
