package bindings

import (
	"encoding/binary"
	"fmt"
	"sort"
	"syscall"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/row"
	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/task"
)

// connection is a TCP or RDMA connection, or a UDP peer. Hot: hand-written metatable.
type connection struct {
	c     *session.Conn
	of    *RunningSession
	left  *lua.LFunction // on_disconnect
	value *lua.LUserData
	get   getter
	ends  *completions // on_completion
}

func (*connection) LuaType() string { return "connection" }

var connectionType = &typeDef{
	name: "connection",
	self: "c",
	doc: `a connection
		A TCP connection or a UDP peer of a socket interface, from 'i:on_connection', 'i:connect', 'i:connection' or 'b.connection'.`,
	fields: []field{
		{"id", `-> integer
			Its number, unique in its interface.
			> print(c.id)`},
		{"local_addr", `-> string: 'ADDRESS:PORT'
			Address and port here.
			> print(c.local_addr)`},
		{"open", `-> boolean
			Whether it is open.
			> print(c.open)`},
		{"peer", `-> string: 'ADDRESS:PORT'
			Address and port there.
			> print(c.peer)`},
		{"private_data", `-> string
			What its peer gave when it asked for the connection ('i:connect{ private_data }') or took it. A peer that does not run daqiri-run has zeros up to the connection
			manager's 56, 180 or 196 bytes. Only connections of 'roce://' have some.
			> print(c.private_data)`},
		{"qp", `-> table | nil
			Our end of a connection that 'i:connect{ qp }' makes, as its peer has to know it, and as another's 'c:join' takes it: 'qpn', 'psn', 'gid', 'lid', 'qkey'
			and 'mtu', in bytes.
			> print(c.qp and c.qp.qpn)`},
		{"remotes", `-> table
			What its peer lends, by name: 'addr', 'rkey', 'bytes', 'readable', 'writable', 'slots', 'slot_bytes'. Only connections of 'roce://' have some.
			> print(c.remotes.ring)`},
		{"queue", `-> integer
			The id of its receive queue, or where there is none of its transmit queue.
			> print(c.queue)`},
	},
	get: func(rt *Runtime, L *lua.LState, self any, key lua.LValue) lua.LValue {
		x := self.(*connection)
		if key == lua.LString("remotes") {
			return x.remotes(rt, L)
		}
		if key == lua.LString("qp") {
			return x.queuePair(L)
		}
		if key == lua.LString("id") {
			return lua.LNumber(x.c.ID())
		}
		if key == lua.LString("queue") {
			return connectionQueue(L, x)
		}
		if key != lua.LString("peer") && key != lua.LString("local_addr") && key != lua.LString("open") && key != lua.LString("private_data") {
			return nil
		}
		info, err := x.c.Info()
		if err != nil {
			row.RaiseError(L, err)
		}
		switch key {
		case lua.LString("peer"):
			return lua.LString(info.Peer)
		case lua.LString("local_addr"):
			return lua.LString(info.Local)
		case lua.LString("private_data"):
			return lua.LString(info.Private)
		}
		return lua.LBool(info.Open)
	},
	methods: []entry{
		{"alloc", connectionAlloc, `- n? integer = batch_size, packets: at most batch_size
			- region? region_name: takes their buffers there, for operations of this connection alone ('c:message', 'c:receive', 'c:write', 'c:read')
			-> burst | failure
			A burst to send, as 'q:alloc' makes it.
			> local b = assert(c:alloc(1))`},
		{"close", connectionClose, `-> true | failure
			Closes it, when what was sent on it has gone, or its peer has taken nothing for 5 s.
			> c:close()`},
		{"compare_swap", connectionCompareSwap, `- name string: that its peer lends memory under
			- offset integer, bytes: a multiple of 8
			- was u64 | integer: what has to be there
			- value u64 | integer: what is put there then
			. wr_id? any: 'w[i].wr_id' of 'on_completion'
			-> op | failure
			Changes 8 bytes of the peer's memory, in its order of bytes, if they are what is expected; 'op.value' is what was there. Of 'roce://' connections.
			> local op, status, why = c:compare_swap("ring", 0, 0, 1)`},
		{"fetch_add", connectionFetchAdd, `- name string: that its peer lends memory under
			- offset integer, bytes: a multiple of 8
			- value u64 | integer: modulo 2^64
			. wr_id? any: 'w[i].wr_id' of 'on_completion'
			-> op | failure
			Adds to 8 bytes of the peer's memory, in its order of bytes; 'op.value' is what was there. Of 'roce://' connections.
			> local op, status, why = c:fetch_add("ring", 0, 1)`},
		{"get_burst", connectionGetBurst, row.GetBurstRows + `Waits for the next burst of this connection; nil, '"NOT_READY"', text at the timeout.
			> local b = c:get_burst{ timeout_us = 1000 }`},
		{"join", connectionJoin, pairRows + `-> true | failure
			Sets the peer of a queue pair that 'i:connect{ qp = {} }' has made: the connection is open then. Of 'roce://' connections.
			> local ok, status, why = c:join{ qpn = 17, psn = 4711, addr = "10.9.0.2" }`},
		{"lend", connectionLend, `- region region_name: in which no queue has its packets, and whose 'access' allows it
			. name? string: that the peer finds it by, at most 47 bytes; by default the region's
			. access "rdma_read" | "rdma_write" | "rdma_read_write" = "rdma_write": what the peer may do
			. slots? integer: how many slots it is divided into; the peer receives the number
			. slot_bytes? integer, bytes: of each slot
			-> lease | failure
			Lends a region to the peer. If the peer is a daqiri-run with a receive queue, its 'c.remotes' lists the region. Of 'roce://' connections.
			> local lease, status, why = c:lend("others", { name = "ring" })`},
		{"message", connectionMessage, `- b burst: which ends with the call, unless it fails
			. imm? integer: 32 bits that go beside its last packet; '0xffffffff' is the engine's own
			. wr_id? any: 'w[i].wr_id' of 'on_completion'
			-> op | failure
			Sends each packet as a message, and reports the completion, unlike 'c:send'; an immediate value is 'b.imm[i]' there. Of 'roce://' connections.
			> local op, status, why = c:message(c:alloc(1):fill(tpl), { imm = 7 })`},
		{"on_burst", connectionOnBurst, row.OnBurstRows + `-> connection: itself
			Has a function called with each burst of this connection, as 'q:on_burst' does of a queue, from then on. What came before went to the queue's own
			pipes.
			> c:on_burst(function(b) print(b.n) end)`},
		{"on_completion", connectionOnCompletion, `- fn fun(w: table): called with operations that have ended
			Has a function called with the operations of this connection, begun from then on, that have ended: 'w.n' of them, 'w.status' ("SUCCESS", or the first
			failure) and of each 'w[i].op', '.status', '.bytes' and '.wr_id'.
			> c:on_completion(function(w) print(w.n, w.status) end)`},
		{"on_disconnect", connectionOnDisconnect, `- fn fun(why: string): called once
			Has a function called when the connection ends, or could not be made. A peer that ends its stream ("closed by the peer") may still read. It still
			gets what was sent to it by the end of this handler, or without one of the last 'on_burst' handler.
			> c:on_disconnect(function(why) print(why) end)`},
		{"read", connectionRead, `- name string: that its peer lends memory under
			- offset integer, bytes: from where on
			- bytes integer | burst: how many, at most what a burst of its transmit queue holds; or what they are read into
			. wr_id? any: 'w[i].wr_id' of 'on_completion'
			-> op | failure
			Reads the peer's memory; 'op.burst' has it at the end. Of 'roce://' connections.
			> local op, status, why = c:read("ring", 0, 64)`},
		{"receive", connectionReceive, `- b burst: whose packets, as long as they are, take the peer's next messages in turn; it ends with the call, unless it fails
			. wr_id? any: 'w[i].wr_id' of 'on_completion'
			-> op | failure
			Receives where the receive queue has no regions of its own: 'op.burst' is the burst, with the messages' lengths. Of 'roce://' connections.
			> local op, status, why = c:receive(c:alloc(1):fill(tpl))`},
		{"send", connectionSend, `- b burst: which ends with the call, unless it fails
			-> true | failure
			Sends a burst on this connection, as 'q:send' does. nil, '"NO_SPACE_AVAILABLE"', text also while its peer doesn't read and it has had its share of
			the queue (figure 'refused'); other connections continue.
			> assert(c:send(c:alloc(1):fill(tpl)))`},
		{"setsockopt", connectionSetSockopt, `- level string | integer: '"SOL_SOCKET"', '"IPPROTO_TCP"', …
			- option string | integer: '"SO_RCVBUF"', '"TCP_NODELAY"', …
			- value integer | boolean | string: a C int, or bytes
			-> true | failure
			Sets an option of its socket, as setsockopt(2).
			> c:setsockopt("SOL_SOCKET", "SO_KEEPALIVE", true)`},
		{"tell", connectionTell, `- name string: by which 'c:write' and 'c:read' find it
			. addr u64 | integer | string: where it is there
			. rkey u64 | integer | string: its key
			. bytes u64 | integer | string: how long it is
			-> true | failure
			Sets what a peer lends that does not run daqiri-run and can't announce it. Of 'roce://' connections.
			> local ok, status, why = c:tell("ring", { addr = 4096, rkey = 17, bytes = 64 })`},
		{"write", connectionWrite, `- b burst: which ends with the call, unless it fails
			- name string: that its peer lends memory under
			- offset integer, bytes: from where on its packets go there, without gaps
			. imm? integer: 32 bits that the peer receives after it: 'b.imm[1]' of a message without bytes
			. wr_id? any: 'w[i].wr_id' of 'on_completion'
			-> op | failure
			Writes into the peer's memory; without 'imm' the peer is not notified. Of 'roce://' connections.
			> local op, status, why = c:write(c:alloc(1):fill(tpl), "ring", 0)`},
	},
	meta: []entry{{name: "__tostring", fn: func(c *call) int {
		x, _ := row.Userdata[*connection](c.L.Get(1))
		return c.Push(lua.LString(fmt.Sprintf("connection %d of %s", x.c.ID(), x.c.Interface().Name())))
	}}},
}

