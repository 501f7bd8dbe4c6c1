package schema

import "math"

var interfaceSection = section("interfaces[]", "A port with its queues. Its engine is, from strong to weak: that of `--source` or `--engine`, its own "+
	"`engine`, a capture as `address`, loop with `loopback`, the configuration's `engine`, what its address looks like.", []string{`
interfaces:
- name: port
  address: 0000:3b:00.0
  engine: dpdk
  answers: [10.0.0.5, "fd98::5"]
  rx:
    queues:
    - {name: in, id: 0, cpu_core: 2, batch_size: 64, memory_regions: [packets]}
  tx:
    queues:
    - {name: out, id: 0, cpu_core: 3, batch_size: 64, memory_regions: [packets]}
`},
	Key{Name: "name", Type: TypeFilled, Required: true, Words: "What scripts, the ledger and overrides call it: one interface each."},
	Key{Name: "address", Type: TypeFilled, Required: true,
		Words: "What is behind it: a Linux interface (`eth1`), a PCI address (`0000:3b:00.0`), `vdev:NAME` of DPDK, an RDMA device with engine `ibverbs` (`mlx5_0`, `mlx5_0:2`; or its Linux interface or PCI address), or `pcap:FILE`, a capture to be " +
			"replayed. With `loopback` any word; of an endpoint its IP address."},
	Key{Name: "engine", Type: TypeChoice, Choices: InterfaceEngines, Words: "The engine of this interface. `packet` looks on beside the kernel, where `xdp` takes frames from it; `ibverbs` is raw Ethernet over verbs."},
	Key{Name: "socket_config", Type: TypeMap, Map: SocketSection, When: "with `stream_type: socket`", Where: "tcp, udp, roce", Words: "Makes the interface an endpoint."},
	Key{Name: "roce_config", Type: TypeMap, Map: roceSection, When: "on `roce://` endpoints", Where: "roce", Words: "The RDMA transport."},
	Key{Name: "replay", Type: TypeMap, Map: ReplaySection, Where: "engine pcap", Words: "At what pace the capture is replayed, and how often."},
	Key{Name: "answers", Type: TypeList, Items: TypeAddress, Where: "raw",
		Words: "The addresses that the interface answers ARP and IPv6 neighbour discovery for, from the open on. It needs a receive and a transmit " +
			"queue, and is an error where the kernel answers. `i:answer` replaces them."},
	Key{Name: "rx", Type: TypeMap, Map: RXSection, Words: "The receive side. Without it nothing is received."},
	Key{Name: "tx", Type: TypeMap, Map: TXSection, Words: "The transmit side. Without it nothing is sent."},
)

var roceSection = section("roce_config", "The RDMA transport of a `roce://` endpoint.", []string{`
roce_config:
  transport_mode: RC
`, `
roce_config: {transport_mode: UC, gid_index: 3, mtu: 1024, traffic_class: 106}
`},
	Key{Name: "transport_mode", Type: TypeChoice, Choices: []string{"RC", "UC", "UD"}, Required: true,
		Words: "The kind of connection: reliable, unreliable, or datagrams."},
	Key{Name: "gid_index", Type: TypeInteger, Lo: 0, Hi: 255,
		Words: "The place in the port's table of the GID of queue pairs that are connected by hand (`i:connect{ qp }`); without it that of the address, of " +
			"RoCE v2. A key of ours."},
	Key{Name: "mtu", Type: TypeInteger, Lo: 0, Hi: 4096, Default: 0, Unit: "bytes",
		Words: "The longest packet on the wire, a power of two from 256; 0: what the port has. A key of ours."},
	Key{Name: "traffic_class", Type: TypeInteger, Lo: 0, Hi: 255,
		Words: "The traffic class of a client's connections, in whose upper six bits the DSCP is. Without it the system's. A key of ours."},
)

