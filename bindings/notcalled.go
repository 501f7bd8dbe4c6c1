package bindings

import (
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/lua51"
	"github.com/daqiri/daqiri-run/bindings/row"
)

// Errors for calls of values that are not functions name the value; gopher-lua's message is the same for all. Types without a metatable get one
// for calls and field accesses; a called plain table keeps gopher-lua's message.

// explainCalls installs the errors for calls of nil, booleans, numbers and strings, and for fields of all of these but strings.
func (rt *Runtime) explainCalls() {
	L := rt.root
	rt.noCall = L.NewFunction(rt.notCallable)
	rt.bare = L.NewTable()
	rt.bare.RawSetString("__call", rt.noCall)
	noIndex := L.NewFunction(rt.notIndexable)
	rt.bare.RawSetString("__index", noIndex)
	rt.bare.RawSetString("__newindex", noIndex)
	for _, of := range []lua.LValue{lua.LNil, lua.LTrue, lua.LNumber(0)} {
		L.SetMetatable(of, rt.bare)
	}
	module := rt.globals().RawGetString(lua.StringLibName)
	text, ok := L.GetMetatable(lua.LString("")).(*lua.LTable) // the host's also has arithmetic
	if !ok || text == module {                                // gopher-lua uses the module itself
		text = L.NewTable()
		text.RawSetString("__index", module)
		L.SetMetatable(lua.LString(""), text)
	}
	text.RawSetString("__call", rt.noCall)
}

// globalGetmetatable is Lua's getmetatable; it hides rt.bare.
func globalGetmetatable(c *call) int {
	if c.Count() == 0 {
		c.Wanted(1, "value")
	}
	meta := c.L.GetMetatable(c.Arg(1))
	if meta == c.rt.bare {
		meta = lua.LNil
	}
	return c.Push(meta)
}

// canBeCalled reports whether a call of v reaches a function other than notCallable.
func (rt *Runtime) canBeCalled(v lua.LValue) bool {
	meta := rt.root.GetMetaField(v, "__call")
	return v.Type() == lua.LTFunction || meta != lua.LNil && meta != rt.noCall
}

// notCallable is __call of values that can't be called: argument 1 is the value, followed by the call's arguments (for a method, the object
// first).
func (rt *Runtime) notCallable(L *lua.LState) int {
	called, name := L.Get(1), calledName(L)
	what := row.Describe(called)
	if called == lua.LNil {
		what = "nil"
	}
	if self, ok := L.Get(2).(*lua.LUserData); ok && name != "" {
		if n, ok := self.Value.(row.Object); ok && slices.Contains(rt.defs[n.LuaType()].fieldNames(), name) {
			def := rt.defs[n.LuaType()]
			lua51.Raise(L, "'%s' of a %s is %s, not a function: write .%s without (); a %s has %s", name, def.name, what, name, def.name, def.listed())
		}
	}
	if name == "" {
		lua51.Raise(L, "attempt to call %s, which is not a function", what)
	}
	lua51.Raise(L, "attempt to call '%s', which is %s and no function", name, what)
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

// listed returns fields and methods, the latter with ().
func (def *typeDef) listed() string {
	names := slices.Sorted(slices.Values(def.fieldNames()))
	for _, m := range def.methods {
		names = append(names, m.name+"()")
	}
	return strings.Join(names, ", ")
}

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