// connectionQueue returns the id of the connection's receive queue, or of its transmit queue if it has no receive queue.
func connectionQueue(L *lua.LState, x *connection) lua.LValue {
	q, err := x.c.RxQueue()
	if err != nil {
		q, err = x.c.TxQueue()
	}
	if err != nil {
		row.RaiseError(L, err)
	}
	return lua.LNumber(q.ID())
}

// listener receives the connect and disconnect events of one interface.
type listener struct {
	i     *iface
	fn    *lua.LFunction // on_connection
	conns map[uint32]*connection
}

// listener returns this state's listener for the interface, creating it on first use.
func (c *call) listener(i *iface) *listener {
	if l := c.rt.listeners[i.i]; l != nil {
		return l
	}
	l, err := c.rt.listen(i)
	c.Check(err)
	return l
}

func (rt *Runtime) listen(i *iface) (*listener, error) {
	l := &listener{i: i, conns: map[uint32]*connection{}}
	if err := i.i.Listen(rt.Task, l); err != nil {
		return nil, err
	}
	if rt.listeners == nil {
		rt.listeners = map[*session.Interface]*listener{}
	}
	rt.listeners[i.i] = l
	return l, nil
}

// conn returns the connection object for an id; there is one object per id.
func (l *listener) conn(rt *Runtime, id uint32) *connection {
	x := l.conns[id]
	if x == nil {
		x = &connection{c: l.i.i.Conn(id), of: l.i.of}
		x.value = rt.newObject(x)
		l.conns[id] = x
	}
	return x
}

