// Package flow holds the flows of interfaces: rules that map packets to queues and actions, their tables, and their form for the engine.
package flow

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/spec"
)

// StaticGroup is the group of the flows in the configuration.
const StaticGroup = "static"

// maxFlowID is the maximum id of a dynamic flow: 24 bits, like a packet's mark.
const maxFlowID = 1<<24 - 1

// Flow is a rule of an interface: matching packets get its id, are changed by its transforms, and go to its queues, by hash if there are several.
type Flow struct {
	Group  string
	Name   string // unique in its group; empty: derived from the id
	ID     uint32 // assigned by the table
	Match  spec.Match
	Queues []int // ids of receive queues; empty for a transmit flow

	// Hits counts its packets so far, before its transforms. It is nil for flows without a counter: with id 0, beyond the maximum number of counters,
	// or transmit flows. It is set by Interface.Flows.
	Hits *Hits

	// Transforms are the actions that change packets, in order. A decapsulating receive flow applies to frames with the headers to remove, and Match
	// to the inner frame; malformed frames are dropped and counted as bad_tunnel.
	Transforms []*spec.Action

	match native.Match
	order uint64 // position of its group, then its position in the group
}

// Resolve sets the engine's form of the flow's match. items are the flex items that the match may refer to.
func (f *Flow) Resolve(items []spec.FlexItem) (err error) {
	f.match, err = NativeMatch(&f.Match, items)
	return err
}

// Hits counts what an interface's receive queues received of a flow.
type Hits struct{ Packets, Bytes uint64 }

// Table is an interface's flows: groups in the order of creation, with flows in the same order. Its methods return planned changes, which are
// applied after the engine has accepted them.
type Table struct {
	byID   map[uint32]*Flow // one of those that share an id
	groups map[string]*groupFlows
	places uint32 // number of groups so far
	Last   uint32 // last id assigned
}

// groupFlows is a group with at least one flow.
type groupFlows struct {
	place uint32
	used  uint32 // number of positions used so far
	names map[string]*Flow
}

// Change is the change of a table by one call: flows of one group to remove and to add.
type Change struct {
	Removed, Added []*Flow
	Last           uint32 // last id assigned after the change
}

func NewTable() *Table {
	return &Table{byID: map[uint32]*Flow{}, groups: map[string]*groupFlows{}}
}

// Static adds the flows of the configuration, which keep their ids, to an empty table.
func (t *Table) Static(flows []Flow) *Change {
	c := &Change{}
	for k := range flows {
		f := flows[k]
		f.Group, f.order = StaticGroup, uint64(k)
		if f.ID <= maxFlowID {
			c.Last = max(c.Last, f.ID)
		}
		c.Added = append(c.Added, &f)
	}
	return c
}

// Add appends flows to a group, or to the table if the group is new.
func (t *Table) Add(group string, flows []Flow) (*Change, error) {
	return t.put(group, flows, false)
}

// Replace replaces a group's flows in place.
func (t *Table) Replace(group string, flows []Flow) (*Change, error) {
	return t.put(group, flows, true)
}

func (t *Table) put(group string, flows []Flow, instead bool) (*Change, error) {
	if group == "" {
		return nil, fmt.Errorf("flows: the group has no name")
	}
	c := &Change{Last: t.Last}
	g := t.groups[group]
	if g == nil {
		g = &groupFlows{place: t.places}
	}
	if instead {
		c.Removed = slices.Collect(maps.Values(g.names))
	}
	names, ids := map[string]bool{}, map[uint32]bool{}
	for k := range flows {
		f := flows[k]
		id, err := t.freshID(&c.Last, ids)
		if err != nil {
			return nil, err
		}
		f.Group, f.ID, f.order = group, id, uint64(g.place)<<32|uint64(g.used+uint32(k))
		if f.Name == "" {
			f.Name = "flow" + strconv.Itoa(int(id))
		}
		if names[f.Name] || (g.names[f.Name] != nil && !instead) {
			return nil, native.ErrInvalid.Errorf("flows of group %s: %s is there twice", group, f.Name)
		}
		names[f.Name], ids[id] = true, true
		c.Added = append(c.Added, &f)
	}
	return c, nil
}

