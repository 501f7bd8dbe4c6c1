package bindings

import (
	"fmt"
	"math"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/runtime/suggest"
)

// maxInt is the largest magnitude below which a Lua number represents every integer exactly.
const maxInt = 1 << 53

// Call is a call of a function from Lua. Argument numbers start at 1 and exclude self. Methods that check an argument raise if it is wrong.
type Call struct {
	L    *lua.LState
	name string
	self int         // 1 if the first value on the stack is self
	keys *optionKeys // of the function's row
}

// arg returns argument n, or nil if it is absent.
func (c *Call) arg(n int) lua.LValue { return c.L.Get(n + c.self) }

// count returns the number of arguments.
func (c *Call) count() int { return c.L.GetTop() - c.self }

// atMost raises if there are more than n arguments.
func (c *Call) atMost(n int) {
	if c.count() > n {
		c.argError(n+1, "no value expected here")
	}
}

func (c *Call) argError(n int, format string, args ...any) {
	c.raise("bad argument #%d to '%s' (%s)", n, c.name, fmt.Sprintf(format, args...))
}

func (c *Call) wanted(n int, what string) {
	c.argError(n, "%s expected, got %s", what, describe(c.arg(n)))
}

func (c *Call) str(n int, what string) string {
	s, ok := c.arg(n).(lua.LString)
	if !ok {
		c.wanted(n, what)
	}
	return string(s)
}

// text returns argument n as a string; numbers are converted, as in Lua's own functions.
func (c *Call) text(n int, what string) string {
	if v, ok := c.arg(n).(lua.LNumber); ok {
		return v.String()
	}
	return c.str(n, what)
}

func (c *Call) optStr(n int, what, missing string) string {
	if c.arg(n) == lua.LNil {
		return missing
	}
	return c.str(n, what)
}

func (c *Call) number(n int, what string) float64 {
	v, ok := c.arg(n).(lua.LNumber)
	if !ok || math.IsNaN(float64(v)) {
		c.wanted(n, what)
	}
	return float64(v)
}

// whole returns argument n, an integer in lo..hi.
func (c *Call) whole(n int, what string, lo, hi int64) int64 {
	v, err := wholeNumber(c.arg(n), lo, hi)
	if err != nil {
		c.argError(n, "%s: %v", what, err)
	}
	return v
}

// index converts argument n, a position counted from 1, to an index counted from 0.
func (c *Call) index(n int, what string, length int) int {
	if length == 0 {
		c.argError(n, "%s: there is none", what)
	}
	return int(c.whole(n, what, 1, int64(length))) - 1
}

// bits returns argument n, a number or u64 that fits width bits.
func (c *Call) bits(n int, what string, width int) uint64 {
	v, err := unsigned(c.arg(n), width)
	if err != nil {
		c.argError(n, "%s: %v", what, err)
	}
	return v
}

func (c *Call) fn(n int, what string) *lua.LFunction {
	f, ok := c.arg(n).(*lua.LFunction)
	if !ok {
		c.wanted(n, what)
	}
	return f
}

func (c *Call) table(n int, what string) *lua.LTable {
	t, ok := c.arg(n).(*lua.LTable)
	if !ok {
		c.wanted(n, what)
	}
	return t
}

// push pushes v as the only result.
func (c *Call) push(v lua.LValue) int {
	c.L.Push(v)
	return 1
}

// userdata returns the Go value of v if it is a T.
func userdata[T any](v lua.LValue) (T, bool) {
	if ud, ok := v.(*lua.LUserData); ok {
		t, ok := ud.Value.(T)
		return t, ok
	}
	var zero T
	return zero, false
}

// selfOf returns self as a T; what names the type in the error.
func selfOf[T any](c *Call, what string) T {
	t, ok := userdata[T](c.L.Get(1))
	if !ok {
		c.raise("calling '%s' on %s, which is not a %s (write %s:%s with a colon)", c.name,
			describe(c.L.Get(1)), what, what, c.name)
	}
	return t
}

// describe returns the type name of a value for error messages.
func describe(v lua.LValue) string {
	switch v := v.(type) {
	case *lua.LNilType:
		return "no value"
	case *lua.LUserData:
		if n, ok := v.Value.(named); ok {
			return "a " + n.LuaType()
		}
	case lua.LString:
		return fmt.Sprintf("the string %q", clip(string(v), 40))
	case lua.LNumber:
		return "the number " + v.String()
	}
	return "a " + v.Type().String()
}

// named is implemented by the Go value of every userdata of the API.
type named interface{ LuaType() string }

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n] + "…"
}

// wholeNumber converts v to an integer in lo..hi.
func wholeNumber(v lua.LValue, lo, hi int64) (int64, error) {
	f, ok := v.(lua.LNumber)
	switch {
	case !ok:
		return 0, fmt.Errorf("a whole number expected, got %s", describe(v))
	case float64(f) != math.Trunc(float64(f)):
		return 0, fmt.Errorf("%s is not a whole number", f)
	case float64(f) < float64(lo) || float64(f) > float64(hi):
		return 0, fmt.Errorf("%s is outside %d..%d", f, lo, hi)
	}
	return int64(f), nil
}

// u64 is a 64-bit unsigned integer in Lua, for values above a number's precision.
type u64 uint64

// LuaType returns "u64".
func (u64) LuaType() string { return "u64" }

// unsigned converts a number or u64 that fits width bits.
func unsigned(v lua.LValue, width int) (uint64, error) {
	if u, ok := userdata[u64](v); ok {
		if width < 64 && uint64(u)>>width != 0 {
			return 0, fmt.Errorf("%d does not fit into %d bits", uint64(u), width)
		}
		return uint64(u), nil
	}
	hi := int64(maxInt)
	if width < 53 {
		hi = 1<<width - 1
	}
	n, err := wholeNumber(v, 0, hi)
	return uint64(n), err
}

// unknown returns the text of an error about an unknown name, with a suggestion where a known name is close.
func unknown(what, name string, known []string) string {
	text := fmt.Sprintf("unknown %s '%s'", what, name)
	if s := suggest.Nearest(name, known); s != "" {
		text += fmt.Sprintf(" (did you mean '%s'?)", s)
	}
	return text
}