// watchServers listens for failed connects of client interfaces, including those for which the script registers no handler, and logs them. It is
// called before the start because each cause is reported once, and does nothing if there are several tasks, any of which may register for the
// events.
func (rt *Runtime) watchServers(o *RunningSession) {
	if len(rt.Scheduler.Tasks()) > 1 {
		return
	}
	for _, i := range o.s.Interfaces() {
		if i.Server() == "" || rt.listeners[i] != nil {
			continue
		}
		if _, err := rt.listen(&iface{i, o}); err != nil {
			rt.Log("debug", err.Error(), nil)
		}
	}
}

func (l *listener) deliver(rt *Runtime, L *lua.LState, it *task.Item) {
	code := it.Event.Code
	if it.Event.Conn == 0 { // reported once per cause
		rt.Log("warn", fmt.Sprintf("interface %s: %s: %v; it is tried again, after pauses that double up to 30 s",
			l.i.i.Name(), l.i.i.Server(), code), nil)
		return
	}
	x := l.conn(rt, it.Event.Conn)
	if it.Kind == task.Connect && code == 0 {
		if l.fn != nil {
			rt.handle(L, inHandler, l.fn, x.value)
		}
		return
	}
	delete(l.conns, x.c.ID())
	why := "closed by the peer"
	if code != 0 {
		why = code.Error()
	}
	if x.left != nil {
		rt.handle(L, inHandler, x.left, lua.LString(why))
	}
	x.c.Forget(rt.Task)
}

