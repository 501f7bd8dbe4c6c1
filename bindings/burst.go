package bindings

import (
	"fmt"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/lua51"
	"github.com/daqiri/daqiri-run/bindings/row"
	"github.com/daqiri/daqiri-run/bindings/samples"
	"github.com/daqiri/daqiri-run/runtime/picture"
	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/stats"
	"github.com/daqiri/daqiri-run/runtime/task"
)

// burst is a script's reference to one delivered burst. Hot: hand-written metatable.
type burst struct {
	b      *session.Burst
	of     *RunningSession
	ended  string // how it ended: "sent", "freed"
	source string // source file of the call that ended it
	line   int
}

func (*burst) LuaType() string { return "burst" }

var burstType = &typeDef{
	name: "burst",
	self: "b",
	doc: `a burst
		A batch of packets: what receive queues deliver and transmit queues take. It ends when it is sent or freed, or with its 'on_burst' handler unless
		'b:keep()' was called; any use after that raises an error with the place where it ended.

		Packets are read-only as long as there is another reader: a second consumer of the queue, a writer, a queue that sends a selection. That holds for all
		bursts that share them, a selection and what it was made from, whichever was given away.

		An aggregate is a burst of a reorder stage. The fields of aggregates below are nil for other bursts.`,
	fields: []field{
		{"bytes", `-> integer, bytes
			Bytes of all packets.
			> print(b.bytes)`},
		{"clock", `-> string: realtime, virtual or file
			The clock of its times.
			> print(b.clock)`},
		{"connection", `-> connection | nil
			The connection that it came from; nil where its queue has none.
			> print(b.connection)`},
		{"flags", `-> integer: bits
			The flags of the reference ('daqiri.api').
			> print(b.flags)`},
		{"imm", `-> table | nil: a list
			The immediate value that each packet came with, false of one without; nil where none has one. Only those of 'roce://' connections, and of kernels over 'loop', have.
			> print(b.imm and b.imm[1])`},
		{"interface", `-> string
			The name of its interface.
			> print(b.interface)`},
		{"n", `-> integer, packets
			How many packets it has; '#b' is the same.
			> print(b.n)`},
		{"queue", `-> string
			The name of its queue.
			> print(b.queue)`},
		{"rx_time", `-> integer | nil, ns: since the session's start, of a capture since its first packet
			The receive time of the first packet; nil without packets or times.
			> print(b.rx_time)`},
		{"segments", `-> integer
			How many parts each packet has.
			> print(b.segments)`},
		{"batch_id", `-> integer | u64 | nil: a u64 above 2^53
			Of an aggregate: the batch's number as the packets have it.
			> print(a.batch_id)`},
		{"cut", `-> boolean | nil
			Of an aggregate: whether it is the first or the last of the stream, where gaps are not losses.
			> print(a.cut)`},
		{"data", `-> packet | nil
			Of an aggregate: its bytes.
			> print(a.data:hex(0, 16))`},
		{"dtype", `-> string | nil: '"fp32"' and the like, '"bytes"' where elements were not converted
			Of an aggregate: the type of its elements.
			> print(a.dtype)`},
		{"expected", `-> integer | nil, parts
			Of an aggregate: how many parts it has: slots, or the parts of slots that an offset addresses.
			> print(a.expected)`},
		{"extra", `-> column | nil
			Of an aggregate: what the rule keeps of each slot; nil where it keeps nothing.
			> print(a.extra and a.extra[1])`},
		{"items", `-> table[] | nil
			Of a heap ('s:heaps'): the items of its packets, each once, as 'f:decode' gives a list, without those that place packets. Where the value is an address,
			it is one in 'b.data'.
			> for _, item in ipairs(a.items or {}) do print(item.id, item.value) end`},
		{"missing", `-> integer | nil, parts
			Of an aggregate: how many of its parts did not come.
			> if a.missing > 0 then print(a.present.text) end`},
		{"present", `-> presence | nil
			Of an aggregate: which of its parts came.
			> print(a.present[1])`},
		{"slot_bytes", `-> integer | nil, bytes
			Of an aggregate: how long a slot is. 'b.data' is one slot behind the other.
			> local second = a.data:bytes(a.slot_bytes, a.slot_bytes)`},
		{"source_packets", `-> integer | nil, packets
			Of an aggregate: packets in it.
			> print(a.source_packets)`},
		{"last_time", `-> integer | nil, ns: since the session's start, of a capture since its first packet
			Of an aggregate: the receive time of the packet that ended it; 'rx_time' is that of the one that opened it.
			> print(a.last_time - a.rx_time)`},
		{"timed_out", `-> boolean | nil
			Of an aggregate: whether it was handed over because its time was up.
			> print(a.timed_out)`},
	},
	get: burstField,
	methods: []entry{
		{"checksums", burstChecksums, `- i? integer: which packet, from 1; without it all
			Computes the checksums of IPv4, UDP, TCP and ICMP, after headers were written by hand.
			> local b = tx:alloc(4):fill(tpl)
			> b:packet(1):set_u16(36, 53)
			> b:checksums(1)`},
		{"column", burstColumn, `- field expression | place: a field's name, its place, or a number over fields: '"payload_len // 8"'
			- format? format | format_name: names for further fields
			-> column
			The field of every packet. It is a copy and outlives the burst.
			> local lengths = b:column("payload_len")
			> print(lengths:mean())`},
		{"count", burstCount, `- condition condition: which packets
			- format? format | format_name: names for further fields
			-> integer, packets
			How many packets match.
			> print(b:count("udp_dst == 7148 and len > 60"))`},
		{"fill", burstFill, `- template template: of a queue of the same session
			-> burst: itself
			Writes the template's packets into the burst, each with the next values of what varies.
			> local b = tx:alloc(8):fill(tpl)`},
		{"flow_ids", burstFlowIDs, `-> integer[]: 0 for none
			The id of each packet's flow.
			> print(b:flow_ids()[1])`},
		{"free", burstFree, `. packet? integer: which packet, from 1
			. segment? integer: which segment, from 1
			Returns the burst; or the buffers of one packet, of one segment, or of one packet's segment, which stay empty. A selection that was made before
			keeps its packets.
			> b:free{ packet = 1 }
			> b:free()`},
		{"keep", burstKeep, `-> burst: itself
			Lets the burst outlive its handler. A few packets of large super-buffers (UDP) are copied, so that they don't hold those.
			> local kept
			> q:on_burst(function(b) kept = b:keep() end)`},
		{"lengths", burstLengths, `- segment integer = 1: of which segment, from 1
			-> integer[], bytes
			How long each packet is.
			> print(b:lengths()[1])`},
		{"offsets", burstOffsets, `- segment integer = 1: of which segment, from 1
			-> integer[], bytes
			-> string: the region's name; empty for memory of the engine
			Where each packet begins in its memory region: for another process that owns the region's memory ([memory](../memory.md)). Keep the burst while
			that process reads it.
			> local offsets, region = b:offsets()
			> print(region, offsets[1])`},
		{"packet", burstPacket, `- i integer: which packet, from 1
			- segment integer = 1: which of its segments, from 1
			-> packet
			A view of one packet, for looking at it. What is done to many packets has a method of the burst.
			> print(b:packet(1):hex())`},
		{"peer", burstPeer, `- i integer = 1: which packet, from 1
			-> string | nil: 'ADDRESS:PORT'
			Where a packet came from; nil where the queue has no peers.
			> print(b:peer(1))`},
		{"plot", burstPlot, `. format? format | format_name: one that declares samples, which are behind its header
			. type? string: a type of samples, instead of that of the packets or of the aggregate
			. kind ` + row.OneOf(picture.Kinds()) + ` = "` + picture.Kinds()[0] + `": which picture
			. segment integer = 1: which segment of the packets has the samples, from 1
			. packet? integer: of which packet, from 1; without it of all
			. points? integer: of a transform, a power of 2 from 2 to 65536; by default as many as consecutive samples allow, up to 4096
			. window ` + row.OneOf(samples.Windows()) + ` = "` + samples.Windows()[0] + `": the shape of a transform
			. first integer = 1: the first sample of each packet or slot, from 1
			. step integer = 1: takes every so many samples, such as those of one channel
			. continuous boolean = false: whether samples continue those of the packet or slot before; otherwise no transform has samples of two
			. file? string: writes a PNG file instead of drawing
			. overwrite boolean = false: replaces a file that is there; else it stays, and the call fails
			Draws the samples of packets, as 'b:samples' reads them, or of all slots of an aggregate, as 'a.data:samples' does: on a terminal as characters, elsewhere as
			numbers separated by tabs. Values are codes, those of floating-point numbers and levels are scaled. Missing slots are gaps.
			> b:plot{ type = "ci8", kind = "histogram" }
			> b:plot{ type = "ci8", kind = "time", file = "time.png", overwrite = true }`},
		{"prepend", burstPrepend, `- template template: of a queue of the same session, without 'vary'
			-> burst: itself
			Puts the template's packet in front of each packet, as headers, and sets the lengths and checksums of IP and UDP: the burst holds payloads before. A buffer
			has room for 128 bytes.
			> local head = tx:template{ eth_dst = "02:00:00:00:00:02", ipv4_src = "10.0.0.1", ipv4_dst = "10.0.0.2",
			>   udp_src = 4000, udp_dst = 7148, payload_bytes = 0 }
			> local b = tx:alloc(2)
			> b:set_lengths(100)
			> print(b:prepend(head).bytes)`},
		{"rx_timestamps", burstRxTimestamps, `- since "session" | "epoch" = "session": what times are relative to
			-> table, ns: since the session's start, of a capture since its first packet; or 'daqiri.time's
			The receive time of each packet; false where it has none: it was made here, or captured without one. With '"epoch"' times are absolute: of
			CLOCK_REALTIME, of a capture as recorded, and on the virtual clock since the session's own epoch. 'b:tx_times' accepts both.
			> local times = b:rx_timestamps()
			> local first = b:rx_timestamps("epoch")[1]
			> if first then print(first.ns) end`},
		{"samples", burstSamples, `- format? format | format_name: one that declares samples, which are behind its header
			. type? string: a type of samples instead of that of the packets; without a format the payload has them
			. packet? integer: of which packet, from 1; without it of all
			. segment integer = 1: which segment has the samples, from 1
			-> samples
			The numbers in the payloads, converted by the type that the format declares or that a packet names. Packets without data, such as leaders and context packets,
			have none, but name the type for the later packets of their stream in the burst.
			> local x = b:samples(nil, { type = "ci8" })
			> print(#x, x:power())`},
		{"select", burstSelect, `- condition condition: which packets
			- format? format | format_name: names for further fields
			-> burst | failure
			A burst of the packets that match, maybe of none. In 'on_burst' it ends with its handler, as the burst does, unless it is kept.
			> local long = b:select("len > 1000")
			> if long then print(long.n) end`},
		{"set", burstSet, `- fields table<field_name | "checksums", any>: values by field, see below
			- format? format | format_name: names for further fields
			-> integer, packets: those that have all the fields
			Writes fields of all packets: '{field = value}', '{field = {start, step}}', '{field = "auto"}' of 'eth_src' and 'eth_dst' (as in 'q:template'), and in the list
			part places with 'value' and 'step'. 'ipv6_src' and 'ipv6_dst' are addresses, too, whose lower 64 bits step. Checksums follow by the difference, so right ones stay right, wrong ones wrong, and a UDP checksum of 0 stays 0;
			'checksums = false' leaves them.
			> local b = tx:alloc(4):fill(tpl)
			> b:set{ udp_dst = 7149, ipv4_src = "10.0.0.7", udp_src = { 1000, 1 } }
			> b:set{ { at = "payload", bit_offset = 0, bit_width = 32, value = 1, step = 1 } }`},
		{"set_lengths", burstSetLengths, `- lengths integer | integer[] | column, bytes: of all packets, or of each
			- segment integer = 1: of which segment, from 1
			Sets how long the packets are, at most as long as a buffer.
			> b:set_lengths(60)`},
		{"show", burstShow, `. format? format | format_name: whose fields are shown
			. fields? expression[]: these instead: names, or numbers over fields
			. n integer = 10, packets: how many, the first ones
			. csv boolean = false: as comma-separated values
			Prints packets as a table: values with their names, scaled, with units; '-' where a packet has none.
			> b:show{ fields = { "len", "udp_dst", "payload_len // 8" }, n = 3 }`},
		{"truncate", burstTruncate, `- n integer, packets: how many stay
			Keeps the first packets and returns the buffers of the others.
			> b:truncate(2)`},
		{"tx_times", burstTxTimes, `- times integer | any[] | column | time, ns: since the session's start, or absolute times, of each packet or of the first one; 0 is at once
			- step? integer, ns: between packets, where the first one's time was given
			When to send each packet. Packets of a queue leave in their order: one behind another waits for it. A burst with another reader has no send times, a
			selection of it has. A time that has passed is now, counted: 'l.tx_port.tx.late' of 'l.tx_port.tx.timed' packets; 'time_error.p50', '.p90', '.p99', '.max'
			say in ns how long after their times packets left.
			> local b = tx:alloc(4):fill(tpl)
			> b:tx_times(daqiri.time "now + 1ms", 1000)`},
	},
	meta: []entry{{name: "__tostring", fn: burstText}, {name: "__len", fn: func(c *call) int {
		return c.Push(lua.LNumber(selfBurst(c).b.N()))
	}}},
}

