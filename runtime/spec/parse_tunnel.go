package spec

import (
	"github.com/daqiri/daqiri-run/runtime/spec/schema"
)

// vlan reads the tag from a vlan: map or from the action itself.
func (p *parser) vlan(o *object) *VLAN {
	from := o
	if nested := o.child("vlan"); nested.ok() {
		from = nested
		defer nested.end()
	} else {
		o.sec = o.sec.Flat
	}
	return &VLAN{
		ID:        integer[uint16](from, "vlan_id"),
		PCP:       integer[uint8](from, "pcp"),
		DEI:       integer[uint8](from, "dei"),
		EtherType: integer[uint16](from, "ethertype"),
	}
}

// tunnel reads the outer header from a tunnel: map or from the action itself, where the type is the key tunnel_type.
func (p *parser) tunnel(o *object, decap bool) *Tunnel {
	from, typeKey := o, "tunnel_type"
	if o.Has("tunnel") {
		from, typeKey = o.child("tunnel"), "type"
		defer from.end()
	} else {
		o.sec = o.sec.Flat
	}
	t := &Tunnel{Source: from.Source}
	t.Type = from.choice(typeKey)
	t.EthSrc, t.EthDst = from.outerMAC("outer_eth_src"), from.outerMAC("outer_eth_dst")
	from.outerIP(t, decap)
	if from.typed(t, schema.TunnelVXLAN, "outer_udp_src", "outer_udp_dst", "vni") {
		t.UDPSrc = integer[uint16](from, "outer_udp_src")
		t.UDPDst = integer[uint16](from, "outer_udp_dst")
		t.VNI = integer[uint32](from, "vni")
	}
	if from.typed(t, schema.TunnelGRE, "gre_protocol") {
		t.GREProtocol = integer[uint16](from, "gre_protocol")
	}
	if from.typed(t, schema.TunnelNVGRE, "tni", "flow_id") {
		t.TNI = integer[uint32](from, "tni")
		t.FlowID = integer[uint8](from, "flow_id")
	}
	return t
}

func (o *object) outerMAC(name string) (m MAC) {
	if read := o.mac(name); read != nil {
		m = *read
	}
	return m
}

// outerIP reads the addresses of one IP version; keys of the other are refused. Fields that routers change or senders choose do not identify a
// tunnel.
func (o *object) outerIP(t *Tunnel, decap bool) {
	if !o.Has("outer_ipv6_src") && !o.Has("outer_ipv6_dst") {
		t.IPv4Src, t.IPv4Dst = o.address("outer_ipv4_src"), o.address("outer_ipv4_dst")
		t.TTL, t.TOS = o.sent("outer_ipv4_ttl", decap), o.sent("outer_ipv4_tos", decap)
		o.refuse("belongs to outer_ipv6_src and outer_ipv6_dst", "outer_ipv6_hop_limit", "outer_ipv6_traffic_class")
		return
	}
	t.IPv6Src, t.IPv6Dst = o.address("outer_ipv6_src"), o.address("outer_ipv6_dst")
	t.HopLimit, t.Class = o.sent("outer_ipv6_hop_limit", decap), o.sent("outer_ipv6_traffic_class", decap)
	o.refuse("stands beside outer_ipv6_src or outer_ipv6_dst: the outer header is IPv4 or IPv6",
		"outer_ipv4_src", "outer_ipv4_dst", "outer_ipv4_ttl", "outer_ipv4_tos")
}

// sent reads a byte of the outer header that tunnel_encap writes; tunnel_decap does not compare it and refuses its key.
func (o *object) sent(name string, decap bool) uint8 {
	if decap {
		o.refuse("tunnel_decap does not compare it: it belongs to tunnel_encap", name)
		return 0
	}
	return integer[uint8](o, name)
}

// typed reports whether the tunnel has the type owner, and otherwise refuses the keys of that type.
func (o *object) typed(t *Tunnel, owner string, names ...string) bool {
	if t.Type != owner {
		o.refuse("belongs to type: "+owner, names...)
	}
	return t.Type == owner
}
