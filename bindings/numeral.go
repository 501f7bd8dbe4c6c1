package bindings

import (
	"math"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/lua51"
)

// truncated returns argument n without its fraction, as Lua's own functions convert integers.
func (c *call) truncated(n int, what string) int64 {
	f, ok := lua51.ToNumber(c.arg(n))
	if !ok {
		c.wanted(n, what)
	}
	v, err := wholeNumber(lua.LNumber(math.Trunc(f)), -maxInt, maxInt)
	if err != nil {
		c.argError(n, "%s: %v", what, err)
	}
	return v
}
