package machine

import (
	"encoding/binary"
	"os"
	"strconv"
	"strings"
)

// PCI is a PCI device.
type PCI struct {
	Address, Driver     string
	Class, Vendor       uint32 // 0x020000: an Ethernet card
	Node                int
	Speed, MaxSpeed     string // link speed: "16.0 GT/s PCIe"; empty: none
	Width, MaxWidth     int
	Payload, MaxPayload int      // MaxPayload in bytes: configured and supported; 0: only readable by root
	ReadRequest         int      // MaxReadRequest in bytes; 0 as above
	BARs                []uint64 // size of each memory window in bytes
	path                []string // from the root complex down: bridges, then the device
}

const (
	capPCIe    = 0x10 // capability id (PCI Express Base Specification 7.5.3)
	devCap     = 4    // register Device Capabilities: MaxPayload in bits 0-2
	devControl = 8    // register Device Control: MaxPayload in bits 5-7, MaxReadRequest in bits 12-14
)

// PCIs lists the devices whose class has one of these prefixes: 0x02 network, 0x03 display and 3D.
func (m *Machine) PCIs(classes ...uint32) (all []PCI) {
	for _, address := range m.names("sys/bus/pci/devices") {
		class, err := strconv.ParseUint(strings.TrimPrefix(m.text("sys/bus/pci/devices", address, "class"), "0x"), 16, 32)
		for _, want := range classes {
			if err == nil && uint32(class>>16) == want {
				all = append(all, m.PCI(address))
			}
		}
	}
	return all
}

// PCI returns the device at an address such as 0000:3b:00.0.
func (m *Machine) PCI(address string) PCI {
	at := func(file string) string { return m.text("sys/bus/pci/devices", address, file) }
	hex := func(file string) uint32 {
		n, _ := strconv.ParseUint(strings.TrimPrefix(at(file), "0x"), 16, 32) // 0 on error
		return uint32(n)
	}
	p := PCI{Address: address, Class: hex("class"), Vendor: hex("vendor"), Driver: m.link("sys/bus/pci/devices", address, "driver"),
		Node: m.node("sys/bus/pci/devices", address), Speed: at("current_link_speed"), MaxSpeed: at("max_link_speed")}
	p.Width, _ = strconv.Atoi(at("current_link_width"))
	p.MaxWidth, _ = strconv.Atoi(at("max_link_width"))
	for line := range strings.Lines(at("resource")) {
		if f := strings.Fields(line); len(f) == 3 && len(p.BARs) < 6 { // followed by the expansion ROM and a bridge's windows
			first, _ := strconv.ParseUint(f[0], 0, 64)
			last, _ := strconv.ParseUint(f[1], 0, 64)
			size := last - first + 1
			if last == 0 {
				size = 0
			}
			p.BARs = append(p.BARs, size)
		}
	}
	config, _ := os.ReadFile(m.path("sys/bus/pci/devices", address, "config")) // 64 bytes without root
	p.express(config)
	for _, part := range strings.Split(m.realPath("sys/bus/pci/devices", address), "/") {
		if strings.Count(part, ":") == 2 || strings.HasPrefix(part, "pci") {
			p.path = append(p.path, part)
		}
	}
	return p
}

// express decodes the PCI Express capability of a configuration space.
func (p *PCI) express(config []byte) {
	if len(config) < 256 {
		return
	}
	for at, hops := int(config[0x34])&^3, 0; at >= 0x40 && at+devControl+2 <= 256 && hops < 48; at, hops = int(config[at+1])&^3, hops+1 {
		if config[at] != capPCIe {
			continue
		}
		control := binary.LittleEndian.Uint16(config[at+devControl:])
		p.MaxPayload = 128 << (config[at+devCap] & 7)
		p.Payload = 128 << (control >> 5 & 7)
		p.ReadRequest = 128 << (control >> 12 & 7)
		return
	}
}

// Distance returns how two devices are connected, in the terms of nvidia-smi topo: PIX one bridge, PXB several bridges, PHB the host bridge, NODE
// host bridges of one NUMA node, SYS the interconnect between nodes.
func (p PCI) Distance(o PCI) string {
	shared := 0
	for shared < len(p.path) && shared < len(o.path) && p.path[shared] == o.path[shared] {
		shared++
	}
	between := len(p.path) - shared - 1 + len(o.path) - shared - 1 // bridges below the last shared one
	switch {
	case shared == 0 && p.Node != o.Node:
		return "SYS"
	case shared == 0:
		return "NODE"
	case shared == 1: // only the host bridge
		return "PHB"
	case between <= 2: // a switch has a bridge for each port
		return "PIX"
	}
	return "PXB"
}

// IOMMU reports whether an IOMMU is enabled.
func (m *Machine) IOMMU() bool { return len(m.names("sys/class/iommu")) > 0 }

// DeviceNode returns the NUMA node of an interface or PCI address, or -1 if unknown.
func (m *Machine) DeviceNode(address string) int {
	if m.there("sys/bus/pci/devices", address) {
		return m.node("sys/bus/pci/devices", address)
	}
	return m.node("sys/class/net", address, "device")
}

// RDMA returns the state of the first port of each RDMA device: "4: ACTIVE".
func (m *Machine) RDMA() map[string]string {
	all := map[string]string{}
	for _, name := range m.names("sys/class/infiniband") {
		all[name] = m.text("sys/class/infiniband", name, "ports/1/state")
	}
	return all
}
