package native

/*
#include "dq.h"
*/
import "C"

import "net/netip"

// Proto is the protocol of a socket interface.
type Proto int32

// Framing is the division of a TCP stream into messages.
type Framing int32

// Protocols and framings.
const (
	ProtoNone     Proto   = C.DQ_PROTO_NONE
	ProtoUDP      Proto   = C.DQ_PROTO_UDP
	ProtoTCP      Proto   = C.DQ_PROTO_TCP
	ProtoRoCE     Proto   = C.DQ_PROTO_ROCE
	FramingNone   Framing = C.DQ_FRAMING_NONE
	FramingFixed  Framing = C.DQ_FRAMING_FIXED
	FramingPrefix Framing = C.DQ_FRAMING_PREFIX
)

// SocketConf is the endpoint of a socket interface. Hosts are names or addresses.
type SocketConf struct {
	Proto                 Proto
	Server                bool
	LocalHost, RemoteHost string
	LocalPort, RemotePort int
	MaxPayload            int // bytes; 0: the buffer size
	RetryConnectS         int
	Framing               Framing
	FramingBytes          int  // length of a message or of the length prefix
	LittleEndian          bool // length prefix
	IncludesPrefix        bool // the length counts the prefix itself
	RoCE                  RoCEConf
}

// RoCEConf has the settings of RDMA interfaces.
type RoCEConf struct {
	Transport    Transport
	GIDIndex     int // of manually connected queue pairs; -1: that of the address
	TrafficClass int // -1: system default
	MTU          int // maximum bytes of a packet on the wire; 0: the port's
}

// Transport is a kind of RDMA connection.
type Transport int32

// Reliable connections, unreliable connections, and datagrams.
const (
	TransportRC Transport = C.DQ_TRANSPORT_RC
	TransportUC Transport = C.DQ_TRANSPORT_UC
	TransportUD Transport = C.DQ_TRANSPORT_UD
)

// ReplayConf configures the replay of a capture: original gaps divided by Speed, or at BPS or PPS; unpaced if all are 0.
type ReplayConf struct {
	Speed, BPS, PPS float64
	Loops           uint64 // 0: endless
}

// IfaceConf describes an interface.
type IfaceConf struct {
	Name, Engine, Address string
	FlowIsolation         bool
	Outgoing              bool   // engine packet: frames that this machine sends are received, too
	Joined                Region // engine packet: also receive joined frames, long ones into this region; zero: neither
	HardwareTimestamps    bool   // of received packets, if the device supports them
	AccurateSend          bool   // send times are enforced by the device, if supported
	Socket                SocketConf
	Replay                ReplayConf // engine pcap
}

// Iface is an interface; it lives as long as its session.
type Iface struct{ c *C.dq_iface }

// AddIface adds an interface to a session before its open.
func (s *Session) AddIface(conf IfaceConf) (Iface, error) {
	sc := conf.Socket
	c := C.dq_iface_conf{
		flow_isolation:      flag(conf.FlowIsolation),
		outgoing:            flag(conf.Outgoing),
		joined:              conf.Joined.c,
		hardware_timestamps: flag(conf.HardwareTimestamps),
		accurate_send:       flag(conf.AccurateSend),
		socket: C.dq_socket_conf{
			proto:           C.int32_t(sc.Proto),
			server:          flag(sc.Server),
			local_port:      C.uint16_t(sc.LocalPort),
			remote_port:     C.uint16_t(sc.RemotePort),
			max_payload:     C.uint32_t(sc.MaxPayload),
			retry_connect_s: C.int32_t(sc.RetryConnectS),
			framing:         C.int32_t(sc.Framing),
			framing_bytes:   C.uint32_t(sc.FramingBytes),
			framing_le:      flag(sc.LittleEndian),
			framing_incl:    flag(sc.IncludesPrefix),
			roce: C.dq_roce_conf{
				transport:     C.int32_t(sc.RoCE.Transport),
				gid_index:     C.int32_t(sc.RoCE.GIDIndex),
				traffic_class: C.int32_t(sc.RoCE.TrafficClass),
				mtu:           C.int32_t(sc.RoCE.MTU),
			},
		},
		replay: C.dq_replay_conf{
			speed: C.double(conf.Replay.Speed),
			bps:   C.double(conf.Replay.BPS),
			pps:   C.double(conf.Replay.PPS),
			loops: C.uint64_t(conf.Replay.Loops),
		},
	}
	var i Iface
	for _, f := range []struct {
		dst        []C.char
		what, text string
	}{
		{c.name[:], "interface", conf.Name},
		{c.engine[:], "engine", conf.Engine},
		{c.address[:], "address", conf.Address},
		{c.socket.local_host[:], "local host", sc.LocalHost},
		{c.socket.remote_host[:], "remote host", sc.RemoteHost},
	} {
		if err := put(f.dst, f.what, f.text); err != nil {
			return i, err
		}
	}
	var d C.dq_diag
	err := result("interface "+conf.Name, C.dq_iface_add(s.c, &c, &i.c, &d), &d)
	if err == nil && conf.Engine == "xdp" {
		s.xdp = append(s.xdp, xdpIface{i, conf.Address})
	}
	return i, err
}

