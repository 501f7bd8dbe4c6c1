package bindings

import (
	"encoding/binary"
	"net/netip"
	"strings"

	luaformat "github.com/daqiri/daqiri-run/bindings/format"
	"github.com/daqiri/daqiri-run/runtime/format"
	"github.com/daqiri/daqiri-run/runtime/session"
)

// Ethernet, IPv4, IPv6, UDP and TCP headers of a template. Lengths are set here; native code computes checksums of every sent packet.

const (
	protoTCP = 6
	protoUDP = 17
)

// frame builds a frame from the options. Defaults: source MAC: the interface's address or 02:00:00:00:00:01 (also for "auto"); destination MAC:
// the multicast address of the destination IP address, else broadcast; IP addresses in 192.0.2.0/24 or 2001:db8::/64; port 4096.
func (o *options) frame(i *session.Interface) ([]byte, layout) {
	six := o.Has("ipv6_src") || o.Has("ipv6_dst")
	src, dst := "192.0.2.1", "192.0.2.2"
	kind := "ipv4"
	if six {
		src, dst, kind = "2001:db8::1", "2001:db8::2", "ipv6"
	}
	if six && (o.Has("ipv4_src") || o.Has("ipv4_dst")) {
		o.Raise("ipv4 and ipv6 addresses exclude each other")
	}
	from, to := o.address(kind+"_src", src), o.address(kind+"_dst", dst)
	if from.Is4() == six || to.Is4() == six {
		o.Raise("%s_src and %s_dst need %s addresses", kind, kind, strings.ToUpper(kind[:2])+kind[2:])
	}
	payload := o.payload()
	if o.Has("vlan_pcp") && !o.Has("vlan_id") {
		o.Wrong("vlan_pcp", "it stands in a VLAN tag: give vlan_id, 0 for none but the priority")
	}
	if o.Has("ethertype") {
		o.noHeaders()
		b := o.ethernet(i, to, uint16(o.Whole("ethertype", 0, 0x600, 0xffff)))
		return append(b, payload...), layout{l3: len(b), payload: len(b)}
	}
	proto, header := o.transport(len(payload))
	var b []byte
	at := layout{}
	if six {
		b = o.ethernet(i, to, 0x86dd)
		at.l3 = len(b)
		b = append(b, o.ipv6(from, to, proto, len(header)+len(payload))...)
	} else {
		b = o.ethernet(i, to, 0x0800)
		at.l3 = len(b)
		b = append(b, o.ipv4(from, to, proto, len(header)+len(payload))...)
	}
	at.l4 = len(b)
	b = append(b, header...)
	at.payload = len(b)
	return append(b, payload...), at
}

// noHeaders refuses header options that do not apply to a frame of another ethertype.
func (o *options) noHeaders() {
	for _, key := range o.c.Keys.Names {
		switch proto, _, _ := strings.Cut(key, "_"); proto {
		case "ipv4", "ipv6", "tcp", "udp", "tos", "ttl":
			if o.Has(key) {
				o.Wrong(key, "has no effect beside 'ethertype', behind which the payload begins")
			}
		}
	}
}

// layout holds the offsets of a packet's headers; 0: unknown.
type layout struct{ l3, l4, payload int }

// layoutOf locates the headers of a frame.
func layoutOf(frame []byte) layout {
	begin := func(layer string) int {
		from, _, ok := session.LayerOf(frame, true, layer)
		if !ok {
			return 0
		}
		return from
	}
	return layout{begin("network"), begin("transport"), begin("payload")}
}

// of returns the offset of a field base; 0: unknown.
func (at layout) of(base uint8) int {
	return map[uint8]int{session.BaseL3: at.l3, session.BaseL4: at.l4, session.BasePayload: at.payload}[base]
}

// value reads a field of the packet; 0 if its place is unknown.
func (at layout) value(data []byte, f session.Field) uint64 {
	from := at.of(f.Base)
	if f.Base != session.BaseStart && from == 0 && at != (layout{}) || f.Meta != 0 {
		return 0
	}
	return format.Bits(data, int64(from)*8+int64(f.BitOffset), int(f.BitWidth), f.Flags&session.FieldLE != 0)
}

func (o *options) address(key, missing string) netip.Addr {
	a, err := netip.ParseAddr(o.Str(key, missing))
	if err != nil {
		o.Wrong(key, "%q is not an IP address", o.Str(key, missing))
	}
	return a
}

func (o *options) ethernet(i *session.Interface, to netip.Addr, ethertype uint16) []byte {
	b := append([]byte(nil), o.destination(i, to)...)
	source := o.Str("eth_src", "auto")
	if mac, err := i.MAC(); err == nil && source == "auto" {
		source = mac.String()
	} else if source == "auto" {
		source = "02:00:00:00:00:01"
	}
	b = append(b, o.parseMAC("eth_src", source)...)
	if o.Has("vlan_id") {
		tag := uint16(o.Whole("vlan_pcp", 0, 0, 7)<<13 | o.Whole("vlan_id", 0, 0, 4095))
		b = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(b, 0x8100), tag)
	}
	return binary.BigEndian.AppendUint16(b, ethertype)
}

