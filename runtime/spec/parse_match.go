package spec

import (
	"net"
	"net/netip"
	"strconv"
	"strings"
)

func (p *parser) match(o *object, tx bool) Match {
	m := Match{Source: o.Source}
	m.UDPSrc, m.UDPDst = o.ports("udp_src"), o.ports("udp_dst")
	m.TCPSrc, m.TCPDst = o.ports("tcp_src"), o.ports("tcp_dst")
	m.IPv4Src, m.IPv4Dst = o.prefix("ipv4_src", v4), o.prefix("ipv4_dst", v4)
	m.IPv6Src, m.IPv6Dst = o.prefix("ipv6_src", v6), o.prefix("ipv6_dst", v6)
	m.VLANID = optional[uint16](o, "vlan_id", 0, 4095)
	m.EtherType = optional[uint16](o, "ethertype", 1, maxU16)
	if m.IPv4Len = optional[uint16](o, "ipv4_len", 0, maxU16); m.IPv4Len != nil && o.zero("ipv4_len") {
		p.errorf(o.Key("ipv4_len"), "0 is outside 1..65535 (leave the key out to match any length)")
	}
	if e := o.child("ethernet", true); e.ok() {
		m.Ethernet = p.ethernet(e)
	}
	if o.Has("flex_item_id") || o.Has("val") || o.Has("mask") {
		m.Flex = &FlexMatch{
			ItemID: integer[int](o, "flex_item_id", 0, maxU16),
			Val:    integer[uint32](o, "val", 0, maxU32),
			Mask:   integer[uint32](o, "mask", 0, maxU32),
		}
	} else {
		o.known = append(o.known, "flex_item_id", "val", "mask")
	}
	if e := o.child("ecpri", true); e.ok() {
		m.ECPRI = p.ecpri(e)
	}
	p.matchClasses(o, &m, tx)
	o.end()
	return m
}

// matchClasses checks which criteria may stand together.
func (p *parser) matchClasses(o *object, m *Match, tx bool) {
	classes := 0
	for _, set := range []bool{m.ipPorts(), m.Flex != nil, m.ECPRI != nil} {
		if set {
			classes++
		}
	}
	switch {
	case classes > 1:
		p.errorf(o.Source, "a match is on ports and IP fields, or on a flex item, or on eCPRI, not on several")
	case m.udp() && m.tcp():
		p.errorf(o.Source, "UDP and TCP criteria exclude each other")
	case m.ip4() && m.ip6():
		p.errorf(o.Source, "IPv4 and IPv6 criteria exclude each other")
	case tx && (m.Flex != nil || m.ECPRI != nil):
		p.errorf(o.Source, "a transmit flow matches ports, IP and Ethernet fields only")
	}
}

func (p *parser) ethernet(o *object) *EthernetMatch {
	e := &EthernetMatch{}
	for _, side := range []struct {
		key string
		mac **MAC
	}{{"src", &e.Src}, {"dst", &e.Dst}} {
		if o.Has(side.key) {
			m := o.mac(side.key)
			*side.mac = &m
		} else {
			o.known = append(o.known, side.key)
		}
	}
	if e.Src == nil && e.Dst == nil && len(o.n.fields) == 0 {
		p.errorf(o.Source, "needs src or dst")
	}
	o.end()
	return e
}

func (p *parser) ecpri(o *object) *ECPRIMatch {
	e := &ECPRIMatch{MsgType: optional[uint8](o, "msg_type", 0, 255)}
	pc, rtc := optional[uint16](o, "pc_id", 0, maxU16), optional[uint16](o, "rtc_id", 0, maxU16)
	e.ID = pc
	if e.ID == nil {
		e.ID = rtc
	}
	switch {
	case pc != nil && rtc != nil:
		p.errorf(o.Key("rtc_id"), "stands beside pc_id, of which it is an alias: keep one of them")
	case e.ID != nil && e.MsgType == nil:
		p.errorf(o.Source, "msg_type is required with pc_id or rtc_id")
	}
	o.end()
	return e
}

