// Package rtnetlink queries the neighbors and routes of the kernel.
package rtnetlink

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
)

// attributes parses the attributes of a message after its fixed part.
func attributes(b []byte) map[uint16][]byte {
	out := map[uint16][]byte{}
	for len(b) >= syscall.SizeofRtAttr {
		n, kind := int(binary.NativeEndian.Uint16(b)), binary.NativeEndian.Uint16(b[2:])
		if n < syscall.SizeofRtAttr || n > len(b) {
			break
		}
		out[kind] = b[syscall.SizeofRtAttr:n]
		b = b[min((n+3)&^3, len(b)):]
	}
	return out
}

// Constants of linux/neighbour.h. usable are the states of neighbors that the kernel itself would send to: permanent, noarp, reachable, stale, delay
// and probe.
const (
	usable      = 0x80 | 0x40 | 0x02 | 0x04 | 0x08 | 0x10
	sizeofNdMsg = 12
	ndaDst      = 1
	ndaAddress  = 2
)

// Neighbour looks up an address in the kernel's neighbor table; it returns nil if the address is unknown.
func Neighbour(link int, addr netip.Addr) (net.HardwareAddr, error) {
	family := syscall.AF_INET
	if addr.Is6() {
		family = syscall.AF_INET6
	}
	table, err := syscall.NetlinkRIB(syscall.RTM_GETNEIGH, family)
	if err != nil {
		return nil, fmt.Errorf("the kernel's neighbours: %w", os.NewSyscallError("netlink", err))
	}
	messages, err := syscall.ParseNetlinkMessage(table)
	if err != nil {
		return nil, fmt.Errorf("the kernel's neighbours: %w", err)
	}
	for _, m := range messages {
		if m.Header.Type != syscall.RTM_NEWNEIGH || len(m.Data) < sizeofNdMsg {
			continue
		}
		index, state := binary.NativeEndian.Uint32(m.Data[4:]), binary.NativeEndian.Uint16(m.Data[8:])
		a := attributes(m.Data[sizeofNdMsg:])
		who, ok := netip.AddrFromSlice(a[ndaDst])
		if mac := a[ndaAddress]; ok && who == addr && int(index) == link && state&usable != 0 && len(mac) == 6 {
			return net.HardwareAddr(mac), nil
		}
	}
	return nil, nil
}

// NextHop returns the kernel's next hop to an address through a device, and the source address (zero if there is none). Without a route the next hop
// is the address itself.
func NextHop(link int, addr netip.Addr) (next, from netip.Addr) {
	a, err := route(link, addr)
	if err != nil {
		return addr, netip.Addr{}
	}
	from, _ = netip.AddrFromSlice(a[syscall.RTA_PREFSRC])
	if gateway, ok := netip.AddrFromSlice(a[syscall.RTA_GATEWAY]); ok {
		return gateway, from
	}
	return addr, from
}

// route returns the attributes of the kernel's route to an address through a device.
func route(link int, addr netip.Addr) (map[uint16][]byte, error) {
	fd, err := syscall.Socket(syscall.AF_NETLINK, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC, syscall.NETLINK_ROUTE)
	if err != nil {
		return nil, err
	}
	defer syscall.Close(fd)
	dst, family := addr.AsSlice(), byte(syscall.AF_INET)
	if addr.Is6() {
		family = syscall.AF_INET6
	}
	n := binary.NativeEndian
	msg := make([]byte, syscall.SizeofNlMsghdr+syscall.SizeofRtMsg)
	n.PutUint16(msg[4:], syscall.RTM_GETROUTE)
	n.PutUint16(msg[6:], syscall.NLM_F_REQUEST)
	msg[syscall.SizeofNlMsghdr], msg[syscall.SizeofNlMsghdr+1] = family, byte(8*len(dst))
	msg = n.AppendUint16(n.AppendUint16(msg, uint16(syscall.SizeofRtAttr+len(dst))), syscall.RTA_DST)
	msg = append(msg, dst...)
	msg = n.AppendUint16(n.AppendUint16(msg, syscall.SizeofRtAttr+4), syscall.RTA_OIF)
	msg = n.AppendUint32(msg, uint32(link))
	n.PutUint32(msg, uint32(len(msg)))
	if err := syscall.Sendto(fd, msg, 0, &syscall.SockaddrNetlink{Family: syscall.AF_NETLINK}); err != nil {
		return nil, err
	}
	answer := make([]byte, 1<<16)
	size, _, err := syscall.Recvfrom(fd, answer, 0)
	if err != nil {
		return nil, err
	}
	messages, err := syscall.ParseNetlinkMessage(answer[:size])
	if err != nil || len(messages) == 0 || messages[0].Header.Type != syscall.RTM_NEWROUTE || len(messages[0].Data) < syscall.SizeofRtMsg {
		return nil, fmt.Errorf("no route to %s", addr)
	}
	return attributes(messages[0].Data[syscall.SizeofRtMsg:]), nil
}

// Resolve sends a datagram to the discard port of a neighbor, which makes the kernel resolve its address.
func Resolve(link int, addr netip.Addr) error {
	dev, err := net.InterfaceByIndex(link)
	if err != nil {
		return err
	}
	if addr.IsLinkLocalUnicast() && addr.Is6() {
		addr = addr.WithZone(dev.Name)
	}
	by := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
		var bound error
		err := raw.Control(func(fd uintptr) { bound = syscall.BindToDevice(int(fd), dev.Name) })
		return errors.Join(err, bound)
	}}
	c, err := by.Dial("udp", netip.AddrPortFrom(addr, 9).String())
	if err != nil {
		return fmt.Errorf("with flow_isolation the kernel has to ask for %s, and can't: %w", addr, err)
	}
	defer c.Close()
	_, err = c.Write([]byte{0})
	return err
}
