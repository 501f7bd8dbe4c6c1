package bindings

import (
	"encoding/binary"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/row"
	"github.com/daqiri/daqiri-run/runtime/session"
)

// Operations on a peer's memory, and regions exported to peers (RDMA).

// completions calls a script function with the completed operations of a connection; one call reports all that completed since the last call.
type completions struct {
	fn  *lua.LFunction
	ops []*op // in flight, in posting order
}

// ended reports the operations that completed since the last call.
func (x *completions) ended(rt *Runtime, L *lua.LState) {
	w, rest := L.NewTable(), x.ops[:0]
	status := "SUCCESS"
	for _, o := range x.ops {
		s := o.w.State()
		if !s.Done {
			rest = append(rest, o)
			continue
		}
		t := L.NewTable()
		t.RawSetString("op", o.self)
		t.RawSetString("bytes", lua.LNumber(s.Bytes))
		t.RawSetString("wr_id", o.wrID)
		t.RawSetString("status", lua.LString("SUCCESS"))
		if err := o.w.Error(); err != nil {
			t.RawSetString("status", lua.LString(err.Error()))
			if status == "SUCCESS" {
				status = err.Error()
			}
		}
		w.Append(t)
	}
	x.ops = rest
	if w.Len() == 0 {
		return // already reported
	}
	w.RawSetString("n", lua.LNumber(w.Len()))
	w.RawSetString("status", lua.LString(status))
	rt.handle(L, inHandler, x.fn, w)
}

// begun creates the operation object and registers it for the connection's completion callback.
func (c *call) begun(x *connection, w *session.Op, data *session.Burst, opts *options) int {
	o := &op{w: w, data: data, of: x.of, wrID: opts.Get("wr_id")}
	o.self = c.rt.newObject(o)
	if x.ends != nil {
		o.ends = x.ends
		x.ends.ops = append(x.ends.ops, o)
		o.watch(c)
	}
	return c.Push(o.self)
}

// burstArg returns argument n, a burst that has not ended.
func (c *call) burstArg(n int) *burst {
	b, ok := row.Userdata[*burst](c.Arg(n))
	if !ok {
		c.Wanted(n, "burst")
	}
	if !b.b.Live() {
		c.ArgError(n, "%s", b.gone())
	}
	return b
}

// imm reads the option "imm"; nil if absent.
func (o *options) imm() *uint32 {
	if !o.Has("imm") {
		return nil
	}
	v := uint32(o.Whole("imm", 0, 0, 1<<32-1))
	return &v
}

// connectionWrite implements c:write(b, name, offset, {imm, wr_id}).
func connectionWrite(c *call) int {
	x, b := selfConnection(c), c.burstArg(1)
	name, at := c.Str(2, "name"), uint64(c.Whole(3, "offset", 0, row.MaxInt))
	opts := c.options(4)
	x.of.running(c)
	w, err := x.c.Write(b.b, name, at, opts.imm())
	if err != nil {
		return c.refuse(err)
	}
	b.consumed(c.L, "written")
	return c.begun(x, w, nil, opts)
}

// connectionRead implements c:read(name, offset, bytes, {wr_id}).
func connectionRead(c *call) int {
	x := selfConnection(c)
	name, at := c.Str(1, "name"), uint64(c.Whole(2, "offset", 0, row.MaxInt))
	opts := c.options(4)
	x.of.running(c)
	if b, ok := row.Userdata[*burst](c.Arg(3)); ok {
		c.burstArg(3)
		w, err := x.c.ReadInto(b.b, name, at)
		if err != nil {
			return c.refuse(err)
		}
		return c.begun(x, w, b.lentOut(c, "given to a read"), opts)
	}
	n := uint64(c.Whole(3, "bytes", 1, row.MaxInt))
	w, b, err := x.c.Read(c.rt.leases, name, at, n)
	if err != nil {
		return c.refuse(err)
	}
	return c.begun(x, w, b, opts)
}

// u64Arg returns argument n as 64 bits.
func (c *call) u64Arg(n int) uint64 {
	v, err := toU64(c.Arg(n))
	if err != nil {
		c.ArgError(n, "%v", err)
	}
	return uint64(v)
}

// connectionFetchAdd implements c:fetch_add(name, offset, value, {wr_id}).
func connectionFetchAdd(c *call) int {
	x := selfConnection(c)
	name, at, v := c.Str(1, "name"), uint64(c.Whole(2, "offset", 0, row.MaxInt)), c.u64Arg(3)
	opts := c.options(4)
	x.of.running(c)
	w, b, err := x.c.FetchAdd(c.rt.leases, name, at, v)
	if err != nil {
		return c.refuse(err)
	}
	return c.begun(x, w, b, opts)
}

// connectionCompareSwap implements c:compare_swap(name, offset, was, value, {wr_id}).
func connectionCompareSwap(c *call) int {
	x := selfConnection(c)
	name, at := c.Str(1, "name"), uint64(c.Whole(2, "offset", 0, row.MaxInt))
	was, v := c.u64Arg(3), c.u64Arg(4)
	opts := c.options(5)
	x.of.running(c)
	w, b, err := x.c.CompareSwap(c.rt.leases, name, at, was, v)
	if err != nil {
		return c.refuse(err)
	}
	return c.begun(x, w, b, opts)
}

