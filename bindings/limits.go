package bindings

import (
	"fmt"
	"sync/atomic"
	_ "unsafe" // for go:linkname

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/runtime/memory"
)

// Limits that hold wherever a script makes something that may be large. What a single call takes is asked for before it
// is taken, since Go ends a process that finds no memory; what grows step by step is seen by the monitor in
// runtime/memory, which raises between two instructions.

// reserve raises unless a string of n bytes may be made, or as much memory taken for a moment.
func reserve(L *lua.LState, n uint64) {
	if n < countedFrom {
		return
	}
	if n >= reserveFrom {
		large.Store(true)
	}
	if err := available(L, n); err != nil {
		L.Error(lua.LString(err.Error()), position(L))
	}
}

// available says why a string of n bytes can't be made.
func available(L *lua.LState, n uint64) error {
	if n > memory.MaxString {
		return fmt.Errorf("string too long: %s (at most %s)", memory.Size(n), memory.Size(memory.MaxString))
	}
	return room(L, n)
}

// room says why so much memory can't be taken for a moment. Every thread of a state that has a Runtime has a guard.
func room(L *lua.LState, n uint64) error {
	if g, ok := L.Context().(*memory.Guard); ok {
		return g.Reserve(n)
	}
	return nil
}

// Reserve raises unless a string of n bytes may be made, for functions of the host. L has a Runtime.
func Reserve(L *lua.LState, n int) { reserve(L, uint64(n)) }

// countedFrom is the size from which reserve counts strings: the guard looks at the limit once a MiB of them was made, as the monitor can be
// late on a busy machine.
const countedFrom = 4 << 10

// reserveFrom is the size from which concatenations are measured. One of strings that are shorter is at most 255 times as long.
const reserveFrom = 1 << 20

// large says that some task has made a string of reserveFrom bytes or more: from then on all concatenations are measured
// before they are made.
var large atomic.Bool

// growing is a string that grows as far as it may.
type growing struct {
	L *lua.LState
	b []byte
}

func (b *growing) room(n int) {
	if len(b.b)+n > cap(b.b) {
		b.grow(n)
	}
}

func (b *growing) grow(n int) {
	want := uint64(len(b.b) + n)
	reserve(b.L, want)
	size := max(want, min(2*uint64(cap(b.b)), memory.MaxString))
	if size >= reserveFrom && room(b.L, size) != nil {
		size = want
	}
	b.b = append(make([]byte, 0, size), b.b...)
}

func (b *growing) str(s string) {
	b.room(len(s))
	b.b = append(b.b, s...)
}

func (b *growing) byte(c byte) {
	b.room(1)
	b.b = append(b.b, c)
}

// value is the string, for Lua.
func (b *growing) value() lua.LString {
	reserve(b.L, uint64(len(b.b)))
	return lua.LString(b.b)
}

// opcodes is gopher-lua's table of instructions. An operator on strings never leaves it for a function that could be
// replaced, and nothing else bounds what `a .. b` allocates at once.
//
//go:linkname opcodes github.com/yuin/gopher-lua.jumpTable
var opcodes [lua.OP_NOP + 1]func(*lua.LState, uint32, *frame) int

// frame stands for gopher-lua's type of call frames, which has no exported name.
type frame struct{}

func init() {
	concat := opcodes[lua.OP_CONCAT]
	opcodes[lua.OP_CONCAT] = func(L *lua.LState, inst uint32, base *frame) int {
		if !large.Load() {
			result := concat(L, inst, base)
			if s, ok := L.Get(int(inst>>18&0xff) + 1).(lua.LString); ok && len(s) >= reserveFrom {
				large.Store(true)
			}
			return result
		}
		n := uint64(0)
		for r, last := int(inst&0x1ff), int(inst>>9&0x1ff); r <= last; r++ {
			if s, ok := L.Get(r + 1).(lua.LString); ok {
				n += uint64(len(s))
			}
		}
		if n >= reserveFrom {
			if err := available(L, n); err != nil {
				L.RaiseError("%s", err.Error())
			}
		}
		return concat(L, inst, base)
	}
}
