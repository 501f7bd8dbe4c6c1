package spec

import (
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/daqiri/daqiri-run/runtime/spec/schema"
)

func (p *parser) match(o *object, tx bool) Match {
	m := Match{Source: o.Source}
	m.UDPSrc, m.UDPDst = o.ports("udp_src"), o.ports("udp_dst")
	m.TCPSrc, m.TCPDst = o.ports("tcp_src"), o.ports("tcp_dst")
	m.IPv4Src, m.IPv4Dst = o.prefix("ipv4_src"), o.prefix("ipv4_dst")
	m.IPv6Src, m.IPv6Dst = o.prefix("ipv6_src"), o.prefix("ipv6_dst")
	m.VLANID = optional[uint16](o, "vlan_id")
	m.EtherType = optional[uint16](o, "ethertype")
	if o.Has("ipv4_len") && o.zero("ipv4_len") {
		p.errorf(o.Key("ipv4_len"), "0 is outside 1..65535 (leave the key out to match any length)")
	} else {
		m.IPv4Len = optional[uint16](o, "ipv4_len")
	}
	if e := o.child("ethernet"); e.ok() {
		m.Ethernet = p.ethernet(e)
	}
	if o.Has("flex_item_id") || o.Has("val") || o.Has("mask") {
		m.Flex = &FlexMatch{
			ItemID: integer[int](o, "flex_item_id"),
			Val:    integer[uint32](o, "val"),
			Mask:   integer[uint32](o, "mask"),
		}
	}
	if e := o.child("ecpri"); e.ok() {
		m.ECPRI = p.ecpri(e)
	}
	p.matchClasses(o, &m, tx)
	o.end()
	return m
}

// matchClasses checks which criteria may be combined.
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
	e := &EthernetMatch{Src: o.mac("src"), Dst: o.mac("dst")}
	if e.Src == nil && e.Dst == nil && len(o.n.fields) == 0 {
		p.errorf(o.Source, "needs src or dst")
	}
	o.end()
	return e
}

func (p *parser) ecpri(o *object) *ECPRIMatch {
	e := &ECPRIMatch{MsgType: optional[uint8](o, "msg_type")}
	pc, rtc := optional[uint16](o, "pc_id"), optional[uint16](o, "rtc_id")
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

// zero reports whether a key's value is a plain 0.
func (o *object) zero(key string) bool {
	text := o.n.get(key).text
	return strings.HasPrefix(text, "0") && strings.Trim(text, "0xX") == ""
}

// ports reads a port or a range such as 1000-1010.
func (o *object) ports(name string) *PortRange {
	v, _, ok := o.find(name, schema.TypePorts)
	if !ok {
		return nil
	}
	text, ok := o.p.scalar(v)
	if !ok {
		return nil
	}
	lo, hi, isRange := strings.Cut(text, "-")
	if !isRange || lo == "" {
		if o.zero(name) {
			o.p.errorf(v.Source, "0 is outside 1..65535 (leave the key out to match any port)")
			return nil
		}
		i, _ := o.p.integer(v)
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

// ipFamily describes the prefixes of one IP version.
type ipFamily struct {
	name, example string
	bits          int
}

var families = map[schema.Type]ipFamily{
	schema.TypeIPv4Prefix: {"IPv4", "10.0.0.0/8", 32},
	schema.TypeIPv6Prefix: {"IPv6", "2001:db8::/32", 128},
}

// prefix reads an address or a prefix such as 10.0.0.0/8.
func (o *object) prefix(name string) *netip.Prefix {
	v, k, ok := o.find(name, schema.TypeIPv4Prefix, schema.TypeIPv6Prefix)
	family := families[k.Type]
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

// address reads an address of the IP version of the key's type.
func (o *object) address(name string) netip.Addr {
	v, k, ok := o.find(name, schema.TypeIPv4, schema.TypeIPv6)
	if !ok {
		return netip.Addr{}
	}
	text, ok := o.p.scalar(v)
	if !ok {
		return netip.Addr{}
	}
	a, err := netip.ParseAddr(text)
	if err != nil || a.Is4() != (k.Type == schema.TypeIPv4) || a.Zone() != "" {
		o.p.errorf(v.Source, "%q is not an %s", text, k.Type)
	}
	return a
}

// mac reads an Ethernet address; nil if the key is absent.
func (o *object) mac(name string) *MAC {
	v, _, ok := o.find(name, schema.TypeMAC)
	if !ok {
		return nil
	}
	m := new(MAC)
	text, ok := o.p.scalar(v)
	if !ok {
		return m
	}
	hw, err := net.ParseMAC(text)
	if err != nil || len(hw) != len(m) || !strings.Contains(text, ":") {
		o.p.errorf(v.Source, "%q is not an %s such as 02:00:00:00:00:01", text, schema.TypeMAC)
		return m
	}
	copy(m[:], hw)
	return m
}
