package spec

import (
	"net/netip"
	"slices"
)

const (
	maxBatch    = 1 << 20
	maxSegments = 4
	directBatch = 256 // packets of one poll of a direct queue
)

func (p *parser) iface(v value) *Interface {
	o := p.object(v)
	i := &Interface{Source: o.Source}
	i.Name = o.name("name")
	i.Address = o.name("address")
	i.Engine = o.choice("engine", interfaceEngines, "")
	o.refuse("rdma_config", olderSchema+"use socket_config with roce:// endpoints, and roce_config")
	if s := o.child("socket_config", true); s.ok() {
		i.SocketConfig = p.socketConfig(s)
	}
	if r := o.child("roce_config", true); r.ok() {
		i.RoCEConfig = &RoCEConfig{Source: r.Source, TransportMode: r.choice("transport_mode", []string{"RC", "UC", "UD"})}
		r.end()
	}
	if r := o.child("replay", true); r.ok() {
		i.Replay = p.replay(r)
	}
	for _, v := range o.list("answers", true) {
		i.Answers = p.addAddress(i.Answers, v)
	}
	endpoint := i.SocketConfig
	roce := endpoint != nil && endpoint.Scheme() == SchemeRoCE
	if rx := o.child("rx", true); rx.ok() {
		i.RX = p.rx(rx, roce)
		if endpoint == nil {
			i.RX.defaultTimeouts()
		}
	}
	if tx := o.child("tx", true); tx.ok() {
		i.TX = p.tx(tx, roce)
	}
	if o.ok() && !o.Has("rx") && !o.Has("tx") {
		p.warnf(o.Source, "has neither rx nor tx: nothing is received or sent there")
	}
	o.end()
	return i
}

// addAddress adds an IPv4 or IPv6 address to a list that has each once.
func (p *parser) addAddress(list []netip.Addr, v value) []netip.Addr {
	text, ok := p.text(v)
	if !ok {
		return list
	}
	a, err := netip.ParseAddr(text)
	switch a = a.Unmap(); {
	case err != nil || a.Zone() != "":
		p.errorf(v.Source, "%q is no IPv4 or IPv6 address", text)
	case slices.Contains(list, a):
		p.errorf(v.Source, "%q is listed twice", text)
	default:
		list = append(list, a)
	}
	return list
}

func (p *parser) rx(o *object, roce bool) *RX {
	rx := &RX{Source: o.Source}
	rx.FlowIsolation = o.boolean("flow_isolation", false)
	rx.DynamicFlowCapacity = integer(o, "dynamic_flow_capacity", 0, maxCount, 0)
	if rx.DynamicFlowCapacity > 0 {
		o.effectless("dynamic_flow_capacity", ": there is room for flows as they come")
	}
	rx.HardwareTimestamps = o.boolean("hardware_timestamps", false)
	rx.Queues = p.queues(o, false, roce)
	for _, v := range o.list("flows", true) {
		rx.Flows = append(rx.Flows, p.flow(v, false))
	}
	for _, v := range o.list("flex_items", true) {
		rx.FlexItems = append(rx.FlexItems, p.flexItem(v))
	}
	for _, v := range o.list("reorder_configs", true) {
		rx.ReorderConfigs = append(rx.ReorderConfigs, p.reorder(v))
	}
	o.refuse("accurate_send", "belongs to tx")
	o.end()
	return rx
}

func (p *parser) tx(o *object, roce bool) *TX {
	tx := &TX{Source: o.Source}
	tx.AccurateSend = o.boolean("accurate_send", false)
	tx.Queues = p.queues(o, true, roce)
	for _, v := range o.list("flows", true) {
		tx.Flows = append(tx.Flows, p.flow(v, true))
	}
	for _, key := range []string{"flow_isolation", "dynamic_flow_capacity", "hardware_timestamps", "flex_items", "reorder_configs"} {
		o.refuse(key, "belongs to rx")
	}
	o.end()
	return tx
}

func (p *parser) flexItem(v value) FlexItem {
	o := p.object(v)
	f := FlexItem{Source: o.Source}
	f.Name = o.name("name")
	f.ID = integer[int](o, "id", 0, maxU16)
	f.Offset = integer[int](o, "offset", 0, 28)
	if f.Offset%4 != 0 {
		p.errorf(o.Key("offset"), "%d is not a multiple of 4", f.Offset)
	}
	f.UDPDstPort = integer[int](o, "udp_dst_port", 1, maxU16)
	o.end()
	return f
}
