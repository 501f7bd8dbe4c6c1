package bindings

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/row"
	"github.com/daqiri/daqiri-run/bindings/value"
	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/spec"
)

// iface is an interface of a session. Cold, but hand-written because its methods change flows while packets move.
type iface struct {
	i  *session.Interface
	of *RunningSession
}

func (*iface) LuaType() string { return "interface" }

var interfaceType = &typeDef{
	name: "interface",
	self: "i",
	doc: `an interface
		A port that an engine serves ('s:interface').`,
	fields: []field{
		{"address", `-> string
			Its address, or its endpoint's URI.
			> print(i.address)`},
		{"engine", `-> string: loop, socket, xdp, dpdk or pcap
			The engine that serves it.
			> print(i.engine)`},
		{"mac", `-> string | nil
			Its Ethernet address; nil where it has none.
			> print(i.mac)`},
		{"name", `-> string
			Its name.
			> print(i.name)`},
	},
	get: func(_ *Runtime, _ *lua.LState, self any, key lua.LValue) lua.LValue {
		i := self.(*iface).i
		switch key {
		case lua.LString("name"):
			return lua.LString(i.Name())
		case lua.LString("address"):
			return lua.LString(i.Address())
		case lua.LString("engine"):
			return lua.LString(i.Engine())
		case lua.LString("mac"):
			if mac, err := i.MAC(); err == nil {
				return lua.LString(mac.String())
			}
			return lua.LNil // no MAC address
		}
		return nil
	},
	methods: []entry{
		{"add_flows", rxFlows.addFlows, `- group string: whatever the script calls them together
			- flows flow[]: all are added, or none
			-> integer[] | failure: their ids
			Adds receive flows. Actions before the queue take headers off, 'vlan_pop' and 'tunnel_decap', as in a configuration: the flow is for frames that have
			these, whole, and 'match' is asked of the frame inside.
			> local rx = s:interface("b")
			> local dns = { name = "dns", match = { udp_dst = 53 }, action = { type = "queue", id = 1 } }
			> local ids = rx:add_flows("dns", { dns })`},
		{"add_rx_queue", interfaceAddQueue(true), `- queue table: with the keys of 'rx.queues[]' in a configuration
			-> queue | failure
			Adds a receive queue to an open session, on engines loop, packet, xdp, ibverbs and dpdk, on an interface that has one already. It gets packets once a
			flow names it. Its 'batch_size' is at most the largest of the configuration's, its 'id' 0 to 31. '--cores' maps its 'cpu_core' as the others. The counts of a deleted queue with the same 'id' and 'name' continue: the ledger has one line for both.
			> local region = { name = "later", kind = "host", affinity = 0, num_bufs = 512, buf_size = 2048 }
			> assert(s:add_region(region))
			> local q = assert(s:interface("b"):add_rx_queue{ name = "more", id = 7, cpu_core = -1, batch_size = 8,
			>   memory_regions = { "later" } })`},
		{"add_tx_flows", txFlows.addFlows, `- group string: whatever the script calls them together
			- flows flow[]: all are added, or none
			-> integer[] | failure: their ids
			Adds transmit flows, while the session runs: 'vlan_push' and 'tunnel_encap' of the first flow that a frame matches, in the configuration's order and
			then in the groups'. Transmit flows have groups and ids of their own. A tunnel's 'outer_eth_src' and 'outer_eth_dst' may be '"auto"': the interface's
			own address, and that of the owner of the outer destination ('i:resolve').
			> local tag = { name = "tag", match = { udp_dst = 53 }, action = { type = "vlan_push", vlan_id = 5 } }
			> i:add_tx_flows("tags", { tag })`},
		{"add_tx_queue", interfaceAddQueue(false), `- queue table: with the keys of 'tx.queues[]' in a configuration
			-> queue | failure
			Adds a transmit queue, as 'i:add_rx_queue' adds a receive queue; engine socket can, too.
			> local region = { name = "later_tx", kind = "host", affinity = 0, num_bufs = 512, buf_size = 2048 }
			> assert(s:add_region(region))
			> local q = assert(i:add_tx_queue{ name = "more_tx", id = 7, cpu_core = -1, batch_size = 8,
			>   memory_regions = { "later_tx" } })`},
		{"allow_all_traffic", interfaceDrop(false), `-> true | failure
			Ends what 'i:drop_all_traffic' began.
			> i:allow_all_traffic()`},
		{"answer", interfaceAnswer, `. addresses string | string[]: IPv4 and IPv6 addresses; an empty list ends it
			-> integer | failure: how many addresses
			Answers ARP requests and IPv6 neighbour solicitations for these addresses from now on, instead of those of the call before. So hosts and routers find
			the interface though no kernel has its addresses. Answers leave through its first transmit queue, which counts them as 'answered'. It is for raw
			interfaces; an address that the kernel has, too, needs none. The configuration's key 'answers' does the same from the open on.
			> i:answer{ addresses = { "10.0.0.5", "2001:db8::5" } }`},
		{"connect", interfaceConnect, `. address? string: 'ADDRESS:PORT'; required without 'qp'
			. private_data? string: at most 48 bytes that a 'roce://' peer gets with the request: its 'c.private_data'
			. qp? table: of a 'roce://' peer without connection manager, what 'c:join' takes: the connection is open at once. '{}': 'c:join' sets it later. 'c.qp' is our end
			. remote? table: of a 'roce://' peer that does not run daqiri-run, what it lends: '{ring = {addr = …, rkey = …, bytes = …}}'
			. src_addr? string: from which address here
			-> connection | failure
			Of a socket interface: makes a connection, which is on its way when the call returns; 'i:on_connection' reports when it is open.
			> local c, status, why = i:connect{ address = "127.0.0.1:7148" }`},
		{"connection", interfaceConnection, `- id? integer: 'c.id'; without it the interface itself
			-> connection | failure
			The connection with that id. Without one its peer is the default one, and its options are those of all connections of the interface.
			> local all = i:connection()`},
		{"delete_flows", rxFlows.deleteFlows, `- what string | integer: a group, or a flow's id
			-> integer | failure: how many there were
			Deletes receive flows.
			> s:interface("b"):delete_flows("dns")`},
		{"delete_tx_flows", txFlows.deleteFlows, `- what string | integer: a group, or a flow's id
			-> integer | failure: how many there were
			Deletes transmit flows.
			> i:delete_tx_flows("tags")`},
		{"drop_all_traffic", interfaceDrop(true), `-> true | failure
			Discards everything that arrives, until 'i:allow_all_traffic'.
			> i:drop_all_traffic()`},
		{"flows", rxFlows.listFlows, `-> table[]: with id, group, name, match, actions, queues, packets and bytes
			The receive flows in the order in which they are asked, but that those that take headers off come first. 'match' and 'actions' are as 'i:add_flows'
			takes them. 'packets' and 'bytes' are what came of the flow so far, before its actions (nil for the id 0, and beyond 16384 flows of a queue). The
			summary and the ledger have those of deleted flows, too.
			> for _, flow in ipairs(s:interface("b"):flows()) do print(flow.id, flow.name, flow.packets) end`},
		{"join_multicast", interfaceMulticast(true), row.MulticastRows + `-> integer | failure: how many groups
			Joins multicast groups. On a raw interface flows select the port. Groups are reported by the kernel, or without one (dpdk, loop) through
			the first transmit queue, which counts the reports as 'answered'.
			> i:join_multicast{ groups = "239.2.0.64+3:7148" }`},
		{"leave_multicast", interfaceMulticast(false), row.MulticastRows + `-> integer | failure: how many groups
			Leaves multicast groups.
			> i:join_multicast{ groups = "239.2.0.64+3" }
			> i:leave_multicast{ groups = { "239.2.0.64", { ip = "239.2.0.65" } } }`},
		{"on_connection", interfaceOnConnection, `- fn fun(c: connection): called with each
			Of a socket interface: has a function called with connections: those of peers, those of 'i:connect', and a TCP client's own. That is one for each of its queues, made again
			when it is lost. A server that can't be reached is logged once for each cause and tried again after 'retry_connect_s' (1 s), then after pauses that double
			up to 30 s. What is sent meanwhile waits.
			> i:on_connection(function(c) print(c.peer) end)`},
		{"replace_flows", rxFlows.replaceFlows, `- group string: as of 'i:add_flows'
			- flows flow[]: instead of the group's
			-> integer[] | failure: their ids
			Replaces a group's receive flows at once.
			> s:interface("b"):replace_flows("dns", {})`},
		{"replace_tx_flows", txFlows.replaceFlows, `- group string: as of 'i:add_tx_flows'
			- flows flow[]: instead of the group's
			-> integer[] | failure: their ids
			Replaces a group's transmit flows at once.
			> i:replace_tx_flows("tags", {})`},
		{"progress", interfaceProgress, `-> integer: how much was done; 0: nothing
			Polls the interface's queues once, with their pipes and kernels' rings: for queues with 'poll_mode: direct', which else move while the task waits. Beside a
			worker it raises.
			> local ok, why = pcall(i.progress, i)    -- an error if a worker polls it`},
		{"resolve", interfaceResolve, `- address string: an IP address
			. vlan_id integer = 0: of the tag with which it is asked for; 0 is none
			. timeout duration = 3: how long it waits for an answer
			-> string | failure: an Ethernet address
			Finds the Ethernet address of the host that frames to an IP address have to go to; on a Linux interface that of the router, where there is one. What
			the kernel knows is taken; else it is asked for each second, by ARP or neighbour discovery. The question comes from the first address that the interface answers
			for, from the kernel's, or from none (a probe). Answers are known for a minute. It waits, so not in 'on_burst'. It needs a session that runs, a transmit
			queue and a receive queue that is read.
			> local mac = i:resolve("10.0.0.2") or "02:00:00:00:00:02"`},
		{"tx_flows", txFlows.listFlows, `-> table[]: with id, group, name, match and actions
			The transmit flows, as 'i:flows' lists the receive flows.
			> for _, flow in ipairs(i:tx_flows()) do print(flow.name) end`},
	},
	meta: []entry{{name: "__tostring", fn: func(c *call) int {
		i, _ := row.Userdata[*iface](c.L.Get(1))
		return c.Push(lua.LString("interface " + i.i.Name()))
	}}},
}

