// Package spec turns a DAQIRI configuration (a YAML file, YAML text or a decoded Lua
// table) into a checked Config. It is pure: it opens no device and looks at no machine.
// It imports the standard library and yaml.v3 only. A Config is not changed after the
// parse and is safe for concurrent reading.
//
//	cfg, warnings, err := spec.ParseFile("rx.yaml", spec.Options{Engine: "loop"})
//
// # The schema
//
// It is the reference's schema, version 1, below daqiri: cfg: or as a bare map. Beside
// daqiri:, a file may hold sections of its own (bench_rx and so on); they land in
// Config.Extra unchecked. A bare map has no room for such sections. What each key takes
// and does is said once, in the rows of keys_*.go, from which the parser, the reference
// (Places) and the JSON Schema take it.
//
// Keys of ours:
//   - stream_type: mixed lifts the check of stream_type against each interface
//   - interfaces[].engine chooses the engine of one interface; the top-level engine also
//     takes loop and xdp
//   - loopback as a map: {mode: sw, seed, clock: real|virtual, loss, dup, reorder,
//     corrupt, delay, rate}; delay and rate take units
//   - socket_config.framing for tcp: {fixed: BYTES}, or {length_prefix: 1|2|4|8,
//     endianness: network|host, includes_header: bool}
//   - addresses vdev:NAME and pcap:FILE
//   - IPv6 addresses and host names in endpoint URIs
//   - a prefix such as 10.0.0.0/8 in ipv4_src and ipv4_dst
//   - tcp_src, tcp_dst, ipv6_src, ipv6_dst, vlan_id (of the outermost tag) and ethertype
//     (of what follows the tags) in a match
//   - outer_ipv6_src, outer_ipv6_dst, outer_ipv6_hop_limit (64) and
//     outer_ipv6_traffic_class (0) in a tunnel, instead of the outer_ipv4 ones
//   - batch_size on a queue with poll_mode: direct: the most packets of one poll, 256
//     when left out
//   - cpu_core: -1 leaves the thread unpinned
//
// Keys of later versions of the reference that are taken in: loopback: hw, engine:
// gpunetio (as default), match.ethernet, missing_action, reorder_engine, cyclic_sequence, packet_size,
// inline_data and gpunetio.tx_kernel. What parses and has no engine yet fails when the
// session opens.
//
// # What is a fault
//
// Unknown keys, wrong types, values out of range, duplicate keys, names and ids, missing
// keys, and references to nothing. All faults of a document that is YAML come at once, in
// the order of the file, as "file:line:column: path: rule"; the position is that of the
// key. A template's <placeholder> is a fault until it is replaced. Keys without effect
// (debug, timeout_us on a transmit queue) are warnings.
//
// What depends on the machine is left to the open: whether a core or a device exists,
// two interfaces on one address, limits of a NIC such as its largest frame. Source.Key
// and Source.Errorf let the open report such a fault at its line.
//
// # Decisions
//
//   - Numbers are whole, decimal, 0x, 0o or 0b, quoted or not. 010 is refused: YAML 1.1
//     and 1.2 read it differently. yes, no, on and off are booleans where a boolean
//     stands, and texts elsewhere.
//   - A match key that is 0 is refused. The reference takes it for "any", and leaving the
//     key out says that.
//   - A match without criteria, or no match at all, matches everything.
//   - Flow ids are unique within a direction of an interface and, unless 0, among all
//     interfaces of that direction.
//   - Classes of match (ports and IP, flex items, eCPRI) may stand beside each other on an
//     interface: what a NIC can't do, software does.
//   - Reorder: the reference's limits that stem from its implementation are lifted. A
//     batch may have any number of packets, a field 1 to 64 bits, and the flows may lead
//     to several queues or to direct ones; data types convert on the CPU too. What is
//     left is about meaning: the fields and the payload lie inside the packet, the
//     sequence number can count a batch, and the output buffers hold one.
//   - Legacy endpoint keys (local_ip, local_port, ...) take their scheme from the URI of
//     the interface's other end, else from those of the same file, wherever these stand;
//     with engine: ibverbs it is roce. A client's local_port alone is one of any address.
//   - max_payload_size above 65535 counts as 0, with a warning: the reference reads it so,
//     and files of its own have 1048576.
//   - master_core starts and ends the reference's threads; here none runs there. A queue
//     whose cpu_core it is, against the reference's rule, is warned of.
//   - rdma_read and rdma_write in access are warned of where no interface is RDMA's, and
//     dynamic_flow_capacity, since flow tables grow.
//   - engine: ibverbs with raw addresses is raw Ethernet over verbs, with endpoints RDMA.
//   - Options.Memory "host" keeps the declared kind for the reorder rules and allocates
//     host memory.
//   - yaml.v3 refuses %YAML 1.2, which every file of the reference has: the line is
//     blanked. Aliases and merge keys work, within a bound on what they expand to.
package spec
