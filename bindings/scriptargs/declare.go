package scriptargs

import (
	"slices"
	"sort"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/row"
)

// Argument is one argument that a script declares.
type Argument struct {
	Name, unit, Help string
	kind             string // string, number, boolean, list
	Default          lua.LValue
	choices          []string
	Required         bool
}

// Declare reads the table of declarations and returns them sorted by name.
func Declare(c *row.Call, t *lua.LTable) []Argument {
	var list []Argument
	t.ForEach(func(k, v lua.LValue) {
		name, ok := k.(lua.LString)
		if !ok {
			c.ArgError(1, "names expected as keys, got %s", row.Describe(k))
		}
		a := Argument{Name: string(name), Default: v}
		if table, ok := v.(*lua.LTable); ok {
			a = declaration(c, string(name), table)
		}
		if a.kind == "" {
			a.kind = a.Default.Type().String()
		}
		switch a.kind {
		case "string", "number", "boolean", "list":
		default:
			c.ArgError(1, "%s: its type is one of string, number, boolean, list, not %s", name, a.kind)
		}
		list = append(list, a)
	})
	sort.Slice(list, func(i, j int) bool { return list[i].Name < list[j].Name })
	return list
}

func declaration(c *row.Call, name string, t *lua.LTable) Argument {
	o := c.OptionsOf(1, c.L.NewTable())
	t.ForEach(func(k, v lua.LValue) {
		if k == lua.LNumber(1) {
			k = lua.LString("value")
		}
		o.Table.RawSet(k, v)
	})
	o.Allow([]string{"value", "type", "unit", "help", "choices", "required"})
	a := Argument{Name: name, Default: o.Get("value"), kind: o.Str("type", ""), unit: o.Str("unit", ""),
		Help: o.Str("help", ""), Required: o.Bool("required", false)}
	if list, ok := o.Get("choices").(*lua.LTable); ok {
		list.ForEach(func(_, v lua.LValue) { a.choices = append(a.choices, v.String()) })
	} else if o.Has("choices") {
		o.Wrong("choices", "a list expected, got %s", row.Describe(o.Get("choices")))
	}
	of := "string" // type of the default value
	if a.Default != lua.LNil {
		of = a.Default.Type().String()
	}
	if of == "table" {
		of = "list"
	}
	if a.kind == "" {
		a.kind = of
	}
	if a.Default != lua.LNil && a.kind != of {
		o.Raise("%s: its default is %s, and its type %s", name, row.Describe(a.Default), a.kind)
	}
	if a.Default != lua.LNil && len(a.choices) > 0 && !slices.Contains(a.choices, a.Default.String()) {
		o.Raise("%s: its default is not one of %s", name, strings.Join(a.choices, ", "))
	}
	return a
}
