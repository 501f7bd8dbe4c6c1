package session

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/runtime/spec"
	"github.com/daqiri/daqiri-run/runtime/task"
)

// config is a loop configuration with a placeholder for each addition of a case.
const config = `daqiri:
  cfg:
    version: 1
    stream_type: mixed
    master_core: 0
    loopback: %LOOPBACK%
    memory_regions:
    - {name: packets, kind: %KIND%, affinity: 0, num_bufs: 64, buf_size: 2048}
    %REGIONS%
    interfaces:
    - name: port
      address: %ADDRESS%
      rx:
        queues:
        - {name: rx0, id: 0, cpu_core: %CORE%, batch_size: 8, memory_regions: [packets]}
        %RX%
      tx:
        queues:
        - {name: tx0, id: 0, poll_mode: direct, %TXQ%memory_regions: [packets]}
        %TX%
    %IFACE%
`

// fill replaces the placeholders of config with a case's texts.
func fill(texts map[string]string) string {
	out := config
	for _, h := range [][2]string{{"LOOPBACK", "sw"}, {"KIND", "host"}, {"REGIONS", ""}, {"ADDRESS", "wire"}, {"CORE", "-1"}, {"RX", ""}, {"TX", ""}, {"TXQ", ""}, {"IFACE", ""}} {
		text, ok := texts[h[0]]
		if !ok {
			text = h[1]
		}
		out = strings.ReplaceAll(out, "%"+h[0]+"%", text)
	}
	return out
}

func TestOpenRefuses(t *testing.T) {
	const endpoint = `- name: sock%N%
      address: x
      socket_config: {mode: server, local_addr: "udp://127.0.0.1:5001"}
      rx:
        queues:
        - {name: s0, id: 0, poll_mode: direct, memory_regions: [packets]}
    `
	cases := []struct {
		name  string
		texts map[string]string
		want  string
	}{
		{"loopback in hardware", map[string]string{"LOOPBACK": "hw", "ADDRESS": `"0000:03:00.0"`},
			"rx.yaml:6:5: loopback: loopback inside the network card is not in this version"},
		{"reorder", map[string]string{"REGIONS": "- {name: batches, kind: host, affinity: 0, num_bufs: 2, buf_size: 65536}", "RX": `flows:
        - {name: f, id: 1, action: {type: queue, id: 0}}
        reorder_configs:
        - {name: r, reorder_type: cpu, memory_region: batches, payload_byte_offset: 42, flow_ids: [1], method: {seq_packets_per_batch: {sequence_number: {bit_offset: 336, bit_width: 8}, packets_per_batch: 2}}, reorder_engine: hw, cyclic_sequence: true, packet_size: 64}`},
			"interfaces[0].rx.reorder_configs[0].reorder_engine: reordering by the network card is not in this version"},
		{"transform without an id", map[string]string{"RX": `flows:
        - {name: f, id: 0, actions: [{type: vlan_pop}, {type: queue, id: 0}]}`},
			"interfaces[0].rx.flows[0].id: a flow with vlan_pop needs an id other than 0: packets are known by it"},
		{"core", map[string]string{"CORE": "1000"},
			"interfaces[0].rx.queues[0].cpu_core: core 1000 is not one that this process may use"},
		{"virtual socket", map[string]string{"LOOPBACK": "{mode: sw, clock: virtual}", "IFACE": strings.ReplaceAll(endpoint, "%N%", "")},
			"interfaces[1].socket_config: engine socket can't run on the virtual clock"},
		{"one address twice", map[string]string{"IFACE": strings.ReplaceAll(endpoint, "%N%", "1") + strings.ReplaceAll(endpoint, "%N%", "2")},
			"interfaces[2].socket_config.local_addr: udp://127.0.0.1:5001 is the address of interface sock1 already"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			cfg, _, err := spec.ParseText("rx.yaml", fill(c.texts), spec.Options{})
			if err != nil {
				t.Fatal(err)
			}
			s, err := Open(cfg, Env{Scheduler: task.NewScheduler()})
			if err == nil {
				s.Close()
			}
			var refused *OpenError
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestOpenTellsAllFaults(t *testing.T) {
	cfg, _, err := spec.ParseText("rx.yaml", fill(map[string]string{"LOOPBACK": "hw", "CORE": "1000"}), spec.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(cfg, Env{Scheduler: task.NewScheduler()})
	var refused *OpenError
	if !errors.As(err, &refused) || len(refused.Issues) != 2 {
		t.Errorf("got %v", err)
	}
}

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
				i.RX.Queues = append(i.RX.Queues, &spec.Queue{PollMode: spec.PollIndirect, CPUCore: core})
			}
			plan, faults := planCores(&spec.Config{Interfaces: []*spec.Interface{i}}, c.want, c.host)
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

func TestRanges(t *testing.T) {
	for want, list := range map[string][]int{"": nil, "0": {0}, "0-2,5": {0, 1, 2, 5}, "1,3,5-6": {1, 3, 5, 6}} {
		if got := ranges(list); got != want {
			t.Errorf("%v: got %q, want %q", list, got, want)
		}
	}
}
