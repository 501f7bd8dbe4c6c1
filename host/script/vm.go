package script

import (
	"fmt"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings"
)

// Sizes of a state: call frames, and values on the data stack, which grows up to its maximum. A state takes about half a megabyte; unbounded
// recursion raises long before memory is exhausted.
const (
	callFrames   = 2000
	stackValues  = 16 << 10
	stackMaximum = 1 << 20
	stackStep    = 16 << 10
)

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

// newState implements bindings.Runtime.NewState: a state with the libraries, the loader, the process's streams and the bindings. It must run on
// the task's thread.
func (p *Program) newState(rt *bindings.Runtime) (*lua.LState, error) {
	L := lua.NewState(lua.Options{SkipOpenLibs: true, IncludeGoStackTrace: true, CallStackSize: callFrames,
		RegistrySize: stackValues, RegistryMaxSize: stackMaximum, RegistryGrowStep: stackStep})
	openLibraries(L)
	repairNumbers(L)
	repairLibraries(L)
	rt.Task.AtExit(replaceFiles(L))
	replaceStdio(L, p.opts.Stdout, p.opts.Stderr)
	replaceReading(L)
	if !p.opts.AllowExec {
		forbidExec(L)
	}
	replaceLoad(L)
	p.loader.install(L)
	bindings.Register(L, rt)
	return L, nil
}

func openLibraries(L *lua.LState) {
	for _, lib := range libraries {
		L.Push(L.NewFunction(lib.open))
		L.Push(lua.LString(lib.name))
		L.Call(1, 0)
	}
}

// forbidExec makes the functions that start programs raise.
func forbidExec(L *lua.LState) {
	for _, f := range []struct{ module, name string }{{lua.OsLibName, "execute"}, {lua.IoLibName, "popen"}} {
		text := fmt.Sprintf("%s.%s: a script may start programs only under daqiri-run --allow-exec", f.module, f.name)
		L.SetField(L.GetGlobal(f.module), f.name, L.NewFunction(func(L *lua.LState) int {
			L.RaiseError("%s", text)
			return 0
		}))
	}
}
