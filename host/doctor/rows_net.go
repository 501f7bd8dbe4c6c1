package doctor

import (
	"fmt"
	"math/bits"
	"net"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/daqiri/daqiri-run/host/machine"
	"github.com/daqiri/daqiri-run/runtime/spec"
	"github.com/daqiri/daqiri-run/runtime/spec/schema"
)

// Bytes of a frame not counted by the MTU: Ethernet header and a VLAN tag.
const frameBytes = 18

// kernelBuffer is the socket buffer size requested per direction (native/engine/socket).
const kernelBuffer = 64 << 20

var (
	devices = []string{schema.EngineXDP, schema.EnginePacket}
	sockets = []string{schema.EngineSocket}
)

var netRows = []row{
	{name: "link", why: "an interface that is down, or slower than its card, brings nothing or too little", engines: devices, look: func(x *exam) {
		for _, i := range x.interfaces() {
			if i.State != "up" {
				x.fail(i.Name, "is "+i.State, "sudo ip link set "+i.Name+" up")
			} else {
				x.pass(i.Name, strings.TrimSuffix("up, "+i.SpeedText(), ", -"))
			}
		}
		x.orNone("no interface to check")
	}},
	{name: "MTU", why: "frames longer than the MTU are dropped by the card; those longer than a buffer, by us", engines: devices, look: mtus},
	{name: "joined packets", why: "the kernel joins packets before a program sees them (GRO), which then are no longer what was sent", engines: devices, look: func(x *exam) {
		for _, i := range x.interfaces() {
			joined, err := offload(i.Name)
			switch {
			case err != nil:
				continue
			case joined:
				x.fail(i.Name, "generic receive offload is on", "sudo ethtool -K "+i.Name+" gro off lro off")
			default:
				x.pass(i.Name, "generic receive offload is off")
			}
		}
		x.orNone("no interface to check")
	}},
	{name: "socket buffers", why: "datagrams that come while the program is busy wait in the kernel's buffer, and are lost beyond it", engines: sockets, look: func(x *exam) {
		most, ok := x.m.Number("proc/sys/net/core/rmem_max")
		switch {
		case x.m.Capability(unix.CAP_NET_ADMIN):
			x.pass("", "no limit, as this process has CAP_NET_ADMIN")
		case !ok:
			x.none("net.core.rmem_max is not to be seen here, as in a network namespace")
		case most < kernelBuffer:
			x.fail("", fmt.Sprintf("net.core.rmem_max is %s, a socket asks for %s", size(most), size(kernelBuffer)), fmt.Sprintf("sudo sysctl -w net.core.rmem_max=%d net.core.wmem_max=%[1]d", kernelBuffer))
		default:
			x.pass("", "net.core.rmem_max is "+size(most))
		}
	}},
	{name: "group limit", why: "a socket that joins more multicast groups than this gets an error", engines: sockets, look: func(x *exam) {
		most, ok := x.m.Number("proc/sys/net/ipv4/igmp_max_memberships")
		switch {
		case !x.groups():
			x.none(noGroup)
		case !ok:
			x.none("the kernel does not say")
		case most < 64:
			x.fail("", fmt.Sprintf("net.ipv4.igmp_max_memberships is %d", most), "sudo sysctl -w net.ipv4.igmp_max_memberships=1024")
		default:
			x.pass("", fmt.Sprintf("net.ipv4.igmp_max_memberships is %d", most))
		}
	}},
	{name: "reverse path", why: "a strict filter drops packets whose sender is not reached by the interface that they came by, multicast above all", engines: sockets,
		look: func(x *exam) {
			all, _ := x.m.Number("proc/sys/net/ipv4/conf/all/rp_filter")
			for _, i := range x.m.Interfaces() {
				own, ok := x.m.Number("proc/sys/net/ipv4/conf", i.Name, "rp_filter")
				switch {
				case !ok || i.Name == "lo":
					continue
				case max(all, own) == 1:
					x.fail(i.Name, "strict (rp_filter 1)", "sudo sysctl -w net.ipv4.conf.all.rp_filter=2 net.ipv4.conf."+i.Name+".rp_filter=2")
				default:
					x.pass(i.Name, fmt.Sprintf("rp_filter %d", max(all, own)))
				}
			}
			x.orNone("no interface to check")
		}},
	{name: "multicast route", why: "without a route to groups a sender gets an error, and a join goes to no interface", engines: sockets, look: func(x *exam) {
		text, ok := x.m.Text("proc/net/route")
		by := multicastRoute(text)
		switch {
		case !x.groups():
			x.none(noGroup)
		case !ok:
			x.none("the kernel has no IPv4")
		case by == "":
			x.fail("", "no route leads to 224.0.0.0/4", "sudo ip route add 224.0.0.0/4 dev "+x.firstDevice())
		default:
			x.pass("", "by "+by)
		}
	}},
	{name: "rights", why: "raw frames, filters in the kernel and pinned memory are privileged", look: rights},
	{name: "time", why: "times of packets are compared between machines: a clock that is not synchronised drifts by milliseconds a minute", look: func(x *exam) {
		var t unix.Timex
		state, err := unix.Adjtimex(&t)
		switch {
		case err != nil:
			x.none("the kernel does not say: " + err.Error())
		case state == unix.TIME_ERROR || t.Status&unix.STA_UNSYNC != 0:
			x.fail("", "the system's clock is not synchronised", "sudo apt-get install chrony && sudo systemctl enable --now chrony (or ptp4l and phc2sys, for PTP)")
		default:
			x.pass("", fmt.Sprintf("synchronised, off by at most %d us", t.Maxerror))
		}
	}},
	{name: "PTP clock", why: "a card with a clock of its own stamps packets as they arrive, and sends at times", engines: append(slices.Clone(devices), schema.EngineDPDK),
		look: func(x *exam) {
			for _, i := range x.interfaces() {
				if i.PTP != "" {
					x.pass(i.Name, i.PTP)
				}
			}
			x.orNone("no card here has one")
		}},
}

