package lua51

import (
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// Errors for calls of values that are not functions name the value; gopher-lua's message is the same for all. Types without a metatable get one
// for calls and field accesses; a called plain table keeps gopher-lua's message.

// Calls has the metamethods of values that can't be called.
type Calls struct {
	NoCall   *lua.LFunction // __call of values that can't be called
	bare     *lua.LTable    // metatable of types without one, with NoCall
	describe func(v lua.LValue) string
	field    func(self lua.LValue, name, what string) string
}

// ExplainCalls installs the errors for calls of nil, booleans, numbers and strings, and for fields of all of these but strings. describe names a
// value in errors. field returns the error for a call of a field of self that is what describe calls what; "" for the general error.
func ExplainCalls(L *lua.LState, describe func(v lua.LValue) string, field func(self lua.LValue, name, what string) string) *Calls {
	x := &Calls{bare: L.NewTable(), describe: describe, field: field}
	x.NoCall = L.NewFunction(x.notCallable)
	x.bare.RawSetString("__call", x.NoCall)
	noIndex := L.NewFunction(x.notIndexable)
	x.bare.RawSetString("__index", noIndex)
	x.bare.RawSetString("__newindex", noIndex)
	for _, of := range []lua.LValue{lua.LNil, lua.LTrue, lua.LNumber(0)} {
		L.SetMetatable(of, x.bare)
	}
	module := L.GetGlobal(lua.StringLibName)
	text, ok := L.GetMetatable(lua.LString("")).(*lua.LTable) // the host's also has arithmetic
	if !ok || text == module {                                // gopher-lua uses the module itself
		text = L.NewTable()
		text.RawSetString("__index", module)
		L.SetMetatable(lua.LString(""), text)
	}
	text.RawSetString("__call", x.NoCall)
	return x
}

// Metatable returns a value's metatable as getmetatable does, without the one that ExplainCalls has set.
func (x *Calls) Metatable(L *lua.LState, v lua.LValue) lua.LValue {
	if meta := L.GetMetatable(v); meta != x.bare {
		return meta
	}
	return lua.LNil
}

// CanBeCalled reports whether a call of v reaches a function other than NoCall.
func (x *Calls) CanBeCalled(L *lua.LState, v lua.LValue) bool {
	meta := L.GetMetaField(v, "__call")
	return v.Type() == lua.LTFunction || meta != lua.LNil && meta != x.NoCall
}

// notCallable is __call of values that can't be called: argument 1 is the value, followed by the call's arguments (for a method, the object
// first).
func (x *Calls) notCallable(L *lua.LState) int {
	called, name := L.Get(1), calledName(L)
	what := x.describe(called)
	if called == lua.LNil {
		what = "nil"
	}
	if name != "" {
		if why := x.field(L.Get(2), name, what); why != "" {
			Raise(L, "%s", why)
		}
	}
	if name == "" {
		Raise(L, "attempt to call %s, which is not a function", what)
	}
	Raise(L, "attempt to call '%s', which is %s and no function", name, what)
	return 0
}

// calledName returns the name under which the running function was called, or "".
func calledName(L *lua.LState) string {
	frame, ok := L.GetStack(0)
	if !ok {
		return ""
	}
	if _, err := L.GetInfo("n", frame, lua.LNil); err != nil || strings.ContainsAny(frame.Name, "?(<") {
		return ""
	}
	return frame.Name
}

// Errors for fields of values without fields name the expression; gopher-lua gives only type and key. The name is decoded from the caller's
// instructions (layout: top of gopher-lua's opcode.go).

// notIndexable is __index and __newindex of nil, booleans and numbers: argument 1 is the value, argument 2 the key.
func (x *Calls) notIndexable(L *lua.LState) int {
	verb := "read"
	if L.GetTop() > 2 {
		verb = "set"
	}
	what := x.describe(L.Get(1))
	if L.Get(1) == lua.LNil {
		what = "nil"
	}
	key := L.Get(2).String()
	if name := IndexedName(L, L.Get(2)); name != "" {
		Raise(L, "attempt to %s '%s' of %s, which is %s", verb, key, name, what)
	}
	Raise(L, "attempt to %s '%s' of %s", verb, key, what)
	return 0
}
