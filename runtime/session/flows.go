package session

import (
	"fmt"
	"slices"
	"time"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/session/flow"
	"github.com/daqiri/daqiri-run/runtime/spec"
	"github.com/daqiri/daqiri-run/runtime/stats"
)

// flowSide is an interface's flows of one direction.
type flowSide struct {
	what    string // name in errors
	table   *flow.Table
	last    *uint32 // last id assigned; ids are unique in a session
	prepare func(*flow.Flow) error
	change  func(*flow.Change) error // passes a change to the engine, and applies it unless it is refused
}

func (s *Session) newInterface(conf *spec.Interface, n native.Iface) *Interface {
	i := &Interface{s: s, spec: conf, native: n}
	i.rxFlows = flowSide{"flow", flow.NewTable(), &i.s.lastFlow, i.prepareRx, i.changeRx}
	i.txFlows = flowSide{"transmit flow", flow.NewTable(), &i.s.lastTxFlow, i.prepareTx, i.changeTx}
	return i
}

// AddFlows adds flows to a group, all or none, and returns their ids in order. They take effect between two bursts. A packet has the id of the first
// flow that it matches.
func (i *Interface) AddFlows(group string, flows []flow.Flow) (ids []uint32, err error) {
	return i.put(&i.rxFlows, group, flows, (*flow.Table).Add)
}

// ReplaceFlows replaces all flows of a group, which may be empty, or none on error.
func (i *Interface) ReplaceFlows(group string, flows []flow.Flow) (ids []uint32, err error) {
	return i.put(&i.rxFlows, group, flows, (*flow.Table).Replace)
}

// AddTxFlows adds transmit flows to a group, all or none. They take effect between two bursts; the first flow that a frame matches defines the
// headers to add. Transmit flows have separate groups and ids.
func (i *Interface) AddTxFlows(group string, flows []flow.Flow) (ids []uint32, err error) {
	return i.put(&i.txFlows, group, flows, (*flow.Table).Add)
}

// ReplaceTxFlows is ReplaceFlows for transmit flows.
func (i *Interface) ReplaceTxFlows(group string, flows []flow.Flow) (ids []uint32, err error) {
	return i.put(&i.txFlows, group, flows, (*flow.Table).Replace)
}

// planner is Table.Add or Table.Replace.
type planner func(t *flow.Table, group string, flows []flow.Flow) (*flow.Change, error)

func (i *Interface) put(side *flowSide, group string, flows []flow.Flow, plan planner) ([]uint32, error) {
	if err := i.s.enter(); err != nil {
		return nil, err
	}
	defer i.s.leave()
	flows = slices.Clone(flows)
	for k := range flows {
		if err := side.prepare(&flows[k]); err != nil {
			return nil, fmt.Errorf("interface %s: %s %s: %w", i.Name(), side.what, flowTitle(&flows[k], k), err)
		}
	}
	side.table.Last = *side.last
	c, err := plan(side.table, group, flows)
	if err == nil {
		err = side.change(c)
	}
	if err != nil {
		return nil, fmt.Errorf("interface %s: %w", i.Name(), err)
	}
	if side == &i.rxFlows {
		i.settleSoon()
	}
	return c.IDs(), nil
}

func flowTitle(f *flow.Flow, k int) string {
	if f.Name != "" {
		return f.Name
	}
	return fmt.Sprintf("%d", k+1)
}

// prepareRx checks a flow's queues and sets its native match.
func (i *Interface) prepareRx(f *flow.Flow) error {
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
	return f.Resolve(items)
}

// prepareTx checks a transmit flow's actions and sets its native match.
func (i *Interface) prepareTx(f *flow.Flow) error {
	if len(i.tx) == 0 {
		return invalid("the interface has no transmit queue")
	}
	if len(f.Transforms) == 0 || len(f.Queues) > 0 {
		return invalid("it needs vlan_push or tunnel_encap, and no queue")
	}
	return f.Resolve(nil)
}

func (i *Interface) changeRx(c *flow.Change) error {
	if err := i.native.ChangeRules(c.Orders(), c.Rules()); err != nil {
		return err
	}
	i.rxFlows.apply(c)
	i.retitle(c)
	return nil
}

// changeTx passes the whole table to the engine, because transmit flows are few.
func (i *Interface) changeTx(c *flow.Change) error {
	if err := i.native.SetTxRules(i.txFlows.table.RulesAfter(c)); err != nil {
		return err
	}
	i.txFlows.apply(c)
	return nil
}

