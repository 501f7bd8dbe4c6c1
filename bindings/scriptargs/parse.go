package scriptargs

import (
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/row"
)

// Command-line parsing and the help text of daqiri.args.

// Split parses --name value, --name=value and name=value, and -n value for a name of one letter; a boolean without a value is true.
func Split(words []string, declared []Argument) (given map[string]string, help bool, err error) {
	given = map[string]string{}
	kinds := map[string]string{}
	var names []string
	for _, a := range declared {
		kinds[a.Name] = a.kind
		names = append(names, a.Name)
	}
	for i := 0; i < len(words); i++ {
		word := words[i]
		if word == "--help" || word == "-h" {
			return nil, true, nil
		}
		name, value, hasValue := strings.Cut(strings.TrimPrefix(word, "--"), "=")
		if letter, short := strings.CutPrefix(name, "-"); short && len(letter) == 1 {
			name = letter
		}
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
			return nil, false, fmt.Errorf("%s", row.Unknown("argument", word, dashed(names)))
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

// UnknownEnv returns an error for a KEY=VALUE of -e that matches no declared argument.
func UnknownEnv(env map[string]string, declared []Argument) error {
	var names []string
	for _, a := range declared {
		names = append(names, a.Name)
	}
	for _, key := range slices.Sorted(maps.Keys(env)) {
		if !slices.Contains(names, key) {
			return fmt.Errorf("-e %s: %s", key, row.Unknown("argument", key, names))
		}
	}
	return nil
}

// truths maps the accepted boolean texts to their values.
var truths = map[string]bool{"true": true, "yes": true, "on": true, "1": true, "false": false, "no": false, "off": false, "0": false}

func isTruth(word string) bool {
	_, ok := truths[word]
	return ok
}

func dashed(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = "--" + n
		if len(n) == 1 {
			out[i] = "-" + n
		}
	}
	return out
}

// Parse converts the text of an argument to a Lua value.
func Parse(L *lua.LState, a Argument, text string) (lua.LValue, error) {
	if len(a.choices) > 0 && !slices.Contains(a.choices, text) {
		return nil, fmt.Errorf("%q is not one of %s%s", text, strings.Join(a.choices, ", "), row.Suggestion(text, a.choices))
	}
	switch a.kind {
	case "number":
		if digits, hex := strings.CutPrefix(text, "0x"); hex {
			if n, err := strconv.ParseUint(digits, 16, 53); err == nil {
				return lua.LNumber(n), nil
			}
		}
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, fmt.Errorf("%q is not a number", text)
		}
		return lua.LNumber(f), nil
	case "boolean":
		if isTruth(text) {
			return lua.LBool(truths[text]), nil
		}
		return nil, fmt.Errorf("%q is not true or false", text)
	case "list":
		t := L.NewTable()
		for _, part := range strings.Split(text, ",") {
			t.Append(lua.LString(strings.TrimSpace(part)))
		}
		return t, nil
	}
	return lua.LString(text), nil
}

// Usage returns the help text of the script.
func Usage(script string, declared []Argument) string {
	var b strings.Builder
	fmt.Fprintf(&b, "usage: daqiri-run %s [--name VALUE | name=VALUE]...\n", filepath.Base(script))
	for _, a := range declared {
		left := dashed([]string{a.Name})[0]
		if a.kind != "boolean" {
			left += " " + strings.ToUpper(a.kind)
		}
		var notes []string
		if a.Help != "" {
			notes = append(notes, a.Help)
		}
		if len(a.choices) > 0 {
			notes = append(notes, "one of "+strings.Join(a.choices, ", "))
		}
		if a.unit != "" {
			notes = append(notes, "in "+a.unit)
		}
		switch {
		case a.Required:
			notes = append(notes, "required")
		case a.Default != lua.LNil:
			notes = append(notes, "default "+showDefault(a.Default))
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
