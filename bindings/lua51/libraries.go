package lua51

import lua "github.com/yuin/gopher-lua"

// libraries are Lua's own, in dependency order. gopher-lua's channel library is omitted: its waits do not serve queues, timers and stop requests.
var libraries = []struct {
	name string
	open lua.LGFunction
}{
	{lua.LoadLibName, lua.OpenPackage},
	{lua.BaseLibName, lua.OpenBase},
	{lua.TabLibName, lua.OpenTable},
	{lua.IoLibName, lua.OpenIo},
	{lua.OsLibName, lua.OpenOs},
	{lua.StringLibName, lua.OpenString},
	{lua.MathLibName, lua.OpenMath},
	{lua.DebugLibName, lua.OpenDebug},
	{lua.CoroutineLibName, lua.OpenCoroutine},
}

// OpenLibraries opens them in L.
func OpenLibraries(L *lua.LState) {
	for _, lib := range libraries {
		L.Push(L.NewFunction(lib.open))
		L.Push(lua.LString(lib.name))
		L.Call(1, 0)
	}
}
