// Package spec converts a DAQIRI configuration (a YAML file, YAML text or a decoded Lua table) to a checked Config. It is pure: it opens no device
// and does not inspect the machine. It imports the standard library and yaml.v3 only. A Config is immutable after parsing and safe for concurrent
// reading.
//
//	cfg, warnings, err := spec.ParseFile("rx.yaml", spec.Options{Engine: "loop"})
//
// # The schema
//
// The schema is version 1 of the reference's, below daqiri: cfg: or as a bare map. Next to daqiri:, a file may have other sections (bench_rx and so
// on), which are stored in Config.Extra unchecked; a bare map cannot. Types and descriptions of all keys are defined once, by the rows of keys_*.go,
// from which the parser, the reference (Places) and the JSON Schema are derived.
//
// Extensions:
//   - stream_type: mixed disables the check of stream_type against each interface
//   - interfaces[].engine selects the engine of one interface; the top-level engine also
//     accepts loop and xdp
//   - loopback as a map: {mode: sw, seed, clock: real|virtual, loss, dup, reorder,
//     corrupt, delay, rate}; delay and rate take units
//   - socket_config.framing for tcp: {fixed: BYTES}, or {length_prefix: 1|2|4|8,
//     endianness: network|host, includes_header: bool}
//   - addresses vdev:NAME and pcap:FILE
//   - IPv6 addresses and host names in endpoint URIs
//   - a prefix such as 10.0.0.0/8 in ipv4_src and ipv4_dst
//   - tcp_src, tcp_dst, ipv6_src, ipv6_dst, vlan_id (of the outermost tag) and ethertype
//     (after the tags) in a match
//   - outer_ipv6_src, outer_ipv6_dst, outer_ipv6_hop_limit (64) and
//     outer_ipv6_traffic_class (0) in a tunnel, instead of the outer_ipv4 keys
//   - batch_size on a queue with poll_mode: direct: the maximum number of packets of one
//     poll, 256 by default
//   - cpu_core: -1 leaves the thread unpinned
//
// Supported keys of later versions of the reference: loopback: hw, engine: gpunetio (as default), match.ethernet, missing_action, reorder_engine,
// cyclic_sequence, packet_size, inline_data and gpunetio.tx_kernel. Valid settings without an engine fail when the session opens.
//
// # Errors
//
// Errors are unknown keys, wrong types, values out of range, duplicate keys, names and ids, missing keys, and unresolved references. All errors of a
// valid YAML document are reported at once, in the order of the file, as "file:line:column: path: rule"; the position is that of the key. A
// <placeholder> of a template is an error until it is replaced. Keys without effect (debug, timeout_us on a transmit queue) are warnings.
//
// Conditions that depend on the machine are checked when the session opens: whether a core or a device exists, two interfaces on one address, limits
// of a NIC such as its maximum frame size. Source.Key and Source.Errorf report such errors at their line.
//
// # Decisions
//
//   - Numbers are integers, decimal, 0x or 0o, without quotes (YAML 1.2). 010 is rejected: YAML 1.1
//     and 1.2 parse it differently. yes, no, on and off are booleans for boolean keys, and
//     text elsewhere.
//   - A match key with value 0 is rejected. The reference treats it as "any", which
//     omitting the key expresses.
//   - Port ranges, a batch_size above 32 on UDP queues, and an empty list of memory regions
//     are accepted, which the reference refuses. So is an interface with neither rx nor tx,
//     with a warning.
//   - A match without criteria, or no match at all, matches everything.
//   - Flow ids are unique within a direction of an interface and, unless 0, among all
//     interfaces of that direction.
//   - Classes of match (ports and IP, flex items, eCPRI) may be combined on an interface:
//     software implements what a NIC does not support.
//   - Reorder: limits of the reference's implementation do not apply. A batch may have any
//     number of packets, a field 1 to 64 bits, and the flows may lead to several queues or
//     to direct ones; data types are also converted on the CPU. The remaining checks concern
//     semantics: the fields and the payload are within the packet, the sequence number can
//     count a batch, and an output buffer holds one.
//   - Legacy endpoint keys (local_ip, local_port, ...) take their scheme from the URI of
//     the interface's other end, else from other endpoints of the file, in any position;
//     with engine: ibverbs it is roce. A client's local_port alone means any address.
//   - max_payload_size above 65535 is treated as 0, with a warning, as in the reference,
//     whose own files have 1048576.
//   - master_core starts and ends the reference's threads; here it has no thread. A queue
//     with that cpu_core, which violates the reference's rule, causes a warning.
//   - rdma_read and rdma_write in access cause a warning without an RDMA interface, as does
//     dynamic_flow_capacity, because flow tables grow.
//   - engine: ibverbs with raw addresses is raw Ethernet over verbs, with endpoints RDMA.
//   - Options.Memory "host" keeps the declared kind for the reorder rules and allocates
//     host memory.
//   - yaml.v3 rejects %YAML 1.2, which every file of the reference has: the line is
//     blanked. Aliases and merge keys are supported, with a limit on their expansion.
package spec
