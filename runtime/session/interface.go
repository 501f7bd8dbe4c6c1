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

	titles sync.Map    // names of receive flows by id, for readers of the ledger
	former []uint32    // ids of deleted flows with kept names, oldest first
	settle *time.Timer // timer of settleSoon; nil: not used yet
}

// Name returns the interface's name in the configuration.
func (i *Interface) Name() string { return i.spec.Name }

// Address returns the configured address, or the endpoint's URI.
func (i *Interface) Address() string {
	if c := i.spec.SocketConfig; c != nil {
		if c.Local != nil {
			return c.Local.String()
		}
		return c.Remote.String()
	}
	return i.spec.Address
}

// Server returns the URI that a TCP or RDMA client connects to automatically and repeatedly; it is empty for all other interfaces.
func (i *Interface) Server() string {
	if c := i.spec.SocketConfig; c != nil && c.Mode == "client" && c.Scheme() != spec.SchemeUDP && c.Remote != nil {
		return c.Remote.String()
	}
	return ""
}

// Engine returns the name of the interface's engine.
func (i *Interface) Engine() string { return i.spec.EngineName() }

// Session returns the session of the interface.
func (i *Interface) Session() *Session { return i.s }

// RxQueues returns the receive queues in the order of their addition.
func (i *Interface) RxQueues() []*Queue { return i.queuesIn(true) }

// TxQueues returns the transmit queues in the order of their addition.
func (i *Interface) TxQueues() []*Queue { return i.queuesIn(false) }

func (i *Interface) queuesIn(rx bool) []*Queue {
	i.s.lists.RLock()
	defer i.s.lists.RUnlock()
	return slices.Clone(*i.side(rx))
}

// MAC returns the interface's Ethernet address, or ErrNotSupported if it has none.
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

// DropAll starts or stops discarding all received packets.
func (i *Interface) DropAll(drop bool) error {
	if err := i.s.enter(); err != nil {
		return err
	}
	defer i.s.leave()
	return i.named(i.native.DropAll(drop))
}

// JoinMulticast joins a multicast group, from any source if source is empty.
func (i *Interface) JoinMulticast(group, source string) error {
	return i.multicast(group, source, true)
}

// LeaveMulticast leaves a group joined by JoinMulticast.
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

// Answer makes the interface answer ARP requests and neighbor solicitations for these addresses, which replace those of the previous call.
func (i *Interface) Answer(addrs []netip.Addr) error {
	if err := i.s.enter(); err != nil {
		return err
	}
	defer i.s.leave()
	return i.named(i.native.Answer(addrs))
}

// answerConfigured calls Answer for the addresses of the configuration.
func (i *Interface) answerConfigured() error {
	if len(i.spec.Answers) == 0 {
		return nil
	}
	return i.spec.Key("answers").Wrap(i.native.Answer(i.spec.Answers))
}

// Listen delivers the interface's connect and disconnect events to t, as items with the given target. It must be called once per interface.
func (i *Interface) Listen(t *task.Task, target any) error {
	if err := i.s.enter(); err != nil {
		return err
	}
	defer i.s.leave()
	i.s.use(t)
	return i.named(i.native.Events(t.Waiter(), t.Register(target, i, nil)))
}

// named prefixes an engine's error with the interface's name, unless it has it.
func (i *Interface) named(err error) error { return within("interface "+i.Name(), err) }
