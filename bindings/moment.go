package bindings

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/runtime/spec"
)

// moment is an absolute time, ns since the epoch (UTC), as daqiri.time makes it. Cold, but with
// operators, so hand-written.
type moment int64

func (moment) luaType() string { return "time" }

// String gives RFC 3339 with nanoseconds where there are any.
func (m moment) String() string { return time.Unix(0, int64(m)).UTC().Format(time.RFC3339Nano) }

var timeType = &typeDef{
	name:   "time",
	fields: []string{"ns", "seconds"},
	get: func(rt *Runtime, _ *lua.LState, self any, key lua.LValue) lua.LValue {
		switch key {
		case lua.LString("ns"):
			return rt.newU64(uint64(self.(moment)))
		case lua.LString("seconds"):
			return lua.LNumber(float64(self.(moment)) / 1e9)
		}
		return nil
	},
	meta: []entry{
		{"__add", momentAdd},
		{"__sub", momentSub},
		{"__eq", momentCompare(func(a, b moment) bool { return a == b })},
		{"__lt", momentCompare(func(a, b moment) bool { return a < b })},
		{"__le", momentCompare(func(a, b moment) bool { return a <= b })},
		{"__concat", u64Concat},
		{"__tostring", func(c *call) int { return c.push(lua.LString(c.L.Get(1).(*lua.LUserData).Value.(moment).String())) }},
	},
}

func (rt *Runtime) newMoment(ns int64) lua.LValue { return rt.newObject(moment(ns)) }

// moduleTime is daqiri.time.
func moduleTime(c *call) int {
	c.atMost(1)
	m, err := c.rt.moment(c.arg(1))
	if err != nil {
		c.argError(1, "%v", err)
	}
	return c.push(c.rt.newMoment(int64(m)))
}

// moduleNow is daqiri.now.
func moduleNow(c *call) int { return c.push(c.rt.newMoment(c.rt.Scheduler.Now())) }

var timeLayouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999",
	"2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02"}

// moment reads a time: one made before, or text: a date with time (UTC unless it says otherwise), "now", "now + 5s",
// or "@" and seconds since the epoch.
func (rt *Runtime) moment(v lua.LValue) (moment, error) {
	if m, ok := userdata[moment](v); ok {
		return m, nil
	}
	s, ok := v.(lua.LString)
	if !ok {
		return 0, fmt.Errorf("a time expected, got %s (write it like \"2026-11-20T10:00:00Z\" or \"now + 5s\")", describe(v))
	}
	text := strings.TrimSpace(string(s))
	if rest, ok := strings.CutPrefix(text, "now"); ok {
		return rt.fromNow(rest)
	}
	if rest, ok := strings.CutPrefix(text, "@"); ok {
		return epochTime(rest)
	}
	for _, layout := range timeLayouts {
		if t, err := time.Parse(layout, text); err == nil && t.Year() >= 1970 && t.Year() < 2262 {
			return moment(t.UnixNano()), nil
		}
	}
	return 0, fmt.Errorf("%q is not a time (write it like \"2026-11-20T10:00:00Z\", \"now + 5s\" or \"@1789812000.5\")",
		clip(text, 40))
}

func (rt *Runtime) fromNow(rest string) (moment, error) {
	now := moment(rt.Scheduler.Now())
	rest = strings.TrimSpace(rest)
	if rest == "" {
		return now, nil
	}
	after, ok := strings.CutPrefix(rest, "+")
	if !ok {
		return 0, fmt.Errorf("\"now %s\" is not a time (write it like \"now + 5s\")", rest)
	}
	d, err := spec.ParseDuration(strings.TrimSpace(after))
	if e := (*spec.NoUnitError)(nil); errors.As(err, &e) {
		e.Unit = "s" // as the number's would be
	}
	if err != nil {
		return 0, err
	}
	return now.plus(d)
}

// plus is the time so many ns later; only times from 1970 to 2262 can be said in ns.
func (m moment) plus(ns int64) (moment, error) {
	sum := m + moment(ns)
	if sum < 0 || (ns > 0) != (sum > m) && ns != 0 {
		return 0, fmt.Errorf("%s and %v: not between %v and %v, the times that there are", m, time.Duration(ns), moment(0), moment(math.MaxInt64))
	}
	return sum, nil
}

// epochTime reads seconds with up to nine decimals, exactly.
func epochTime(text string) (moment, error) {
	whole, fraction, _ := strings.Cut(text, ".")
	s, err := strconv.ParseUint(whole, 10, 33)
	ns := uint64(0)
	if err == nil && fraction != "" {
		ns, err = strconv.ParseUint((fraction + "000000000")[:9], 10, 32)
	}
	if err != nil || len(fraction) > 9 {
		return 0, fmt.Errorf("\"@%s\" is not a time in seconds since the epoch", clip(text, 40))
	}
	return moment(s*1e9 + ns), nil
}

// duration reads seconds or text with a unit; the result is in ns.
func duration(v lua.LValue) (int64, error) {
	switch v := v.(type) {
	case lua.LNumber:
		s := float64(v)
		if s >= 0 && s <= 9e9 {
			return int64(math.Round(s * 1e9)), nil
		}
		return 0, fmt.Errorf("0 to 9e9 seconds expected, got %s", describe(v))
	case lua.LString:
		ns, err := spec.ParseDuration(string(v))
		return ns, spec.OrNumber(err, "s")
	}
	return 0, fmt.Errorf("seconds or text such as \"5ms\" expected, got %s", describe(v))
}

func momentAdd(c *call) int {
	a, b := c.L.Get(1), c.L.Get(2)
	if _, ok := userdata[moment](a); !ok {
		a, b = b, a
	}
	m, _ := userdata[moment](a)
	d, err := signedSeconds(b)
	if err != nil {
		c.raise("time: %v", err)
	}
	return c.pushSum(m, d)
}

func (c *call) pushSum(m moment, ns int64) int {
	sum, err := m.plus(ns)
	if err != nil {
		c.raise("time: %v", err)
	}
	return c.push(c.rt.newMoment(int64(sum)))
}

// momentSub is time - time in seconds, or time - seconds.
func momentSub(c *call) int {
	a, ok := userdata[moment](c.L.Get(1))
	if !ok {
		c.raise("time: a time can't be subtracted from %s", describe(c.L.Get(1)))
	}
	if b, ok := userdata[moment](c.L.Get(2)); ok {
		return c.push(lua.LNumber(float64(a-b) / 1e9))
	}
	d, err := signedSeconds(c.L.Get(2))
	if err != nil {
		c.raise("time: %v", err)
	}
	return c.pushSum(a, -d)
}

func signedSeconds(v lua.LValue) (int64, error) {
	if n, ok := v.(lua.LNumber); ok && n < 0 {
		d, err := duration(-n)
		return -d, err
	}
	return duration(v)
}

// momentCompare compares two times: Lua calls it for operands of one type only.
func momentCompare(op func(a, b moment) bool) function {
	return func(c *call) int {
		a, _ := userdata[moment](c.L.Get(1))
		b, _ := userdata[moment](c.L.Get(2))
		return c.push(lua.LBool(op(a, b)))
	}
}
