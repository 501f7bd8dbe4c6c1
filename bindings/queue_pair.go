package bindings

import (
	"net/netip"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/runtime/session"
)

// RDMA connections established manually, for peers without a connection manager.

// pairRows are the rows of the peer's queue pair options.
const pairRows = `. qpn integer: the number of its queue pair
			. psn integer: that of the first packet that it sends
			. addr? string: its address, of which its GID is made
			. gid? string: the same as '::ffff:10.9.0.2'
			. lid? integer = 0: where it is in an InfiniBand subnet; needs no 'gid' there
			. mtu? integer, bytes: of a packet on the wire, at most, where it has less than our port
			. qkey? integer = 0x01234567: of datagrams (UD)
			`

var pairKeys = []string{"addr", "gid", "lid", "mtu", "psn", "qkey", "qpn"}

// queuePair reads the options of the peer's queue pair.
func (o *options) queuePair() session.QueuePair {
	o.Need("qpn", "psn")
	p := session.QueuePair{
		QPN: uint32(o.Whole("qpn", 0, 0, 1<<24-1)), PSN: uint32(o.Whole("psn", 0, 0, 1<<24-1)),
		MTU: int(o.Whole("mtu", 0, 256, 4096)), QKey: uint32(o.Whole("qkey", session.QKey, 0, 1<<32-1)), LID: uint16(o.Whole("lid", 0, 0, 1<<16-1)),
	}
	if o.Has("addr") && o.Has("gid") {
		o.Wrong("addr", "gid has the same meaning: one of both is enough")
	}
	for _, key := range []string{"addr", "gid"} {
		if !o.Has(key) {
			continue
		}
		a, err := netip.ParseAddr(o.Str(key, ""))
		if err != nil || a.Zone() != "" || (key == "gid" && a.Is4()) {
			o.Wrong(key, "%q is not an address: '10.0.0.2' as addr is the gid '::ffff:10.0.0.2'", o.Str(key, ""))
		}
		p.GID = a
	}
	return p
}

// connectByHand implements i:connect{ qp }: it creates a queue pair and connects it if the peer's is given.
func (c *call) connectByHand(i *iface, o *options) (*session.Conn, error) {
	t, ok := o.Get("qp").(*lua.LTable)
	if !ok {
		o.Wrong("qp", "the peer's end expected, or an empty table: '{qpn = …, psn = …, addr = …}'")
	}
	if o.Has("address") || o.Has("src_addr") || o.Has("private_data") {
		o.Wrong("qp", "a connection that is made by hand has no address to connect to: leave out address, src_addr and private_data")
	}
	end := newOptions(c, o.Arg, t)
	end.Allow(pairKeys)
	known, _ := t.Next(lua.LNil)
	var peer session.QueuePair
	if known != lua.LNil {
		peer = end.queuePair()
	}
	conn, err := i.i.OpenQueuePair()
	if err != nil || known == lua.LNil {
		return conn, err
	}
	if err := conn.Join(peer); err != nil {
		_ = conn.Close() // not visible to the script yet
		return nil, err
	}
	return conn, nil
}

// connectionJoin implements c:join{qpn, psn, gid | addr | lid}.
func connectionJoin(c *call) int {
	x := selfConnection(c)
	o := c.options(1)
	if err := x.c.Join(o.queuePair()); err != nil {
		return c.refuse(err)
	}
	return c.Push(lua.LTrue)
}

// queuePair returns c.qp, the local queue pair; nil for a connection that was not established manually.
func (x *connection) queuePair(L *lua.LState) lua.LValue {
	p, err := x.c.QueuePair()
	if err != nil {
		return lua.LNil
	}
	t := L.NewTable()
	t.RawSetString("qpn", lua.LNumber(p.QPN))
	t.RawSetString("psn", lua.LNumber(p.PSN))
	t.RawSetString("gid", lua.LString(p.GID.String()))
	t.RawSetString("lid", lua.LNumber(p.LID))
	t.RawSetString("qkey", lua.LNumber(p.QKey))
	t.RawSetString("mtu", lua.LNumber(p.MTU))
	return t
}
