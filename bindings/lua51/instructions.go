package lua51

import (
	"slices"

	lua "github.com/yuin/gopher-lua"
)

// What the running line does with a value is decoded from the compiled instructions (layout: top of gopher-lua's opcode.go).

// IndexedName returns the expression that the running line indexes by key; "" if it has no name or there are several.
func IndexedName(L *lua.LState, key lua.LValue) string {
	frame, ok := L.GetStack(1)
	if !ok {
		return ""
	}
	fn, err := L.GetInfo("fl", frame, lua.LNil)
	f, ok := fn.(*lua.LFunction)
	if err != nil || !ok || f.IsG {
		return ""
	}
	var names []string
	for pc, line := range f.Proto.DbgSourcePositions {
		if line == frame.CurrentLine && keyOf(f.Proto, pc) == key {
			names = append(names, registerName(f.Proto, pc, code(f.Proto.Code[pc]).indexed()))
		}
	}
	if names = slices.Compact(names); len(names) != 1 {
		return ""
	}
	return names[0]
}

// code is one instruction of gopher-lua: 6 bits of operation, 8 of A, 9 of C, 9 of B.
type code uint32

func (in code) op() int { return int(in >> 26) }
func (in code) a() int  { return int(in>>18) & 0xff }
func (in code) b() int  { return int(in) & 0x1ff }
func (in code) c() int  { return int(in>>9) & 0x1ff }
func (in code) bx() int { return int(in) & 0x3ffff }

// indexed returns the register that a table access indexes.
func (in code) indexed() int {
	if in.op() == lua.OP_SETTABLE || in.op() == lua.OP_SETTABLEKS {
		return in.a()
	}
	return in.b()
}

// keyOf returns the constant key of the table access at pc; nil for other instructions.
func keyOf(p *lua.FunctionProto, pc int) lua.LValue {
	const constant = 1 << 8 // bit set: the operand is a constant, not a register
	in, k := code(p.Code[pc]), 0
	switch in.op() {
	case lua.OP_GETTABLE, lua.OP_GETTABLEKS, lua.OP_SELF:
		k = in.c()
	case lua.OP_SETTABLE, lua.OP_SETTABLEKS:
		k = in.b()
	default:
		return nil
	}
	if k&constant != 0 {
		return p.Constants[k&^constant]
	}
	if load := code(p.Code[max(pc-1, 0)]); load.op() == lua.OP_LOADK && load.a() == k { // key of a set, loaded beforehand
		return p.Constants[load.bx()]
	}
	return nil
}

// registerName returns the expression held by a register before pc: a local, an upvalue, a global, or a field of one.
func registerName(p *lua.FunctionProto, pc, reg int) string {
	if name := localName(p, pc, reg); name != "" {
		return name
	}
	for pc--; pc >= 0; pc-- {
		in := code(p.Code[pc])
		switch {
		case in.op() == lua.OP_JMP || in.op() == lua.OP_CALL && in.a() <= reg:
			return ""
		case in.a() != reg:
			continue
		}
		switch in.op() {
		case lua.OP_GETGLOBAL:
			return p.Constants[in.bx()].String()
		case lua.OP_GETUPVAL:
			return p.DbgUpvalues[in.b()]
		case lua.OP_MOVE:
			return localName(p, pc, in.b())
		case lua.OP_GETTABLE, lua.OP_GETTABLEKS:
			key, of := keyOf(p, pc), registerName(p, pc, in.b())
			if name, ok := key.(lua.LString); ok && of != "" {
				return of + "." + string(name)
			}
		}
		return ""
	}
	return ""
}

// localName returns the local variable in a register at pc: live locals occupy registers in declaration order.
func localName(p *lua.FunctionProto, pc, reg int) string {
	for _, l := range p.DbgLocals {
		if l.StartPc > pc {
			break
		}
		if pc >= l.EndPc {
			continue
		}
		if reg == 0 {
			return l.Name
		}
		reg--
	}
	return ""
}
