package lua51

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"unsafe"

	lua "github.com/yuin/gopher-lua"
)

// Replacements for gopher-lua's file reading, which allocates the requested size before reading the first byte, reads lines of unbounded length,
// and splits lines of more than 4096 bytes in its iterators.

// readPiece is the initial buffer size.
const readPiece = 64 << 10

// ReplaceReading replaces io.read, io.lines and the methods read and lines of files.
func ReplaceReading(L *lua.LState) {
	module, ok := L.GetGlobal(lua.IoLibName).(*lua.LTable)
	if !ok {
		return
	}
	methods, ok := L.GetMetatable(module.RawGetString("stdin")).(*lua.LTable)
	if !ok {
		return
	}
	input, open := module.RawGetString("input"), module.RawGetString("open")
	defaultInput := func(L *lua.LState) lua.LValue {
		L.Push(input)
		L.Call(0, 1)
		file := L.Get(-1)
		L.Pop(1)
		return file
	}
	methods.RawSetString("read", L.NewFunction(func(L *lua.LState) int { return read(L, L.Get(1), 2) }))
	module.RawSetString("read", L.NewFunction(func(L *lua.LState) int { return read(L, defaultInput(L), 1) }))
	methods.RawSetString("lines", L.NewFunction(func(L *lua.LState) int { return lines(L, L.Get(1), false) }))
	module.RawSetString("lines", L.NewFunction(func(L *lua.LState) int {
		if L.GetTop() == 0 || L.Get(1) == lua.LNil {
			return lines(L, defaultInput(L), false)
		}
		L.Push(open)
		L.Push(L.Get(1))
		L.Call(1, 2)
		file, why := L.Get(-2), L.Get(-1)
		L.Pop(2)
		if file == lua.LNil {
			L.ArgError(1, why.String())
		}
		return lines(L, file, true)
	}))
}

// luaFile accesses the unexported fields of gopher-lua's file object.
type luaFile struct{ v reflect.Value }

// fileOf returns the file v; it raises for other values and closed files.
func fileOf(L *lua.LState, v lua.LValue) luaFile {
	if ud, ok := v.(*lua.LUserData); ok {
		if f := reflect.Indirect(reflect.ValueOf(ud.Value)); f.Kind() == reflect.Struct && f.FieldByName("reader").IsValid() {
			if f.FieldByName("closed").Bool() {
				L.RaiseError("attempt to use a closed file")
			}
			return luaFile{f}
		}
	}
	L.ArgError(1, "file expected, got "+v.Type().String())
	return luaFile{}
}

// reader returns nil for a file opened only for writing.
func (f luaFile) reader() *bufio.Reader {
	return (*bufio.Reader)(f.v.FieldByName("reader").UnsafePointer())
}

// writer returns nil for a file opened only for reading.
func (f luaFile) writer() io.Writer {
	return *(*io.Writer)(unsafe.Pointer(f.v.FieldByName("writer").UnsafeAddr()))
}

// file returns nil for a process.
func (f luaFile) file() *os.File { return (*os.File)(f.v.FieldByName("fp").UnsafePointer()) }

func (f luaFile) setWriter(w io.Writer) {
	*(*io.Writer)(unsafe.Pointer(f.v.FieldByName("writer").UnsafeAddr())) = w
}

// flush writes data buffered by setvbuf.
func (f luaFile) flush() error {
	if held, ok := f.writer().(*bufio.Writer); ok {
		return held.Flush()
	}
	return nil
}

func (f luaFile) setClosed() { *(*bool)(unsafe.Pointer(f.v.FieldByName("closed").UnsafeAddr())) = true }

// dropRead moves the file offset back to the position up to which the script has read.
func (f luaFile) dropRead() {
	if r := f.reader(); r != nil && f.file() != nil {
		if _, err := f.file().Seek(-int64(r.Buffered()), io.SeekCurrent); err == nil { // terminals are not seekable
			r.Reset(f.file())
		}
	}
}

