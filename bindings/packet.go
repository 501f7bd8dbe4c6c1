package bindings

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/lua51"
	"github.com/daqiri/daqiri-run/bindings/row"
)

// packet is a bounds-checked view of one packet of a burst in host memory, for inspection; bulk operations are methods of bursts. Offsets are in
// bytes from the packet's start, from 0. Hot.
type packet struct {
	of     *burst
	seg, i int
}

func (*packet) LuaType() string { return "packet" }

var packetType = &typeDef{
	name: "packet",
	self: "p",
	doc: `a packet
		A view of one packet of a burst, for looking at it; what is done to many packets has a method of the burst. Offsets are bytes, from 0.`,
	fields: []field{
		{"length", `-> integer, bytes
			How long the packet is; '#p' is the same.
			> print(p.length)`},
		{"peer", `-> string | nil: 'ADDRESS:PORT'
			Where the packet came from; nil where the queue has no peers.
			> print(p.peer)`},
	},
	get: func(_ *Runtime, L *lua.LState, self any, key lua.LValue) lua.LValue {
		p := self.(*packet)
		switch key {
		case lua.LString("length"):
			return lua.LNumber(p.length(L))
		case lua.LString("peer"):
			p.of.check(L)
			if peer, err := p.of.b.Peer(p.i); err == nil && peer != "" {
				return lua.LString(peer)
			}
			return lua.LNil
		}
		return nil
	},
	methods: slices.Concat(packetNumbers(1, nil, ""), packetNumbers(2, binary.BigEndian, ""), packetNumbers(4, binary.BigEndian, ""),
		packetNumbers(8, binary.BigEndian, ""), packetNumbers(2, binary.LittleEndian, "_le"), packetNumbers(4, binary.LittleEndian, "_le"),
		packetNumbers(8, binary.LittleEndian, "_le"), []entry{
			{"bytes", packetBytes, `- offset integer = 0, bytes: from the packet's start
			- length? integer, bytes: by default all of the rest
			-> string
			A part of the packet.
			> local ethertype = p:bytes(12, 2)`},
			{"set_bytes", packetSetBytes, `- offset integer, bytes: from the packet's start
			- text string: what is written; all of it has to fit
			Writes bytes.
			> p:set_bytes(42, "hello")`},
			{"samples", packetSamples, `- slot? integer: which slot, from 1; without it all
			. format? format | format_name: one that declares the type of unconverted data
			. type? string: a type of samples, where it is another one than that of the aggregate, such as '"cf32"' of converted complex samples
			-> samples
			Of an aggregate's data: the numbers of its slots. Slots of which a part is missing are not there; 'raw' counts them.
			> local x = a.data:samples(1, { type = "i8" })
			> print(#x, x.raw)`},
			{"hex", packetHex, `- offset integer = 0, bytes: from the packet's start
			- length? integer, bytes: by default all of the rest
			-> string
			A part of the packet as hexadecimal digits.
			> print(p:hex(0, 14))`},
		}),
	meta: []entry{
		{name: "__len", fn: func(c *call) int {
			p, _ := row.Userdata[*packet](c.L.Get(1))
			return c.Push(lua.LNumber(p.length(c.L)))
		}},
		{name: "__tostring", fn: func(c *call) int {
			p, _ := row.Userdata[*packet](c.L.Get(1))
			if !p.of.b.Live() {
				return c.Push(lua.LString("packet (" + p.of.gone() + ")"))
			}
			return c.Push(lua.LString(fmt.Sprintf("packet of %d bytes", p.length(c.L))))
		}},
	},
}

// burstPacket implements b:packet(i, segment); packets and segments count from 1.
func burstPacket(c *call) int {
	b := selfBurst(c)
	p := &packet{of: b, i: c.Index(1, "packet", b.b.N()), seg: c.segment(2, b)}
	p.data(c.L)
	return c.Push(c.rt.newObject(p))
}

// data returns the packet's memory, valid until the burst ends.
func (p *packet) data(L *lua.LState) []byte {
	p.of.check(L)
	data, err := p.of.b.Packet(p.seg, p.i)
	if err != nil {
		row.RaiseError(L, err)
	}
	return data
}