func (rt *Runtime) newBurst(b *session.Burst, of *RunningSession) *lua.LUserData {
	return rt.newObject(&burst{b: b, of: of})
}

// selfBurst returns self; it raises if the burst has ended.
func selfBurst(c *call) *burst {
	b := receiver[*burst](c, "burst")
	b.check(c.L)
	return b
}

// check raises if the burst has ended, with the reason and the script line.
func (b *burst) check(L *lua.LState) {
	if b.b.Live() {
		return
	}
	lua51.Raise(L, "%s", b.gone())
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

// consumed records what ended the burst and the script line of the call.
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
	case "imm":
		return b.imms(L)
	case "rx_time":
		if times := b.b.RxTimes(); len(times) > 0 {
			return receiveTime(times[0], b.b.TimeOrigin(), lua.LNil)
		}
		return lua.LNil
	case "batch_id", "cut", "data", "dtype", "expected", "extra", "items", "last_time", "missing", "present", "slot_bytes", "source_packets", "timed_out":
		return aggregateField(rt, b, name)
	}
	return nil
}

func burstText(c *call) int {
	b, _ := row.Userdata[*burst](c.L.Get(1))
	if !b.b.Live() {
		return c.Push(lua.LString("burst (" + b.gone() + ")"))
	}
	return c.Push(lua.LString(fmt.Sprintf("burst of %d packets, %d bytes", b.b.N(), b.b.Bytes())))
}

