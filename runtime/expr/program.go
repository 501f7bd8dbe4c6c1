package expr

// Op is an opcode of a packet program. Values and semantics are those of enum dq_opcode in native/packet/dq_ops.h.
type Op uint8

// The opcodes. Binary operators pop b, then a, and push a∘b.
const (
	OpPush Op = 1 + iota
	OpLoad
	OpAdd
	OpSub
	OpMul
	OpDivS
	OpDivU
	OpModS
	OpModU
	OpAnd
	OpOr
	OpXor
	OpShl
	OpShr
	OpSar
	OpNeg
	OpInv
	OpEq
	OpNe
	OpLtS
	OpLeS
	OpGtS
	OpGeS
	OpLtU
	OpLeU
	OpGtU
	OpGeU
	OpNot
	OpJz
	OpJnz
	OpRet
	OpLoadAt
	OpFind
	OpKeep
	OpZero
	OpPick
	OpOnes
	opCount
)

// Limits of a packet program.
const (
	MaxInsns = 1024
	MaxStack = 32
)

// Insn is an instruction, with the layout of dq_insn.
type Insn struct {
	Op  Op
	A   uint8
	B   uint16
	C   uint32
	Imm uint64
}

// Program is a packet program. The native engine verifies it again before running it.
type Program []Insn

// Base of a field's offset (enum dq_base).
const (
	BaseStart uint8 = iota
	BaseL3
	BaseL4
	BasePayload
	BaseMeta
)

// Flags of a field (enum dq_field_flags).
const (
	FieldLittleEndian uint8 = 1 << iota
	FieldSigned
)

// Field is a field of a packet, with the layout of dq_field.
type Field struct {
	Base      uint8
	Meta      uint8
	Flags     uint8
	Need      uint8
	BitWidth  uint16
	Reserved  uint16
	BitOffset uint32
}

// Resolver resolves the field names of packet conditions.
type Resolver interface {
	Field(name string) (Field, bool)
	// Names returns all field names, for suggestions.
	Names() []string
}

func (f Field) load() Insn {
	imm := uint64(f.Meta) | uint64(f.Flags)<<8 | uint64(f.Need)<<16
	return Insn{Op: OpLoad, A: f.Base, B: f.BitWidth, C: f.BitOffset, Imm: imm}
}

// unsigned64 reports whether the field's values may exceed a signed 64-bit integer.
func (f Field) unsigned64() bool { return f.BitWidth == 64 && f.Flags&FieldSigned == 0 }
