package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/daqiri/daqiri-run/host/machine"
	"github.com/daqiri/daqiri-run/runtime/spec/schema"
)

const (
	classNetwork = 0x02
	classDisplay = 0x03
)

// cards are the engines that use a PCI network card.
var cards = []string{schema.EngineDPDK, schema.EngineXDP, schema.EngineRDMA}

var busRows = []row{
	{name: "PCIe link", why: "a card that came up with fewer lanes, or slower, can't pass its full rate", engines: cards, look: func(x *exam) {
		for _, p := range x.m.PCIs(classNetwork, classDisplay) {
			found := fmt.Sprintf("%s x%d of %s x%d", p.Speed, p.Width, p.MaxSpeed, p.MaxWidth)
			switch {
			case p.MaxSpeed == "" || p.MaxWidth == 0 || strings.HasPrefix(p.Speed, "Unknown"):
				continue
			case p.Speed != p.MaxSpeed || p.Width < p.MaxWidth:
				x.fail(p.Address, found, "put the card into another slot, or see why: sudo lspci -vv -s "+p.Address+" | grep Lnk")
			default:
				x.pass(p.Address, found)
			}
		}
		x.orNone("no card has a link of PCI Express")
	}},
	{name: "PCIe read request", why: "a card that fetches less at a time than 4096 bytes waits more often: above 100 Gbit/s it can't send at full rate", engines: cards,
		look: func(x *exam) {
			x.express(func(p machine.PCI) {
				if p.ReadRequest < 4096 {
					x.fail(p.Address, fmt.Sprintf("%d bytes", p.ReadRequest), "sudo setpci -s "+p.Address+" CAP_EXP+8.w=5000:7000")
				} else {
					x.pass(p.Address, fmt.Sprintf("%d bytes", p.ReadRequest))
				}
			})
		}},
	{name: "PCIe payload", why: "smaller packets on the bus mean more of them", engines: cards, look: func(x *exam) {
		x.express(func(p machine.PCI) {
			if p.Payload < p.MaxPayload {
				x.fail(p.Address, fmt.Sprintf("%d bytes, the card could have %d", p.Payload, p.MaxPayload), kernelLine("pci=pcie_bus_perf"))
			} else {
				x.pass(p.Address, fmt.Sprintf("%d bytes", p.Payload))
			}
		})
	}},
	{name: "IOMMU", why: "addresses that are translated cost time at full rate; without an IOMMU vfio-pci needs an unsafe mode", engines: cards, look: func(x *exam) {
		passthrough, _ := x.m.Cmdline("iommu")
		vfio := slices.ContainsFunc(x.m.PCIs(classNetwork), func(p machine.PCI) bool { return p.Driver == "vfio-pci" })
		switch on := x.m.IOMMU(); {
		case !on && vfio:
			x.fail("", "off, and a card is bound to vfio-pci", kernelLine("intel_iommu=on iommu=pt")+" (or: echo 1 | sudo tee /sys/module/vfio/parameters/enable_unsafe_noiommu_mode)")
		case !on:
			x.none("off or not there: addresses are not translated")
		case passthrough != "pt":
			x.fail("", "on, and translates addresses of the kernel's drivers", kernelLine("iommu=pt"))
		default:
			x.pass("", "on, iommu=pt")
		}
	}},
	{name: "NUMA", why: "a packet that crosses from one processor to the other costs half of the rate", look: nodes},
	{name: "RDMA", why: "an RDMA device without an active port can't be used", engines: []string{schema.EngineRDMA}, look: func(x *exam) {
		for name, state := range x.m.RDMA() {
			if strings.HasSuffix(state, "ACTIVE") {
				x.pass(name, state)
			} else {
				x.fail(name, "port is "+state, "bring its interface up: rdma link, then sudo ip link set NAME up")
			}
		}
		x.orNone("no RDMA device (sudo rdma link add rxe0 type rxe netdev eth0 makes one of software)")
	}},
}

