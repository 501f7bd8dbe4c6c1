package bindings

import (
	"fmt"
	"math"
	"math/bits"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/row"
)

// bitModule operates on 32 bits and returns signed numbers like LuaJIT's bit; with a u64 operand it operates on 64 bits.
var bitModule = []entry{
	{"arshift", bitShift(func(v uint64, n, _ int) uint64 { return uint64(int64(v) >> n) }), `- v integer | u64: what is shifted
		- n integer, bits: modulo the width
		-> integer | u64
		Shifts right and keeps the sign.
		> print(bit.arshift(-8, 1))    -- -4`},
	{"band", bitFold(func(a, b uint64) uint64 { return a & b }), `- v integer | u64: the first operand
		- ... integer | u64: further ones
		-> integer | u64
		And, of all operands.
		> print(bit.band(0xff, 0x0f))    -- 15`},
	{"bnot", bitUnary(func(v uint64, _ int) uint64 { return ^v }), `- v integer | u64: what is inverted
		-> integer | u64
		Not.
		> print(bit.bnot(0))    -- -1`},
	{"bor", bitFold(func(a, b uint64) uint64 { return a | b }), `- v integer | u64: the first operand
		- ... integer | u64: further ones
		-> integer | u64
		Or, of all operands.
		> print(bit.bor(1, 2, 4))    -- 7`},
	{"bswap", bitUnary(func(v uint64, width int) uint64 { return bits.ReverseBytes64(v) >> (64 - width) }), `- v integer | u64: four bytes, of a u64 eight
		-> integer | u64
		Reverses the bytes.
		> print(bit.tohex(bit.bswap(0x12345678)))    -- 78563412`},
	{"bxor", bitFold(func(a, b uint64) uint64 { return a ^ b }), `- v integer | u64: the first operand
		- ... integer | u64: further ones
		-> integer | u64
		Exclusive or, of all operands.
		> print(bit.bxor(5, 1))    -- 4`},
	{"lshift", bitShift(func(v uint64, n, _ int) uint64 { return v << n }), `- v integer | u64: what is shifted
		- n integer, bits: modulo the width
		-> integer | u64
		Shifts left.
		> print(bit.lshift(1, 4))    -- 16`},
	{"rol", bitShift(rotate), `- v integer | u64: what is rotated
		- n integer, bits: modulo the width
		-> integer | u64
		Rotates left.
		> print(bit.tohex(bit.rol(0x12345678, 8)))    -- 34567812`},
	{"ror", bitShift(func(v uint64, n, width int) uint64 { return rotate(v, width-n, width) }), `- v integer | u64: what is rotated
		- n integer, bits: modulo the width
		-> integer | u64
		Rotates right.
		> print(bit.tohex(bit.ror(0x12345678, 8)))    -- 78123456`},
	{"rshift", bitShift(func(v uint64, n, width int) uint64 { return v << (64 - width) >> (64 - width) >> n }), `- v integer | u64: what is shifted
		- n integer, bits: modulo the width
		-> integer | u64
		Shifts right and fills with zeros.
		> print(bit.rshift(-1, 28))    -- 15`},
	{"tobit", bitUnary(func(v uint64, _ int) uint64 { return v }), `- v integer | u64: any whole number
		-> integer | u64
		The number modulo 2^32, with a sign; a u64 stays as it is.
		> print(bit.tobit(0xffffffff))    -- -1`},
	{"tohex", bitToHex, `- v integer | u64: what is shown
		-> string: 8 digits, of a u64 16
		Hexadecimal digits.
		> print(bit.tohex(255))    -- 000000ff`},
}

func rotate(v uint64, n, width int) uint64 {
	if width == 64 {
		return bits.RotateLeft64(v, n)
	}
	return uint64(bits.RotateLeft32(uint32(v), n))
}

// bitOperand reads argument n as a number modulo 2^32, sign-extended, or as a u64.
func (c *call) bitOperand(n int) (v uint64, width int) {
	if u, ok := row.Userdata[row.U64](c.Arg(n)); ok {
		return uint64(u), 64
	}
	f, ok := c.Arg(n).(lua.LNumber)
	if !ok || math.IsNaN(float64(f)) || math.IsInf(float64(f), 0) {
		c.Wanted(n, "number or u64")
	}
	m := math.Mod(math.RoundToEven(float64(f)), 1<<32)
	if m < 0 {
		m += 1 << 32
	}
	return uint64(int64(int32(uint32(m)))), 32
}

func (c *call) pushBits(v uint64, width int) int {
	if width == 64 {
		return c.Push(c.rt.newU64(v))
	}
	return c.Push(lua.LNumber(int32(uint32(v))))
}

func bitFold(op func(a, b uint64) uint64) function {
	return func(c *call) int {
		v, width := c.bitOperand(1)
		for n := 2; n <= c.Count(); n++ {
			b, w := c.bitOperand(n)
			v, width = op(v, b), max(w, width)
		}
		return c.pushBits(v, width)
	}
}

func bitUnary(op func(v uint64, width int) uint64) function {
	return func(c *call) int {
		v, width := c.bitOperand(1)
		return c.pushBits(op(v, width), width)
	}
}

// bitShift masks the shift count to the operand width, like the processor.
func bitShift(op func(v uint64, n, width int) uint64) function {
	return func(c *call) int {
		v, width := c.bitOperand(1)
		n, _ := c.bitOperand(2)
		return c.pushBits(op(v, int(n&uint64(width-1)), width), width)
	}
}

func bitToHex(c *call) int {
	c.AtMost(1)
	v, width := c.bitOperand(1)
	return c.Push(lua.LString(fmt.Sprintf("%0*x", width/4, v<<(64-width)>>(64-width))))
}
