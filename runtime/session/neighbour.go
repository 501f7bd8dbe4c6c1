package session

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/spec"
)

// Neighbour is a station that a frame is to be sent to.
type Neighbour struct {
	i    *Interface
	addr netip.Addr // its own, or its router's
	vlan uint16     // 0: no tag
	from netip.Addr // who asks; the zero Addr: not known
	link int        // index of the kernel's device of the interface, 0: there is none
}

// Neighbour is who has to get frames for an address: the host itself, or the kernel's router to it where the interface
// is a Linux one.
func (i *Interface) Neighbour(addr netip.Addr, vlan uint16) (*Neighbour, error) {
	addr = addr.Unmap().WithZone("")
	if addr.IsUnspecified() || addr.IsMulticast() || !addr.IsValid() {
		return nil, invalid("interface %s: %s is not a host's address", i.Name(), addr)
	}
	n := &Neighbour{i: i, addr: addr, vlan: vlan}
	if dev, err := net.InterfaceByName(i.Address()); err == nil && spec.OfKernel(i.Engine()) {
		n.link = dev.Index
		n.addr, n.from = nextHop(dev.Index, addr)
	}
	return n, nil
}

// String names the neighbour for an error: address, VLAN, interface.
func (n *Neighbour) String() string {
	text := n.addr.String()
	if n.vlan != 0 {
		text += fmt.Sprintf(" in VLAN %d", n.vlan)
	}
	return text + " on interface " + n.i.Name()
}

// MAC is the neighbour's Ethernet address, if it is known: to the kernel, or from an answer to Ask within the last
// minute.
func (n *Neighbour) MAC() (net.HardwareAddr, bool, error) {
	if err := n.i.s.enter(); err != nil {
		return nil, false, err
	}
	defer n.i.s.leave()
	if mac, ok := n.i.native.Neighbour(n.addr, n.vlan); ok {
		return mac[:], true, nil
	}
	if n.link == 0 || n.vlan != 0 {
		return nil, false, nil
	}
	mac, err := kernelNeighbour(n.link, n.addr)
	return mac, mac != nil, err
}

// Ask asks once which Ethernet address the neighbour has; the answer comes a while later. ErrNotReady before the
// session's start. Where the kernel gets what no flow wants it is the kernel that asks.
func (n *Neighbour) Ask() error {
	if err := n.i.s.enter(); err != nil {
		return err
	}
	defer n.i.s.leave()
	err := n.i.native.Ask(n.addr, n.vlan, n.from)
	switch {
	case n.link == 0 || !errors.Is(err, native.ErrNotSupported):
		return n.i.named(err)
	case n.vlan != 0:
		return fmt.Errorf("%s: with flow_isolation the answer would go to the kernel: give the Ethernet address: %w", n, ErrNotSupported)
	}
	return n.i.named(haveKernelAsk(n.link, n.addr))
}
