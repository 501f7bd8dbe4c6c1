package bindings

import (
	"math"
	"math/rand/v2"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/lua51"
	"github.com/daqiri/daqiri-run/bindings/row"
)

// osTime implements os.time on the scheduler's clock; a table argument is converted as UTC.
func osTime(c *call) int {
	if c.Arg(1) == lua.LNil {
		return c.Push(lua.LNumber(math.Floor(float64(c.rt.Scheduler.Now()) / 1e9)))
	}
	t := c.Table(1, "table")
	part := func(name string, missing int64) int {
		v := t.RawGetString(name)
		if v == lua.LNil && missing >= 0 {
			return int(missing)
		}
		f, ok := lua51.ToNumber(v)
		if !ok {
			c.ArgError(1, "field '%s': a number expected, got %s", name, row.Describe(v))
		}
		n, err := row.WholeNumber(lua.LNumber(math.Trunc(f)), -1<<31, 1<<31)
		if err != nil {
			c.ArgError(1, "field '%s': %v", name, err)
		}
		return int(n)
	}
	at := time.Date(part("year", -1), time.Month(part("month", -1)), part("day", -1),
		part("hour", 12), part("min", 0), part("sec", 0), 0, time.UTC)
	return c.Push(lua.LNumber(at.Unix()))
}

// osClock implements os.clock: seconds since the state was created, on the scheduler's clock.
func osClock(c *call) int {
	return c.Push(lua.LNumber(float64(c.rt.Scheduler.Now()-c.rt.began) / 1e9))
}

// osDate implements os.date in UTC: a table for "*t", otherwise text formatted by strftime directives.
func osDate(c *call) int {
	format := "%c"
	if c.Arg(1) != lua.LNil {
		format = strings.TrimPrefix(c.Text(1, "format text"), "!")
	}
	seconds := c.rt.Scheduler.Now() / int64(time.Second)
	if c.Arg(2) != lua.LNil {
		seconds = c.truncated(2, "time")
	}
	at := time.Unix(seconds, 0).UTC()
	if strings.HasPrefix(format, "*t") {
		t := c.L.NewTable()
		for name, v := range map[string]int{"year": at.Year(), "month": int(at.Month()), "day": at.Day(),
			"hour": at.Hour(), "min": at.Minute(), "sec": at.Second(), "wday": int(at.Weekday()) + 1,
			"yday": at.YearDay()} {
			t.RawSetString(name, lua.LNumber(v))
		}
		t.RawSetString("isdst", lua.LFalse)
		return c.Push(t)
	}
	text, err := lua51.Strftime(c.L, format, at)
	if err != nil {
		c.ArgError(1, "%v", err)
	}
	return c.Push(lua.LString(text))
}

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
	c.rt.random.seed(math.Float64bits(lua51.FormatNumber(&c.Call, 1)))
	return 0
}
