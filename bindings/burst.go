package bindings

import (
	"fmt"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/stats"
	"github.com/daqiri/daqiri-run/runtime/task"
)

// burst is one delivery of a burst to a script. Hot: hand-written.
type burst struct {
	b      *session.Burst
	of     *Opened
	ended  string // what ended it: "sent", "freed"
	source string // where that was
	line   int
}

func (*burst) luaType() string { return "burst" }

var burstType = &typeDef{
	name:   "burst",
	fields: append([]string{"bytes", "clock", "connection", "flags", "interface", "n", "queue", "rx_time", "segments"}, aggregateFields...),
	get:    burstField,
	methods: []entry{
		{"checksums", burstChecksums},
		{"column", burstColumn},
		{"count", burstCount},
		{"fill", burstFill},
		{"flow_ids", burstFlowIDs},
		{"free", burstFree},
		{"keep", burstKeep},
		{"lengths", burstLengths},
		{"packet", burstPacket},
		{"peer", burstPeer},
		{"rx_timestamps", burstRxTimestamps},
		{"select", burstSelect},
		{"set", burstSet},
		{"set_lengths", burstSetLengths},
		{"truncate", burstTruncate},
		{"tx_times", burstTxTimes},
	},
	meta: []entry{{"__tostring", burstText}, {"__len", func(c *call) int {
		return c.push(lua.LNumber(selfBurst(c).b.N()))
	}}},
}

func (rt *Runtime) newBurst(b *session.Burst, of *Opened) *lua.LUserData {
	return rt.newObject(&burst{b: b, of: of})
}

// selfBurst is self, alive.
func selfBurst(c *call) *burst {
	b := receiver[*burst](c, "burst")
	b.check(c.L)
	return b
}

// check raises when the burst is gone, and says what ended it and where.
func (b *burst) check(L *lua.LState) {
	if b.b.Live() {
		return
	}
	raise(L, "%s", b.gone())
}

func (b *burst) gone() string {
	switch {
	case b.source != "":
		return fmt.Sprintf("burst already %s at %s:%d", b.ended, b.source, b.line)
	case b.ended != "":
		return "burst already " + b.ended
	}
	if err := b.b.Check(); err != nil {
		return err.Error()
	}
	return "burst is gone"
}

// consumed notes what ended the burst and at which line of the script.
func (b *burst) consumed(L *lua.LState, how string) {
	b.ended = how
	if dbg, ok := L.GetStack(1); ok {
		if _, err := L.GetInfo("Sl", dbg, lua.LNil); err == nil {
			b.source, b.line = dbg.Source, dbg.CurrentLine
		}
	}
}

func burstField(rt *Runtime, L *lua.LState, self any, key lua.LValue) lua.LValue {
	b := self.(*burst)
	b.check(L)
	name, _ := key.(lua.LString)
	switch name {
	case "n":
		return lua.LNumber(b.b.N())
	case "bytes":
		return lua.LNumber(b.b.Bytes())
	case "segments":
		return lua.LNumber(b.b.Segments())
	case "flags":
		return lua.LNumber(b.b.Flags())
	case "clock":
		return lua.LString(b.b.Clock())
	case "queue":
		return lua.LString(b.b.Queue().Name())
	case "interface":
		return lua.LString(b.b.Queue().Interface().Name())
	case "connection":
		return rt.connectionOf(b)
	case "rx_time":
		if times := b.b.RxTimes(); len(times) > 0 {
			return lua.LNumber(times[0] - b.b.TimeOrigin())
		}
		return lua.LNil
	case "batch_id", "cut", "data", "dtype", "expected", "extra", "missing", "present", "slot_bytes", "source_packets", "timed_out":
		return aggregateField(rt, b, name)
	}
	return nil
}

func burstText(c *call) int {
	b, _ := userdata[*burst](c.L.Get(1))
	if !b.b.Live() {
		return c.push(lua.LString("burst (" + b.gone() + ")"))
	}
	return c.push(lua.LString(fmt.Sprintf("burst of %d packets, %d bytes", b.b.N(), b.b.Bytes())))
}

// burstHandler is an on_burst function.
type burstHandler struct {
	fn    *lua.LFunction
	of    *Opened
	meta  *lua.LTable     // of bursts
	clock *stats.Recorder // of its calls; nil: nobody wants to know
	lease *session.Burst  // of the last burst, which has gone; nil: there is none to be had again
}

