package bindings

import (
	lua "github.com/yuin/gopher-lua"
)

// function is a Go function callable from Lua; it returns the number of results pushed.
type function func(c *call) int

// call is a function call from Lua, with the state's Runtime.
type call struct {
	Call
	rt *Runtime
}

// wrap returns e as a Lua function. self is 1 for a method, otherwise 0.
func (rt *Runtime) wrap(L *lua.LState, e entry, self int) *lua.LFunction {
	keys := &optionKeys{row: e.doc}
	return L.NewFunction(func(L *lua.LState) int {
		return e.fn(&call{Call: Call{L: L, name: e.name, self: self, keys: keys}, rt: rt})
	})
}

// receiver returns self as a T; what names the type in the error.
func receiver[T any](c *call, what string) T { return selfOf[T](&c.Call, what) }

// options are the named options of a call.
type options struct {
	Options
	c *call
}

// options reads argument n as a table with only the keys of the function's row and those of more; an absent argument is an empty table.
func (c *call) options(n int, more ...string) *options { return &options{c.readOptions(n, more...), c} }

// newOptions returns the options in a table that is argument n or an element of it.
func newOptions(c *call, n int, t *lua.LTable) *options { return &options{c.optionsOf(n, t), c} }