func selfInterface(c *call) *iface {
	i := receiver[*iface](c, "interface")
	i.of.check(c)
	return i
}

// refuse returns nil, status, text for an error of the engine, or of the current state.
func (c *call) refuse(err error) int {
	c.L.Push(lua.LNil)
	c.L.Push(lua.LString(session.StatusName(err)))
	c.L.Push(lua.LString(err.Error()))
	return 3
}

// interfaceAddQueue implements i:add_rx_queue and i:add_tx_queue. A direct queue belongs to the calling task.
func interfaceAddQueue(rx bool) function {
	parse := spec.ParseTxQueue
	if rx {
		parse = spec.ParseRxQueue
	}
	return func(c *call) int {
		i := selfInterface(c)
		v, err := value.Of(c.Table(1, "queue"), 0)
		c.Check(err)
		conf, err := parse(v)
		if err != nil {
			c.ArgError(1, "%v", inWords(err))
		}
		q, err := i.i.AddQueue(conf, rx)
		if err != nil {
			return c.refuse(err)
		}
		if q.Direct() {
			c.Check(q.Adopt(c.rt.Task))
		}
		return c.Push(c.rt.newLasting(i.of.queue(q)))
	}
}

func interfaceDrop(drop bool) function {
	return func(c *call) int {
		if err := selfInterface(c).i.DropAll(drop); err != nil {
			return c.refuse(err)
		}
		return c.Push(lua.LTrue)
	}
}

