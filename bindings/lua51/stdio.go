package lua51

import (
	"io"
	"syscall"

	lua "github.com/yuin/gopher-lua"
)

// ReplaceStdio redirects io.write, io.stdout and io.stderr to the host's writers, which share the terminal with the live line and the prompt.
func ReplaceStdio(L *lua.LState, stdout, stderr io.Writer) {
	module, ok := L.GetGlobal(lua.IoLibName).(*lua.LTable)
	if !ok {
		return
	}
	streams := map[lua.LValue]io.Writer{module.RawGetString("stdout"): stdout, module.RawGetString("stderr"): stderr}
	methods, ok := L.GetMetatable(module.RawGetString("stdout")).(*lua.LTable)
	if !ok {
		return
	}
	ioOutput := module.RawGetString("output")
	methods.RawSetString("write", L.NewFunction(func(L *lua.LState) int {
		if w := streams[L.Get(1)]; w != nil {
			return writeValues(L, w, 2)
		}
		return writeFile(L, fileOf(L, L.Get(1)), 2)
	}))
	module.RawSetString("write", L.NewFunction(func(L *lua.LState) int {
		L.Push(ioOutput) // without arguments it returns io.write's file
		L.Call(0, 1)
		file := L.Get(-1)
		L.Pop(1)
		if w := streams[file]; w != nil {
			return writeValues(L, w, 1)
		}
		return writeFile(L, fileOf(L, file), 1)
	}))
}

// writeValues writes the arguments from first on with a single call, so that the lines of two tasks do not mix.
func writeValues(L *lua.LState, w io.Writer, first int) int {
	var text []byte
	for i := first; i <= L.GetTop(); i++ {
		L.CheckTypes(i, lua.LTNumber, lua.LTString)
		s := lua.LVAsString(L.Get(i))
		Reserve(L, uint64(len(text)+len(s)))
		text = append(text, s...)
	}
	_, err := w.Write(text)
	return succeeded(L, err)
}

// writeFile writes the arguments to a file, at the position up to which the script has read.
func writeFile(L *lua.LState, f luaFile, first int) int {
	w := f.writer()
	if w == nil {
		return failed(L, syscall.EBADF)
	}
	if r := f.reader(); r != nil && r.Buffered() > 0 {
		f.dropRead()
	}
	return writeValues(L, w, first)
}

// callThrough calls f with all arguments and returns all its results.
func callThrough(L *lua.LState, f lua.LValue) int {
	n := L.GetTop()
	L.Push(f)
	for i := 1; i <= n; i++ {
		L.Push(L.Get(i))
	}
	L.Call(n, lua.MultRet)
	return L.GetTop() - n
}