// interfaces lists those of the configuration, or without one all that may carry external traffic.
func (x *exam) interfaces() (list []machine.Interface) {
	for _, i := range x.m.Interfaces() {
		named := x.cfg == nil && i.State == "up" && i.Name != "lo" && i.Driver != "" && i.PCI != i.Name
		if x.cfg != nil {
			named = slices.ContainsFunc(x.cfg.Interfaces, func(c *spec.Interface) bool { return c.Address == i.Name })
		}
		if named {
			list = append(list, i)
		}
	}
	return list
}

func (x *exam) orNone(found string) {
	if len(x.found) == 0 {
		x.none(found)
	}
}

// mtus compares each interface's MTU with the buffers of its queues, or with the standard MTU.
func mtus(x *exam) {
	for _, i := range x.interfaces() {
		if x.cfg == nil {
			if i.MTU <= 1518 {
				x.fail(i.Name, fmt.Sprintf("%d: no jumbo frames, which halve what packets cost", i.MTU), "sudo ip link set "+i.Name+" mtu 9000 (where its network has them)")
			} else {
				x.pass(i.Name, strconv.Itoa(i.MTU))
			}
			continue
		}
		for _, c := range x.cfg.Interfaces {
			if c.Address != i.Name {
				continue
			}
			if c.RX != nil {
				x.queueMTU(i, c.RX.Queues, "receives")
			}
			if c.TX != nil {
				x.queueMTU(i, c.TX.Queues, "sends")
			}
		}
	}
	x.orNone("no interface to check")
}

// queueMTU compares an interface's MTU with the frame size that each queue's buffers hold.
func (x *exam) queueMTU(i machine.Interface, queues []*spec.Queue, does string) {
	for _, q := range queues {
		holds := 0
		for _, name := range q.MemoryRegions {
			if r := x.cfg.Region(name); r != nil {
				holds += r.BufSize
			}
		}
		of := i.Name + ", queue " + q.Name
		frame := i.MTU + frameBytes - 4 // tags are stripped, or used only with VLANs
		switch {
		case does == "receives" && holds < frame:
			x.fail(of, fmt.Sprintf("frames have up to %d bytes, its buffers %d", frame, holds), fmt.Sprintf("set buf_size of %s to %d", strings.Join(q.MemoryRegions, " and "), i.MTU+frameBytes))
		case does == "sends" && holds > 2*frame:
			x.fail(of, fmt.Sprintf("its buffers hold %d bytes, the MTU is %d: longer frames are dropped", holds, i.MTU), fmt.Sprintf("sudo ip link set %s mtu %d", i.Name, min(holds-frameBytes, 9000)))
		default:
			x.pass(of, fmt.Sprintf("MTU %d, buffers of %d bytes", i.MTU, holds))
		}
	}
}

