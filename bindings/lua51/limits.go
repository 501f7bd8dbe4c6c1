package lua51

import (
	"fmt"
	"sync/atomic"
	_ "unsafe" // for go:linkname

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/runtime/memory"
)

// Limits on memory that a script allocates. A single large allocation is checked beforehand, because Go ends a process that is out of memory;
// gradual growth is detected by the monitor in runtime/memory, which raises between two instructions.

// Reserve raises unless n bytes may be allocated for a string or a temporary buffer.
func Reserve(L *lua.LState, n uint64) {
	if n < countedFrom {
		return
	}
	if n >= reserveFrom {
		large.Store(true)
	}
	if err := available(L, n); err != nil {
		L.Error(lua.LString(err.Error()), Position(L))
	}
}

// available returns an error if a string of n bytes must not be created.
func available(L *lua.LState, n uint64) error {
	if n > memory.MaxString {
		return fmt.Errorf("string too long: %s (at most %s)", memory.Size(n), memory.Size(memory.MaxString))
	}
	return Room(L, n)
}

// Room returns an error if n bytes must not be allocated temporarily. Every thread of a state with a Runtime has a guard.
func Room(L *lua.LState, n uint64) error {
	if g, ok := L.Context().(*memory.Guard); ok {
		return g.Reserve(n)
	}
	return nil
}

// countedFrom is the minimum size of strings that Reserve counts: the guard checks the limit after each MiB of them, as the monitor may be late
// on a busy machine.
const countedFrom = 4 << 10

// reserveFrom is the minimum result size of measured concatenations. A concatenation of shorter strings is at most 255 times as long.
const reserveFrom = 1 << 20

// large is set once any task has created a string of at least reserveFrom bytes; from then on every concatenation is measured first.
var large atomic.Bool

// growing is a string builder bounded by the memory limits.
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
	Reserve(b.L, want)
	size := max(want, min(2*uint64(cap(b.b)), memory.MaxString))
	if size >= reserveFrom && Room(b.L, size) != nil {
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

// value returns the string as a Lua value.
func (b *growing) value() lua.LString {
	Reserve(b.L, uint64(len(b.b)))
	return lua.LString(b.b)
}

// opcodes is gopher-lua's instruction table. String operators do not call replaceable functions, and gopher-lua does not bound what `a .. b`
// allocates at once.
//
//go:linkname opcodes github.com/yuin/gopher-lua.jumpTable
var opcodes [lua.OP_NOP + 1]func(*lua.LState, uint32, *frame) int

// frame stands in for gopher-lua's unexported call frame type.
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
