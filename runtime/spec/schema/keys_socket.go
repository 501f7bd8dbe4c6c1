package schema

import "math"

// SocketSection has the keys of socket_config.
var SocketSection = section("socket_config", "An endpoint of tcp, udp or roce. A server needs `local_addr`, a client of tcp or udp `remote_addr`, a client "+
	"of roce `local_addr`; with `remote_addr`, too, it connects by itself, else the script does. Both ends have one scheme.", []string{`
socket_config:
  mode: server
  local_addr: "udp://239.2.0.64:7148"
  max_payload_size: 8192
`, `
socket_config:
  mode: client
  remote_addr: "tcp://camera.example.org:5001"
  retry_connect_s: 5
  framing: {length_prefix: 4}
`, `
socket_config:                          # the older form of addresses
  mode: client
  local_ip: 10.0.0.2
  local_port: 7000
  remote_ip: 10.0.0.1
  remote_port: 5001
`},
	Key{Name: "mode", Type: TypeChoice, Choices: []string{"client", "server"}, Required: true,
		Words: "`server`: waits at its local address. `client`: sends to, and connects with, its remote address."},
	Key{Name: "local_addr", Type: TypeEndpoint, When: "for a server, and on roce",
		Words: "Where the endpoint is: `udp://HOST:PORT`, `tcp://` or `roce://`; an IPv6 address has brackets, a name is resolved at the open. A UDP server's multicast group is joined."},
	Key{Name: "remote_addr", Type: TypeEndpoint, When: "for a client of tcp or udp",
		Words: "The peer. A UDP server with one sends there; without one to the sender of the last datagram.", NoEffect: "has no effect on a tcp server"},
	Key{Name: "local_ip", Type: TypeText, Words: "The older form of `local_addr`: its scheme is that of the other end, or of the file's other endpoints. A client's may stand alone."},
	Key{Name: "local_port", Type: TypeInteger, Lo: 0, Hi: maxU16, Default: 0, Words: "The port to `local_ip`; 0: the kernel's choice. A client's may stand alone."},
	Key{Name: "remote_ip", Type: TypeText, Words: "The older form of `remote_addr`."},
	Key{Name: "remote_port", Type: TypeInteger, Lo: 0, Hi: maxU16, Default: 0, Words: "The port to `remote_ip`."},
	Key{Name: "max_payload_size", Type: TypeInteger, Lo: 0, Hi: MaxCount, Default: 0, Unit: "bytes", Where: "tcp, udp",
		Words: "The longest datagram, or piece of a stream, that is received; it fits a buffer. 0, and what is above 65535: what a buffer holds."},
	Key{Name: "retry_connect_s", Type: TypeInteger, Lo: 1, Hi: 86400, Default: 1, Unit: "s", Where: "tcp",
		Words: "How long a client waits before it tries again to reach its server; then the pauses double up to 30 s."},
	Key{Name: "max_burst_interval_ms", Type: TypeInteger, Lo: 0, Hi: math.MaxInt64, Default: 0, Unit: "ms", NoEffect: "has no effect"},
	Key{Name: "min_ipg_ns", Type: TypeInteger, Lo: 0, Hi: maxU32, Default: 0, Unit: "ns", NoEffect: "has no effect; pace a queue with pacing_mbps or from the script"},
	Key{Name: "framing", Type: TypeMap, Map: framingSection, Where: "tcp", Words: "How the stream is cut into messages. Without it packets are what each read brings."},
)

var framingSection = section("framing", "Each message of a TCP stream is a packet. One of `fixed` and `length_prefix` is needed.", []string{`
framing: {fixed: 1024}
`, `
framing: {length_prefix: 4, endianness: network, includes_header: true}
`},
	Key{Name: "fixed", Type: TypeInteger, Lo: 1, Hi: MaxCount, When: "without `length_prefix`", Unit: "bytes", Words: "The length of every message; it fits a buffer."},
	Key{Name: "length_prefix", Type: TypeInteger, Lo: 1, Hi: 8, When: "without `fixed`", Unit: "bytes",
		Words: "The width of the length in front of each message: 1, 2, 4 or 8. It is taken off, and put on what is sent."},
	Key{Name: "endianness", Type: TypeChoice, Choices: []string{"network", "host"}, Default: "network", Words: "The byte order of the length."},
	Key{Name: "includes_header", Type: TypeBoolean, Default: false, Words: "Whether the length counts its own bytes."},
)
