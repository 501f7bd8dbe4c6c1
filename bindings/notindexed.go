package bindings

import (
	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/lua51"
	"github.com/daqiri/daqiri-run/bindings/row"
)

// Errors for fields of values without fields name the expression; gopher-lua gives only type and key. The name is decoded from the caller's
// instructions (layout: top of gopher-lua's opcode.go).

// notIndexable is __index and __newindex of nil, booleans and numbers: argument 1 is the value, argument 2 the key.
func (rt *Runtime) notIndexable(L *lua.LState) int {
	verb := "read"
	if L.GetTop() > 2 {
		verb = "set"
	}
	what := row.Describe(L.Get(1))
	if L.Get(1) == lua.LNil {
		what = "nil"
	}
	key := L.Get(2).String()
	if name := lua51.IndexedName(L, L.Get(2)); name != "" {
		lua51.Raise(L, "attempt to %s '%s' of %s, which is %s", verb, key, name, what)
	}
	lua51.Raise(L, "attempt to %s '%s' of %s", verb, key, what)
	return 0
}
