package session

import (
	"slices"
	"strings"
	"testing"
)

func flows(names ...string) []Flow {
	var list []Flow
	for _, n := range names {
		list = append(list, Flow{Name: n, Queues: []int{0}})
	}
	return list
}

// order tells a table as "group.name" in the order of asking.
func order(t flowTable) []string {
	var out []string
	for _, f := range t.list() {
		out = append(out, f.Group+"."+f.Name)
	}
	return out
}

func TestFlowTable(t *testing.T) {
	static := []Flow{{Group: StaticGroup, Name: "s1", ID: 7, Queues: []int{0}}, {Group: StaticGroup, Name: "s2", ID: 3, Queues: []int{0}}}
	table := newFlowTable(static)
	steps := []struct {
		name string
		do   func() (flowTable, []uint32, error)
		ids  []uint32
		want string // the order, or a part of the error
		bad  bool
	}{
		{"add", func() (flowTable, []uint32, error) { return table.add("g", flows("a", "b")) }, []uint32{8, 9}, "static.s1 static.s2 g.a g.b", false},
		{"add to another", func() (flowTable, []uint32, error) { return table.add("h", flows("a")) }, []uint32{10}, "static.s1 static.s2 g.a g.b h.a", false},
		{"add to the group", func() (flowTable, []uint32, error) { return table.add("g", flows("c", "")) }, []uint32{11, 12}, "static.s1 static.s2 g.a g.b g.c g.flow12 h.a", false},
		{"name twice", func() (flowTable, []uint32, error) { return table.add("g", flows("d", "a")) }, nil, "a is there twice", true},
		{"name twice in one call", func() (flowTable, []uint32, error) { return table.add("i", flows("d", "d")) }, nil, "d is there twice", true},
		{"no group", func() (flowTable, []uint32, error) { return table.add("", flows("d")) }, nil, "no name", true},
		{"replace", func() (flowTable, []uint32, error) { return table.replace("g", flows("a", "x")) }, []uint32{13, 14}, "static.s1 static.s2 g.a g.x h.a", false},
		{"replace by a fault", func() (flowTable, []uint32, error) { return table.replace("g", flows("y", "y")) }, nil, "y is there twice", true},
		{"replace by nothing", func() (flowTable, []uint32, error) { return table.replace("g", nil) }, nil, "static.s1 static.s2 h.a", false},
		{"replace what was not there", func() (flowTable, []uint32, error) { return table.replace("new", flows("n")) }, []uint32{15}, "static.s1 static.s2 h.a new.n", false},
		{"delete by id", func() (flowTable, []uint32, error) {
			next, n := table.without(func(f *Flow) bool { return f.ID == 3 })
			return next, make([]uint32, n), nil
		}, []uint32{0}, "static.s1 h.a new.n", false},
	}
	for _, s := range steps {
		next, ids, err := s.do()
		switch {
		case s.bad && (err == nil || !strings.Contains(err.Error(), s.want)):
			t.Errorf("%s: got %v, want %q", s.name, err, s.want)
		case s.bad && !slices.Equal(order(next), order(table)):
			t.Errorf("%s: a refused change changed the table to %v", s.name, order(next))
		case !s.bad && (err != nil || !slices.Equal(ids, s.ids) || strings.Join(order(next), " ") != s.want):
			t.Errorf("%s: got %v, ids %v, %v; want %v, %q", s.name, err, ids, order(next), s.ids, s.want)
		}
		table = next
	}
}

func TestFlowIDsWrap(t *testing.T) {
	table := newFlowTable([]Flow{{Group: StaticGroup, Name: "s", ID: 1}, {Group: StaticGroup, Name: "far", ID: maxFlowID + 1}})
	table.last = maxFlowID - 1
	_, ids, err := table.add("g", flows("a", "b", "c"))
	if want := []uint32{maxFlowID, 2, 3}; err != nil || !slices.Equal(ids, want) {
		t.Errorf("got %v, %v; want %v", ids, err, want)
	}
}

func TestRulesKeepTheOrder(t *testing.T) {
	table, _, err := flowTable{}.add("g", []Flow{{Name: "one", Queues: []int{1}}, {Name: "spread", Queues: []int{0, 1, 2}}})
	if err != nil {
		t.Fatal(err)
	}
	r := table.rules()
	if r[0].RSS != 0 || r[0].NQueues != 1 || r[0].Queues[0] != 1 || r[0].FlowID != 1 {
		t.Errorf("one queue: %+v", r[0])
	}
	if r[1].RSS != 1 || r[1].NQueues != 3 || r[1].Queues[2] != 2 || r[1].Order <= r[0].Order {
		t.Errorf("spread: %+v", r[1])
	}
}
