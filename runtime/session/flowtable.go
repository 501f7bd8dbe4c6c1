package session

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/spec"
)

// StaticGroup is the group of the flows that the configuration gives.
const StaticGroup = "static"

// maxFlowID is the highest id of a dynamic flow: 24 bits, as a packet's mark has.
const maxFlowID = 1<<24 - 1

// Flow is a rule of an interface: packets that match get its id and go to its queues, by
// hash when there are several.
type Flow struct {
	Group  string
	Name   string // unique in its group; empty: made from the id
	ID     uint32 // given out by the table
	Match  spec.Match
	Queues []int // ids of receive queues

	match native.Match
}

// flowTable is an interface's flows in the order in which they are asked. A table is not
// changed: its methods return the next one, which takes effect when the engine has it.
type flowTable struct {
	flows []Flow
	last  uint32 // the last id given out
}

// newFlowTable makes the table of the static flows, which keep their ids.
func newFlowTable(flows []Flow) flowTable {
	t := flowTable{flows: flows}
	for _, f := range flows {
		if f.ID <= maxFlowID {
			t.last = max(t.last, f.ID)
		}
	}
	return t
}

// add puts flows at the end of a group, or at the end of the table when the group is new.
// All of them or none.
func (t flowTable) add(group string, flows []Flow) (flowTable, []uint32, error) {
	if group == "" {
		return t, nil, fmt.Errorf("flows: the group has no name")
	}
	next := flowTable{last: t.last}
	names := map[string]bool{}
	used := map[uint32]bool{}
	at := len(t.flows)
	for i, f := range t.flows {
		used[f.ID] = true
		if f.Group == group {
			names[f.Name] = true
			at = i + 1
		}
	}
	ids := make([]uint32, len(flows))
	added := slices.Clone(flows)
	for i := range added {
		f := &added[i]
		id, err := next.freshID(used)
		if err != nil {
			return t, nil, err
		}
		f.Group, f.ID, ids[i] = group, id, id
		if f.Name == "" {
			f.Name = "flow" + strconv.Itoa(int(id))
		}
		if names[f.Name] {
			return t, nil, invalid("flows of group %s: %s is there twice", group, f.Name)
		}
		names[f.Name] = true
	}
	next.flows = slices.Concat(t.flows[:at], added, t.flows[at:])
	return next, ids, nil
}

// freshID counts on from the last id, so that one is not soon given out again.
func (t *flowTable) freshID(used map[uint32]bool) (uint32, error) {
	for range maxFlowID {
		t.last = t.last%maxFlowID + 1
		if !used[t.last] {
			used[t.last] = true
			return t.last, nil
		}
	}
	return 0, fmt.Errorf("flows: all %d ids are in use", maxFlowID)
}

// replace puts flows where a group's flows were.
func (t flowTable) replace(group string, flows []Flow) (flowTable, []uint32, error) {
	at := slices.IndexFunc(t.flows, func(f Flow) bool { return f.Group == group })
	rest, _ := t.without(func(f *Flow) bool { return f.Group == group })
	next, ids, err := rest.add(group, flows)
	if err != nil {
		return t, nil, err
	}
	if at >= 0 {
		new := slices.Clone(next.flows[len(rest.flows):])
		next.flows = slices.Insert(slices.Clone(rest.flows), at, new...)
	}
	return next, ids, nil
}

// without takes out the flows that gone accepts and says how many they were.
func (t flowTable) without(gone func(*Flow) bool) (flowTable, int) {
	next := flowTable{last: t.last}
	for i := range t.flows {
		if !gone(&t.flows[i]) {
			next.flows = append(next.flows, t.flows[i])
		}
	}
	return next, len(t.flows) - len(next.flows)
}

// rules is the engine's form of the table.
func (t flowTable) rules() []native.Rule {
	rules := make([]native.Rule, len(t.flows))
	for i, f := range t.flows {
		r := &rules[i]
		r.Match, r.FlowID, r.Order = f.match, f.ID, uint32(i)
		r.NQueues = uint16(len(f.Queues))
		if len(f.Queues) > 1 {
			r.RSS = 1
		}
		for k, q := range f.Queues {
			r.Queues[k] = uint16(q)
		}
	}
	return rules
}

// list copies the flows for a caller.
func (t flowTable) list() []Flow {
	out := slices.Clone(t.flows)
	for i := range out {
		out[i].Queues = slices.Clone(out[i].Queues)
	}
	return out
}

// groups lists the groups, for an error.
func (t flowTable) groups() string {
	var names []string
	for _, f := range t.flows {
		if !slices.Contains(names, f.Group) {
			names = append(names, f.Group)
		}
	}
	if names == nil {
		return "there are none"
	}
	return "there are " + strings.Join(names, ", ")
}