// Source is the replay state of an interface.
type Source struct {
	Ended bool   // no more packets follow, or nothing reads them
	Fault string // why the rest of the file can't be read
}

// Source returns the replay state; false: the interface does not replay. Any thread, after the open.
func (i Iface) Source() (s Source, ok bool) {
	var c C.dq_source
	if !C.dq_iface_source(i.c, &c) {
		return s, false
	}
	return Source{bool(c.ended), text(c.fault[:])}, true
}

// MAC returns the interface's Ethernet address; ErrNotSupported if it has none.
func (i Iface) MAC() (mac [6]byte, err error) {
	var c [6]C.uint8_t
	err = status(C.dq_iface_mac(i.c, &c[0]))
	for n, b := range c {
		mac[n] = byte(b)
	}
	return mac, err
}

// Multicast joins or leaves a group given as a text address; an empty source means any source.
func (i Iface) Multicast(group, source string, join bool) error {
	g, s := cString(group), cString(source)
	defer g.free()
	defer s.free()
	var d C.dq_diag
	return result("multicast group "+group, C.dq_iface_multicast(i.c, g.c, s.c, C.bool(join), &d), &d)
}

// ip converts an address to C; the zero Addr has length 0.
func ip(a netip.Addr) (out C.dq_ip) {
	b := a.AsSlice()
	out.len = C.uint8_t(len(b))
	for k := range b {
		out.bytes[k] = C.uint8_t(b[k])
	}
	return out
}

// Answer makes the interface answer ARP requests and neighbour solicitations for exactly these addresses.
func (i Iface) Answer(addrs []netip.Addr) error {
	list := make([]C.dq_ip, len(addrs)+1) // at least one element, to have an address
	for n, a := range addrs {
		list[n] = ip(a)
	}
	var d C.dq_diag
	return result("addresses to answer for", C.dq_iface_answer(i.c, &list[0], C.uint32_t(len(addrs)), &d), &d)
}

// Ask sends one request for the Ethernet address of addr, in a VLAN (0: none); from is the sender's address, the zero Addr: an
// address that the interface answers for. ErrNotReady before the start.
func (i Iface) Ask(addr netip.Addr, vlan uint16, from netip.Addr) error {
	a, f := ip(addr), ip(from)
	var d C.dq_diag
	return result("neighbour", C.dq_iface_ask(i.c, &a, C.uint16_t(vlan), &f, &d), &d)
}

// Neighbour returns the answer received within the last minute; false: none.
func (i Iface) Neighbour(addr netip.Addr, vlan uint16) (mac [6]byte, known bool) {
	a := ip(addr)
	var m [6]C.uint8_t
	known = bool(C.dq_iface_neighbour(i.c, &a, C.uint16_t(vlan), &m[0]))
	for n, b := range m {
		mac[n] = byte(b)
	}
	return mac, known
}

// DropAll starts or stops discarding all received packets.
func (i Iface) DropAll(drop bool) error {
	var d C.dq_diag
	return result("drop all traffic", C.dq_iface_drop_all(i.c, C.bool(drop), &d), &d)
}

// Engine describes an engine of this build.
type Engine struct {
	Name         string
	VirtualClock bool // it can run on the virtual clock
}

// Engines returns all engines.
func Engines() []Engine {
	var list []Engine
	var info C.dq_engine_info
	for C.dq_engine(C.uint32_t(len(list)), &info) {
		list = append(list, Engine{C.GoString(&info.name[0]), bool(info.virtual_clock)})
	}
	return list
}
