package preflight

import (
	"slices"
	"testing"

	"github.com/daqiri/daqiri-run/runtime/spec"
	"github.com/daqiri/daqiri-run/runtime/spec/schema"
	"github.com/daqiri/daqiri-run/runtime/task"
)

func TestParseCores(t *testing.T) {
	cases := []struct {
		text string
		want Cores
		bad  bool
	}{
		{"", Cores{}, false},
		{"auto", Cores{Auto: true}, false},
		{"3", Cores{List: []int{3}}, false},
		{"2,4-6", Cores{List: []int{2, 4, 5, 6}}, false},
		{"2,2", Cores{}, true},
		{"4-2", Cores{}, true},
		{"-1", Cores{}, true},
		{"a", Cores{}, true},
		{"1-", Cores{}, true},
	}
	for _, c := range cases {
		got, err := ParseCores(c.text)
		if (err != nil) != c.bad || got.Auto != c.want.Auto || !slices.Equal(got.List, c.want.List) {
			t.Errorf("%q: got %+v, %v", c.text, got, err)
		}
	}
}

func TestPlanCores(t *testing.T) {
	host := func(list ...int) (c task.CPUs) {
		for _, n := range list {
			c[n/64] |= 1 << (n % 64)
		}
		return c
	}
	cases := []struct {
		name  string
		asked []int // cpu_core of each queue
		want  Cores
		host  task.CPUs
		got   []int // nil: an error
	}{
		{"as written", []int{1, 2, 1}, Cores{}, host(0, 1, 2, 3), []int{1, 2, 1}},
		{"not on this host", []int{1, 9}, Cores{}, host(0, 1), nil},
		{"left unpinned", []int{-1, 1}, Cores{}, host(0, 1), []int{-1, 1}},
		{"auto", []int{8, 9, 8}, Cores{Auto: true}, host(0, 1, 2), []int{1, 2, 1}},
		{"auto on a host with gaps", []int{8, 9}, Cores{Auto: true}, host(3, 70, 80), []int{70, 80}},
		{"auto, too few", []int{8, 9}, Cores{Auto: true}, host(0, 1), []int{-1, -1}},
		{"auto on one processor", []int{8}, Cores{Auto: true}, host(0), []int{0}},
		{"list", []int{8, 9}, Cores{List: []int{3, 2}}, host(0, 1, 2, 3), []int{3, 2}},
		{"list too short", []int{8, 9}, Cores{List: []int{3}}, host(0, 1, 2, 3), nil},
		{"list not on this host", []int{8}, Cores{List: []int{5}}, host(0, 1), nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			i := &spec.Interface{RX: &spec.RX{}}
			for _, core := range c.asked {
				i.RX.Queues = append(i.RX.Queues, &spec.Queue{PollMode: schema.PollIndirect, CPUCore: core})
			}
			plan, faults := PlanCores(&spec.Config{Interfaces: []*spec.Interface{i}}, c.want, c.host)
			if (c.got == nil) != (len(faults) > 0) {
				t.Fatalf("faults %v", faults)
			}
			for n, q := range i.RX.Queues {
				if c.got != nil && plan.of[q] != c.got[n] {
					t.Errorf("queue %d runs on %d, want %d", n, plan.of[q], c.got[n])
				}
			}
		})
	}
}

// TestLaterCores checks that a later queue has the core of its cpu_core, or the next one.
func TestLaterCores(t *testing.T) {
	var host task.CPUs
	host[0] = 0b1111
	cases := []struct {
		name string
		want Cores
		got  []int // of cpu_core 8, 5, 6, 7 and 6; -2: an error
	}{
		{"as written", Cores{}, []int{-2, -2, -2, -2, -2}},
		{"auto", Cores{Auto: true}, []int{1, 2, 3, -1, 3}},
		{"list", Cores{List: []int{3, 1, 2}}, []int{3, 1, 2, -2, 2}},
		{"list not on this host", Cores{List: []int{3, 9}}, []int{3, -2, -2, -2, -2}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			queue := func(core int) *spec.Queue { return &spec.Queue{PollMode: schema.PollIndirect, CPUCore: core} }
			plan, _ := PlanCores(&spec.Config{Interfaces: []*spec.Interface{{RX: &spec.RX{Queues: []*spec.Queue{queue(8)}}}}}, c.want, host)
			for n, core := range []int{8, 5, 6, 7, 6} {
				q := queue(core)
				got, err := plan.Later(q)
				if err != nil {
					got = -2
				} else {
					plan.Add(q, got)
				}
				if got != c.got[n] {
					t.Errorf("cpu_core %d runs on %d (%v), want %d", core, got, err, c.got[n])
				}
			}
		})
	}
	var plan CorePlan
	if got, err := plan.Later(&spec.Queue{PollMode: schema.PollDirect, CPUCore: 3}); got != -1 || err != nil {
		t.Errorf("a direct queue: core %d, %v", got, err)
	}
}

func TestFormatCores(t *testing.T) {
	for want, list := range map[string][]int{"": nil, "0": {0}, "0-2,5": {0, 1, 2, 5}, "1,3,5-6": {1, 3, 5, 6}} {
		if got := FormatCores(list); got != want {
			t.Errorf("%v: got %q, want %q", list, got, want)
		}
	}
}
