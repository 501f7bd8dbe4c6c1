package script

import (
	"slices"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/lua51"
)

// Globals lists the globals that every script has.
func Globals() []string {
	L := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer L.Close()
	lua51.OpenLibraries(L)
	names := []string{"arg", "bit"} // of the host and the bindings
	if globals, ok := L.Get(lua.GlobalsIndex).(*lua.LTable); ok {
		globals.ForEach(func(k, _ lua.LValue) { names = append(names, k.String()) })
	}
	slices.Sort(names)
	return names
}
