package value

import (
	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/lua51"
)

// List converts strings to a Lua list.
func List(L *lua.LState, texts []string) *lua.LTable {
	t := L.CreateTable(len(texts), 0)
	for _, text := range texts {
		t.Append(lua.LString(text))
	}
	return t
}

// Strict makes reads of absent keys raise the text returned for the key; "" raises nothing.
func Strict(L *lua.LState, t *lua.LTable, text func(L *lua.LState, key string) string) {
	meta := L.NewTable()
	meta.RawSetString("__index", L.NewFunction(func(L *lua.LState) int {
		key, ok := L.Get(2).(lua.LString)
		if !ok {
			return 0
		}
		if why := text(L, string(key)); why != "" {
			lua51.Raise(L, "%s", why)
		}
		return 0
	}))
	L.SetMetatable(t, meta)
}