// connectionMessage implements c:message(b, {imm, wr_id}).
func connectionMessage(c *call) int {
	x, b := selfConnection(c), c.burstArg(1)
	opts := c.options(2)
	x.of.running(c)
	w, err := x.c.Message(b.b, opts.imm())
	if err != nil {
		return c.refuse(err)
	}
	b.consumed(c.L, "sent")
	return c.begun(x, w, nil, opts)
}

// connectionReceive implements c:receive(b, {wr_id}).
func connectionReceive(c *call) int {
	x, b := selfConnection(c), c.burstArg(1)
	opts := c.options(2)
	x.of.running(c)
	w, err := x.c.Receive(b.b)
	if err != nil {
		return c.refuse(err)
	}
	return c.begun(x, w, b.lentOut(c, "given to the peer's messages"), opts)
}

// lentOut ends the script's reference to the burst, which the operation returns as op.burst.
func (b *burst) lentOut(c *call, how string) *session.Burst {
	inner := b.b
	b.b = inner.Moved(how)
	b.consumed(c.L, how)
	return inner
}

// connectionOnCompletion implements c:on_completion(fn(w)).
func connectionOnCompletion(c *call) int {
	x := selfConnection(c)
	i := &iface{x.c.Interface(), x.of}
	if known := c.listener(i).conns[x.c.ID()]; known != nil {
		x = known
	}
	x.ends = &completions{fn: c.Func(1, "function(completions)")}
	return 0
}

// burst returns the data of a READ or an atomic; the script owns it from then on. nil before completion and after a failure.
func (o *op) burst(rt *Runtime) lua.LValue {
	s := o.w.State()
	if o.data == nil || !s.Done || s.Failed > 0 {
		return lua.LNil
	}
	if o.brought == nil && o.data.Received() == nil {
		o.brought = rt.newBurst(o.data, o.of)
	}
	if o.brought == nil {
		return lua.LNil
	}
	return o.brought
}

// value returns the 8 bytes that an atomic read.
func (o *op) value(rt *Runtime) lua.LValue {
	s := o.w.State()
	if o.data == nil || !s.Done || s.Failed > 0 || !o.data.Live() || o.data.Bytes() != 8 {
		return lua.LNil
	}
	p, err := o.data.Packet(0, 0)
	if err != nil {
		return lua.LNil
	}
	return rt.newU64(binary.NativeEndian.Uint64(p))
}

// ---- exported regions ---------------------------------------------------------------------------------------

// lease is a region exported to peers. Cold.
type lease struct{ l *session.Lease }

func (*lease) LuaType() string { return "lease" }

var leaseType = &typeDef{
	name: "lease",
	self: "lease",
	doc: `a lease
		A region that is lent to the peer of a connection ('c:lend'): until it is revoked, or the session ends, the peer reads and writes there when it likes.`,
	fields: []field{
		{"addr", `-> integer | u64
			Its address here, as the peer names it.
			> local lease = c:lend("others")
			> if lease then print(lease.addr) end`},
		{"bytes", `-> integer, bytes
			How long it is.
			> local lease = c:lend("others")
			> if lease then print(lease.bytes) end`},
		{"name", `-> string
			The name that the peer knows it by.
			> local lease = c:lend("others")
			> if lease then print(lease.name) end`},
		{"rkey", `-> integer
			Its key, which each access needs.
			> local lease = c:lend("others")
			> if lease then print(lease.rkey) end`},
	},
	get: func(rt *Runtime, _ *lua.LState, self any, key lua.LValue) lua.LValue {
		l := self.(*lease).l
		switch key {
		case lua.LString("addr"):
			return rt.integer(l.Addr)
		case lua.LString("bytes"):
			return lua.LNumber(l.Remote.Bytes)
		case lua.LString("name"):
			return lua.LString(l.Name)
		case lua.LString("rkey"):
			return lua.LNumber(l.Key)
		}
		return nil
	},
	methods: []entry{
		{"get", leaseGet, `- offset integer, bytes: from the beginning
			- n integer, bytes: how many
			-> string
			What is there now: a peer that writes without an immediate value does not notify this side.
			> local lease = c:lend("others")
			> if lease then print(lease:get(0, 16)) end`},
		{"put", leasePut, `- offset integer, bytes: from the beginning
			- data string: what is put there
			Puts bytes there, for a peer that reads.
			> local lease = c:lend("others")
			> if lease then lease:put(0, "first") end`},
		{"revoke", leaseRevoke, `-> true | failure
			Takes it back: when it returns the peer can't reach it any more. What is under way fails, and the connection ends with it.
			> local lease = c:lend("others")
			> if lease then lease:revoke() end`},
	},
}

