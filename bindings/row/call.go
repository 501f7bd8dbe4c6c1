package row

import (
	"fmt"
	"math"

	lua "github.com/yuin/gopher-lua"
)

// Call is a call of a function from Lua. Argument numbers start at 1 and exclude self. Methods that check an argument raise if it is wrong.
type Call struct {
	L    *lua.LState
	Name string
	Self int   // 1 if the first value on the stack is self
	Keys *Keys // of the function's row
}

// Arg returns argument n, or nil if it is absent.
func (c *Call) Arg(n int) lua.LValue { return c.L.Get(n + c.Self) }

// Count returns the number of arguments.
func (c *Call) Count() int { return c.L.GetTop() - c.Self }

// AtMost raises if there are more than n arguments.
func (c *Call) AtMost(n int) {
	if c.Count() > n {
		c.ArgError(n+1, "no value expected here")
	}
}

// ArgError raises an error about argument n.
func (c *Call) ArgError(n int, format string, args ...any) {
	c.Raise("bad argument #%d to '%s' (%s)", n, c.Name, fmt.Sprintf(format, args...))
}

// Wanted raises an error: what was expected as argument n, and what it is.
func (c *Call) Wanted(n int, what string) {
	c.ArgError(n, "%s expected, got %s", what, Describe(c.Arg(n)))
}

// Str returns argument n, a string.
func (c *Call) Str(n int, what string) string {
	s, ok := c.Arg(n).(lua.LString)
	if !ok {
		c.Wanted(n, what)
	}
	return string(s)
}

// Text returns argument n as a string; numbers are converted, as in Lua's own functions.
func (c *Call) Text(n int, what string) string {
	if v, ok := c.Arg(n).(lua.LNumber); ok {
		return v.String()
	}
	return c.Str(n, what)
}

// OptionalStr returns argument n, a string, or missing if it is absent.
func (c *Call) OptionalStr(n int, what, missing string) string {
	if c.Arg(n) == lua.LNil {
		return missing
	}
	return c.Str(n, what)
}

// Number returns argument n, a number other than NaN.
func (c *Call) Number(n int, what string) float64 {
	v, ok := c.Arg(n).(lua.LNumber)
	if !ok || math.IsNaN(float64(v)) {
		c.Wanted(n, what)
	}
	return float64(v)
}

// Whole returns argument n, an integer in lo..hi.
func (c *Call) Whole(n int, what string, lo, hi int64) int64 {
	v, err := WholeNumber(c.Arg(n), lo, hi)
	if err != nil {
		c.ArgError(n, "%s: %v", what, err)
	}
	return v
}

// Index converts argument n, a position counted from 1, to an index counted from 0.
func (c *Call) Index(n int, what string, length int) int {
	if length == 0 {
		c.ArgError(n, "%s: there is none", what)
	}
	return int(c.Whole(n, what, 1, int64(length))) - 1
}

// Bits returns argument n, a number or u64 that fits width bits.
func (c *Call) Bits(n int, what string, width int) uint64 {
	v, err := Unsigned(c.Arg(n), width)
	if err != nil {
		c.ArgError(n, "%s: %v", what, err)
	}
	return v
}

// Func returns argument n, a function.
func (c *Call) Func(n int, what string) *lua.LFunction {
	f, ok := c.Arg(n).(*lua.LFunction)
	if !ok {
		c.Wanted(n, what)
	}
	return f
}

// Table returns argument n, a table.
func (c *Call) Table(n int, what string) *lua.LTable {
	t, ok := c.Arg(n).(*lua.LTable)
	if !ok {
		c.Wanted(n, what)
	}
	return t
}

// Push pushes v as the only result.
func (c *Call) Push(v lua.LValue) int {
	c.L.Push(v)
	return 1
}

// SelfOf returns self as a T; what names the type in the error.
func SelfOf[T any](c *Call, what string) T {
	t, ok := Userdata[T](c.L.Get(1))
	if !ok {
		c.Raise("calling '%s' on %s, which is not a %s (write %s:%s with a colon)", c.Name,
			Describe(c.L.Get(1)), what, what, c.Name)
	}
	return t
}
