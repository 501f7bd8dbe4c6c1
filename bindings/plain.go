package bindings

import (
	"fmt"

	lua "github.com/yuin/gopher-lua"
)

// plainValue makes Go values of Lua ones, as decoded YAML gives them: map[string]any, []any, string,
// bool, float64, nil.
func plainValue(v lua.LValue, depth int) (any, error) {
	if depth > maxNesting {
		return nil, fmt.Errorf("nested deeper than %d levels (a table that contains itself?)", maxNesting)
	}
	switch v := v.(type) {
	case *lua.LNilType:
		return nil, nil
	case lua.LBool:
		return bool(v), nil
	case lua.LNumber:
		return float64(v), nil
	case lua.LString:
		return string(v), nil
	case *lua.LTable:
		return plainTable(v, depth)
	}
	return nil, fmt.Errorf("%s can't be part of a configuration", describe(v))
}

// plainTable makes a list where the keys are 1..n, else a map; an empty table is an empty map.
func plainTable(t *lua.LTable, depth int) (any, error) {
	length, n := t.Len(), 0
	list := make([]any, 0, length)
	table := map[string]any{}
	var fault error
	t.ForEach(func(k, e lua.LValue) {
		n++
		x, err := plainValue(e, depth+1)
		if err != nil {
			fault = firstError(fault, fmt.Errorf("%s: %w", k, err))
		}
		list = append(list, x)
		table[k.String()] = x
	})
	if length > 0 && n == length {
		return list, fault
	}
	return table, fault
}
