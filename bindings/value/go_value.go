package value

import (
	"cmp"
	"fmt"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/row"
)

// MaxValues is the maximum number of values in a message, a task argument or a configuration.
const MaxValues = 1 << 20

// Of converts a Lua value to the Go types of decoded YAML: map[string]any, []any, string, bool, float64, nil.
func Of(v lua.LValue, depth int) (any, error) {
	p := plainer{left: MaxValues}
	return p.value(v, depth)
}

// plainer holds the number of values that it may still create; a table contained in others is counted each time.
type plainer struct{ left int }

func (p *plainer) value(v lua.LValue, depth int) (any, error) {
	if p.left--; p.left < 0 {
		return nil, fmt.Errorf("more than %d values (a table that is in others many times over?)", MaxValues)
	}
	if depth > MaxNesting {
		return nil, fmt.Errorf("nested deeper than %d levels (a table that contains itself?)", MaxNesting)
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
		return p.table(v, depth)
	}
	return nil, fmt.Errorf("%s can't be part of a configuration", row.Describe(v))
}

// table creates a list if the keys are 1..n, otherwise a map; an empty table is an empty map.
func (p *plainer) table(t *lua.LTable, depth int) (any, error) {
	length, n := t.Len(), 0
	list := make([]any, 0, length)
	table := map[string]any{}
	var failed error
	t.ForEach(func(k, e lua.LValue) {
		if n++; failed != nil {
			return
		}
		x, err := p.value(e, depth+1)
		if err != nil {
			failed = cmp.Or(failed, fmt.Errorf("%s: %w", k, err))
		}
		list = append(list, x)
		table[k.String()] = x
	})
	if length > 0 && n == length {
		return list, failed
	}
	return table, failed
}
