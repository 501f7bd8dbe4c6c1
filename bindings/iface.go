package bindings

import (
	"net/netip"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/runtime/session"
)

// iface is an interface of a session. Cold, but its methods change flows while packets move: hand-written.
type iface struct {
	i  *session.Interface
	of *Opened
}

func (*iface) luaType() string { return "interface" }

var interfaceType = &typeDef{
	name:   "interface",
	fields: []string{"address", "engine", "mac", "name"},
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
			return lua.LNil // it has none
		}
		return nil
	},
	methods: []entry{
		{"add_flows", rxFlows.addFlows}, {"add_tx_flows", txFlows.addFlows}, {"allow_all_traffic", interfaceDrop(false)},
		{"answer", interfaceAnswer},
		{"connect", interfaceConnect},
		{"connection", interfaceConnection},
		{"delete_flows", rxFlows.deleteFlows}, {"delete_tx_flows", txFlows.deleteFlows},
		{"drop_all_traffic", interfaceDrop(true)}, {"flows", rxFlows.listFlows},
		{"join_multicast", interfaceMulticast(true)}, {"leave_multicast", interfaceMulticast(false)},
		{"on_connection", interfaceOnConnection}, {"replace_flows", rxFlows.replaceFlows},
		{"replace_tx_flows", txFlows.replaceFlows}, {"resolve", interfaceResolve}, {"tx_flows", txFlows.listFlows},
	},
	meta: []entry{{"__tostring", func(c *call) int {
		i, _ := userdata[*iface](c.L.Get(1))
		return c.push(lua.LString("interface " + i.i.Name()))
	}}},
}

func selfInterface(c *call) *iface {
	i := receiver[*iface](c, "interface")
	i.of.check(c)
	return i
}

// refuse returns nil, status, text for whatever the engine or the state of things refuses.
func (c *call) refuse(err error) int {
	c.L.Push(lua.LNil)
	c.L.Push(lua.LString(session.StatusName(err)))
	c.L.Push(lua.LString(err.Error()))
	return 3
}

func interfaceDrop(drop bool) function {
	return func(c *call) int {
		if err := selfInterface(c).i.DropAll(drop); err != nil {
			return c.refuse(err)
		}
		return c.push(lua.LTrue)
	}
}

// interfaceAnswer has the interface answer for addresses of its own; how many these are.
func interfaceAnswer(c *call) int {
	i := selfInterface(c)
	o := c.options(1, "addresses")
	o.need("addresses")
	addrs := o.addresses()
	if err := i.i.Answer(addrs); err != nil {
		return c.refuse(err)
	}
	return c.push(lua.LNumber(len(addrs)))
}

// addresses reads the option addresses: one in text, or a list.
func (o *options) addresses() []netip.Addr {
	var out []netip.Addr
	add := func(v lua.LValue) {
		a, err := netip.ParseAddr(v.String())
		if err != nil || a.Zone() != "" {
			o.wrong("addresses", "%q is no IPv4 or IPv6 address", v.String())
		}
		out = append(out, a.Unmap())
	}
	switch v := o.get("addresses").(type) {
	case lua.LString:
		add(v)
	case *lua.LTable:
		v.ForEach(func(_, e lua.LValue) { add(e) })
	default:
		o.wrong("addresses", "text or a list expected, got %s", describe(v))
	}
	return out
}

// interfaceMulticast joins or leaves groups: all of them, or those before the first one that fails stay.
func interfaceMulticast(join bool) function {
	return func(c *call) int {
		i := selfInterface(c)
		o := c.options(1, "groups", "queues", "source")
		o.need("groups")
		groups := o.groups(i)
		o.allQueues(i)
		source := o.str("source", "")
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
		return c.push(done)
	}
}

// allQueues checks queues = {…}: a group arrives at every queue of its interface that a flow leads it to.
func (o *options) allQueues(i *iface) {
	list, ok := o.get("queues").(*lua.LTable)
	if !ok {
		if o.has("queues") {
			o.wrong("queues", "a list of queues expected, got %s", describe(o.get("queues")))
		}
		return
	}
	list.ForEach(func(_, v lua.LValue) {
		q, ok := userdata[*queue](v)
		if !ok || !q.q.Rx() || q.q.Interface() != i.i {
			o.wrong("queues", "receive queues of interface %s expected", i.i.Name())
		}
	})
	if n := len(i.i.RxQueues()); list.Len() != n {
		o.wrong("queues", "a group is joined for all %d queues of interface %s: leave the option out", n, i.i.Name())
	}
}
