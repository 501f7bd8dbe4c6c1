package session

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/spec"
	"github.com/daqiri/daqiri-run/runtime/task"
)

// Interface is a port or an endpoint with its queues and flows.
type Interface struct {
	s      *Session
	spec   *spec.Interface
	native native.Iface
	rx, tx []*Queue

	rxFlows, txFlows flowSide

	titles sync.Map    // of receive flows: names by id, for readers of the ledger
	former []uint32    // ids of deleted ones whose names are kept, the oldest first
	settle *time.Timer // of the receive flows, after the last change; nil: none yet
}

// Name is the interface's name in the configuration.
func (i *Interface) Name() string { return i.spec.Name }

// Address is the address as it was written, or the endpoint's URI.
func (i *Interface) Address() string {
	if c := i.spec.SocketConfig; c != nil {
		if c.Local != nil {
			return c.Local.String()
		}
		return c.Remote.String()
	}
	return i.spec.Address
}

// Server is the URI that a client of TCP or RDMA connects to of its own accord, again and again; empty on
// all other interfaces.
func (i *Interface) Server() string {
	if c := i.spec.SocketConfig; c != nil && c.Mode == "client" && c.Scheme() != spec.SchemeUDP && c.Remote != nil {
		return c.Remote.String()
	}
	return ""
}

// Engine names the engine that serves the interface.
func (i *Interface) Engine() string { return i.spec.EngineName() }

// Session is the session that the interface belongs to.
func (i *Interface) Session() *Session { return i.s }

// RxQueues lists the receive queues in the order of the configuration.
func (i *Interface) RxQueues() []*Queue { return slices.Clone(i.rx) }

// TxQueues lists the transmit queues in the order of the configuration.
func (i *Interface) TxQueues() []*Queue { return slices.Clone(i.tx) }

// MAC is the interface's Ethernet address; ErrNotSupported where it has none.
func (i *Interface) MAC() (net.HardwareAddr, error) {
	if err := i.s.enter(); err != nil {
		return nil, err
	}
	defer i.s.leave()
	mac, err := i.native.MAC()
	if err != nil {
		return nil, fmt.Errorf("interface %s: Ethernet address: %w", i.Name(), err)
	}
	return net.HardwareAddr(mac[:]), nil
}

// DropAll discards everything that arrives, or ends that.
func (i *Interface) DropAll(drop bool) error {
	if err := i.s.enter(); err != nil {
		return err
	}
	defer i.s.leave()
	return i.named(i.native.DropAll(drop))
}

// JoinMulticast joins a group given as an address, of any source when source is empty.
func (i *Interface) JoinMulticast(group, source string) error {
	return i.multicast(group, source, true)
}

// LeaveMulticast leaves a group that JoinMulticast joined.
func (i *Interface) LeaveMulticast(group, source string) error {
	return i.multicast(group, source, false)
}

func (i *Interface) multicast(group, source string, join bool) error {
	if err := i.s.enter(); err != nil {
		return err
	}
	defer i.s.leave()
	return i.named(i.native.Multicast(group, source, join))
}

// Answer has the interface answer ARP requests and neighbour solicitations for these addresses, instead of those of
// the last call.
func (i *Interface) Answer(addrs []netip.Addr) error {
	if err := i.s.enter(); err != nil {
		return err
	}
	defer i.s.leave()
	return i.named(i.native.Answer(addrs))
}

// answerConfigured has the interface answer for the addresses of its configuration.
func (i *Interface) answerConfigured() error {
	if len(i.spec.Answers) == 0 {
		return nil
	}
	return located(i.spec.Key("answers"), i.native.Answer(i.spec.Answers))
}

// Listen gives t the interface's connect and disconnect events: items whose target is
// target. Once for an interface.
func (i *Interface) Listen(t *task.Task, target any) error {
	if err := i.s.enter(); err != nil {
		return err
	}
	defer i.s.leave()
	i.s.use(t)
	return i.named(i.native.Events(t.Waiter(), t.Register(target, i, nil)))
}

// named puts the interface's name before an error of the engine that lacks it.
func (i *Interface) named(err error) error { return within("interface "+i.Name(), err) }
