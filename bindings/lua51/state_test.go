package lua51

import (
	"testing"

	lua "github.com/yuin/gopher-lua"
)

// newState returns a Lua state with the libraries, closed at the end of the test.
func newState(t *testing.T) *lua.LState {
	t.Helper()
	L := lua.NewState(lua.Options{SkipOpenLibs: true})
	t.Cleanup(L.Close)
	OpenLibraries(L)
	return L
}
