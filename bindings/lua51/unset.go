package lua51

import (
	"slices"

	lua "github.com/yuin/gopher-lua"
)

// A global that was never set reads as nil if the script may intend that: it tests the value for nil, or sets the global somewhere. Any other
// read is a mistake and raises. How the value is used is decoded from the caller's instructions.

// NoteGlobals records the globals that a compiled chunk sets, for later reads in the state.
func NoteGlobals(L *lua.LState, p *lua.FunctionProto) {
	set := SetSomewhere(L)
	for _, in := range p.Code {
		if code(in).op() == lua.OP_SETGLOBAL {
			set.RawSet(p.Constants[code(in).bx()], lua.LTrue)
		}
	}
	for _, inner := range p.FunctionPrototypes {
		NoteGlobals(L, inner)
	}
}

// SetSomewhere returns the set of globals that some chunk of the state sets.
func SetSomewhere(L *lua.LState) *lua.LTable {
	const key = "globals that chunks set"
	t, ok := L.G.Registry.RawGetString(key).(*lua.LTable)
	if !ok {
		t = L.NewTable()
		L.G.Registry.RawSetString(key, t)
	}
	return t
}

// Use classifies how a value that was read is used.
type Use int

const (
	Taken    Use = iota // any other use
	Tested              // tested for nil
	Computed            // operand, for example of arithmetic
)

// UseOf returns how the running line uses a field or global that it reads; Tested takes precedence if it reads it several times.
func UseOf(L *lua.LState, name lua.LValue) Use {
	for level := 1; ; level++ {
		frame, ok := L.GetStack(level)
		if !ok {
			return Taken
		}
		fn, err := L.GetInfo("fl", frame, lua.LNil)
		f, ok := fn.(*lua.LFunction)
		if err != nil || !ok {
			return Taken
		}
		if f.IsG { // environment of the prompt
			continue
		}
		found := Taken
		for pc, line := range f.Proto.DbgSourcePositions {
			if line != frame.CurrentLine || !reads(f.Proto, pc, name) {
				continue
			}
			if found = max(found, useAt(f.Proto, pc)); useAt(f.Proto, pc) == Tested {
				return Tested
			}
		}
		return found
	}
}

// reads reports whether the instruction at pc reads the global or field of that name.
func reads(p *lua.FunctionProto, pc int, name lua.LValue) bool {
	switch in := code(p.Code[pc]); in.op() {
	case lua.OP_GETGLOBAL:
		return p.Constants[in.bx()] == name
	case lua.OP_GETTABLE, lua.OP_GETTABLEKS:
		return keyOf(p, pc) == name
	}
	return false
}

// useAt returns how the instructions after pc use the register that pc writes.
func useAt(p *lua.FunctionProto, pc int) Use {
	at := func(pc int) code {
		if pc < 0 || pc >= len(p.Code) {
			return code(lua.OP_NOP << 26)
		}
		return code(p.Code[pc])
	}
	reg, before, next := at(pc).a(), at(pc-1), at(pc+1)
	isNil := func(in code, of int) bool { return in.op() == lua.OP_LOADNIL && in.a() == of }
	other := func(in code) int { // the operand other than reg; -1: neither is reg
		switch reg {
		case in.b():
			return in.c()
		case in.c():
			return in.b()
		}
		return -1
	}
	switch op := next.op(); {
	case op == lua.OP_TEST && next.a() == reg, op == lua.OP_TESTSET && next.b() == reg, op == lua.OP_NOT && next.b() == reg,
		op == lua.OP_LOADNIL && at(pc+2).op() == lua.OP_EQ && isNil(next, other(at(pc+2))), // x == nil
		op == lua.OP_EQ && isNil(before, other(next)):                                      // nil == x
		return Tested
	case op == lua.OP_CALL && next.a() == reg-1 && next.b() == 2 && before.op() == lua.OP_GETGLOBAL && p.Constants[before.bx()] == lua.LString("type"):
		return Tested
	case slices.Contains(binaryCodes, op) && other(next) >= 0, slices.Contains(unaryCodes, op) && next.b() == reg:
		return Computed
	}
	return Taken
}

var (
	binaryCodes = []int{lua.OP_ADD, lua.OP_SUB, lua.OP_MUL, lua.OP_DIV, lua.OP_MOD, lua.OP_POW, lua.OP_CONCAT, lua.OP_LT, lua.OP_LE}
	unaryCodes  = []int{lua.OP_UNM, lua.OP_LEN}
)
