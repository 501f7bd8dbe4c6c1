package schema

var matchSection = section("match", "What a packet has to have: all keys that are there. Ports and IP fields, a flex item and eCPRI exclude each other in one "+
	"match; a transmit flow has neither of the latter two. IPv4 excludes IPv6, UDP excludes TCP.", []string{`
match:
  udp_src: 7000
  udp_dst: 7148-7151
  ipv4_src: 10.17.16.60
  ipv4_dst: 239.2.0.0/16
  ipv4_len: 1052
  vlan_id: 7
  ethernet: {dst: "02:00:00:00:00:02"}
`, `
match: {ipv6_src: "2001:db8::/32", ipv6_dst: "2001:db8::7", tcp_src: 1-1023, tcp_dst: 443}
`, `
match: {ethertype: 0x0806}
`, `
flex_items:
- {name: channel, id: 5, offset: 28, udp_dst_port: 7148}
flows:
- name: channel_31
  id: 1
  match: {flex_item_id: 5, val: 31, mask: 0xffffffff}
  action: {type: queue, id: 0}
`, `
match:
  ecpri: {msg_type: 0, pc_id: 3}
`},
	Key{Name: "udp_src", Type: TypePorts, Lo: 1, Hi: maxU16, Words: "The UDP source port."},
	Key{Name: "udp_dst", Type: TypePorts, Lo: 1, Hi: maxU16, Words: "The UDP destination port."},
	Key{Name: "tcp_src", Type: TypePorts, Lo: 1, Hi: maxU16, Words: "The TCP source port."},
	Key{Name: "tcp_dst", Type: TypePorts, Lo: 1, Hi: maxU16, Words: "The TCP destination port."},
	Key{Name: "ipv4_src", Type: TypeIPv4Prefix, Words: "The IPv4 source."},
	Key{Name: "ipv4_dst", Type: TypeIPv4Prefix, Words: "The IPv4 destination."},
	Key{Name: "ipv6_src", Type: TypeIPv6Prefix, Words: "The IPv6 source."},
	Key{Name: "ipv6_dst", Type: TypeIPv6Prefix, Words: "The IPv6 destination."},
	Key{Name: "vlan_id", Type: TypeInteger, Lo: 0, Hi: 4095, Words: "The VLAN's number in the outermost tag."},
	Key{Name: "ethertype", Type: TypeInteger, Lo: 1, Hi: maxU16, Words: "The type of what follows the tags."},
	Key{Name: "ipv4_len", Type: TypeInteger, Lo: 1, Hi: maxU16, Unit: "bytes", Words: "The total length in the IPv4 header."},
	Key{Name: "ethernet", Type: TypeMap, Map: ethernetSection, Words: "The Ethernet addresses. It may stand beside the other criteria."},
	Key{Name: "flex_item_id", Type: TypeInteger, Lo: 0, Hi: maxU16, Required: true, When: "with `val` or `mask`", Words: "The flex item that is compared."},
	Key{Name: "val", Type: TypeInteger, Lo: 0, Hi: maxU32, Required: true, When: "with `flex_item_id`", Words: "What its 32 bits are, where `mask` has ones."},
	Key{Name: "mask", Type: TypeInteger, Lo: 0, Hi: maxU32, Required: true, When: "with `flex_item_id`", Words: "Which of its 32 bits are compared."},
	Key{Name: "ecpri", Type: TypeMap, Map: ecpriSection, Words: "eCPRI, over Ethernet or UDP. Without keys every eCPRI message."},
)

var ethernetSection = section("match.ethernet", "The Ethernet addresses of a frame; one of the keys is needed.", []string{`
match:
  ethernet: {src: "02:00:00:00:00:01", dst: "02:00:00:00:00:02"}
`},
	Key{Name: "src", Type: TypeMAC, Words: "The source."},
	Key{Name: "dst", Type: TypeMAC, Words: "The destination."},
)

var ecpriSection = section("match.ecpri", "The header of an eCPRI message.", []string{`
match:
  ecpri: {msg_type: 0, pc_id: 3}
`, `
match:
  ecpri: {msg_type: 2, rtc_id: 65535}
`},
	Key{Name: "msg_type", Type: TypeInteger, Lo: 0, Hi: 255, When: "with `pc_id` or `rtc_id`", Words: "The message's type."},
	Key{Name: "pc_id", Type: TypeInteger, Lo: 0, Hi: maxU16, Words: "The number of the data stream, of messages that have one."},
	Key{Name: "rtc_id", Type: TypeInteger, Lo: 0, Hi: maxU16, Words: "The same number, as control messages call it: one of the two may be there."},
)

var flexSection = section("rx.flex_items[]", "32 bits of the UDP payload of datagrams to one port.", []string{`
flex_items:
- {name: channel, id: 5, offset: 28, udp_dst_port: 7148}
`},
	Key{Name: "name", Type: TypeFilled, Required: true, Words: "What it is called: one item of the interface each."},
	Key{Name: "id", Type: TypeInteger, Lo: 0, Hi: maxU16, Required: true, Words: "The number that `flex_item_id` names."},
	Key{Name: "offset", Type: TypeInteger, Lo: 0, Hi: 28, Required: true, Unit: "bytes", Words: "Where the bits begin, behind the UDP header: a multiple of 4."},
	Key{Name: "udp_dst_port", Type: TypeInteger, Lo: 1, Hi: maxU16, Required: true, Words: "The UDP destination port of these datagrams."},
)