// read implements file:read(...), with formats from argument first on.
func read(L *lua.LState, v lua.LValue, first int) int {
	f := fileOf(L, v)
	r := f.reader()
	if r == nil {
		return failed(L, syscall.EBADF)
	}
	if err := f.flush(); err != nil {
		return failed(L, err)
	}
	top := L.GetTop()
	formats := []lua.LValue{lua.LString("*l")}
	if top >= first {
		formats = formats[:0]
		for i := first; i <= top; i++ {
			formats = append(formats, L.Get(i))
		}
	}
	for i, format := range formats {
		value, err := readOne(L, r, first+i, format)
		if err != nil {
			return failed(L, err)
		}
		L.Push(value)
		if value == lua.LNil {
			break
		}
	}
	return L.GetTop() - top
}

// readOne reads by one format; nil at the end of the file.
func readOne(L *lua.LState, r *bufio.Reader, arg int, format lua.LValue) (lua.LValue, error) {
	switch f := format.(type) {
	case lua.LNumber:
		if f < 0 || f != f {
			L.ArgError(arg, "a number of bytes expected")
		}
		return readBytes(L, r, uint64(min(f, 1<<62)))
	case lua.LString:
		letter := strings.TrimPrefix(string(f), "*") // Lua ignores the remaining characters
		switch letter[:min(len(letter), 1)] {
		case "a":
			all, err := readBytes(L, r, 1<<62)
			if all == lua.LNil {
				all = lua.LString("")
			}
			return all, err
		case "l":
			return readLine(L, r)
		case "n":
			return readNumber(L, r)
		}
	}
	L.ArgError(arg, fmt.Sprintf("invalid format %v", format))
	return nil, nil
}

// readBytes reads up to n bytes; nil if there are none. For 0 bytes it tests for the end of the file.
func readBytes(L *lua.LState, r *bufio.Reader, n uint64) (lua.LValue, error) {
	if _, err := r.Peek(1); err != nil {
		return lua.LNil, unlessEnd(err)
	}
	var text []byte
	for uint64(len(text)) < n {
		if len(text) == cap(text) {
			text = roomier(L, text, n)
		}
		k, err := r.Read(text[len(text):cap(text)])
		text = text[:len(text)+k]
		if err != nil {
			if err = unlessEnd(err); err != nil {
				return nil, err
			}
			break
		}
	}
	Reserve(L, uint64(len(text)))
	return lua.LString(text), nil
}

// roomier returns text with a larger capacity, at most n bytes and within the limits.
func roomier(L *lua.LState, text []byte, n uint64) []byte {
	size := min(max(2*uint64(cap(text)), readPiece), n)
	Reserve(L, size)
	return append(make([]byte, 0, size), text...)
}

// readLine reads a line without the newline; nil at the end of the file.
func readLine(L *lua.LState, r *bufio.Reader) (lua.LValue, error) {
	var text []byte
	for {
		piece, err := r.ReadSlice('\n')
		if len(text)+len(piece) > cap(text) {
			Reserve(L, uint64(len(text)+len(piece)))
			text = slices.Grow(text, len(piece))
		}
		text = append(text, piece...)
		switch {
		case err == nil:
			return lua.LString(text[:len(text)-1]), nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(text) > 0:
			return lua.LString(text), nil
		default:
			return lua.LNil, unlessEnd(err)
		}
	}
}

func unlessEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// lines pushes an iterator over a file's lines; closes: it closes the file after the last line.
func lines(L *lua.LState, file lua.LValue, closes bool) int {
	fileOf(L, file)
	L.Push(L.NewFunction(func(L *lua.LState) int {
		r := fileOf(L, file).reader()
		if r == nil {
			L.RaiseError("the file is open for writing only")
		}
		line, err := readLine(L, r)
		if err != nil {
			L.RaiseError("%s", errorText(err))
		}
		if line == lua.LNil && closes {
			L.Push(L.GetField(file, "close"))
			L.Push(file)
			L.Call(1, 0)
		}
		L.Push(line)
		return 1
	}))
	return 1
}