// interfaceAnswer implements i:answer: the interface answers ARP and ND for further addresses. It returns their number.
func interfaceAnswer(c *call) int {
	i := selfInterface(c)
	o := c.options(1)
	o.Need("addresses")
	addrs := o.addresses()
	if err := i.i.Answer(addrs); err != nil {
		return c.refuse(err)
	}
	return c.Push(lua.LNumber(len(addrs)))
}

// addresses reads the option addresses: an address or a list.
func (o *options) addresses() []netip.Addr {
	var out []netip.Addr
	add := func(v lua.LValue) {
		a, err := netip.ParseAddr(v.String())
		if err != nil || a.Zone() != "" {
			o.Wrong("addresses", "%q is not an IPv4 or IPv6 address", v.String())
		}
		out = append(out, a.Unmap())
	}
	switch v := o.Get("addresses").(type) {
	case lua.LString:
		add(v)
	case *lua.LTable:
		v.ForEach(func(_, e lua.LValue) { add(e) })
	default:
		o.Wrong("addresses", "text or a list expected, got %s", row.Describe(v))
	}
	return out
}

// interfaceMulticast joins or leaves groups in order; at the first failure the groups before it remain joined or left.
func interfaceMulticast(join bool) function {
	return func(c *call) int {
		i := selfInterface(c)
		o := c.options(1)
		o.Need("groups")
		groups := o.groups(i)
		o.allQueues(i)
		source := o.Str("source", "")
		done := lua.LNumber(0)
		for _, g := range groups {
			var err error
			if join {
				err = i.i.JoinMulticast(g, source)
			} else {
				err = i.i.LeaveMulticast(g, source)
			}
			if err != nil {
				return c.refuse(err)
			}
			done++
		}
		return c.Push(done)
	}
}