func leaseGet(c *call) int {
	l := receiver[*lease](c, "lease")
	p, err := l.l.Bytes(int(c.Whole(1, "offset", 0, row.MaxInt)), int(c.Whole(2, "bytes", 0, row.MaxInt)))
	c.Check(err)
	return c.Push(lua.LString(p))
}

func leasePut(c *call) int {
	l := receiver[*lease](c, "lease")
	c.Check(l.l.Put(int(c.Whole(1, "offset", 0, row.MaxInt)), []byte(c.Str(2, "bytes"))))
	return 0
}

func leaseRevoke(c *call) int {
	if err := receiver[*lease](c, "lease").l.Revoke(); err != nil {
		return c.refuse(err)
	}
	return c.Push(lua.LTrue)
}

var accessWords = map[string]session.Remote{
	"rdma_read": {Access: session.AccessRead}, "rdma_write": {Access: session.AccessWrite},
	"rdma_read_write": {Access: session.AccessRead | session.AccessWrite},
}

// connectionLend implements c:lend(region, {name, access, slots, slot_bytes}).
func connectionLend(c *call) int {
	x := selfConnection(c)
	r, err := x.of.s.Region(c.Str(1, "region name"))
	c.Check(err)
	o := c.options(2)
	what, ok := accessWords[o.Str("access", "rdma_write")]
	if !ok {
		o.Wrong("access", "rdma_read, rdma_write or rdma_read_write expected")
	}
	what.Name = o.Str("name", r.Name())
	what.Slots, what.SlotBytes = int(o.Whole("slots", 0, 0, 1<<31-1)), int(o.Whole("slot_bytes", 0, 0, 1<<31-1))
	l, err := x.c.Lend(r, what)
	if err != nil {
		return c.refuse(err)
	}
	return c.Push(c.rt.newObject(&lease{l}))
}

// remotes returns the regions exported by a connection's peer, by name.
func (x *connection) remotes(rt *Runtime, L *lua.LState) lua.LValue {
	list, err := x.c.Lent()
	if err != nil {
		row.RaiseError(L, err)
	}
	all := L.NewTable()
	for _, r := range list {
		t := L.NewTable()
		t.RawSetString("addr", rt.integer(r.Addr))
		t.RawSetString("rkey", lua.LNumber(r.Key))
		t.RawSetString("bytes", lua.LNumber(r.Bytes))
		t.RawSetString("readable", lua.LBool(r.Access&session.AccessRead != 0))
		t.RawSetString("writable", lua.LBool(r.Access&session.AccessWrite != 0))
		t.RawSetString("slots", lua.LNumber(r.Slots))
		t.RawSetString("slot_bytes", lua.LNumber(r.SlotBytes))
		all.RawSetString(r.Name, t)
	}
	return all
}

// remote reads the keys addr, rkey and bytes of t, which describe a peer's region.
func (o *options) remote(t *lua.LTable, key string) session.Remote {
	r := session.Remote{Access: session.AccessRead | session.AccessWrite}
	for _, f := range []struct {
		name string
		to   *uint64
	}{{"addr", &r.Addr}, {"rkey", &r.Key}, {"bytes", &r.Bytes}} {
		n, err := toU64(t.RawGetString(f.name))
		if err != nil {
			o.Wrong(key, "%s: %v", f.name, err)
		}
		*f.to = uint64(n)
	}
	return r
}

// connectionTell implements c:tell(name, {addr, rkey, bytes}).
func connectionTell(c *call) int {
	x := selfConnection(c)
	name := c.Str(1, "name")
	o := c.options(2)
	r := o.remote(o.Table, "addr")
	r.Name = name
	if err := x.c.DeclareLent(r); err != nil {
		return c.refuse(err)
	}
	return c.Push(lua.LTrue)
}

// sendRemotes reads the option remote: a table {addr, rkey, bytes} per name.
func (o *options) sendRemotes(conn *session.Conn) (err error) {
	if !o.Has("remote") {
		return nil
	}
	t, ok := o.Get("remote").(*lua.LTable)
	if !ok {
		o.Wrong("remote", "a table by name of {addr, rkey, bytes} expected")
	}
	t.ForEach(func(k, v lua.LValue) {
		of, ok := v.(*lua.LTable)
		if !ok {
			o.Wrong("remote", "%s: {addr, rkey, bytes} expected", k)
		}
		r := o.remote(of, "remote")
		r.Name = k.String()
		if sendErr := conn.DeclareLent(r); err == nil {
			err = sendErr
		}
	})
	return err
}

// imms returns b.imm: the immediate value of each packet, false for none; nil if no packet has one.
func (b *burst) imms(L *lua.LState) lua.LValue {
	t, some := L.CreateTable(b.b.N(), 0), false
	for i := range b.b.N() {
		v, ok := b.b.Imm(i)
		some = some || ok
		if ok {
			t.RawSetInt(i+1, lua.LNumber(v))
		} else {
			t.RawSetInt(i+1, lua.LFalse)
		}
	}
	if !some {
		return lua.LNil
	}
	return t
}
