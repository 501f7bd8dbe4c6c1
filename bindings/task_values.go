package bindings

import (
	"cmp"
	"fmt"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/row"
	"github.com/daqiri/daqiri-run/bindings/value"
	"github.com/daqiri/daqiri-run/runtime/session"
)

// pair is one entry of a table copied between states.
type pair struct{ key, value any }

// passed is a receive or transmit queue passed to another task.
type passed struct {
	q  *session.Queue
	of *RunningSession
}

// export copies a value out of its state: nil, booleans, numbers, strings, u64, times and tables of these; queues only if queues is set.
func (c *call) export(v lua.LValue, queues bool, depth int) (any, error) {
	if depth > value.MaxNesting {
		return nil, fmt.Errorf("nested deeper than %d levels (a table that contains itself?)", value.MaxNesting)
	}
	if depth == 0 {
		c.rt.exported = 0
	}
	if c.rt.exported++; c.rt.exported > value.MaxValues {
		return nil, fmt.Errorf("more than %d values (a table that is in others many times over?)", value.MaxValues)
	}
	switch v := v.(type) {
	case *lua.LNilType, lua.LBool, lua.LNumber, lua.LString:
		return v, nil
	case *lua.LTable:
		var pairs []pair
		var fault error
		v.ForEach(func(k, e lua.LValue) {
			if fault != nil {
				return
			}
			key, err := c.export(k, false, depth+1)
			if err == nil {
				e, err := c.export(e, queues, depth+1)
				pairs = append(pairs, pair{key, e})
				fault = cmp.Or(fault, err)
			}
			fault = cmp.Or(fault, err)
		})
		return pairs, fault
	case *lua.LFunction:
		if queues {
			return prototype(v)
		}
	case *lua.LUserData:
		switch x := v.Value.(type) {
		case row.U64, timestamp:
			return x, nil
		case *queue:
			if !queues {
				return nil, fmt.Errorf("a queue is handed over as an argument of daqiri.task only")
			}
			x.check(c)
			return passed{x.q, x.of}, nil
		}
	}
	return nil, fmt.Errorf("%s can't go to another task: tasks share nothing but messages and queues", row.Describe(v))
}

// imported converts an exported value to a Lua value of this state.
func (rt *Runtime) imported(v any) lua.LValue {
	switch v := v.(type) {
	case []pair:
		t := rt.root.NewTable()
		for _, p := range v {
			t.RawSet(rt.imported(p.key), rt.imported(p.value))
		}
		return t
	case row.U64:
		return rt.newObject(v)
	case timestamp:
		return rt.newObject(v)
	case *lua.FunctionProto:
		return rt.root.NewFunctionFromProto(v)
	case passed:
		return rt.newLasting(&queue{q: v.q, of: v.of})
	case lua.LValue:
		return v
	}
	return lua.LNil
}
