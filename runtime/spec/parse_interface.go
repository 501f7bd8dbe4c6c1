package spec

import (
	"net/netip"
	"slices"
)

func (p *parser) iface(v value) *Interface {
	o := p.object(v)
	i := &Interface{Source: o.Source}
	i.Name = o.name("name")
	i.Address = o.name("address")
	i.Engine = o.choice("engine")
	o.refuse(olderSchema+"use socket_config with roce:// endpoints, and roce_config", "rdma_config")
	if s := o.child("socket_config"); s.ok() {
		i.SocketConfig = p.socketConfig(s)
	}
	if r := o.child("roce_config"); r.ok() {
		i.RoCEConfig = p.roceConfig(r)
	}
	if r := o.child("replay"); r.ok() {
		i.Replay = p.replay(r)
	}
	for _, v := range o.list("answers") {
		i.Answers = p.addAddress(i.Answers, v)
	}
	endpoint := i.SocketConfig
	roce := endpoint != nil && endpoint.Scheme() == SchemeRoCE
	if rx := o.child("rx"); rx.ok() {
		i.RX = p.rx(rx, roce)
		if endpoint != nil {
			i.RX.noDefaultTimeouts()
		}
	}
	if tx := o.child("tx"); tx.ok() {
		i.TX = p.tx(tx, roce)
	}
	if o.ok() && !o.Has("rx") && !o.Has("tx") {
		p.warnf(o.Source, "has neither rx nor tx: nothing is received or sent there")
	}
	o.end()
	return i
}

func (p *parser) roceConfig(o *object) *RoCEConfig {
	c := &RoCEConfig{Source: o.Source}
	o.fill(c)
	if !o.Has("traffic_class") {
		c.TrafficClass = -1
	}
	if !o.Has("gid_index") {
		c.GIDIndex = -1
	}
	if c.MTU != 0 && (c.MTU < 256 || c.MTU&(c.MTU-1) != 0) {
		p.errorf(o.Key("mtu"), "%d is not one of 256, 512, 1024, 2048, 4096, and 0, the port's", c.MTU)
	}
	o.end()
	return c
}

// addAddress appends an IPv4 or IPv6 address to a list without duplicates.
func (p *parser) addAddress(list []netip.Addr, v value) []netip.Addr {
	text, ok := p.text(v)
	if !ok {
		return list
	}
	a, err := netip.ParseAddr(text)
	switch a = a.Unmap(); {
	case err != nil || a.Zone() != "":
		p.errorf(v.Source, "%q is not an IPv4 or IPv6 address", text)
	case slices.Contains(list, a):
		p.errorf(v.Source, "%q is listed twice", text)
	default:
		list = append(list, a)
	}
	return list
}

func (p *parser) rx(o *object, roce bool) *RX {
	rx := &RX{Source: o.Source}
	o.fill(rx)
	if rx.DynamicFlowCapacity > 0 {
		o.effectless("dynamic_flow_capacity")
	}
	rx.Queues = p.queues(o, false, roce)
	for _, v := range o.list("flows") {
		rx.Flows = append(rx.Flows, p.flow(v, false))
	}
	for _, v := range o.list("flex_items") {
		rx.FlexItems = append(rx.FlexItems, p.flexItem(v))
	}
	for _, v := range o.list("reorder_configs") {
		rx.ReorderConfigs = append(rx.ReorderConfigs, p.reorder(v))
	}
	o.refuse("belongs to tx", "accurate_send")
	o.end()
	return rx
}

func (p *parser) tx(o *object, roce bool) *TX {
	tx := &TX{Source: o.Source}
	o.fill(tx)
	tx.Queues = p.queues(o, true, roce)
	for _, v := range o.list("flows") {
		tx.Flows = append(tx.Flows, p.flow(v, true))
	}
	o.refuse("belongs to rx", "flow_isolation", "outgoing", "joined", "dynamic_flow_capacity", "hardware_timestamps", "flex_items", "reorder_configs")
	o.end()
	return tx
}

func (p *parser) flexItem(v value) FlexItem {
	o := p.object(v)
	f := FlexItem{Source: o.Source}
	o.fill(&f)
	if f.Offset%4 != 0 {
		p.errorf(o.Key("offset"), "%d is not a multiple of 4", f.Offset)
	}
	o.end()
	return f
}
