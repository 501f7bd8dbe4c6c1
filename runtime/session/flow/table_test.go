package flow

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

// order returns "group.name" of all flows in matching order.
func order(t *Table) string {
	var out []string
	for _, f := range t.List() {
		out = append(out, f.Group+"."+f.Name)
	}
	return strings.Join(out, " ")
}

func TestFlowTable(t *testing.T) {
	table := NewTable()
	table.Apply(table.Static([]Flow{{Name: "s1", ID: 7, Queues: []int{0}}, {Name: "s2", ID: 3, Queues: []int{0}}}))
	add := func(group string, names ...string) func() (*Change, error) {
		return func() (*Change, error) { return table.Add(group, flows(names...)) }
	}
	replace := func(group string, names ...string) func() (*Change, error) {
		return func() (*Change, error) { return table.Replace(group, flows(names...)) }
	}
	steps := []struct {
		name string
		do   func() (*Change, error)
		ids  []uint32
		want string // expected order, or a part of the error
		bad  bool
	}{
		{"add", add("g", "a", "b"), []uint32{8, 9}, "static.s1 static.s2 g.a g.b", false},
		{"add to another", add("h", "a"), []uint32{10}, "static.s1 static.s2 g.a g.b h.a", false},
		{"add to the group", add("g", "c", ""), []uint32{11, 12}, "static.s1 static.s2 g.a g.b g.c g.flow12 h.a", false},
		{"name twice", add("g", "d", "a"), nil, "a is there twice", true},
		{"name twice in one call", add("i", "d", "d"), nil, "d is there twice", true},
		{"no group", add("", "d"), nil, "no name", true},
		{"replace", replace("g", "a", "x"), []uint32{13, 14}, "static.s1 static.s2 g.a g.x h.a", false},
		{"replace by a fault", replace("g", "y", "y"), nil, "y is there twice", true},
		{"add behind what was replaced", add("g", "z"), []uint32{15}, "static.s1 static.s2 g.a g.x g.z h.a", false},
		{"replace by nothing", replace("g"), []uint32{}, "static.s1 static.s2 h.a", false},
		{"replace what was not there", replace("new", "n"), []uint32{16}, "static.s1 static.s2 h.a new.n", false},
		{"add to what had gone", add("g", "a"), []uint32{17}, "static.s1 static.s2 h.a new.n g.a", false},
		{"delete by id", func() (*Change, error) { return table.RemoveID(3), nil }, []uint32{}, "static.s1 h.a new.n g.a", false},
		{"delete a group", func() (*Change, error) { return table.RemoveGroup("new"), nil }, []uint32{}, "static.s1 h.a g.a", false},
	}
	for _, s := range steps {
		before := order(table)
		c, err := s.do()
		if s.bad {
			if err == nil || !strings.Contains(err.Error(), s.want) || order(table) != before {
				t.Errorf("%s: got %v, want %q; the table is %s", s.name, err, s.want, order(table))
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		if table.Apply(c); order(table) != s.want || !slices.Equal(c.IDs(), s.ids) {
			t.Errorf("%s: got ids %v and %s; want %v and %s", s.name, c.IDs(), order(table), s.ids, s.want)
		}
	}
}

func TestStaticFlowsMayShareTheIDZero(t *testing.T) {
	table := NewTable()
	table.Apply(table.Static([]Flow{{Name: "a"}, {Name: "b", ID: 5}, {Name: "c"}}))
	if got, want := order(table), "static.a static.b static.c"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	c := table.RemoveID(0)
	if table.Apply(c); len(c.Removed) != 2 || order(table) != "static.b" {
		t.Errorf("%d are gone, left is %s", len(c.Removed), order(table))
	}
}

func TestFlowIDsWrap(t *testing.T) {
	table := NewTable()
	table.Apply(table.Static([]Flow{{Name: "s", ID: 1}, {Name: "far", ID: maxFlowID + 1}}))
	table.Last = maxFlowID - 1
	c, err := table.Add("g", flows("a", "b", "c"))
	if err != nil {
		t.Fatal(err)
	}
	if want := []uint32{maxFlowID, 2, 3}; !slices.Equal(c.IDs(), want) {
		t.Errorf("got %v, want %v", c.IDs(), want)
	}
}

func TestRulesKeepTheOrder(t *testing.T) {
	table := NewTable()
	c, err := table.Add("g", []Flow{{Name: "one", Queues: []int{1}}, {Name: "spread", Queues: []int{0, 1, 2}}})
	if err != nil {
		t.Fatal(err)
	}
	r := c.Rules()
	if r[0].RSS != 0 || r[0].NQueues != 1 || r[0].Queues[0] != 1 || r[0].FlowID != 1 {
		t.Errorf("one queue: %+v", r[0])
	}
	if r[1].RSS != 1 || r[1].NQueues != 3 || r[1].Queues[2] != 2 || r[1].Order <= r[0].Order {
		t.Errorf("spread: %+v", r[1])
	}
}