// zero reports whether a key holds a plain 0.
func (o *object) zero(key string) bool { return strings.Trim(o.n.get(key).text, "0xX") == "" }

// ports reads a port or a range such as 1000-1010.
func (o *object) ports(key string) *PortRange {
	v, ok := o.lookup(key)
	if !ok {
		return nil
	}
	text, ok := o.p.scalar(v)
	if !ok {
		return nil
	}
	lo, hi, isRange := strings.Cut(text, "-")
	if !isRange || lo == "" {
		if o.zero(key) {
			o.p.errorf(v.Source, "0 is outside 1..65535 (leave the key out to match any port)")
			return nil
		}
		i, _ := o.p.integer(v, 1, maxU16)
		return &PortRange{uint16(i), uint16(i)}
	}
	first, errFirst := strconv.ParseUint(strings.TrimSpace(lo), 10, 16)
	last, errLast := strconv.ParseUint(strings.TrimSpace(hi), 10, 16)
	switch {
	case errFirst != nil || errLast != nil || first == 0 || last == 0:
		o.p.errorf(v.Source, "%q is not a range of ports in 1..65535 such as \"1000-1010\"", text)
	case first > last:
		o.p.errorf(v.Source, "%q runs backwards", text)
	}
	return &PortRange{uint16(first), uint16(last)}
}

// ipFamily is what prefixes of one version of IP look like.
type ipFamily struct {
	name, example string
	bits          int
}

var (
	v4 = ipFamily{"IPv4", "10.0.0.0/8", 32}
	v6 = ipFamily{"IPv6", "2001:db8::/32", 128}
)

// prefix reads an address or a prefix such as 10.0.0.0/8.
func (o *object) prefix(key string, family ipFamily) *netip.Prefix {
	v, ok := o.lookup(key)
	if !ok {
		return nil
	}
	text, ok := o.p.scalar(v)
	if !ok {
		return nil
	}
	addr, bits, isPrefix := strings.Cut(text, "/")
	a, err := netip.ParseAddr(addr)
	n, errBits := strconv.ParseUint(bits, 10, 8)
	if !isPrefix {
		n, errBits = uint64(family.bits), nil
	}
	if err != nil || a.BitLen() != family.bits || a.Zone() != "" || errBits != nil || int(n) > family.bits {
		o.p.errorf(v.Source, "%q is neither an %s address nor a prefix such as %s", text, family.name, family.example)
		return nil
	}
	pre := netip.PrefixFrom(a, int(n))
	if pre.Masked() != pre {
		o.p.errorf(v.Source, "%q has bits behind the prefix; did you mean %q?", text, pre.Masked())
	}
	return &pre
}

func (o *object) ipv4(key string) netip.Addr { return o.address(key, "IPv4", netip.Addr.Is4) }

func (o *object) ipv6(key string) netip.Addr {
	return o.address(key, "IPv6", func(a netip.Addr) bool { return a.Is6() && a.Zone() == "" })
}

func (o *object) address(key, version string, fits func(netip.Addr) bool) netip.Addr {
	v, ok := o.required(key)
	if !ok {
		return netip.Addr{}
	}
	text, ok := o.p.scalar(v)
	if !ok {
		return netip.Addr{}
	}
	a, err := netip.ParseAddr(text)
	if err != nil || !fits(a) {
		o.p.errorf(v.Source, "%q is not an %s address", text, version)
	}
	return a
}

func (o *object) mac(key string) (m MAC) {
	v, ok := o.required(key)
	if !ok {
		return m
	}
	text, ok := o.p.scalar(v)
	if !ok {
		return m
	}
	hw, err := net.ParseMAC(text)
	if err != nil || len(hw) != len(m) || !strings.Contains(text, ":") {
		o.p.errorf(v.Source, "%q is not an Ethernet address such as 02:00:00:00:00:01", text)
		return m
	}
	copy(m[:], hw)
	return m
}