// connectionOf returns the connection from which a burst arrived, or nil for a queue without connections.
func (rt *Runtime) connectionOf(b *burst) lua.LValue {
	id := b.b.ConnID()
	if id == 0 {
		return lua.LNil
	}
	i := b.b.Queue().Interface()
	if l := rt.listeners[i]; l != nil {
		return l.conn(rt, id).value
	}
	return rt.newObject(&connection{c: i.Conn(id), of: b.of})
}

// interfaceOnConnection implements i:on_connection(fn(c)): accepted connections, and those opened by connect.
func interfaceOnConnection(c *call) int {
	l := c.listener(selfInterface(c))
	l.fn = c.Func(1, "function(connection)")
	c.rt.listening++
	return 0
}

// interfaceConnect implements i:connect{address, src_addr} and i:connect{qp}; it returns before the connection is established.
func interfaceConnect(c *call) int {
	i := selfInterface(c)
	o := c.options(1)
	l := c.listener(i)
	conn, err := c.connect(i, o)
	if err != nil {
		return c.refuse(err)
	}
	c.Check(o.sendRemotes(conn))
	return c.Push(l.conn(c.rt, conn.ID()).value)
}

func (c *call) connect(i *iface, o *options) (*session.Conn, error) {
	if o.Has("qp") {
		return c.connectByHand(i, o)
	}
	o.Need("address")
	return i.i.Connect(session.Connecting{Address: o.Str("address", ""), Local: o.Str("src_addr", ""), Private: o.Str("private_data", "")})
}

// interfaceConnection implements i:connection(id). Without an id it returns the interface as a connection: its peer is the default peer and its
// socket options apply to all connections.
func interfaceConnection(c *call) int {
	i := selfInterface(c)
	id := uint32(0)
	if c.Arg(1) != lua.LNil {
		id = uint32(c.Whole(1, "connection id", 1, 1<<32-1))
	}
	x := &connection{c: i.i.Conn(id), of: i.of}
	if _, err := x.c.Info(); err != nil {
		return c.refuse(err)
	}
	if l := c.rt.listeners[i.i]; l != nil && id != 0 {
		return c.Push(l.conn(c.rt, id).value)
	}
	return c.Push(c.rt.newObject(x))
}

func selfConnection(c *call) *connection {
	x := receiver[*connection](c, "connection")
	x.of.check(c)
	return x
}

func connectionOnDisconnect(c *call) int {
	x := selfConnection(c)
	i := &iface{x.c.Interface(), x.of}
	l := c.listener(i)
	if known := l.conns[x.c.ID()]; known != nil {
		x = known
	}
	l.conns[x.c.ID()] = x
	x.left = c.Func(1, "function(why)")
	c.rt.listening++
	return 0
}

func connectionOnBurst(c *call) int {
	x := selfConnection(c)
	c.Func(1, "function(burst)")
	c.listener(&iface{x.c.Interface(), x.of}) // receives the disconnect event, which closes the tap
	return c.onBurst(x.of, x.c, x.c.Tap, "")
}

// connectionGetBurst implements c:get_burst{timeout_us}, like q:get_burst for one connection.
func connectionGetBurst(c *call) int {
	x := selfConnection(c)
	return c.getBurst(x.of, &x.get, fmt.Sprintf("connection %d", x.c.ID()), func(g *getter) (*session.Tap, error) {
		return x.c.Tap(c.rt.Task, g, session.TapOptions{Policy: session.Wait})
	})
}

// connectionAlloc implements c:alloc(n): a burst of the connection's transmit queue.
func connectionAlloc(c *call) int {
	x := selfConnection(c)
	q, err := x.c.TxQueue()
	if err != nil {
		return c.refuse(err)
	}
	if c.Arg(2) == lua.LNil {
		return c.alloc(q, x.of)
	}
	r, err := x.of.s.Region(c.Str(2, "region name"))
	c.Check(err)
	b, err := x.c.AllocIn(c.rt.leases, r, int(c.Whole(1, "packets", 1, int64(q.BatchSize()))))
	if err != nil {
		return c.refuse(err)
	}
	return c.Push(c.rt.newBurst(b, x.of))
}