func (side *flowSide) apply(c *flow.Change) {
	side.table.Apply(c)
	*side.last = max(*side.last, c.Last)
}

// settleAfter is the time without changes of flows after which the table is tidied.
const settleAfter = 100 * time.Millisecond

// settleSoon schedules the tidying of the engine's table of receive flows. Single changes skip it to be fast.
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

// retitle updates the names of flows. The ledger keeps the names of deleted flows, up to the number of counters.
func (i *Interface) retitle(c *flow.Change) {
	for _, f := range c.Removed {
		i.former = append(i.former, f.ID)
	}
	for len(i.former) > native.MaxFlowCounts {
		i.titles.Delete(i.former[0])
		i.former = i.former[1:]
	}
	for _, f := range c.Added {
		i.titles.Store(f.ID, f.Name)
	}
}

// DeleteFlows deletes the flows of a group and returns their number.
func (i *Interface) DeleteFlows(group string) (int, error) {
	return i.delete(&i.rxFlows, "group "+group, func(t *flow.Table) *flow.Change { return t.RemoveGroup(group) })
}

// DeleteFlow deletes the flow with an id.
func (i *Interface) DeleteFlow(id uint32) error {
	_, err := i.delete(&i.rxFlows, fmt.Sprintf("id %d", id), func(t *flow.Table) *flow.Change { return t.RemoveID(id) })
	return err
}

// DeleteTxFlows deletes a group of transmit flows and returns their number.
func (i *Interface) DeleteTxFlows(group string) (int, error) {
	return i.delete(&i.txFlows, "group "+group, func(t *flow.Table) *flow.Change { return t.RemoveGroup(group) })
}

// DeleteTxFlow deletes the transmit flow with an id.
func (i *Interface) DeleteTxFlow(id uint32) error {
	_, err := i.delete(&i.txFlows, fmt.Sprintf("id %d", id), func(t *flow.Table) *flow.Change { return t.RemoveID(id) })
	return err
}

func (i *Interface) delete(side *flowSide, which string, plan func(*flow.Table) *flow.Change) (int, error) {
	if err := i.s.enter(); err != nil {
		return 0, err
	}
	defer i.s.leave()
	c := plan(side.table)
	if len(c.Removed) == 0 {
		return 0, invalid("interface %s: %ss: %s: not there (groups: %s)", i.Name(), side.what, which, side.table.GroupNames())
	}
	if err := side.change(c); err != nil {
		return 0, fmt.Errorf("interface %s: %w", i.Name(), err)
	}
	if side == &i.rxFlows {
		i.settleSoon()
	}
	return len(c.Removed), nil
}

// TxFlows returns the transmit flows in matching order.
func (i *Interface) TxFlows() []flow.Flow {
	i.s.mu.Lock()
	defer i.s.mu.Unlock()
	return i.txFlows.table.List()
}

// Flows returns the flows in matching order, with their hits.
func (i *Interface) Flows() []flow.Flow {
	i.s.mu.Lock()
	list := i.rxFlows.table.List()
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

// hits returns the sums of received packets by flow id; all is false if a flow has no counter of its own.
func (i *Interface) hits() (hits map[uint32]flow.Hits, all bool) {
	hits, all = map[uint32]flow.Hits{}, true
	for _, l := range i.s.Ledger().Lines {
		if l.Kind != stats.Rx || l.Name != i.Name() {
			continue
		}
		for _, n := range l.Flows {
			h := hits[n.ID]
			hits[n.ID] = flow.Hits{Packets: h.Packets + n.Packets, Bytes: h.Bytes + n.Bytes}
			all = all && n.ID != 0
		}
	}
	return hits, all
}

// setTxFlows passes the transmit flows of the configuration to the engine.
func (i *Interface) setTxFlows() error {
	if i.spec.TX == nil || len(i.spec.TX.Flows) == 0 {
		return nil
	}
	var flows []flow.Flow
	for _, f := range i.spec.TX.Flows {
		flow := flow.Flow{Name: f.Name, ID: f.ID, Match: f.Match, Transforms: f.Actions}
		if err := i.prepareTx(&flow); err != nil {
			return f.Source.Wrap(err)
		}
		flows = append(flows, flow)
	}
	i.s.note("interface %s: transforms of transmit flows: software", i.Name())
	return i.spec.TX.Key("flows").Wrap(i.changeTx(i.txFlows.table.Static(flows)))
}
