package session

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/spec"
	"github.com/daqiri/daqiri-run/runtime/stats"
	"github.com/daqiri/daqiri-run/runtime/task"
)

// Interface is a port or an endpoint with its queues and flows.
type Interface struct {
	s      *Session
	spec   *spec.Interface
	native native.Iface
	rx, tx []*Queue
	flows  *flowTable
	settle *time.Timer // of the flows, after the last change; nil: none yet
	titles sync.Map    // of flows: names by id, for readers of the ledger
	former []uint32    // ids of deleted flows whose names are kept, the oldest first

	originNS atomic.Int64 // time of the first packet of the capture that it replays; 0: not known yet
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

// Server is the URI that a TCP client connects to of its own accord, again and again; empty on
// all other interfaces.
func (i *Interface) Server() string {
	if c := i.spec.SocketConfig; c != nil && c.Mode == "client" && c.Scheme() == "tcp" {
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

// AddFlows adds flows to a group: all or none. They take effect between two bursts. The
// ids are theirs in order; a packet carries the id of the flow that it matched first.
func (i *Interface) AddFlows(group string, flows []Flow) (ids []uint32, err error) {
	return i.put(group, flows, (*flowTable).add)
}

// ReplaceFlows replaces all flows of a group, which may have none yet: all or none.
func (i *Interface) ReplaceFlows(group string, flows []Flow) (ids []uint32, err error) {
	return i.put(group, flows, (*flowTable).replace)
}

// planner is flowTable.add or flowTable.replace.
type planner func(t *flowTable, group string, flows []Flow) (*flowChange, error)

func (i *Interface) put(group string, flows []Flow, plan planner) ([]uint32, error) {
	if err := i.s.enter(); err != nil {
		return nil, err
	}
	defer i.s.leave()
	flows = slices.Clone(flows)
	for k := range flows {
		if err := i.prepare(&flows[k]); err != nil {
			return nil, fmt.Errorf("interface %s: flow %s: %w", i.Name(), flowTitle(&flows[k], k), err)
		}
	}
	i.flows.last = i.s.lastFlow // no two interfaces give the same id out
	c, err := plan(i.flows, group, flows)
	if err == nil {
		err = i.change(c)
	}
	if err != nil {
		return nil, fmt.Errorf("interface %s: %w", i.Name(), err)
	}
	i.settleSoon()
	return c.ids(), nil
}

func flowTitle(f *Flow, k int) string {
	if f.Name != "" {
		return f.Name
	}
	return fmt.Sprintf("%d", k+1)
}

// prepare checks a flow's queues and makes its native match.
func (i *Interface) prepare(f *Flow) (err error) {
	if len(f.Queues) == 0 || len(f.Queues) > native.MaxQueues {
		return invalid("it needs 1 to %d queues", native.MaxQueues)
	}
	for _, id := range f.Queues {
		if !slices.ContainsFunc(i.rx, func(q *Queue) bool { return q.ID() == id }) {
			return invalid("there is no receive queue with id %d", id)
		}
	}
	var items []spec.FlexItem
	if i.spec.RX != nil {
		items = i.spec.RX.FlexItems
	}
	f.match, err = nativeMatch(&f.Match, items)
	return err
}

// change gives the engine a change, and carries it out unless the engine refuses it.
func (i *Interface) change(c *flowChange) error {
	if err := i.native.ChangeRules(c.orders(), c.rules()); err != nil {
		return err
	}
	i.flows.apply(c)
	i.retitle(c)
	i.s.lastFlow = max(i.s.lastFlow, c.last)
	return nil
}

// settleAfter is how long after a change of flows the next one is not waited for any more.
const settleAfter = 100 * time.Millisecond

// settleSoon has the engine tidy up its table of flows when no more changes come: a change is quick because it leaves
// that to do.
func (i *Interface) settleSoon() {
	if i.settle != nil {
		i.settle.Reset(settleAfter)
		return
	}
	i.settle = time.AfterFunc(settleAfter, func() {
		if i.s.enter() != nil {
			return
		}
		defer i.s.leave()
		if err := i.native.ChangeRules(nil, nil); err != nil {
			i.s.note("interface %s: its flows could not be tidied up: %v", i.Name(), err)
		}
	})
}

// retitle keeps the names of flows up to date. The ledger still has deleted ones: as many as have counters keep theirs.
func (i *Interface) retitle(c *flowChange) {
	for _, f := range c.gone {
		i.former = append(i.former, f.ID)
	}
	for len(i.former) > native.MaxFlowCounts {
		i.titles.Delete(i.former[0])
		i.former = i.former[1:]
	}
	for _, f := range c.added {
		i.titles.Store(f.ID, f.Name)
	}
}

// DeleteFlows deletes the flows of a group and returns how many they were.
func (i *Interface) DeleteFlows(group string) (int, error) {
	return i.delete("group "+group, func() *flowChange { return i.flows.removeGroup(group) })
}

// DeleteFlow deletes the flow with an id.
func (i *Interface) DeleteFlow(id uint32) error {
	_, err := i.delete(fmt.Sprintf("id %d", id), func() *flowChange { return i.flows.removeID(id) })
	return err
}

func (i *Interface) delete(what string, plan func() *flowChange) (int, error) {
	if err := i.s.enter(); err != nil {
		return 0, err
	}
	defer i.s.leave()
	c := plan()
	if len(c.gone) == 0 {
		return 0, invalid("interface %s: flows: %s: not there (groups: %s)", i.Name(), what, i.flows.groupNames())
	}
	if err := i.change(c); err != nil {
		return 0, fmt.Errorf("interface %s: %w", i.Name(), err)
	}
	i.settleSoon()
	return len(c.gone), nil
}

// Flows lists the flows in the order in which they are asked, with what came of them.
func (i *Interface) Flows() []Flow {
	i.s.mu.Lock()
	list := i.flows.list()
	i.s.mu.Unlock()
	hits, all := i.hits()
	for k := range list {
		h, counted := hits[list[k].ID]
		if list[k].ID != 0 && (counted || all) {
			list[k].Hits = &h
		}
	}
	return list
}

// hits sums up what queues received, by flow id; all: no flow had to do without a counter.
func (i *Interface) hits() (hits map[uint32]FlowHits, all bool) {
	hits, all = map[uint32]FlowHits{}, true
	for _, l := range i.s.Ledger().Lines {
		if l.Kind != stats.Rx || l.Name != i.Name() {
			continue
		}
		for _, n := range l.Flows {
			h := hits[n.ID]
			hits[n.ID] = FlowHits{h.Packets + n.Packets, h.Bytes + n.Bytes}
			all = all && n.ID != 0
		}
	}
	return hits, all
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