// destination returns eth_dst. "auto" resolves the destination IP address by ARP or ND; the default is broadcast. Multicast groups map to their
// own addresses.
func (o *options) destination(i *session.Interface, to netip.Addr) []byte {
	text := o.Str("eth_dst", defaultDestination(to))
	if text != "auto" {
		return o.parseMAC("eth_dst", text)
	}
	if to.IsMulticast() || to == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
		return o.parseMAC("eth_dst", defaultDestination(to))
	}
	if !o.Has("ipv4_dst") && !o.Has("ipv6_dst") {
		o.Wrong("eth_dst", "\"auto\" is the one that has ipv4_dst or ipv6_dst: give one of them, or the Ethernet address")
	}
	mac, err := o.c.resolve(i, to, uint16(o.Whole("vlan_id", 0, 0, 4095)), neighbourTimeout)
	if err != nil {
		o.Wrong("eth_dst", "%v", err)
	}
	return mac
}

func (o *options) parseMAC(key, text string) []byte {
	mac, err := luaformat.ParseMAC(text)
	if err != nil {
		o.Wrong(key, "%v", err)
	}
	return mac[:]
}

// defaultDestination returns the Ethernet address of a multicast group (RFC 1112, RFC 2464).
func defaultDestination(to netip.Addr) string {
	const hex = "0123456789abcdef"
	if !to.IsMulticast() {
		return "ff:ff:ff:ff:ff:ff"
	}
	b := to.AsSlice()
	mac := []byte{0x33, 0x33}
	tail := b[len(b)-4:]
	if to.Is4() {
		mac = []byte{0x01, 0x00, 0x5e}
		tail = []byte{b[1] & 0x7f, b[2], b[3]}
	}
	var text []byte
	for i, v := range append(mac, tail...) {
		if i > 0 {
			text = append(text, ':')
		}
		text = append(text, hex[v>>4], hex[v&15])
	}
	return string(text)
}

func (o *options) ipv4(from, to netip.Addr, proto byte, payload int) []byte {
	if payload+20 > 0xffff {
		o.Raise("a packet of %d bytes does not fit into IPv4", payload+20)
	}
	b := []byte{0x45, byte(o.Whole("tos", 0, 0, 255))}
	b = binary.BigEndian.AppendUint16(b, uint16(20+payload))
	b = append(b, 0, 0, 0x40, 0, byte(o.Whole("ttl", 64, 0, 255)), proto, 0, 0) // flag DF
	return append(append(b, from.AsSlice()...), to.AsSlice()...)
}

func (o *options) ipv6(from, to netip.Addr, proto byte, payload int) []byte {
	if payload > 0xffff {
		o.Raise("a packet of %d bytes does not fit into IPv6", payload+40)
	}
	b := binary.BigEndian.AppendUint32(nil, 6<<28|uint32(o.Whole("tos", 0, 0, 255))<<20)
	b = binary.BigEndian.AppendUint16(b, uint16(payload))
	b = append(b, proto, byte(o.Whole("ttl", 64, 0, 255)))
	return append(append(b, from.AsSlice()...), to.AsSlice()...)
}

// transport builds a UDP header, or a TCP header if a TCP option is given.
func (o *options) transport(payload int) (proto byte, header []byte) {
	tcp := o.Has("tcp_src") || o.Has("tcp_dst") || o.Has("tcp_seq") || o.Has("tcp_flags")
	if tcp && (o.Has("udp_src") || o.Has("udp_dst")) {
		o.Raise("udp and tcp options exclude each other")
	}
	port := func(key string) uint16 { return uint16(o.Whole(key, 4096, 0, 0xffff)) }
	if !tcp {
		b := binary.BigEndian.AppendUint16(nil, port("udp_src"))
		b = binary.BigEndian.AppendUint16(b, port("udp_dst"))
		b = binary.BigEndian.AppendUint16(b, uint16(8+payload))
		return protoUDP, append(b, 0, 0)
	}
	b := binary.BigEndian.AppendUint16(nil, port("tcp_src"))
	b = binary.BigEndian.AppendUint16(b, port("tcp_dst"))
	b = binary.BigEndian.AppendUint32(b, uint32(o.Whole("tcp_seq", 0, 0, 1<<32-1)))
	return protoTCP, append(b, 0, 0, 0, 0, 5<<4, byte(o.Whole("tcp_flags", 0x10, 0, 255)), 0xff, 0xff, 0, 0, 0, 0)
}