// length returns the packet's bytes; it is also valid for packets in device-only memory.
func (p *packet) length(L *lua.LState) int {
	p.data(L) // the burst may have fewer packets now
	lengths, err := p.of.b.Lengths(p.seg)
	if err != nil {
		row.RaiseError(L, err)
	}
	return int(lengths[p.i])
}

// cut returns bytes [from, to) of the packet; the caller has checked the range.
func (p *packet) cut(c *call, from, to int) []byte {
	data := p.data(c.L)
	if to > len(data) {
		c.Check(p.of.b.Beyond(p.seg))
	}
	return data[from:to]
}

// at returns size bytes at the offset in argument n.
func (p *packet) at(c *call, n, size int) []byte {
	length := p.length(c.L)
	if length < size {
		c.ArgError(n, "%d bytes do not fit into a packet of %d", size, length)
	}
	off := int(c.Whole(n, "offset", 0, int64(length-size)))
	return p.cut(c, off, off+size)
}

// packetNumbers returns the methods that read and write integers of size bytes.
func packetNumbers(size int, order binary.ByteOrder, suffix string) []entry {
	name := fmt.Sprintf("u%d%s", 8*size, suffix)
	what, result := fmt.Sprintf("%d bytes, ", size), "integer"
	switch {
	case size == 1:
		what = "a byte"
	case order == binary.LittleEndian:
		what += "the lowest first (little endian)"
	default:
		what += "the highest first (network byte order)"
	}
	if size == 8 {
		result = "u64"
	}
	return []entry{
		{name, packetGet(size, order), fmt.Sprintf(`- offset integer, bytes: from the packet's start
			-> %s
			Reads %s.
			> print(p:%s(12))`, result, what, name)},
		{"set_" + name, packetSet(size, order), fmt.Sprintf(`- offset integer, bytes: from the packet's start
			- v integer | u64: from 0 on; it has to fit
			Writes %s.
			> p:set_%s(42, 7)`, what, name)},
	}
}

func packetGet(size int, order binary.ByteOrder) function {
	return func(c *call) int {
		p := receiver[*packet](c, "packet")
		at := p.at(c, 1, size)
		switch size {
		case 1:
			return c.Push(lua.LNumber(at[0]))
		case 2:
			return c.Push(lua.LNumber(order.Uint16(at)))
		case 4:
			return c.Push(lua.LNumber(order.Uint32(at)))
		}
		return c.Push(c.rt.newU64(order.Uint64(at)))
	}
}

func packetSet(size int, order binary.ByteOrder) function {
	return func(c *call) int {
		p := receiver[*packet](c, "packet")
		p.mayWrite(c)
		at := p.at(c, 1, size)
		v := c.Bits(2, "value", size*8)
		switch size {
		case 1:
			at[0] = byte(v)
		case 2:
			order.PutUint16(at, uint16(v))
		case 4:
			order.PutUint32(at, uint32(v))
		default:
			order.PutUint64(at, v)
		}
		return 0
	}
}

func (p *packet) mayWrite(c *call) {
	p.of.check(c.L)
	c.Check(p.of.b.Beyond(p.seg))
	c.Check(p.of.b.Writable())
}

// packetBytes implements p:bytes(offset, length): a string, by default up to the packet's end.
func packetBytes(c *call) int {
	p := receiver[*packet](c, "packet")
	return c.Push(lua.LString(p.part(c)))
}

func (p *packet) part(c *call) []byte {
	length, off := p.length(c.L), 0
	if c.Arg(1) != lua.LNil {
		off = int(c.Whole(1, "offset", 0, int64(length)))
	}
	n := length - off
	if c.Arg(2) != lua.LNil {
		n = int(c.Whole(2, "length", 0, int64(n)))
	}
	return p.cut(c, off, off+n)
}

func packetSetBytes(c *call) int {
	p := receiver[*packet](c, "packet")
	p.mayWrite(c)
	s := c.Str(2, "string of bytes")
	copy(p.at(c, 1, len(s)), s)
	return 0
}

func packetHex(c *call) int {
	p := receiver[*packet](c, "packet")
	return c.Push(lua.LString(hex.EncodeToString(p.part(c))))
}

// moduleHex implements daqiri.hex: two digits per byte of a string.
func moduleHex(c *call) int {
	s := c.Str(1, "string")
	lua51.Reserve(c.L, 2*uint64(len(s)))
	return c.Push(lua.LString(hex.EncodeToString([]byte(s))))
}
