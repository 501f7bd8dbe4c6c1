package lua51

import (
	"errors"
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// maxList is the limit of list indices; a larger number is stored as a hash key. gopher-lua fills a list up to the largest index: with its own
// limit, 2^26, a packet number as a key takes gigabytes.
const maxList = 1 << 24

func init() { lua.MaxArrayIndex = maxList }

// RepairNumbers installs Lua 5.1's math.huge, tonumber and arithmetic on strings: gopher-lua's math.huge is finite, and it rejects "1e3" and
// reads "010" as octal.
func RepairNumbers(L *lua.LState) {
	L.SetField(L.GetGlobal(lua.MathLibName), "huge", lua.LNumber(math.Inf(1)))
	L.SetGlobal("tonumber", L.NewFunction(luaToNumber))
	meta := L.NewTable()
	meta.RawSetString("__index", L.GetGlobal(lua.StringLibName))
	for event, compute := range arithmetic {
		meta.RawSetString(event, L.NewFunction(func(L *lua.LState) int { return textArithmetic(L, event, compute) }))
	}
	L.SetMetatable(lua.LString(""), meta)
}

// luaToNumber implements tonumber.
func luaToNumber(L *lua.LState) int {
	value := L.CheckAny(1)
	base := L.OptInt(2, 10)
	var v float64
	var ok bool
	if base == 10 {
		v, ok = ToNumber(value)
	} else {
		text := L.CheckString(1)
		if base < 2 || base > 36 {
			L.ArgError(2, "base out of range")
		}
		v, ok = readDigits(text, base)
	}
	if !ok {
		L.Push(lua.LNil)
		return 1
	}
	L.Push(lua.LNumber(v))
	return 1
}

// readDigits parses an integer in a base like C's strtoul, with only space after it. A minus sign negates the value, where C wraps modulo 2^64.
func readDigits(s string, base int) (float64, bool) {
	s = strings.Trim(s, " \t\n\v\f\r")
	digits, negative := strings.CutPrefix(s, "-")
	if !negative {
		digits = strings.TrimPrefix(s, "+")
	}
	if base == 16 && len(digits) > 2 && (digits[:2] == "0x" || digits[:2] == "0X") {
		digits = digits[2:]
	}
	v, err := strconv.ParseUint(digits, base, 64) // the maximum on overflow
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, false
	}
	if negative {
		return -float64(v), true
	}
	return float64(v), true
}

// arithmetic maps events to operations on two numbers.
var arithmetic = map[string]func(a, b float64) float64{
	"__add": func(a, b float64) float64 { return a + b },
	"__sub": func(a, b float64) float64 { return a - b },
	"__mul": func(a, b float64) float64 { return a * b },
	"__div": func(a, b float64) float64 { return a / b },
	"__mod": modulo,
	"__pow": math.Pow,
	"__unm": func(a, _ float64) float64 { return -a },
}

// modulo returns a result with the sign of b.
func modulo(a, b float64) float64 {
	v := math.Mod(a, b)
	if b > 0 && v < 0 || b < 0 && v > 0 {
		v += b
	}
	return v
}

// textArithmetic performs an operation with a string operand: on numbers if both operands are convertible, otherwise by the other operand's
// metamethod.
func textArithmetic(L *lua.LState, event string, compute func(a, b float64) float64) int {
	a, aok := ToNumber(L.Get(1))
	b, bok := ToNumber(L.Get(2))
	if aok && (bok || event == "__unm") {
		L.Push(lua.LNumber(compute(a, b)))
		return 1
	}
	for n := 1; n <= 2; n++ {
		if v := L.Get(n); v.Type() != lua.LTString {
			if f := L.GetMetaField(v, event); f != lua.LNil {
				L.Insert(f, 1)
				L.Call(2, 1)
				return 1
			}
		}
	}
	wrong := L.Get(1)
	if aok {
		wrong = L.Get(2)
	}
	L.RaiseError("attempt to perform arithmetic on a %s value", wrong.Type())
	return 0
}