// burstHandler is a registered on_burst function.
type burstHandler struct {
	fn    *lua.LFunction
	of    *RunningSession
	meta  *lua.LTable     // metatable of bursts
	clock *stats.Recorder // duration of calls; nil: not recorded
	lease *session.Burst  // lease of a finished burst, for reuse; nil: none

	tap     *session.Tap
	source  any    // queue, stage or connection that delivers the bursts
	label   string // name in the script
	options session.TapOptions
}

// spent replaces the lease of a burst whose ended field is set, after the lease was taken for reuse.
var spent session.Burst

// deliver calls the handler. The burst ends with the call unless the handler kept, sent or freed it. The recorded duration starts at the task's
// last clock reading, at the end of its wait or of the previous call.
func (h *burstHandler) deliver(rt *Runtime, L *lua.LState, it *task.Item) {
	lease := h.lease
	h.lease = nil
	if lease == nil {
		lease = new(session.Burst)
	}
	rt.leases.TakeInto(lease, it)
	d := &handle{burst: burst{b: lease, of: h.of}} // burst and userdata in one allocation; may outlive the burst
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

// handle is the Lua userdata of a burst together with the burst.
type handle struct {
	burst  burst
	object lua.LUserData
}

// end returns a burst that the handler did not keep, and reuses its lease if no reference is left.
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
	c.Check(selfBurst(c).b.Keep())
	return c.Push(c.L.Get(1))
}

