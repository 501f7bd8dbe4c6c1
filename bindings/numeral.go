package bindings

import (
	"math"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/lua51"
	"github.com/daqiri/daqiri-run/bindings/row"
)

// truncated returns argument n without its fraction, as Lua's own functions convert integers.
func (c *call) truncated(n int, what string) int64 {
	f, ok := lua51.ToNumber(c.Arg(n))
	if !ok {
		c.Wanted(n, what)
	}
	v, err := row.WholeNumber(lua.LNumber(math.Trunc(f)), -row.MaxInt, row.MaxInt)
	if err != nil {
		c.ArgError(n, "%s: %v", what, err)
	}
	return v
}