// spent stands for the burst behind a handle that knows itself what became of it.
var spent session.Burst

// deliver calls the handler; the burst ends with it unless it was kept, sent or freed. The call is timed from when the task
// last looked at the clock, at the end of its wait or of the call before.
func (h *burstHandler) deliver(rt *Runtime, L *lua.LState, it *task.Item) {
	lease := h.lease
	h.lease = nil
	if lease == nil {
		lease = new(session.Burst)
	}
	rt.leases.TakeInto(lease, it)
	d := &handle{burst: burst{b: lease, of: h.of}} // one allocation; it may outlive the burst
	d.object = lua.LUserData{Value: &d.burst, Metatable: h.meta}
	before := rt.place
	rt.place = inBurst
	began := rt.Task.Seen()
	defer func() {
		rt.place = before
		h.end(&d.burst)
		if h.clock != nil {
			h.clock.Record(uint64(rt.Task.Look() - began))
		}
	}()
	L.Push(h.fn)
	L.Push(&d.object)
	L.Call(1, 0)
}

// handle is what a script has of a burst.
type handle struct {
	burst  burst
	object lua.LUserData
}

// end returns a burst that its handler did not keep, and takes its lease for the next one where it has gone.
func (h *burstHandler) end(b *burst) {
	if b.b.Live() && !b.b.Kept() {
		b.ended = "returned when its on_burst handler ended (b:keep() keeps a burst)"
		if p := h.fn.Proto; p != nil {
			b.source, b.line = p.SourceName, p.LastLineDefined
		}
	}
	b.b.EndHandler()
	if b.ended != "" && b.b.Gone() {
		h.lease, b.b = b.b, &spent
	}
}

func burstKeep(c *call) int {
	c.check(selfBurst(c).b.Keep())
	return c.push(c.L.Get(1))
}

// burstFree returns the burst, or with {segment = n}, {packet = n} or both a part of it.
func burstFree(c *call) int {
	b := selfBurst(c)
	o := c.options(1, "segment", "packet")
	seg, i := int(o.whole("segment", 0, 1, int64(b.b.Segments())))-1, int(o.whole("packet", 0, 1, int64(b.b.N())))-1
	switch {
	case seg >= 0 && i >= 0:
		c.check(b.b.FreePacketSegment(seg, i))
	case seg >= 0:
		c.check(b.b.FreeSegment(seg))
	case i >= 0:
		c.check(b.b.FreePacket(i))
	default:
		c.check(b.b.Free())
		b.consumed(c.L, "freed")
	}
	return 0
}

func burstTruncate(c *call) int {
	b := selfBurst(c)
	c.check(b.b.Truncate(int(c.whole(1, "packets", 0, int64(b.b.N())))))
	return 0
}

func burstPeer(c *call) int {
	b := selfBurst(c)
	i := 0
	if c.arg(1) != lua.LNil {
		i = c.index(1, "packet", b.b.N())
	}
	peer, err := b.b.Peer(i)
	c.check(err)
	if peer == "" {
		return c.push(lua.LNil)
	}
	return c.push(lua.LString(peer))
}

// burstSelect makes a burst of the packets for which the condition holds, maybe of none.
func burstSelect(c *call) int {
	b := selfBurst(c)
	picked, err := b.b.Select(c.selector(1, c.formatArg(2)))
	if err != nil {
		return c.fail(err)
	}
	return c.push(c.rt.newBurst(picked, b.of))
}

// burstCount is the number of packets for which the condition holds.
func burstCount(c *call) int {
	b := selfBurst(c)
	n, err := b.b.Count(c.selector(1, c.formatArg(2)))
	c.check(err)
	return c.push(lua.LNumber(n))
}

// maxSelectors bounds what a script keeps that makes up ever new conditions.
const maxSelectors = 256

// remembered compiles a text, or finds what it was compiled to before.
func remembered[T any](known *map[string]*T, text string, fields session.Fields, compile func(string, session.Fields) (*T, error)) (*T, error) {
	if x := (*known)[text]; x != nil {
		return x, nil
	}
	x, err := compile(text, fields)
	if err != nil {
		return nil, err
	}
	if *known == nil || len(*known) >= maxSelectors {
		*known = map[string]*T{}
	}
	(*known)[text] = x
	return x, nil
}