// burstFree implements b:free: it frees the burst, or with {segment = n}, {packet = n} or both a part of it.
func burstFree(c *call) int {
	b := selfBurst(c)
	o := c.options(1)
	seg, i := int(o.Whole("segment", 0, 1, int64(b.b.Segments())))-1, int(o.Whole("packet", 0, 1, int64(b.b.N())))-1
	switch {
	case seg >= 0 && i >= 0:
		c.Check(b.b.FreePacketSegment(seg, i))
	case seg >= 0:
		c.Check(b.b.FreeSegment(seg))
	case i >= 0:
		c.Check(b.b.FreePacket(i))
	default:
		c.Check(b.b.Free())
		b.consumed(c.L, "freed")
	}
	return 0
}

func burstTruncate(c *call) int {
	b := selfBurst(c)
	c.Check(b.b.Truncate(int(c.Whole(1, "packets", 0, int64(b.b.N())))))
	return 0
}

func burstPeer(c *call) int {
	b := selfBurst(c)
	i := 0
	if c.Arg(1) != lua.LNil {
		i = c.Index(1, "packet", b.b.N())
	}
	peer, err := b.b.Peer(i)
	c.Check(err)
	if peer == "" {
		return c.Push(lua.LNil)
	}
	return c.Push(lua.LString(peer))
}

// burstSelect implements b:select: a burst of the packets that meet the condition, possibly empty.
func burstSelect(c *call) int {
	b := selfBurst(c)
	picked, err := b.b.Select(c.selector(1, c.formatArg(2)))
	if err != nil {
		return c.Fail(err)
	}
	return c.Push(c.rt.newBurst(picked, b.of))
}

// burstCount implements b:count: the number of packets that meet the condition.
func burstCount(c *call) int {
	b := selfBurst(c)
	n, err := b.b.Count(c.selector(1, c.formatArg(2)))
	c.Check(err)
	return c.Push(lua.LNumber(n))
}
