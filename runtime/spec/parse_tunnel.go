package spec

// vlan reads the tag from a vlan: map or from the action itself.
func (p *parser) vlan(o *object) *VLAN {
	from := o
	if nested := o.child("vlan", true); nested.ok() {
		from = nested
		defer nested.end()
	}
	return &VLAN{
		ID:        integer[uint16](from, "vlan_id", 0, 4095),
		PCP:       integer[uint8](from, "pcp", 0, 7, 0),
		DEI:       integer[uint8](from, "dei", 0, 1, 0),
		EtherType: integer[uint16](from, "ethertype", 1, maxU16, defaultVLANType),
	}
}

// tunnel reads the outer header from a tunnel: map or from the action itself, where its
// type is called tunnel_type.
func (p *parser) tunnel(o *object, decap bool) *Tunnel {
	from, typeKey := o, "tunnel_type"
	if nested := o.child("tunnel", true); o.Has("tunnel") {
		from, typeKey = nested, "type"
		defer nested.end()
	}
	t := &Tunnel{Source: from.Source}
	t.Type = from.choice(typeKey, []string{TunnelVXLAN, TunnelGRE, TunnelNVGRE})
	t.EthSrc, t.EthDst = from.mac("outer_eth_src"), from.mac("outer_eth_dst")
	from.outerIP(t, decap)
	vxlan, gre, nvgre := t.Type == TunnelVXLAN, t.Type == TunnelGRE, t.Type == TunnelNVGRE
	if from.typed("outer_udp_src", TunnelVXLAN, vxlan) {
		t.UDPSrc = integer[uint16](from, "outer_udp_src", 0, maxU16, 0)
	}
	if from.typed("outer_udp_dst", TunnelVXLAN, vxlan) {
		t.UDPDst = integer[uint16](from, "outer_udp_dst", 1, maxU16, defaultVXLANPort)
	}
	if from.typed("vni", TunnelVXLAN, vxlan) {
		t.VNI = integer[uint32](from, "vni", 0, max24)
	}
	if from.typed("gre_protocol", TunnelGRE, gre) {
		t.GREProtocol = integer[uint16](from, "gre_protocol", 1, maxU16, defaultGREProtocol)
	}
	if from.typed("tni", TunnelNVGRE, nvgre) {
		t.TNI = integer[uint32](from, "tni", 0, max24)
	}
	if from.typed("flow_id", TunnelNVGRE, nvgre) {
		t.FlowID = integer[uint8](from, "flow_id", 0, 255, 0)
	}
	return t
}

// outerIP reads the addresses of one IP version; keys of the other are refused. What routers change, or a sender
// chooses for them, tells no tunnel from another.
func (o *object) outerIP(t *Tunnel, decap bool) {
	v4 := []string{"outer_ipv4_src", "outer_ipv4_dst", "outer_ipv4_ttl", "outer_ipv4_tos"}
	v6 := []string{"outer_ipv6_src", "outer_ipv6_dst", "outer_ipv6_hop_limit", "outer_ipv6_traffic_class"}
	if !o.Has(v6[0]) && !o.Has(v6[1]) {
		t.IPv4Src, t.IPv4Dst = o.ipv4(v4[0]), o.ipv4(v4[1])
		t.TTL, t.TOS = o.sent(v4[2], 1, defaultTTL, decap), o.sent(v4[3], 0, 0, decap)
		o.known = append(o.known, v6[0], v6[1])
		o.refuse(v6[2], "belongs to outer_ipv6_src and outer_ipv6_dst")
		o.refuse(v6[3], "belongs to outer_ipv6_src and outer_ipv6_dst")
		return
	}
	t.IPv6Src, t.IPv6Dst = o.ipv6(v6[0]), o.ipv6(v6[1])
	t.HopLimit, t.Class = o.sent(v6[2], 1, defaultTTL, decap), o.sent(v6[3], 0, 0, decap)
	for _, key := range v4 {
		o.refuse(key, "stands beside outer_ipv6_src or outer_ipv6_dst: the outer header is IPv4 or IPv6")
	}
}

// sent reads a byte of the outer header that tunnel_encap writes and tunnel_decap, which refuses its key, doesn't compare.
func (o *object) sent(key string, least int64, otherwise uint8, decap bool) uint8 {
	if decap {
		o.refuse(key, "tunnel_decap does not compare it: it belongs to tunnel_encap")
		return 0
	}
	return integer[uint8](o, key, least, 255, otherwise)
}

// typed reports whether a key of one tunnel type is to be read, and refuses it in another.
func (o *object) typed(key, owner string, wanted bool) bool {
	if !wanted {
		o.refuse(key, "belongs to type: "+owner)
	}
	return wanted
}
