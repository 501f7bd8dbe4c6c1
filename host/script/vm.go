package script

import (
	"fmt"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings"
	"github.com/daqiri/daqiri-run/bindings/lua51"
)

// Sizes of a state: call frames, and values on the data stack, which grows up to its maximum. A state takes about half a megabyte; unbounded
// recursion raises long before memory is exhausted.
const (
	callFrames   = 2000
	stackValues  = 16 << 10
	stackMaximum = 1 << 20
	stackStep    = 16 << 10
)

// newState implements bindings.Runtime.NewState: a state with the libraries, the loader, the process's streams and the bindings. It must run on
// the task's thread.
func (p *Program) newState(rt *bindings.Runtime) (*lua.LState, error) {
	L := lua.NewState(lua.Options{SkipOpenLibs: true, IncludeGoStackTrace: true, CallStackSize: callFrames,
		RegistrySize: stackValues, RegistryMaxSize: stackMaximum, RegistryGrowStep: stackStep})
	lua51.OpenLibraries(L)
	lua51.RepairNumbers(L)
	lua51.RepairLibraries(L)
	rt.Task.AtExit(lua51.ReplaceFiles(L))
	lua51.ReplaceStdio(L, p.opts.Stdout, p.opts.Stderr)
	lua51.ReplaceReading(L)
	if !p.opts.AllowExec {
		forbidExec(L)
	}
	lua51.ReplaceLoad(L)
	p.loader.install(L)
	bindings.Register(L, rt)
	return L, nil
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