// ReplaySection has the keys of replay.
var ReplaySection = section("replay", "How a capture (`address: pcap:FILE`) is replayed; `--source FILE,KEY=VALUE` has the same keys. Of `speed`, `rate` and "+
	"`pps` one may be there.", []string{`
replay: {speed: 2, loops: 3}
`, `
replay: {rate: 1Gbit/s, loops: forever}
`, `
replay: {pps: 100000}
`},
	Key{Name: "speed", Type: TypePositive, Choices: []string{SpeedMax}, Default: 1,
		Words: "The capture's own gaps are divided by it; `max` replays as fast as packets are taken."},
	Key{Name: "rate", Type: TypeRate, Unit: "bit/s", Words: "The rate of frames without FCS, instead of the capture's gaps."},
	Key{Name: "pps", Type: TypePositive, Unit: "packets/s", Words: "Packets per second, instead of the capture's gaps."},
	Key{Name: "loops", Type: TypeInteger, Lo: 1, Hi: math.MaxInt64, Choices: []string{LoopsForever}, Default: 1,
		Words: "How often it is replayed. Each replay continues a mean gap after the one before. A FIFO and standard input are read once."},
)

// RXSection has the keys of rx.
var RXSection = section("rx", "The receive side of an interface. Of its keys an endpoint has `queues` and `hardware_timestamps`.", []string{`
rx:
  flow_isolation: true
  hardware_timestamps: true
  queues:
  - {name: q, id: 0, cpu_core: 2, batch_size: 64, memory_regions: [packets]}
  flows:
  - {name: control, id: 1, match: {udp_dst: 7000}, action: {type: queue, id: 0}}
  flex_items: []
  reorder_configs: []
`, `
rx:
  outgoing: true
  joined: packets
  queues:
  - {name: q, id: 0, cpu_core: 2, batch_size: 64, memory_regions: [packets]}
`},
	Key{Name: "flow_isolation", Type: TypeBoolean, Default: false, Where: "raw",
		Words: "Queues get only what a flow matches. The rest goes to the kernel where the device or its driver can do that, else it is dropped as " +
			"`no_flow`; the report states which. `false`: what no flow matches goes to the first queue."},
	Key{Name: "outgoing", Type: TypeBoolean, Default: false, Where: "raw",
		Words: "Of engine packet: frames that this machine sends through the interface are received, too, as by tcpdump. On `lo` each packet comes once all the same."},
	Key{Name: "joined", Type: TypeFilled, Where: "raw",
		Words: "Of engine packet: packets that the kernel joined (GRO, TSO) are received as such, up to 262144 bytes, and not dropped as `joined`. Those longer than the " +
			"buffers of their queue go into buffers of this memory region."},
	Key{Name: "dynamic_flow_capacity", Type: TypeInteger, Lo: 0, Hi: MaxCount, Default: 0, Unit: "flows", Where: "raw",
		NoEffect: "has no effect: there is room for flows as they come"},
	Key{Name: "hardware_timestamps", Type: TypeBoolean, Default: false,
		Words: "Asks for the device's receive times, which engine dpdk has where the card does. Elsewhere times are the kernel's or the program's, as the report states."},
	Key{Name: "queues", Type: TypeList, Items: TypeMap, Map: rxQueueSection, Required: true, Words: "The receive queues, at least one."},
	Key{Name: "flows", Type: TypeList, Items: TypeMap, Map: RXFlowSection, Where: "raw", Words: "Which packets go to which queue."},
	Key{Name: "flex_items", Type: TypeList, Items: TypeMap, Map: flexSection, Where: "raw", Words: "Places in UDP payloads that flows can match."},
	Key{Name: "reorder_configs", Type: TypeList, Items: TypeMap, Map: reorderSection, Where: "raw", Words: "Packets to be put in order, in batches."},
)

// TXSection has the keys of tx.
var TXSection = section("tx", "The transmit side of an interface.", []string{`
tx:
  accurate_send: true
  queues:
  - {name: q, id: 0, cpu_core: 3, batch_size: 64, memory_regions: [packets]}
  flows:
  - {name: tagged, id: 1, match: {udp_dst: 7000}, action: {type: vlan_push, vlan_id: 100}}
`},
	Key{Name: "accurate_send", Type: TypeBoolean, Default: false,
		Words: "Asks for the device to keep the send times of packets, which engine dpdk can where the card does. Elsewhere the queue's thread keeps them, as the report states."},
	Key{Name: "queues", Type: TypeList, Items: TypeMap, Map: txQueueSection, Required: true, Words: "The transmit queues, at least one."},
	Key{Name: "flows", Type: TypeList, Items: TypeMap, Map: txFlowSection, Where: "raw", Words: "Which packets get which headers."},
)
