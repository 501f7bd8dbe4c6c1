package lua51

import (
	"fmt"

	lua "github.com/yuin/gopher-lua"
)

// Raise raises a Lua error at the script's line.
func Raise(L *lua.LState, format string, args ...any) {
	L.Error(lua.LString(fmt.Sprintf(format, args...)), Position(L))
}

// Position returns the stack level from which gopher-lua takes the script's line; 0 (no position) if pcall called the function directly.
func Position(L *lua.LState) int {
	if _, ok := L.GetStack(1); !ok {
		return 0
	}
	return 1
}
