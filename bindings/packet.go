package bindings

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"

	lua "github.com/yuin/gopher-lua"
)

// packet is a view of one packet of a burst, bounds-checked, in host memory. It is for looking, not
// for moving: bulk work has a burst verb. Offsets are bytes from the packet's start, from 0. Hot.
type packet struct {
	of     *burst
	seg, i int
}

func (*packet) luaType() string { return "packet" }

var packetType = &typeDef{
	name:   "packet",
	fields: []string{"length", "peer"},
	get: func(_ *Runtime, L *lua.LState, self any, key lua.LValue) lua.LValue {
		p := self.(*packet)
		switch key {
		case lua.LString("length"):
			return lua.LNumber(len(p.data(L)))
		case lua.LString("peer"):
			p.of.check(L)
			if peer, err := p.of.b.Peer(p.i); err == nil && peer != "" {
				return lua.LString(peer)
			}
			return lua.LNil
		}
		return nil
	},
	methods: []entry{
		{"u8", packetGet(1, nil)}, {"set_u8", packetSet(1, nil)},
		{"u16", packetGet(2, binary.BigEndian)}, {"set_u16", packetSet(2, binary.BigEndian)},
		{"u32", packetGet(4, binary.BigEndian)}, {"set_u32", packetSet(4, binary.BigEndian)},
		{"u64", packetGet(8, binary.BigEndian)}, {"set_u64", packetSet(8, binary.BigEndian)},
		{"u16_le", packetGet(2, binary.LittleEndian)}, {"set_u16_le", packetSet(2, binary.LittleEndian)},
		{"u32_le", packetGet(4, binary.LittleEndian)}, {"set_u32_le", packetSet(4, binary.LittleEndian)},
		{"u64_le", packetGet(8, binary.LittleEndian)}, {"set_u64_le", packetSet(8, binary.LittleEndian)},
		{"bytes", packetBytes}, {"set_bytes", packetSetBytes}, {"hex", packetHex},
	},
	meta: []entry{
		{"__len", func(c *call) int {
			p, _ := userdata[*packet](c.L.Get(1))
			return c.push(lua.LNumber(len(p.data(c.L))))
		}},
		{"__tostring", func(c *call) int {
			p, _ := userdata[*packet](c.L.Get(1))
			if !p.of.b.Live() {
				return c.push(lua.LString("packet (" + p.of.gone() + ")"))
			}
			return c.push(lua.LString(fmt.Sprintf("packet of %d bytes", len(p.data(c.L)))))
		}},
	},
}

// burstPacket is b:packet(i, segment); packets and segments count from 1.
func burstPacket(c *call) int {
	b := selfBurst(c)
	p := &packet{of: b, i: c.index(1, "packet", b.b.N()), seg: c.segment(2, b)}
	p.data(c.L)
	return c.push(c.rt.newObject(p))
}

// data is the packet's memory, valid until the script gives the burst away.
func (p *packet) data(L *lua.LState) []byte {
	p.of.check(L)
	data, err := p.of.b.Packet(p.seg, p.i)
	if err != nil {
		raiseError(L, err)
	}
	return data
}

// at is size bytes at the offset in argument n.
func (p *packet) at(c *call, n, size int) []byte {
	data := p.data(c.L)
	if len(data) < size {
		c.argError(n, "%d bytes do not fit into a packet of %d", size, len(data))
	}
	off := int(c.whole(n, "offset", 0, int64(len(data)-size)))
	return data[off : off+size]
}

func packetGet(size int, order binary.ByteOrder) function {
	return func(c *call) int {
		p := receiver[*packet](c, "packet")
		at := p.at(c, 1, size)
		switch size {
		case 1:
			return c.push(lua.LNumber(at[0]))
		case 2:
			return c.push(lua.LNumber(order.Uint16(at)))
		case 4:
			return c.push(lua.LNumber(order.Uint32(at)))
		}
		return c.push(c.rt.newU64(order.Uint64(at)))
	}
}

func packetSet(size int, order binary.ByteOrder) function {
	return func(c *call) int {
		p := receiver[*packet](c, "packet")
		p.mayWrite(c)
		at := p.at(c, 1, size)
		v := c.bits(2, "value", size*8)
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
	c.check(p.of.b.Writable())
}

// packetBytes is p:bytes(offset, length): a string, by default all of the rest.
func packetBytes(c *call) int {
	p := receiver[*packet](c, "packet")
	return c.push(lua.LString(p.part(c)))
}

func (p *packet) part(c *call) []byte {
	data := p.data(c.L)
	off := 0
	if c.arg(1) != lua.LNil {
		off = int(c.whole(1, "offset", 0, int64(len(data))))
	}
	n := len(data) - off
	if c.arg(2) != lua.LNil {
		n = int(c.whole(2, "length", 0, int64(n)))
	}
	return data[off : off+n]
}

func packetSetBytes(c *call) int {
	p := receiver[*packet](c, "packet")
	p.mayWrite(c)
	s := c.str(2, "string of bytes")
	copy(p.at(c, 1, len(s)), s)
	return 0
}

func packetHex(c *call) int {
	p := receiver[*packet](c, "packet")
	return c.push(lua.LString(hex.EncodeToString(p.part(c))))
}

// moduleHex is daqiri.hex: the bytes of a string, two digits each.
func moduleHex(c *call) int {
	s := c.str(1, "string")
	reserve(c.L, 2*uint64(len(s)))
	return c.push(lua.LString(hex.EncodeToString([]byte(s))))
}
