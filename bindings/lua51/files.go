package lua51

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	_ "unsafe" // for go:linkname

	lua "github.com/yuin/gopher-lua"
)

// Files as in Lua 5.1: gopher-lua supports few of fopen's modes, creates files readable only by their owner, does not truncate a longer file
// written by io.output, and returns no errno. It loses data buffered by setvbuf if a script ends, seeks, reads or calls setvbuf again.

// newFile creates gopher-lua's object for an open file; for an existing file it uses only writable and readable.
//
//go:linkname newFile github.com/yuin/gopher-lua.newFile
func newFile(L *lua.LState, file *os.File, path string, flag int, perm os.FileMode, writable, readable bool) (*lua.LUserData, error)

// ReplaceFiles replaces the functions that open, close, move and remove files. The returned function flushes all buffers at the end.
func ReplaceFiles(L *lua.LState) (end func()) {
	buffers := buffers{}
	end = buffers.flush
	module, ok := L.GetGlobal(lua.IoLibName).(*lua.LTable)
	if !ok {
		return end
	}
	methods, ok := L.GetMetatable(module.RawGetString("stdout")).(*lua.LTable)
	if !ok {
		return end
	}
	defaultOutput := module.RawGetString("output")
	standard := []lua.LValue{module.RawGetString("stdin"), module.RawGetString("stdout"), module.RawGetString("stderr")}
	processClose := methods.RawGetString("close").(*lua.LFunction).GFunction
	closing := func(L *lua.LState) int { return closeFile(L, standard, processClose, buffers) }
	L.SetFuncs(methods, map[string]lua.LGFunction{"close": closing, "flush": flushFile, "seek": seekFile, "setvbuf": buffers.set})
	onDefault := func(fn lua.LGFunction) lua.LGFunction {
		return func(L *lua.LState) int {
			if L.GetTop() == 0 {
				L.Push(defaultOutput)
				L.Call(0, 1)
			}
			return fn(L)
		}
	}
	L.SetFuncs(module, map[string]lua.LGFunction{"close": onDefault(closing), "flush": onDefault(flushFile), "open": luaOpen,
		"input": openDefault(module.RawGetString("input"), "r"), "output": openDefault(defaultOutput, "w")})
	if system, ok := L.GetGlobal(lua.OsLibName).(*lua.LTable); ok {
		L.SetFuncs(system, map[string]lua.LGFunction{"remove": osRemove, "rename": osRename})
	}
	return end
}

// luaOpen implements io.open.
func luaOpen(L *lua.LState) int {
	path, mode := L.CheckString(1), "r"
	if L.Get(2) != lua.LNil {
		mode = L.CheckString(2)
	}
	file, err := openFile(L, path, mode)
	if err != nil {
		return failedFor(L, path, err)
	}
	L.Push(file)
	return 1
}

// openFile opens a file with an fopen mode: a letter, optionally followed by +, b and x.
func openFile(L *lua.LState, path, mode string) (*lua.LUserData, error) {
	flag, known := map[string]int{"r": os.O_RDONLY, "w": os.O_WRONLY | os.O_CREATE | os.O_TRUNC, "a": os.O_WRONLY | os.O_CREATE | os.O_APPEND}[mode[:min(1, len(mode))]]
	if !known {
		return nil, syscall.EINVAL
	}
	both := strings.Contains(mode, "+")
	if both {
		flag = flag&^os.O_WRONLY | os.O_RDWR
	}
	if strings.Contains(mode, "x") {
		flag |= os.O_EXCL
	}
	file, err := os.OpenFile(path, flag, 0o666)
	if err != nil {
		return nil, err
	}
	return newFile(L, file, path, 0, 0, both || mode[0] != 'r', both || mode[0] == 'r')
}

// openDefault returns io.input or io.output, which opens a file if the argument is a name.
func openDefault(original lua.LValue, mode string) lua.LGFunction {
	return func(L *lua.LState) int {
		if path := L.Get(1); lua.LVCanConvToString(path) {
			file, err := openFile(L, lua.LVAsString(path), mode)
			if err != nil {
				L.ArgError(1, lua.LVAsString(path)+": "+errorText(err))
			}
			L.Replace(1, file)
		}
		return callThrough(L, original)
	}
}

