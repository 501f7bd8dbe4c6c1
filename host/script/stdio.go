package script

import (
	"io"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings"
)

// replaceStdio sends what io.write, io.stdout and io.stderr write through the host's writers, which share the
// terminal with the live line and the prompt. Other files stay as they are.
func replaceStdio(L *lua.LState, stdout, stderr io.Writer) {
	module, ok := L.GetGlobal(lua.IoLibName).(*lua.LTable)
	if !ok {
		return
	}
	streams := map[lua.LValue]io.Writer{module.RawGetString("stdout"): stdout, module.RawGetString("stderr"): stderr}
	methods, ok := L.GetMetatable(module.RawGetString("stdout")).(*lua.LTable)
	if !ok {
		return
	}
	fileWrite, ioWrite, ioOutput := methods.RawGetString("write"), module.RawGetString("write"), module.RawGetString("output")
	methods.RawSetString("write", L.NewFunction(func(L *lua.LState) int {
		if w := streams[L.Get(1)]; w != nil {
			return writeValues(L, w, 2)
		}
		return callThrough(L, fileWrite)
	}))
	module.RawSetString("write", L.NewFunction(func(L *lua.LState) int {
		L.Push(ioOutput) // without arguments: the file that io.write writes to
		L.Call(0, 1)
		file := L.Get(-1)
		L.Pop(1)
		if w := streams[file]; w != nil {
			return writeValues(L, w, 1)
		}
		return callThrough(L, ioWrite)
	}))
}

// writeValues writes the arguments from the first on as one piece, so that two tasks don't tear each other's lines.
func writeValues(L *lua.LState, w io.Writer, first int) int {
	var text []byte
	for i := first; i <= L.GetTop(); i++ {
		L.CheckTypes(i, lua.LTNumber, lua.LTString)
		s := lua.LVAsString(L.Get(i))
		bindings.Reserve(L, len(text)+len(s))
		text = append(text, s...)
	}
	if _, err := w.Write(text); err != nil {
		L.Push(lua.LNil)
		L.Push(lua.LString(err.Error()))
		return 2
	}
	L.Push(lua.LTrue)
	return 1
}

// callThrough passes the arguments on to f and returns all that it returns.
func callThrough(L *lua.LState, f lua.LValue) int {
	n := L.GetTop()
	L.Push(f)
	for i := 1; i <= n; i++ {
		L.Push(L.Get(i))
	}
	L.Call(n, lua.MultRet)
	return L.GetTop() - n
}