// express calls look for each network card whose PCI Express capability is readable.
func (x *exam) express(look func(p machine.PCI)) {
	hidden := 0
	for _, p := range x.m.PCIs(classNetwork) {
		switch {
		case p.MaxPayload > 0:
			look(p)
		case p.MaxWidth > 0:
			hidden++
		}
	}
	if hidden > 0 && len(x.found) == 0 {
		x.none("only root may read the configuration of cards")
		return
	}
	x.orNone("no network card of PCI Express")
}

// nodes compares the NUMA nodes of the cards, cores and memory used together by the configuration.
func nodes(x *exam) {
	if x.cfg == nil {
		x.none("no configuration was named")
		return
	}
	if len(x.m.Nodes()) < 2 {
		x.none("the machine has one node")
		return
	}
	for _, c := range x.cfg.Interfaces {
		node := x.m.DeviceNode(c.Address)
		if node < 0 {
			continue
		}
		for _, q := range c.Queues() {
			of := fmt.Sprintf("queue %s of %s", q.Name, c.Address)
			if at := x.m.CPUNode(q.CPUCore); q.CPUCore >= 0 && at != node {
				x.fail(of, fmt.Sprintf("core %d is on node %d, the card on node %d", q.CPUCore, at, node), fmt.Sprintf("set cpu_core to one of %s", listText(x.m.NodeCPUs(node))))
			} else if q.CPUCore >= 0 {
				x.pass(of, fmt.Sprintf("core %d and card on node %d", q.CPUCore, node))
			}
			for _, name := range q.MemoryRegions {
				r := x.cfg.Region(name)
				if r != nil && (r.Kind == schema.KindHost || r.Kind == schema.KindHuge) && r.Affinity != node {
					x.fail(of, fmt.Sprintf("region %s is on node %d, the card on node %d", name, r.Affinity, node), fmt.Sprintf("set affinity of %s to %d", name, node))
				}
			}
		}
	}
	x.orNone("no card of the configuration is on a node")
}

// leastFree is the minimum free space of an output folder, in bytes.
const leastFree = 1 << 30

var fileRows = []row{
	{name: "files", why: "files are written past the page cache, which not every file system can, and need room", look: func(x *exam) {
		for _, dir := range x.dirs {
			var fs unix.Statfs_t
			if err := unix.Statfs(dir, &fs); err != nil {
				x.fail(dir, err.Error(), "mkdir -p "+dir)
				continue
			}
			free := int(fs.Bavail) * int(fs.Bsize)
			switch err := direct(dir); {
			case os.IsPermission(err):
				x.fail(dir, "nothing can be written there", "sudo chown $USER "+dir)
			case err != nil:
				x.fail(dir, "no direct writes: "+err.Error(), "name a folder on ext4 or XFS: --dir DIR")
			case free < leastFree:
				x.fail(dir, size(free)+" are free", "make room, or name another folder: --dir DIR")
			default:
				x.pass(dir, "direct writes, "+size(free)+" free")
			}
		}
	}},
	{name: "open files", why: "each socket, file and queue takes one", look: func(x *exam) {
		var lim unix.Rlimit
		if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &lim); err != nil {
			x.none(err.Error())
		} else if lim.Max < 1024 {
			x.fail("", fmt.Sprintf("limit %d", lim.Max), "ulimit -n 65536 (a hard limit is set in /etc/security/limits.conf: * - nofile 65536)")
		} else {
			x.pass("", fmt.Sprintf("limit %d", lim.Max))
		}
	}},
}

// direct tests direct writes with an unnamed file.
func direct(dir string) error {
	f, err := os.CreateTemp(dir, ".daqiri-doctor-")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	defer func() { _ = f.Close() }()
	fd, err := unix.Open(filepath.Clean(f.Name()), unix.O_WRONLY|unix.O_DIRECT|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}
