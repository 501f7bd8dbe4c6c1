package bindings

import (
	"math"
	"math/rand/v2"

	lua "github.com/yuin/gopher-lua"
)

// random is a state's own generator: every task draws the same numbers in each run until the script seeds it.
type random struct{ r *rand.Rand }

func (g *random) seed(n uint64) { g.r = rand.New(rand.NewPCG(n, 0x9e3779b97f4a7c15)) }

// mathRandom implements math.random: a number in [0, 1), in 1..m, or in m..n.
func mathRandom(c *call) int {
	c.AtMost(2)
	lo, hi := int64(1), int64(0)
	switch c.Count() {
	case 0:
		return c.Push(lua.LNumber(c.rt.random.r.Float64()))
	case 1:
		hi = c.truncated(1, "upper limit")
	case 2:
		lo, hi = c.truncated(1, "lower limit"), c.truncated(2, "upper limit")
	}
	if lo > hi {
		c.ArgError(c.Count(), "interval is empty")
	}
	return c.Push(lua.LNumber(lo + c.rt.random.r.Int64N(hi-lo+1)))
}

func mathRandomSeed(c *call) int {
	c.rt.random.seed(math.Float64bits(c.formatNumber(1)))
	return 0
}
