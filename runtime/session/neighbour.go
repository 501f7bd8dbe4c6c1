package session

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/session/rtnetlink"
	"github.com/daqiri/daqiri-run/runtime/spec"
)

// Neighbour is the next hop of frames to an address.
type Neighbour struct {
	i    *Interface
	addr netip.Addr // its own address, or its router's
	vlan uint16     // 0: no tag
	from netip.Addr // source address of requests; zero: unknown
	link int        // index of the interface's kernel device, 0: none
}

// Neighbour returns the receiver of frames for an address: the host itself or, if the interface is a Linux interface, the kernel's router to it.
func (i *Interface) Neighbour(addr netip.Addr, vlan uint16) (*Neighbour, error) {
	addr = addr.Unmap().WithZone("")
	if addr.IsUnspecified() || addr.IsMulticast() || !addr.IsValid() {
		return nil, invalid("interface %s: %s is not a host's address", i.Name(), addr)
	}
	n := &Neighbour{i: i, addr: addr, vlan: vlan}
	if dev, err := net.InterfaceByName(i.Address()); err == nil && spec.OfKernel(i.Engine()) {
		n.link = dev.Index
		n.addr, n.from = rtnetlink.NextHop(dev.Index, addr)
	}
	return n, nil
}

// String returns address, VLAN and interface, for errors.
func (n *Neighbour) String() string {
	text := n.addr.String()
	if n.vlan != 0 {
		text += fmt.Sprintf(" in VLAN %d", n.vlan)
	}
	return text + " on interface " + n.i.Name()
}

// MAC returns the neighbor's Ethernet address if known: from the kernel, or from an answer to Ask within the last minute.
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
	mac, err := rtnetlink.Neighbour(n.link, n.addr)
	return mac, mac != nil, err
}

// Ask sends one request for the neighbor's Ethernet address; the answer arrives later. It returns ErrNotReady before the session's start. If the
// kernel receives packets that match no flow, the kernel sends the request.
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
	return n.i.named(rtnetlink.Resolve(n.link, n.addr))
}
