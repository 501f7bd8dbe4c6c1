package bindings

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/row"
	"github.com/daqiri/daqiri-run/bindings/value"
	"github.com/daqiri/daqiri-run/runtime/session/preflight"
	"github.com/daqiri/daqiri-run/runtime/spec"
)

// timestamp is a value of daqiri.time: absolute time in ns since the epoch (UTC). Cold, but hand-written because it has operators.
type timestamp int64

func (timestamp) LuaType() string { return "time" }

// String formats the time as RFC 3339, with nanoseconds if there are any.
func (m timestamp) String() string { return time.Unix(0, int64(m)).UTC().Format(time.RFC3339Nano) }

var timeType = &typeDef{
	name: "time",
	self: "at",
	doc: `a time
		An absolute time ('daqiri.time', 'daqiri.now'), in ns. 't + seconds', 't - seconds' and comparisons are there; 't - t' is in seconds; 'tostring' gives
		RFC 3339.`,
	fields: []field{
		{"ns", `-> u64, ns: since the epoch
			The time, exactly.
			> print(at.ns)`},
		{"nic", `-> u64: seconds and ns of 32 bits each, as a big-endian number
			The time in the form that kernels with DOCA's names wait for ('doca_gpu_dev_eth_txq_wait_send'), as 'doca_eth_txq_calculate_timestamp' returns it.
			> print(at.nic)`},
		{"seconds", `-> number, s: since the epoch
			The time, rounded to a double.
			> print(at.seconds)`},
	},
	get: func(rt *Runtime, _ *lua.LState, self any, key lua.LValue) lua.LValue {
		switch key {
		case lua.LString("ns"):
			return rt.newU64(uint64(self.(timestamp)))
		case lua.LString("nic"):
			ns := uint64(self.(timestamp))
			return rt.newU64(bits.ReverseBytes64(ns/1e9<<32 | ns%1e9))
		case lua.LString("seconds"):
			return lua.LNumber(float64(self.(timestamp)) / 1e9)
		}
		return nil
	},
	meta: []entry{
		{"__add", timestampAdd, `- seconds duration: what is added
			-> time`},
		{"__sub", timestampSub, `- other time | duration: a time, or what is taken off
			-> any`},
		{name: "__eq", fn: timestampCompare(func(a, b timestamp) bool { return a == b })},
		{name: "__lt", fn: timestampCompare(func(a, b timestamp) bool { return a < b })},
		{name: "__le", fn: timestampCompare(func(a, b timestamp) bool { return a <= b })},
		{name: "__concat", fn: u64Concat},
		{name: "__tostring", fn: func(c *call) int { return c.Push(lua.LString(c.L.Get(1).(*lua.LUserData).Value.(timestamp).String())) }},
	},
}

func (rt *Runtime) newTimestamp(ns int64) lua.LValue { return rt.newObject(timestamp(ns)) }

// moduleTime implements daqiri.time.
func moduleTime(c *call) int {
	c.AtMost(1)
	m, err := c.rt.timestamp(c.Arg(1))
	if err != nil {
		c.ArgError(1, "%v", err)
	}
	return c.Push(c.rt.newTimestamp(int64(m)))
}

// moduleNow implements daqiri.now.
func moduleNow(c *call) int { return c.Push(c.rt.newTimestamp(c.rt.Scheduler.Now())) }

var timeLayouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999",
	"2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02"}

// timestamp reads a time: a timestamp, a u64 (ns since the epoch), or a string: a date with time (UTC unless a zone is given), "now", "now + 5s", or "@" and seconds since
// the epoch.
func (rt *Runtime) timestamp(v lua.LValue) (timestamp, error) {
	if m, ok := row.Userdata[timestamp](v); ok {
		return m, nil
	}
	if ns, ok := row.Userdata[row.U64](v); ok {
		if ns > math.MaxInt64 {
			return 0, fmt.Errorf("%d ns is not a time from 1970 to 2262", ns)
		}
		return timestamp(ns), nil
	}
	s, ok := v.(lua.LString)
	if !ok {
		return 0, fmt.Errorf("a time expected, got %s (write it like \"2026-11-20T10:00:00Z\" or \"now + 5s\")", row.Describe(v))
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
			return timestamp(t.UnixNano()), nil
		}
	}
	return 0, fmt.Errorf("%q is not a time (write it like \"2026-11-20T10:00:00Z\", \"now + 5s\" or \"@1789812000.5\")",
		row.Clip(text, 40))
}

