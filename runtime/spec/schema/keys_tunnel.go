package schema

var tunnelTypes = []string{TunnelVXLAN, TunnelGRE, TunnelNVGRE}

const (
	withIPv4 = "without `outer_ipv6_src`"
	withIPv6 = "instead of `outer_ipv4_src`"
)

var tunnelSection = section("tunnel", "The outer headers of `tunnel_encap` and `tunnel_decap`: Ethernet, IPv4 or IPv6, and those of the type. `tunnel_decap` "+
	"compares all but those that it refuses.", []string{`
actions:
- type: tunnel_encap
  tunnel:
    type: vxlan
    outer_eth_src: "02:00:00:00:00:01"
    outer_eth_dst: "02:00:00:00:00:02"
    outer_ipv4_src: 192.0.2.1
    outer_ipv4_dst: 192.0.2.2
    outer_ipv4_ttl: 32
    outer_ipv4_tos: 184
    outer_udp_src: 49152
    outer_udp_dst: 4789
    vni: 7
`, `
actions:
- type: tunnel_encap
  tunnel:
    type: gre
    outer_eth_src: "02:00:00:00:00:01"
    outer_eth_dst: "02:00:00:00:00:02"
    outer_ipv4_src: 192.0.2.1
    outer_ipv4_dst: 192.0.2.2
    gre_protocol: 0x6558
`, `
actions:
- type: tunnel_encap
  tunnel:
    type: nvgre
    outer_eth_src: "02:00:00:00:00:01"
    outer_eth_dst: "02:00:00:00:00:02"
    outer_ipv6_src: 2001:db8::1
    outer_ipv6_dst: 2001:db8::2
    outer_ipv6_hop_limit: 32
    outer_ipv6_traffic_class: 184
    tni: 7
    flow_id: 1
`},
	Key{Name: "type", Type: TypeChoice, Choices: tunnelTypes, Required: true, Words: "The kind of tunnel."},
	Key{Name: "outer_eth_src", Type: TypeMAC, Required: true, Words: "The source of the outer Ethernet header. In a script's `i:add_tx_flows` it may be `auto`, the interface's."},
	Key{Name: "outer_eth_dst", Type: TypeMAC, Required: true, Words: "The destination of the outer Ethernet header. In a script's `i:add_tx_flows` it may be `auto`: it is found out."},
	Key{Name: "outer_ipv4_src", Type: TypeIPv4, Required: true, When: withIPv4, Words: "The source of the outer IPv4 header."},
	Key{Name: "outer_ipv4_dst", Type: TypeIPv4, Required: true, When: withIPv4, Words: "The destination of the outer IPv4 header."},
	Key{Name: "outer_ipv4_ttl", Type: TypeInteger, Lo: 1, Hi: 255, Default: 64, Words: "Its time to live. `tunnel_decap` refuses the key."},
	Key{Name: "outer_ipv4_tos", Type: TypeInteger, Lo: 0, Hi: 255, Default: 0, Words: "Its type of service. `tunnel_decap` refuses the key."},
	Key{Name: "outer_ipv6_src", Type: TypeIPv6, Required: true, When: withIPv6, Words: "The source of the outer IPv6 header."},
	Key{Name: "outer_ipv6_dst", Type: TypeIPv6, Required: true, When: withIPv6, Words: "The destination of the outer IPv6 header."},
	Key{Name: "outer_ipv6_hop_limit", Type: TypeInteger, Lo: 1, Hi: 255, Default: 64, Words: "Its hop limit. `tunnel_decap` refuses the key."},
	Key{Name: "outer_ipv6_traffic_class", Type: TypeInteger, Lo: 0, Hi: 255, Default: 0, Words: "Its traffic class. `tunnel_decap` refuses the key."},
	Key{Name: "outer_udp_src", Type: TypeInteger, Lo: 0, Hi: maxU16, Default: 0, Where: TunnelVXLAN,
		Words: "The outer UDP source port. 0: `tunnel_encap` takes a hash of each inner flow, `tunnel_decap` any port."},
	Key{Name: "outer_udp_dst", Type: TypeInteger, Lo: 1, Hi: maxU16, Default: 4789, Where: TunnelVXLAN, Words: "The outer UDP destination port."},
	Key{Name: "vni", Type: TypeInteger, Lo: 0, Hi: max24, Required: true, When: "with `type: vxlan`", Where: TunnelVXLAN, Words: "The network's number."},
	Key{Name: "gre_protocol", Type: TypeInteger, Lo: 1, Hi: maxU16, Default: 0x0800, Where: TunnelGRE,
		Words: "The EtherType in the GRE header, by default IPv4's, 0x0800; 0x6558 is Ethernet."},
	Key{Name: "tni", Type: TypeInteger, Lo: 0, Hi: max24, Required: true, When: "with `type: nvgre`", Where: TunnelNVGRE, Words: "The network's number."},
	Key{Name: "flow_id", Type: TypeInteger, Lo: 0, Hi: 255, Default: 0, Where: TunnelNVGRE, Words: "The flow's number in the NVGRE key."},
)
