package bindings

import (
	"errors"
	"fmt"
	"math"

	lua "github.com/yuin/gopher-lua"

	luaformat "github.com/daqiri/daqiri-run/bindings/format"
	"github.com/daqiri/daqiri-run/bindings/row"
	"github.com/daqiri/daqiri-run/runtime/session"
)

// Columns present in every burst, as Lua tables: lengths, flow ids, times.

// segment reads an optional segment number; the default is the first segment.
func (c *call) segment(n int, b *burst) int {
	if c.Arg(n) == lua.LNil {
		return 0
	}
	return c.Index(n, "segment", b.b.Segments())
}

func listOf[T uint32 | int64](c *call, values []T, zero int64) int {
	t := c.L.CreateTable(len(values), 0)
	for i, v := range values {
		t.RawSetInt(i+1, lua.LNumber(int64(v)-zero))
	}
	return c.Push(t)
}

func burstLengths(c *call) int {
	b := selfBurst(c)
	lengths, err := b.b.Lengths(c.segment(1, b))
	c.Check(err)
	return listOf(c, lengths, 0)
}

// burstOffsets implements b:offsets: where packets begin in their region, and its name.
func burstOffsets(c *call) int {
	b := selfBurst(c)
	offsets, region, err := b.b.Offsets(c.segment(1, b))
	c.Check(err)
	t := c.L.CreateTable(len(offsets), 0)
	for i, off := range offsets {
		t.RawSetInt(i+1, lua.LNumber(off))
	}
	c.L.Push(t)
	c.L.Push(lua.LString(region))
	return 2
}

func burstFlowIDs(c *call) int { return listOf(c, selfBurst(c).b.FlowIDs(), 0) }

// burstRxTimestamps implements b:rx_timestamps: receive times in ns since the session's start, for a capture since its first packet, or absolute
// ones; false if a packet has none.
func burstRxTimestamps(c *call) int {
	b := selfBurst(c)
	since := c.OptionalStr(1, "origin of times", "session")
	if since != "session" && since != "epoch" {
		c.ArgError(1, "%q is not a valid origin of times (expected session or epoch)", since)
	}
	t, origin := c.L.CreateTable(b.b.N(), 0), b.b.TimeOrigin()
	for i, at := range b.b.RxTimes() {
		v := receiveTime(at, origin, lua.LFalse)
		if since == "epoch" && v != lua.LFalse {
			v = c.rt.newTimestamp(at)
		}
		t.RawSetInt(i+1, v)
	}
	return c.Push(t)
}

// receiveTime converts a receive time to a Lua value; none is returned for a packet without one.
func receiveTime(at, origin int64, none lua.LValue) lua.LValue {
	if at == session.NoTime {
		return none
	}
	return lua.LNumber(at - origin)
}

// burstSetLengths sets one length for all packets, or a length per packet from a list or column.
func burstSetLengths(c *call) int {
	b := selfBurst(c)
	seg := c.segment(2, b)
	c.Check(b.b.Writable())
	if _, ok := c.Arg(1).(lua.LNumber); ok {
		c.setLength(b, seg, -1, uint64(c.Whole(1, "length", 0, row.MaxInt)))
		return 0
	}
	values := c.values(1, b.b.N(), "lengths")
	for i, v := range values {
		c.setLength(b, seg, i, v)
	}
	return 0
}

// setLength sets the length of packet i, or of all packets if i is -1.
func (c *call) setLength(b *burst, seg, i int, n uint64) {
	err := b.b.SetLen(seg, i, int(min(n, math.MaxInt32)))
	if errors.Is(err, session.ErrInvalid) {
		c.ArgError(1, "%d bytes do not fit into a buffer", n)
	}
	c.Check(err)
}

// burstTxTimes sets transmit times, in ns since the session's start, from a list or column; a single time applies to the first packet and the
// second argument is the interval in ns. 0 sends immediately.
func burstTxTimes(c *call) int {
	b := selfBurst(c)
	times, err := b.b.TxTimes()
	c.Check(err)
	start := b.of.s.StartTime()
	first, single := int64(0), true
	if at, ok := row.Userdata[timestamp](c.Arg(1)); ok {
		first = int64(at) - start
	} else if _, ok := c.Arg(1).(lua.LNumber); ok {
		first = c.Whole(1, "time", 0, row.MaxInt)
	} else {
		single = false
	}
	set := func(i int, v int64) {
		if times[i] = 0; v != 0 {
			times[i] = start + v
		}
	}
	if !single {
		for i, v := range c.times(1, len(times), start) {
			set(i, v)
		}
		return 0
	}
	step := int64(0)
	if c.Arg(2) != lua.LNil {
		step = c.Whole(2, "distance", 0, row.MaxInt)
	}
	if last := int64(len(times) - 1); last > 0 && step > (math.MaxInt64-start-max(first, 0))/last {
		c.ArgError(2, "%d ns between %d packets: the last ones would have no time before 2262", step, len(times))
	}
	for i := range times {
		set(i, first+int64(i)*step)
	}
	return 0
}