// closeFile closes a file; standard streams stay open.
func closeFile(L *lua.LState, standard []lua.LValue, processClose lua.LGFunction, b buffers) int {
	f := fileOf(L, L.Get(1))
	if slices.Contains(standard, L.Get(1)) {
		L.Push(lua.LNil)
		L.Push(lua.LString("cannot close standard file"))
		return 2
	}
	if f.file() == nil {
		if input, ok := f.writer().(io.Closer); ok { // a reading process waits for the end of its input
			_ = input.Close()
		}
		return processClose(L)
	}
	err := errors.Join(b.drop(f), f.file().Close())
	f.setClosed()
	return succeeded(L, err)
}

func flushFile(L *lua.LState) int { return succeeded(L, fileOf(L, L.Get(1)).flush()) }

// buffers is the set of active write buffers.
type buffers map[*bufio.Writer]bool

// set implements setvbuf: "full" enables buffering, "no" and "line" disable it.
func (b buffers) set(L *lua.LState) int {
	f := fileOf(L, L.Get(1))
	mode := L.CheckString(2)
	if !slices.Contains([]string{"no", "full", "line"}, mode) {
		L.ArgError(2, "invalid option '"+mode+"'")
	}
	size := int(max(0, min(optNumber(L, 3), 1<<30)))
	if f.file() == nil || f.writer() == nil {
		return succeeded(L, nil)
	}
	err := b.drop(f)
	if mode == "full" {
		Reserve(L, uint64(size))
		buffer := bufio.NewWriterSize(f.file(), size)
		b[buffer] = true
		f.setWriter(buffer)
	}
	return succeeded(L, err)
}

// drop flushes the buffer of a file and disables buffering.
func (b buffers) drop(f luaFile) error {
	held, ok := f.writer().(*bufio.Writer)
	if !ok {
		return nil
	}
	delete(b, held)
	f.setWriter(f.file())
	return held.Flush()
}

// flush writes all buffers.
func (b buffers) flush() {
	for buffer := range b {
		_ = buffer.Flush() // as at the end of a C program
	}
}

// seekFile implements file:seek.
func seekFile(L *lua.LState) int {
	f := fileOf(L, L.Get(1))
	whence := slices.Index([]string{"set", "cur", "end"}, L.OptString(2, "cur"))
	if whence < 0 {
		L.ArgError(2, "invalid option '"+L.CheckString(2)+"'")
	}
	offset := int64(optNumber(L, 3))
	if f.file() == nil {
		return failed(L, syscall.ESPIPE)
	}
	if err := f.flush(); err != nil {
		return failed(L, err)
	}
	f.dropRead()
	at, err := f.file().Seek(offset, whence)
	if err != nil {
		return failed(L, err)
	}
	L.Push(lua.LNumber(at))
	return 1
}

// optNumber returns an optional number, or text that is one; the default is 0.
func optNumber(L *lua.LState, n int) float64 {
	v := L.Get(n)
	if v == lua.LNil {
		return 0
	}
	f, ok := ToNumber(v)
	if !ok {
		L.TypeError(n, lua.LTNumber)
	}
	return f
}

func osRemove(L *lua.LState) int {
	path := L.CheckString(1)
	if err := os.Remove(path); err != nil {
		return failedFor(L, path, err)
	}
	return succeeded(L, nil)
}

func osRename(L *lua.LState) int {
	from, to := L.CheckString(1), L.CheckString(2)
	if err := syscall.Rename(from, to); err != nil {
		return failedFor(L, from, err)
	}
	return succeeded(L, nil)
}

// succeeded returns true, or the results of failed if err is not nil.
func succeeded(L *lua.LState, err error) int {
	if err != nil {
		return failed(L, err)
	}
	L.Push(lua.LTrue)
	return 1
}

// failed returns nil, text, errno, like Lua's file functions.
func failed(L *lua.LState, err error) int {
	L.Push(lua.LNil)
	L.Push(lua.LString(errorText(err)))
	number := syscall.EIO
	errors.As(err, &number)
	L.Push(lua.LNumber(number))
	return 3
}

// failedFor is failed with the file's path in the text.
func failedFor(L *lua.LState, path string, err error) int {
	results := failed(L, err)
	L.Replace(-2, lua.LString(path)+": "+L.Get(-2).(lua.LString))
	return results
}

// errorText returns the text of C's strerror, which begins with a capital letter.
func errorText(err error) string {
	var number syscall.Errno
	if !errors.As(err, &number) {
		if errors.Is(err, fs.ErrClosed) || errors.Is(err, io.ErrClosedPipe) {
			number = syscall.EBADF
		} else {
			return err.Error()
		}
	}
	text := number.Error()
	return strings.ToUpper(text[:1]) + text[1:]
}