const noGroup = "the configuration has no multicast group"

// groups reports whether a socket of the configuration uses a multicast group; true without a configuration.
func (x *exam) groups() bool {
	group := func(e *spec.Endpoint) bool { return e != nil && e.Addr.IsMulticast() }
	return x.cfg == nil || slices.ContainsFunc(x.cfg.Interfaces, func(i *spec.Interface) bool {
		return i.Socket() && (group(i.SocketConfig.Local) || group(i.SocketConfig.Remote))
	})
}

// multicastRoute returns the interface of the multicast route in /proc/net/route, or "".
func multicastRoute(text string) string {
	best, by := -1, ""
	for k, line := range slices.Collect(strings.Lines(text)) {
		f := strings.Fields(line)
		if k == 0 || len(f) < 8 {
			continue
		}
		dest, err := strconv.ParseUint(f[1], 16, 32)
		mask, err2 := strconv.ParseUint(f[7], 16, 32)
		// Addresses are in host byte order; on x86 and arm64 the first byte of an address is the last of the number.
		const group = 224
		if err != nil || err2 != nil || group&mask&0xff != dest&0xff || bits.OnesCount32(uint32(mask)) > 4 {
			continue
		}
		if n := bits.OnesCount32(uint32(mask)); n > best {
			best, by = n, f[0]
		}
	}
	return by
}

// firstDevice returns an interface name for use in commands.
func (x *exam) firstDevice() string {
	for _, i := range x.interfaces() {
		return i.Name
	}
	for _, i := range x.m.Interfaces() {
		if i.State == "up" && i.Name != "lo" {
			return i.Name
		}
	}
	return "eth0"
}

// wants lists capabilities and the engines that require them.
var wants = []struct {
	capability int
	name, does string
	engines    []string
}{
	{unix.CAP_NET_RAW, "cap_net_raw", "raw frames", []string{schema.EngineXDP, schema.EnginePacket, schema.EngineIBVerbs}},
	{unix.CAP_NET_ADMIN, "cap_net_admin", "AF_XDP", []string{schema.EngineXDP}},
	{unix.CAP_BPF, "cap_bpf", "the program that AF_XDP needs in the kernel", []string{schema.EngineXDP}},
	{unix.CAP_IPC_LOCK, "cap_ipc_lock", "pinned memory", []string{schema.EngineXDP, schema.EngineRDMA, schema.EngineIBVerbs, schema.EngineDPDK}},
	{unix.CAP_SYS_ADMIN, "cap_sys_admin", "physical addresses of huge pages", []string{schema.EngineDPDK}},
}

// rights checks the process's capabilities for the configured engines. One command grants all missing ones.
func rights(x *exam) {
	var lacks, does []string
	for _, w := range wants {
		if !x.serves(w.engines) {
			continue
		}
		if x.m.Capability(w.capability) {
			x.pass(w.name, "there, for "+w.does)
			continue
		}
		lacks, does = append(lacks, w.name), append(does, w.does)
	}
	if len(lacks) > 0 {
		x.fail(strings.Join(lacks, ", "), "missing, for "+strings.Join(does, ", "), "sudo setcap "+strings.Join(lacks, ",")+"+ep $(readlink -f $(command -v daqiri-run)), or run it as root")
	}
	x.orNone("no engine of the configuration needs any")
}

// offload reports whether an interface merges packets (GRO).
func offload(name string) (bool, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false, err
	}
	defer func() { _ = unix.Close(fd) }()
	return groAt(fd, name)
}

// ownAddresses lists the addresses of this machine.
func ownAddresses() (all []string) {
	addrs, _ := net.InterfaceAddrs() // on error: none, and no address is local
	for _, a := range addrs {
		host, _, _ := strings.Cut(a.String(), "/")
		all = append(all, host)
	}
	return all
}