// connectionSend implements c:send(b): it consumes the burst if it returns true.
func connectionSend(c *call) int {
	x := selfConnection(c)
	return c.sendBurst(x.of, x.c.Send)
}

func connectionClose(c *call) int {
	if err := selfConnection(c).c.Close(); err != nil {
		return c.refuse(err)
	}
	return c.Push(lua.LTrue)
}

// sockoptLevels and sockoptNames are the names known to c:setsockopt; others are given as numbers. Linux values that package syscall lacks are
// from <asm-generic/socket.h>.
var sockoptLevels = map[string]int{
	"SOL_SOCKET": syscall.SOL_SOCKET, "IPPROTO_IP": syscall.IPPROTO_IP, "IPPROTO_IPV6": syscall.IPPROTO_IPV6,
	"IPPROTO_TCP": syscall.IPPROTO_TCP, "IPPROTO_UDP": syscall.IPPROTO_UDP,
}

var sockoptNames = map[string]int{
	"SO_RCVBUF": syscall.SO_RCVBUF, "SO_SNDBUF": syscall.SO_SNDBUF, "SO_RCVBUFFORCE": syscall.SO_RCVBUFFORCE,
	"SO_SNDBUFFORCE": syscall.SO_SNDBUFFORCE, "SO_KEEPALIVE": syscall.SO_KEEPALIVE, "SO_PRIORITY": syscall.SO_PRIORITY,
	"SO_MARK": syscall.SO_MARK, "SO_BUSY_POLL": 46, "SO_REUSEADDR": syscall.SO_REUSEADDR, "SO_LINGER": syscall.SO_LINGER,
	"IP_TOS": syscall.IP_TOS, "IP_TTL": syscall.IP_TTL, "IP_MULTICAST_TTL": syscall.IP_MULTICAST_TTL,
	"IP_MULTICAST_LOOP": syscall.IP_MULTICAST_LOOP, "IP_MULTICAST_IF": syscall.IP_MULTICAST_IF,
	"IPV6_UNICAST_HOPS": syscall.IPV6_UNICAST_HOPS, "IPV6_MULTICAST_HOPS": syscall.IPV6_MULTICAST_HOPS,
	"IPV6_MULTICAST_LOOP": syscall.IPV6_MULTICAST_LOOP, "IPV6_TCLASS": syscall.IPV6_TCLASS,
	"TCP_NODELAY": syscall.TCP_NODELAY, "TCP_QUICKACK": syscall.TCP_QUICKACK, "TCP_MAXSEG": syscall.TCP_MAXSEG,
	"TCP_KEEPIDLE": syscall.TCP_KEEPIDLE, "TCP_KEEPINTVL": syscall.TCP_KEEPINTVL, "TCP_KEEPCNT": syscall.TCP_KEEPCNT,
}

// connectionSetSockopt implements c:setsockopt(level, option, value): level and option are numbers or names; the value is a number (a C int) or a
// string of bytes.
func connectionSetSockopt(c *call) int {
	x := selfConnection(c)
	level := c.constant(1, "level", sockoptLevels)
	option := c.constant(2, "option", sockoptNames)
	var value []byte
	switch v := c.Arg(3).(type) {
	case lua.LString:
		value = []byte(v)
	case lua.LBool:
		value = binary.NativeEndian.AppendUint32(nil, map[bool]uint32{true: 1}[bool(v)])
	default:
		value = binary.NativeEndian.AppendUint32(nil, uint32(c.Whole(3, "value", -1<<31, 1<<32-1)))
	}
	if err := x.c.SetSockopt(level, option, value); err != nil {
		return c.refuse(err)
	}
	return c.Push(lua.LTrue)
}

// constant reads a number or one of the names.
func (c *call) constant(n int, what string, names map[string]int) int {
	s, ok := c.Arg(n).(lua.LString)
	if !ok {
		return int(c.Whole(n, what, 0, 1<<31-1))
	}
	if v, ok := names[string(s)]; ok {
		return v
	}
	var known []string
	for name := range names {
		known = append(known, name)
	}
	sort.Strings(known)
	c.ArgError(n, "%s", row.Unknown(what, string(s), known))
	return 0
}
