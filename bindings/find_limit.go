package bindings

import (
	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/row"
)

// mostTrials bounds a search with a precision far below its range.
const mostTrials = 64

// moduleFindLimit implements daqiri.find_limit{low, high, precision, trial}: bisection between a rate that passes and one that fails, as in RFC
// 2544 section 26.1 for throughput.
func moduleFindLimit(c *call) int {
	o := c.options(1)
	for _, key := range []string{"low", "high", "trial"} {
		o.Need(key)
	}
	low, high := float64(o.Rate("low")), float64(o.Rate("high"))
	if low <= 0 || high <= low {
		o.Wrong("high", "it has to be above low, which has to be above 0")
	}
	precision := (high - low) / 100
	if o.Has("precision") {
		precision = float64(o.Rate("precision"))
	}
	if precision <= 0 {
		o.Wrong("precision", "it has to be above 0")
	}
	fn, ok := o.Get("trial").(*lua.LFunction)
	if !ok {
		o.Wrong("trial", "a function(rate) expected, got %s", row.Describe(o.Get("trial")))
	}
	c.canWait()
	trials := c.rt.root.NewTable()
	try := func(rate float64) bool {
		c.L.Push(fn)
		c.L.Push(lua.LNumber(rate))
		c.L.Call(1, 1)
		verdict := c.L.Get(-1)
		c.L.Pop(1)
		if verdict != lua.LTrue && verdict != lua.LFalse && verdict != lua.LString("invalid") {
			o.Wrong("trial", "it returns true, false or \"invalid\", not %s", row.Describe(verdict))
		}
		t := c.rt.root.NewTable()
		t.RawSetString("rate", lua.LNumber(rate))
		t.RawSetString("verdict", verdict)
		trials.Append(t)
		return verdict == lua.LTrue
	}
	limit, found := high, try(high)
	if !found {
		if limit, found = low, try(low); found {
			for high-limit > precision && trials.Len() < mostTrials {
				if middle := limit + (high-limit)/2; try(middle) {
					limit = middle
				} else {
					high = middle
				}
			}
		}
	}
	if !found {
		c.L.Push(lua.LNil)
	} else {
		c.L.Push(lua.LNumber(limit))
	}
	c.L.Push(trials)
	return 2
}