func (rt *Runtime) fromNow(rest string) (timestamp, error) {
	now := timestamp(rt.Scheduler.Now())
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
		e.Unit = "s" // default unit
	}
	if err != nil {
		return 0, err
	}
	return now.plus(d)
}

// plus returns the time ns later; ns represent times from 1970 to 2262.
func (m timestamp) plus(ns int64) (timestamp, error) {
	sum := m + timestamp(ns)
	if sum < 0 || (ns > 0) != (sum > m) && ns != 0 {
		return 0, fmt.Errorf("%s and %v: outside the valid range %v to %v", m, time.Duration(ns), timestamp(0), timestamp(math.MaxInt64))
	}
	return sum, nil
}

// epochTime parses seconds with up to nine decimals exactly.
func epochTime(text string) (timestamp, error) {
	whole, fraction, _ := strings.Cut(text, ".")
	s, err := strconv.ParseUint(whole, 10, 33)
	ns := uint64(0)
	if err == nil && fraction != "" {
		ns, err = strconv.ParseUint((fraction + "000000000")[:9], 10, 32)
	}
	if err != nil || len(fraction) > 9 {
		return 0, fmt.Errorf("\"@%s\" is not a time in seconds since the epoch", row.Clip(text, 40))
	}
	return timestamp(s*1e9 + ns), nil
}

func timestampAdd(c *call) int {
	a, b := c.L.Get(1), c.L.Get(2)
	if _, ok := row.Userdata[timestamp](a); !ok {
		a, b = b, a
	}
	m, _ := row.Userdata[timestamp](a)
	d, err := signedSeconds(b)
	if err != nil {
		c.Raise("time: %v", err)
	}
	return c.pushSum(m, d)
}

func (c *call) pushSum(m timestamp, ns int64) int {
	sum, err := m.plus(ns)
	if err != nil {
		c.Raise("time: %v", err)
	}
	return c.Push(c.rt.newTimestamp(int64(sum)))
}

// timestampSub implements time - time, in seconds, and time - seconds.
func timestampSub(c *call) int {
	a, ok := row.Userdata[timestamp](c.L.Get(1))
	if !ok {
		c.Raise("time: a time can't be subtracted from %s", row.Describe(c.L.Get(1)))
	}
	if b, ok := row.Userdata[timestamp](c.L.Get(2)); ok {
		return c.Push(lua.LNumber(float64(a-b) / 1e9))
	}
	d, err := signedSeconds(c.L.Get(2))
	if err != nil {
		c.Raise("time: %v", err)
	}
	return c.pushSum(a, -d)
}

func signedSeconds(v lua.LValue) (int64, error) {
	if n, ok := v.(lua.LNumber); ok && n < 0 {
		d, err := row.Duration(-n)
		return -d, err
	}
	return row.Duration(v)
}

// timestampCompare returns a comparison metamethod; Lua calls it only for two operands of the same type.
func timestampCompare(op func(a, b timestamp) bool) function {
	return func(c *call) int {
		a, _ := row.Userdata[timestamp](c.L.Get(1))
		b, _ := row.Userdata[timestamp](c.L.Get(2))
		return c.Push(lua.LBool(op(a, b)))
	}
}

// AppendJSON appends the time as a JSON string.
func (m timestamp) AppendJSON(out []byte) ([]byte, error) { return value.AppendText(out, m.String()) }

// modulePTPClock implements daqiri.ptp_clock.
func modulePTPClock(c *call) int {
	c.AtMost(1)
	name, offset, within, err := preflight.ReadPTP(int(c.Whole(1, "a clock's index", 0, math.MaxInt32)))
	c.Check(err)
	t := c.L.CreateTable(0, 3)
	t.RawSetString("name", lua.LString(name))
	t.RawSetString("offset", lua.LNumber(offset.Nanoseconds()))
	t.RawSetString("uncertainty", lua.LNumber(within.Nanoseconds()))
	return c.Push(t)
}

// moduleRealtime implements daqiri.realtime.
func moduleRealtime(c *call) int {
	c.AtMost(1)
	c.Check(preflight.Realtime(int(c.Whole(1, "a priority", 1, 99))))
	return 0
}
