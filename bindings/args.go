package bindings

import (
	"fmt"
	"io"
	"path/filepath"
	"sort"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/runtime/spec"
)

// arg is one argument that a script declares.
type arg struct {
	name, unit, help string
	kind             string // string, number, boolean, list
	missing          lua.LValue
	choices          []string
	required         bool
}

// moduleArgs is daqiri.args: it declares the script's arguments, parses them, and returns them by
// name. A declaration is a default value, or a table with value (or the first element), type,
// unit, help, choices and required.
func moduleArgs(c *call) int {
	t := c.table(1, "table of arguments")
	declared := c.declare(t)
	if c.rt.Main {
		c.rt.Shared.setUsage(usage(c.rt.Script, declared))
	}
	given, help, err := splitArgs(c.rt.ScriptArgs, declared)
	if err != nil {
		c.raise("%v (--help behind the script lists its arguments)", err)
	}
	if help {
		_, err := io.WriteString(c.rt.Stdout, c.rt.Shared.Usage())
		c.check(err)
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
				c.raise("--%s: %v", a.name, err)
			}
		} else if a.required {
			c.raise("--%s is missing: %s", a.name, a.help)
		}
		out.RawSetString(a.name, v)
	}
	c.rt.strict(out, func(key string) string {
		for _, a := range declared {
			if a.name == key {
				return "" // declared without a value
			}
		}
		return unknown("argument", key, names)
	})
	return c.push(out)
}

// declare reads the table of declarations, sorted by name.
func (c *call) declare(t *lua.LTable) []arg {
	var list []arg
	t.ForEach(func(k, v lua.LValue) {
		name, ok := k.(lua.LString)
		if !ok {
			c.argError(1, "names expected as keys, got %s", describe(k))
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
			c.argError(1, "%s: its type is one of string, number, boolean, list, not %s", name, a.kind)
		}
		list = append(list, a)
	})
	sort.Slice(list, func(i, j int) bool { return list[i].name < list[j].name })
	return list
}

func (c *call) declaration(name string, t *lua.LTable) arg {
	o := &options{c: c, n: 1, t: c.L.NewTable()}
	t.ForEach(func(k, v lua.LValue) {
		if k == lua.LNumber(1) {
			k = lua.LString("value")
		}
		o.t.RawSet(k, v)
	})
	o.allow([]string{"value", "type", "unit", "help", "choices", "required"})
	a := arg{name: name, missing: o.get("value"), kind: o.str("type", ""), unit: o.str("unit", ""),
		help: o.str("help", ""), required: o.bool("required", false)}
	if list, ok := o.get("choices").(*lua.LTable); ok {
		list.ForEach(func(_, v lua.LValue) { a.choices = append(a.choices, v.String()) })
	}
	if a.kind == "" {
		a.kind = "string"
		if a.missing != lua.LNil {
			a.kind = a.missing.Type().String()
		}
		if a.kind == "table" {
			a.kind = "list"
		}
	}
	return a
}

// splitArgs reads --name value, --name=value and name=value; a boolean's value may be left out: true.
func splitArgs(words []string, declared []arg) (given map[string]string, help bool, err error) {
	given = map[string]string{}
	kinds := map[string]string{}
	var names []string
	for _, a := range declared {
		kinds[a.name] = a.kind
		names = append(names, a.name)
	}
	for i := 0; i < len(words); i++ {
		word := words[i]
		if word == "--help" || word == "-h" {
			return nil, true, nil
		}
		name, value, hasValue := strings.Cut(strings.TrimPrefix(word, "--"), "=")
		if name == word && !hasValue {
			return nil, false, fmt.Errorf("%q is not --name, --name=value or name=value", word)
		}
		kind, known := kinds[name]
		if !known {
			name = strings.ReplaceAll(name, "-", "_")
			kind, known = kinds[name]
		}
		switch {
		case !known:
			return nil, false, fmt.Errorf("%s", unknown("argument", word, dashed(names)))
		case hasValue:
		case kind == "boolean" && (i+1 == len(words) || !isTruth(words[i+1])):
			value = "true"
		case i+1 == len(words):
			return nil, false, fmt.Errorf("--%s needs a value", name)
		default:
			i++
			value = words[i]
		}
		given[name] = value
	}
	return given, false, nil
}

// truths are the words for a boolean.
var truths = map[string]bool{"true": true, "yes": true, "on": true, "1": true, "false": false, "no": false, "off": false, "0": false}

func isTruth(word string) bool {
	_, ok := truths[word]
	return ok
}

func dashed(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = "--" + n
	}
	return out
}

// parseArg makes a value of an argument's text.
func (rt *Runtime) parseArg(a arg, text string) (lua.LValue, error) {
	if len(a.choices) > 0 && !contains(a.choices, text) {
		return nil, fmt.Errorf("%q is not one of %s%s", text, strings.Join(a.choices, ", "), maybe(text, a.choices))
	}
	switch a.kind {
	case "number":
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is not a number", text)
		}
		return lua.LNumber(f), nil
	case "boolean":
		if isTruth(text) {
			return lua.LBool(truths[text]), nil
		}
		return nil, fmt.Errorf("%q is not true or false", text)
	case "list":
		t := rt.root.NewTable()
		for _, part := range strings.Split(text, ",") {
			t.Append(lua.LString(strings.TrimSpace(part)))
		}
		return t, nil
	}
	return lua.LString(text), nil
}

func maybe(name string, known []string) string {
	if s := spec.Suggest(name, known); s != "" {
		return fmt.Sprintf(" (did you mean %q?)", s)
	}
	return ""
}

func contains(list []string, s string) bool {
	for _, v := range list {
		if v == s {
			return true
		}
	}
	return false
}

// usage is the script's help text.
func usage(script string, declared []arg) string {
	var b strings.Builder
	fmt.Fprintf(&b, "usage: daqiri-run %s [--name VALUE | name=VALUE]...\n", filepath.Base(script))
	for _, a := range declared {
		left := "--" + a.name
		if a.kind != "boolean" {
			left += " " + strings.ToUpper(a.kind)
		}
		var notes []string
		if a.help != "" {
			notes = append(notes, a.help)
		}
		if len(a.choices) > 0 {
			notes = append(notes, "one of "+strings.Join(a.choices, ", "))
		}
		if a.unit != "" {
			notes = append(notes, "in "+a.unit)
		}
		switch {
		case a.required:
			notes = append(notes, "required")
		case a.missing != lua.LNil:
			notes = append(notes, "default "+showDefault(a.missing))
		}
		fmt.Fprintf(&b, "  %-24s %s\n", left, strings.Join(notes, "; "))
	}
	return b.String()
}

func showDefault(v lua.LValue) string {
	t, ok := v.(*lua.LTable)
	if !ok {
		return v.String()
	}
	var parts []string
	t.ForEach(func(_, e lua.LValue) { parts = append(parts, e.String()) })
	return strings.Join(parts, ",")
}
