package machine

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
)

// Interface is a network interface, or a network card without one because it is bound to a user-space driver.
type Interface struct {
	Name      string   `json:"name"`  // eth1, or the PCI address of a card without interface
	State     string   `json:"state"` // up, down, or dpdk
	SpeedMbps int      `json:"speed_mbps,omitempty"`
	MTU       int      `json:"mtu,omitempty"` // bytes
	RxQueues  int      `json:"rx_queues,omitempty"`
	TxQueues  int      `json:"tx_queues,omitempty"`
	Driver    string   `json:"driver,omitempty"`
	PCI       string   `json:"pci,omitempty"`
	Node      int      `json:"numa_node"`     // -1: unknown or none
	PTP       string   `json:"ptp,omitempty"` // PTP hardware clock: ptp0
	MAC       string   `json:"mac,omitempty"`
	Addresses []string `json:"addresses,omitempty"` // with prefix lengths; only of this machine
}

// programDrivers are the drivers that hand a card to a program.
var programDrivers = []string{"vfio-pci", "uio_pci_generic", "igb_uio"}

// Interfaces lists the interfaces sorted by name, then the cards bound to user-space drivers.
func (m *Machine) Interfaces() []Interface {
	all := []Interface{}
	for _, name := range m.names("sys/class/net") {
		if m.there("sys/class/net", name, "ifindex") {
			all = append(all, m.Interface(name))
		}
	}
	for _, address := range m.names("sys/bus/pci/devices") {
		driver := m.link("sys/bus/pci/devices", address, "driver")
		if strings.HasPrefix(m.text("sys/bus/pci/devices", address, "class"), "0x02") && slices.Contains(programDrivers, driver) {
			all = append(all, Interface{Name: address, State: "dpdk", Driver: driver, PCI: address, Node: m.node("sys/bus/pci/devices", address)})
		}
	}
	return all
}

// Interface returns the properties of the named interface.
func (m *Machine) Interface(name string) Interface {
	at := func(parts ...string) []string { return append([]string{"sys/class/net", name}, parts...) }
	i := Interface{Name: name, State: m.text(at("operstate")...), MAC: m.text(at("address")...), Driver: m.link(at("device", "driver")...),
		Node: m.node(at("device")...)}
	if i.State != "up" && i.State != "down" { // loopback and tunnels report "unknown"
		i.State = "down"
		if flags := m.text(at("flags")...); strings.HasPrefix(flags, "0x") && (flags[len(flags)-1]-'0')%2 == 1 {
			i.State = "up"
		}
	}
	i.MTU, _ = m.Number(at("mtu")...)
	i.SpeedMbps, _ = m.Number(at("speed")...)
	i.SpeedMbps = max(0, i.SpeedMbps) // -1: unknown
	for _, q := range m.names(at("queues")...) {
		if strings.HasPrefix(q, "rx-") {
			i.RxQueues++
		} else {
			i.TxQueues++
		}
	}
	if device := m.link(at("device")...); strings.Count(device, ":") == 2 {
		i.PCI = device
	}
	if clocks := m.names(at("device", "ptp")...); len(clocks) > 0 {
		i.PTP = clocks[0]
	}
	if m.root == "" {
		i.addresses()
	}
	return i
}

// addresses sets the addresses reported by the kernel, which are not in files.
func (i *Interface) addresses() {
	dev, err := net.InterfaceByName(i.Name)
	if err != nil {
		return
	}
	addrs, _ := dev.Addrs() // none if the interface was removed
	for _, a := range addrs {
		i.Addresses = append(i.Addresses, a.String())
	}
}

// node returns the NUMA node of a device, or -1 if there is none or it is unknown.
func (m *Machine) node(parts ...string) int {
	if n, ok := m.Number(append(parts, "numa_node")...); ok {
		return n
	}
	return -1
}

// SpeedText formats the link speed: "100G", "1G", "-" if unknown.
func (i Interface) SpeedText() string {
	switch {
	case i.SpeedMbps == 0:
		return "-"
	case i.SpeedMbps%1000 == 0:
		return fmt.Sprintf("%dG", i.SpeedMbps/1000)
	case i.SpeedMbps > 1000:
		return fmt.Sprintf("%.1fG", float64(i.SpeedMbps)/1000)
	}
	return fmt.Sprintf("%dM", i.SpeedMbps)
}

// realPath resolves a path below the machine's root; "" if it does not exist.
func (m *Machine) realPath(parts ...string) string {
	to, err := filepath.EvalSymlinks(m.path(parts...))
	if err != nil {
		return ""
	}
	return to
}