// allQueues checks the option queues: a group's packets arrive at every queue of the interface to which flows direct them.
func (o *options) allQueues(i *iface) {
	list, ok := o.Get("queues").(*lua.LTable)
	if !ok {
		if o.Has("queues") {
			o.Wrong("queues", "a list of queues expected, got %s", row.Describe(o.Get("queues")))
		}
		return
	}
	list.ForEach(func(_, v lua.LValue) {
		q, ok := row.Userdata[*queue](v)
		if !ok || !q.q.Rx() || q.q.Interface() != i.i {
			o.Wrong("queues", "receive queues of interface %s expected", i.i.Name())
		}
	})
	if n := len(i.i.RxQueues()); list.Len() != n {
		o.Wrong("queues", "a group is joined for all %d queues of interface %s: leave the option out", n, i.i.Name())
	}
}

// interfaceProgress implements i:progress().
func interfaceProgress(c *call) int {
	n, err := selfInterface(c).i.Progress()
	c.Check(err)
	return c.Push(lua.LNumber(n))
}

// maxGroups bounds a range of groups.
const maxGroups = 4096

// groups reads the option groups: "239.2.0.64+3:7148" (four groups, one port), a list of such strings, or of {ip, port}. A port must equal the
// interface's receive port.
func (o *options) groups(i *iface) []string {
	var out []string
	add := func(text string, port int) {
		list, p, err := groupRange(text)
		if err == nil && p == 0 {
			p = port
		}
		if err == nil {
			err = i.hasPort(p)
		}
		if err != nil {
			o.Wrong("groups", "%v", err)
		}
		out = append(out, list...)
	}
	switch v := o.Get("groups").(type) {
	case lua.LString:
		add(string(v), 0)
	case *lua.LTable:
		v.ForEach(func(_, e lua.LValue) {
			if t, ok := e.(*lua.LTable); ok {
				in := newOptions(o.c, o.Arg, t)
				in.Allow([]string{"ip", "port"})
				add(in.Str("ip", ""), int(in.Whole("port", 0, 1, 65535)))
				return
			}
			add(e.String(), 0)
		})
	default:
		o.Wrong("groups", "text or a list expected, got %s", row.Describe(v))
	}
	return out
}

// groupRange parses ADDRESS[+N][:PORT]; an IPv6 address with a port is in brackets.
func groupRange(text string) (groups []string, port int, err error) {
	wrong := func() ([]string, int, error) {
		return nil, 0, fmt.Errorf("%q is not a multicast group (write it like 239.2.0.64, 239.2.0.64+3 or 239.2.0.64+3:7148)", text)
	}
	rest := text
	if at := strings.LastIndexByte(rest, ':'); at >= 0 && (strings.Count(rest, ":") == 1 || strings.HasPrefix(rest, "[")) && !strings.HasSuffix(rest, "]") {
		if port, err = strconv.Atoi(rest[at+1:]); err != nil || port < 1 || port > 65535 {
			return wrong()
		}
		rest = rest[:at]
	}
	first, more, ranged := strings.Cut(strings.NewReplacer("[", "", "]", "").Replace(rest), "+")
	n := 0
	if ranged {
		if n, err = strconv.Atoi(more); err != nil || n < 0 || n >= maxGroups {
			return wrong()
		}
	}
	a, err := netip.ParseAddr(first)
	if err != nil || !a.IsMulticast() {
		return wrong()
	}
	for range n + 1 {
		if !a.IsMulticast() {
			return wrong()
		}
		groups = append(groups, a.String())
		a = a.Next()
	}
	return groups, port, nil
}

// hasPort returns an error if port differs from the one to which a socket interface is bound.
func (i *iface) hasPort(port int) error {
	c := i.of.s.Config().Interface(i.i.Name())
	if port == 0 || c == nil || c.SocketConfig == nil || c.SocketConfig.Local == nil || c.SocketConfig.Local.Port == 0 {
		return nil
	}
	if bound := int(c.SocketConfig.Local.Port); bound != port {
		return fmt.Errorf("port %d: interface %s receives on port %d", port, i.i.Name(), bound)
	}
	return nil
}