// times reads a list or column of n send times, as ns since the session's start, which is start ns since the epoch. Elements of a list may be
// absolute times.
func (c *call) times(arg, n int, start int64) []int64 {
	out := make([]int64, n)
	relative := func(i int, ns uint64) error {
		out[i] = int64(ns)
		if ns > row.MaxInt {
			return fmt.Errorf("%d ns is not a time of this session", ns)
		}
		return nil
	}
	c.elements(arg, n, "times", relative, func(i int, v lua.LValue) error {
		if at, ok := row.Userdata[timestamp](v); ok {
			out[i] = int64(at) - start
			return nil
		}
		ns, err := row.Unsigned(v, 64)
		if err != nil {
			return err
		}
		return relative(i, ns)
	})
	return out
}

// values reads a list of integers or a column with one value per packet.
func (c *call) values(n, want int, what string) []uint64 {
	out := make([]uint64, want)
	c.elements(n, want, what, func(i int, v uint64) error {
		out[i] = v
		return nil
	}, func(i int, v lua.LValue) (err error) {
		out[i], err = row.Unsigned(v, 64)
		return err
	})
	return out
}

// elements reads a list or column with one value per packet; it passes the elements of a column to number and those of a list to value.
func (c *call) elements(n, want int, what string, number func(i int, v uint64) error, value func(i int, v lua.LValue) error) {
	var length int
	var set func(i int) error
	if col, ok := row.Userdata[*column](c.Arg(n)); ok {
		values := col.values.List()
		length, set = len(values), func(i int) error { return number(i, values[i]) }
	} else {
		t := c.Table(n, "number, list or column of "+what)
		length, set = t.Len(), func(i int) error { return value(i, t.RawGetInt(i+1)) }
	}
	if length != want {
		c.ArgError(n, "%d %s for %d packets", length, what, want)
	}
	for i := range want {
		if err := set(i); err != nil {
			c.ArgError(n, "element %d: %v", i+1, err)
		}
	}
}

// burstSet implements b:set: it writes fields of all packets, given as {field = value | {start, step}, {place..., value, step}, checksums =
// true}, and returns the number of packets that have all of the fields.
func burstSet(c *call) int {
	b := selfBurst(c)
	t := c.Table(1, "table of fields")
	csum := session.CsumKeep
	if newOptions(c, 1, t).Bool("checksums", b.b.Queue().Layer() == session.LayerFrame) {
		csum = session.CsumUpdate
	}
	c.Check(b.b.Writable())
	set := b.b.N()
	for _, e := range luaformat.Entries(&c.Call, 1, t, c.formatArg(2), "checksums", "step", "value") {
		if e.Value == lua.LString("auto") && (e.Name == "eth_src" || e.Name == "eth_dst") {
			e.Value = c.autoField(b.b.Queue(), e.Name, t)
		}
		if err := e.Changeable(); err != nil {
			c.ArgError(1, "field '%s': %v", e.Name, err)
		}
		parts, err := e.Parts()
		if err != nil {
			c.ArgError(1, "field '%s': %v", e.Name, err)
		}
		for _, p := range parts {
			n := 0
			if p.Place != nil {
				n, err = b.b.SetPlace(p.Place, p.Start, p.Step, csum)
			} else {
				n, err = b.b.Set(p.Field, p.Start, p.Step, csum)
			}
			c.Check(err)
			set = min(set, n)
		}
	}
	return c.Push(lua.LNumber(set))
}

// burstChecksums implements b:checksums(i): it computes the checksums of one packet, or of all packets.
func burstChecksums(c *call) int {
	b := selfBurst(c)
	i := -1
	if c.Arg(1) != lua.LNil {
		i = c.Index(1, "packet", b.b.N())
	}
	c.Check(b.b.Checksums(i))
	return 0
}

// burstFill implements b:fill: it writes the packets of a template into the burst.
func burstFill(c *call) int    { return burstTemplate(c, (*session.Burst).Fill) }
func burstPrepend(c *call) int { return burstTemplate(c, (*session.Burst).Prepend) }

func burstTemplate(c *call, write func(*session.Burst, *session.Template) error) int {
	b := selfBurst(c)
	tpl, ok := row.Userdata[*template](c.Arg(1))
	if !ok {
		c.Wanted(1, "template")
	}
	c.Check(write(b.b, tpl.t))
	return c.Push(c.L.Get(1))
}