// freshID returns the next id after the last one, so that ids are not reused soon. Ids of flows that a change removes are still in use.
func (t *Table) freshID(last *uint32, taken map[uint32]bool) (uint32, error) {
	for range maxFlowID {
		*last = *last%maxFlowID + 1
		if t.byID[*last] == nil && !taken[*last] {
			return *last, nil
		}
	}
	return 0, fmt.Errorf("flows: all %d ids are in use", maxFlowID)
}

// RemoveGroup removes a group's flows.
func (t *Table) RemoveGroup(group string) *Change {
	c := &Change{Last: t.Last}
	if g := t.groups[group]; g != nil {
		c.Removed = slices.Collect(maps.Values(g.names))
	}
	return c
}

// RemoveID removes the flow with an id. Flows of the configuration may share the id 0.
func (t *Table) RemoveID(id uint32) *Change {
	c := &Change{Last: t.Last}
	switch f := t.byID[id]; {
	case f == nil:
	case f.Group != StaticGroup:
		c.Removed = []*Flow{f}
	default:
		for _, f := range t.groups[StaticGroup].names {
			if f.ID == id {
				c.Removed = append(c.Removed, f)
			}
		}
	}
	return c
}

// Apply applies a change.
func (t *Table) Apply(c *Change) {
	t.Last = c.Last
	for _, f := range c.Removed {
		delete(t.byID, f.ID)
		delete(t.groups[f.Group].names, f.Name)
	}
	for _, f := range c.Added {
		g := t.groups[f.Group]
		if g == nil {
			g = &groupFlows{place: uint32(f.order >> 32), names: map[string]*Flow{}}
			t.groups[f.Group], t.places = g, t.places+1
		}
		t.byID[f.ID], g.names[f.Name] = f, f
		g.used = uint32(f.order) + 1
	}
	for _, f := range c.Removed {
		if g := t.groups[f.Group]; g != nil && len(g.names) == 0 {
			delete(t.groups, f.Group)
		}
	}
}

// Orders returns the engine's keys of the rules that a change removes.
func (c *Change) Orders() []uint64 {
	orders := make([]uint64, len(c.Removed))
	for k, f := range c.Removed {
		orders[k] = f.order
	}
	return orders
}

// Rules returns the engine's form of the flows that a change adds.
func (c *Change) Rules() []native.ActedRule { return nativeRules(c.Added) }

// RulesAfter returns the engine's form of all flows after a change, in matching order.
func (t *Table) RulesAfter(c *Change) []native.ActedRule {
	flows := slices.Clone(c.Added)
	for _, f := range t.all() {
		if !slices.Contains(c.Removed, f) {
			flows = append(flows, f)
		}
	}
	slices.SortFunc(flows, func(a, b *Flow) int { return cmp.Compare(a.order, b.order) })
	return nativeRules(flows)
}

func nativeRules(flows []*Flow) []native.ActedRule {
	rules := make([]native.ActedRule, len(flows))
	for k, f := range flows {
		r := &rules[k]
		r.Match, r.FlowID, r.Order = f.match, f.ID, f.order
		r.Actions = nativeActions(f.Transforms)
		r.NQueues = uint16(len(f.Queues)) // the engine sets one for transmit flows
		if len(f.Queues) > 1 {
			r.RSS = 1
		}
		for n, q := range f.Queues {
			r.Queues[n] = uint16(q)
		}
	}
	return rules
}

// IDs returns the ids of the flows that a change adds, in order.
func (c *Change) IDs() []uint32 {
	ids := make([]uint32, len(c.Added))
	for k, f := range c.Added {
		ids[k] = f.ID
	}
	return ids
}

// all returns the flows, in any order.
func (t *Table) all() []*Flow {
	var out []*Flow
	for _, g := range t.groups {
		out = slices.AppendSeq(out, maps.Values(g.names))
	}
	return out
}

// List returns a copy of the flows in matching order.
func (t *Table) List() []Flow {
	out := make([]Flow, 0, len(t.byID))
	for _, f := range t.all() {
		out = append(out, *f)
		out[len(out)-1].Queues = slices.Clone(f.Queues)
	}
	slices.SortFunc(out, func(a, b Flow) int { return cmp.Compare(a.order, b.order) })
	return out
}

// GroupNames returns the names of the groups, for an error.
func (t *Table) GroupNames() string {
	if len(t.groups) == 0 {
		return "there are none"
	}
	names := slices.SortedFunc(maps.Keys(t.groups), func(a, b string) int {
		return cmp.Compare(t.groups[a].place, t.groups[b].place)
	})
	return "there are " + strings.Join(names, ", ")
}
