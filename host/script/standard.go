package script

import (
	"math"
	"runtime"
	"runtime/metrics"

	lua "github.com/yuin/gopher-lua"
)

// repairLibraries gives a state Lua 5.1's form of the functions that gopher-lua has with other results, or in which
// it takes what Lua refuses: string.char(256), and a metatable for all numbers, functions or strings at once.
func repairLibraries(L *lua.LState) {
	for _, f := range []struct {
		library, name string
		fn            lua.LGFunction
	}{
		{"_G", "collectgarbage", collectGarbage},
		{"_G", "setmetatable", setMetatable},
		{lua.CoroutineLibName, "running", coroutineRunning},
		{lua.MathLibName, "modf", mathModf},
		{lua.StringLibName, "char", stringChar},
		{lua.TabLibName, "remove", tableRemove},
	} {
		L.SetField(L.GetGlobal(f.library), f.name, L.NewFunction(f.fn))
	}
}

// collectGarbage is Go's collector's: when it runs is its own decision.
func collectGarbage(L *lua.LState) int {
	switch what := L.OptString(1, "collect"); what {
	case "collect":
		runtime.GC()
		L.Push(lua.LNumber(0))
	case "step":
		runtime.GC()
		L.Push(lua.LTrue)
	case "count":
		heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		metrics.Read(heap)
		L.Push(lua.LNumber(float64(heap[0].Value.Uint64()) / 1024))
	case "stop", "restart", "setpause", "setstepmul":
		L.Push(lua.LNumber(0))
	default:
		L.ArgError(1, "invalid option '"+what+"'")
	}
	return 1
}

func setMetatable(L *lua.LState) int {
	t := L.CheckTable(1)
	L.CheckTypes(2, lua.LTNil, lua.LTTable)
	if old, ok := t.Metatable.(*lua.LTable); ok && old.RawGetString("__metatable") != lua.LNil {
		L.RaiseError("cannot change a protected metatable")
	}
	L.SetMetatable(t, L.Get(2))
	L.SetTop(1)
	return 1
}

// coroutineRunning is nil in the main thread of a task.
func coroutineRunning(L *lua.LState) int {
	if L.Parent == nil {
		L.Push(lua.LNil)
	} else {
		L.Push(L)
	}
	return 1
}

func mathModf(L *lua.LState) int {
	x := float64(L.CheckNumber(1))
	whole, part := math.Modf(x)
	if math.IsInf(x, 0) {
		whole, part = x, math.Copysign(0, x)
	}
	L.Push(lua.LNumber(whole))
	L.Push(lua.LNumber(part))
	return 2
}

func stringChar(L *lua.LState) int {
	text := make([]byte, L.GetTop())
	for i := range text {
		c := L.CheckInt(i + 1)
		if c < 0 || c > 255 {
			L.ArgError(i+1, "invalid value")
		}
		text[i] = byte(c)
	}
	L.Push(lua.LString(text))
	return 1
}

// tableRemove takes the last item where no index is given, also of a list that was made with nil behind it.
func tableRemove(L *lua.LState) int {
	t := L.CheckTable(1)
	if L.GetTop() > 1 {
		at := L.CheckInt(2)
		if at < 1 {
			return 0 // LTable.Remove would take the last
		}
		L.Push(t.Remove(at))
		return 1
	}
	last := t.Remove(-1)
	for last == lua.LNil && t.Len() > 0 {
		last = t.Remove(-1)
	}
	L.Push(last)
	return 1
}
