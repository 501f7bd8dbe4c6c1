package bindings

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/row"
)

// u64Type is hot: it has a hand-written metatable.
var u64Type = &typeDef{
	name: "u64",
	self: "u",
	doc: `a u64
		A 64-bit unsigned integer. Arithmetic with u64s and numbers wraps, and '/' rounds down; comparison is with u64s; '..', 'tostring', 'string.format'
		and JSON take it.`,
	methods: []entry{
		{"eq", u64Compare(func(a, b row.U64) bool { return a == b }), `- v u64 | integer: the other one
			-> boolean
			Whether it is equal to the other one. '==' compares u64s alone.
			> print(u:eq(5))`},
		{"lt", u64Compare(func(a, b row.U64) bool { return a < b }), `- v u64 | integer: the other one
			-> boolean
			Whether it is less than the other one.
			> print(u:lt(5))`},
		{"le", u64Compare(func(a, b row.U64) bool { return a <= b }), `- v u64 | integer: the other one
			-> boolean
			Whether it is less than the other one or equal.
			> print(u:le(5))`},
		{"key", u64Key, `-> string: decimal
			Text that can be the key of a table: two u64s of the same value are two keys.
			> local seen = {}
			> seen[u:key()] = true`},
		{"number", u64Number, `-> integer
			The value as a number; raises above 2^53, where a number would lose bits.
			> print(u:number())`},
	},
	meta: []entry{
		{"__add", u64Arith(func(a, b row.U64) (row.U64, error) { return a + b, nil }), `- other u64 | integer: modulo 2^64
			-> u64`},
		{"__sub", u64Arith(func(a, b row.U64) (row.U64, error) { return a - b, nil }), `- other u64 | integer: modulo 2^64
			-> u64`},
		{"__mul", u64Arith(func(a, b row.U64) (row.U64, error) { return a * b, nil }), `- other u64 | integer: modulo 2^64
			-> u64`},
		{"__div", u64Arith(func(a, b row.U64) (row.U64, error) {
			if b == 0 {
				return 0, errors.New("division by zero")
			}
			return a / b, nil
		}), `- other u64 | integer: rounds down; raises at 0
			-> u64`},
		{"__mod", u64Arith(func(a, b row.U64) (row.U64, error) {
			if b == 0 {
				return 0, errors.New("division by zero")
			}
			return a % b, nil
		}), `- other u64 | integer: raises at 0
			-> u64`},
		{name: "__eq", fn: u64Compare(func(a, b row.U64) bool { return a == b })},
		{name: "__lt", fn: u64Compare(func(a, b row.U64) bool { return a < b })},
		{name: "__le", fn: u64Compare(func(a, b row.U64) bool { return a <= b })},
		{name: "__concat", fn: u64Concat},
		{name: "__tostring", fn: u64Key},
	},
}

// newU64 returns v as a Lua u64.
func (rt *Runtime) newU64(v uint64) lua.LValue { return rt.newObject(row.U64(v)) }

// integer returns v as a number, or as a u64 if a number would be inexact.
func (rt *Runtime) integer(v uint64) lua.LValue {
	if v <= row.MaxInt {
		return lua.LNumber(v)
	}
	return rt.newU64(v)
}

// moduleU64 implements daqiri.u64.
func moduleU64(c *call) int {
	v, err := toU64(c.Arg(1))
	if err != nil {
		c.ArgError(1, "%v", err)
	}
	return c.Push(c.rt.newU64(uint64(v)))
}

// toU64 converts a u64, an integer or text (decimal, 0x, 0o, 0b).
func toU64(v lua.LValue) (row.U64, error) {
	if s, ok := v.(lua.LString); ok {
		n, err := strconv.ParseUint(strings.TrimSpace(string(s)), 0, 64)
		if err != nil {
			return 0, fmt.Errorf("%q is not a whole number in 0..2^64-1", row.Clip(string(s), 40))
		}
		return row.U64(n), nil
	}
	n, err := row.Unsigned(v, 64)
	return row.U64(n), err
}

// operands reads the operands of a metamethod or method: one is a u64, the other may be a number.
func (c *call) operands() (a, b row.U64) {
	a, err := unsignedOperand(c.L.Get(1))
	if err == nil {
		b, err = unsignedOperand(c.L.Get(2))
	}
	if err != nil {
		c.Raise("u64: %v", err)
	}
	return a, b
}

func unsignedOperand(v lua.LValue) (row.U64, error) {
	n, err := row.Unsigned(v, 64)
	return row.U64(n), err
}

func u64Arith(op func(a, b row.U64) (row.U64, error)) function {
	return func(c *call) int {
		v, err := op(c.operands())
		if err != nil {
			c.Raise("u64: %v", err)
		}
		return c.Push(c.rt.newU64(uint64(v)))
	}
}

func u64Compare(op func(a, b row.U64) bool) function {
	return func(c *call) int { return c.Push(lua.LBool(op(c.operands()))) }
}

func u64Key(c *call) int {
	return c.Push(lua.LString(strconv.FormatUint(uint64(receiver[row.U64](c, "u64")), 10)))
}

func u64Number(c *call) int {
	v := receiver[row.U64](c, "u64")
	if v > row.MaxInt {
		c.Raise("u64: %d is above 2^53: a number would lose bits", uint64(v))
	}
	return c.Push(lua.LNumber(v))
}

func u64Concat(c *call) int {
	return c.Push(lua.LString(c.rt.text(c.L, c.L.Get(1)) + c.rt.text(c.L, c.L.Get(2))))
}
