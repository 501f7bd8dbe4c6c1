package lua51

import (
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/runtime/textfile"
)

// ReplaceLoad makes load, loadstring, loadfile and dofile use compile.
func ReplaceLoad(L *lua.LState) {
	for name, fn := range map[string]lua.LGFunction{"load": luaLoad, "loadstring": luaLoadString, "loadfile": luaLoadFile,
		"dofile": luaDoFile} {
		L.SetGlobal(name, L.NewFunction(fn))
	}
}

// loaded pushes the function, or nil and the error's text, like Lua's loaders.
func loaded(L *lua.LState, fn *lua.LFunction, err error) int {
	if err != nil {
		L.Push(lua.LNil)
		L.Push(lua.LString(strings.TrimSpace(err.Error())))
		return 2
	}
	L.Push(fn)
	return 1
}

func luaLoadString(L *lua.LState) int {
	fn, err := Compile(L, L.OptString(2, "<string>"), L.CheckString(1))
	return loaded(L, fn, err)
}

// luaLoad implements load: it concatenates the pieces that a function returns, until nil or an empty string.
func luaLoad(L *lua.LState) int {
	reader, name := L.CheckFunction(1), L.OptString(2, "?")
	var source strings.Builder
	for {
		L.Push(reader)
		L.Call(0, 1)
		piece := L.Get(-1)
		L.Pop(1)
		if piece == lua.LNil || piece == lua.LString("") {
			fn, err := Compile(L, name, source.String())
			return loaded(L, fn, err)
		}
		if !lua.LVCanConvToString(piece) {
			L.Push(lua.LNil)
			L.Push(lua.LString("reader function must return a string"))
			return 2
		}
		source.WriteString(piece.String())
	}
}

func loadFile(L *lua.LState) (*lua.LFunction, error) {
	path := L.CheckString(1)
	text, err := textfile.Read(path)
	if err != nil {
		return nil, err
	}
	return Compile(L, path, string(text))
}

func luaLoadFile(L *lua.LState) int {
	fn, err := loadFile(L)
	return loaded(L, fn, err)
}

func luaDoFile(L *lua.LState) int {
	fn, err := loadFile(L)
	if err != nil {
		L.RaiseError("%s", strings.TrimSpace(err.Error()))
	}
	top := L.GetTop()
	L.Push(fn)
	L.Call(0, lua.MultRet)
	return L.GetTop() - top
}
