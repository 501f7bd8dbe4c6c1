package lua51

import (
	"math"
	"os"
	"runtime"
	"runtime/metrics"

	lua "github.com/yuin/gopher-lua"
)

// RepairLibraries installs Lua 5.1's behavior for functions that have other results in gopher-lua, or accept what Lua refuses: string.char(256),
// and a metatable for all numbers, functions or strings at once.
func RepairLibraries(L *lua.LState) {
	for _, f := range []struct {
		library, name string
		fn            lua.LGFunction
	}{
		{"_G", "collectgarbage", collectGarbage},
		{"_G", "setmetatable", setMetatable},
		{lua.CoroutineLibName, "running", coroutineRunning},
		{lua.MathLibName, "modf", mathModf},
		{lua.OsLibName, "difftime", osDifftime},
		{lua.OsLibName, "getenv", osGetenv},
		{lua.OsLibName, "setlocale", osSetlocale},
		{lua.StringLibName, "char", stringChar},
		{lua.TabLibName, "insert", tableInsert},
		{lua.TabLibName, "maxn", tableMaxn},
		{lua.TabLibName, "remove", tableRemove},
		{lua.TabLibName, "sort", tableSort(L)},
	} {
		L.SetField(L.GetGlobal(f.library), f.name, L.NewFunction(f.fn))
	}
	maths := L.GetGlobal(lua.MathLibName)
	L.SetField(maths, "mod", L.GetField(maths, "fmod")) // name in Lua 5.0
	takeNumerals(L)
}

// numerals lists functions and their arguments, first to last, for which Lua converts strings to numbers and gopher-lua does not.
var numerals = []struct {
	library, name string
	first, last   int
}{
	{"_G", "error", 2, 2},
	{"_G", "select", 1, 1},
	{"_G", "tonumber", 2, 2},
	{"_G", "unpack", 2, 3},
	{lua.MathLibName, "", 1, math.MaxInt}, // all functions of math
	{lua.OsLibName, "difftime", 1, 2},
	{lua.StringLibName, "char", 1, math.MaxInt},
	{lua.StringLibName, "sub", 2, 3},
	{lua.TabLibName, "insert", 2, 2}, // if a third argument follows
	{lua.TabLibName, "remove", 2, 2},
}

// takeNumerals wraps these functions to convert strings.
func takeNumerals(L *lua.LState) {
	for _, row := range numerals {
		L.GetGlobal(row.library).(*lua.LTable).ForEach(func(name, v lua.LValue) {
			fn, ok := v.(*lua.LFunction)
			if !ok || row.name != "" && row.name != name.String() {
				return
			}
			original := fn.GFunction
			fn.GFunction = func(L *lua.LState) int {
				last := min(row.last, L.GetTop())
				if row.name == "insert" && last == L.GetTop() {
					last = 0 // the value argument
				}
				for n := row.first; n <= last; n++ {
					if text, ok := L.Get(n).(lua.LString); ok {
						if v, ok := ReadNumber(string(text)); ok {
							L.Replace(n, lua.LNumber(v))
						}
					}
				}
				return original(L)
			}
		})
	}
}

// collectGarbage implements collectgarbage on Go's collector, which schedules itself.
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

// coroutineRunning implements coroutine.running: nil in the main thread of a task.
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

// osDifftime implements os.difftime: the difference of two times, each truncated to seconds.
func osDifftime(L *lua.LState) int {
	L.Push(lua.LNumber(math.Trunc(float64(L.CheckNumber(1))) - math.Trunc(float64(L.OptNumber(2, 0)))))
	return 1
}

// osGetenv implements os.getenv: nil for an unset variable only; gopher-lua also returns nil for an empty one.
func osGetenv(L *lua.LState) int {
	value, set := os.LookupEnv(L.CheckString(1))
	if !set {
		L.Push(lua.LNil)
		return 1
	}
	L.Push(lua.LString(value))
	return 1
}

// osSetlocale implements os.setlocale, which only supports locale "C".
func osSetlocale(L *lua.LState) int {
	if name := L.OptString(1, "C"); name == "" || name == "C" || name == "POSIX" {
		L.Push(lua.LString("C"))
	} else {
		L.Push(lua.LNil)
	}
	return 1
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
