package value

import (
	"errors"
	"fmt"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/row"
	"github.com/daqiri/daqiri-run/runtime/spec"
)

// Evaluation of constants in a script without running it, with the parsers of the calls that would receive them.

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
		table, wrong := Of(v, 0)
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
		value, wrong := Of(v, 0)
		err = errors.Join(err, wrong)
		list = append(list, spec.Override{Path: k.String(), Value: value, Source: "set"})
	})
	return list, err
}

// ReadMatch checks a match of a flow or filter.
func ReadMatch(t *lua.LTable) error {
	v, err := Of(t, 0)
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
