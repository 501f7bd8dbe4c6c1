package bindings

import (
	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/row"
)

// function is a Go function callable from Lua; it returns the number of results pushed.
type function func(c *call) int

// call is a function call from Lua, with the state's Runtime.
type call struct {
	row.Call
	rt *Runtime
}

// wrap returns e as a Lua function. self is 1 for a method, otherwise 0.
func (rt *Runtime) wrap(L *lua.LState, e entry, self int) *lua.LFunction {
	keys := &row.Keys{Row: e.doc}
	return L.NewFunction(func(L *lua.LState) int {
		return e.fn(&call{Call: row.Call{L: L, Name: e.name, Self: self, Keys: keys}, rt: rt})
	})
}

// receiver returns self as a T; what names the type in the error.
func receiver[T any](c *call, what string) T { return row.SelfOf[T](&c.Call, what) }

// options are the named options of a call.
type options struct {
	row.Options
	c *call
}

// options reads argument n as a table with only the keys of the function's row and those of more; an absent argument is an empty table.
func (c *call) options(n int, more ...string) *options { return &options{c.Options(n, more...), c} }

// newOptions returns the options in a table that is argument n or an element of it.
func newOptions(c *call, n int, t *lua.LTable) *options { return &options{c.OptionsOf(n, t), c} }
