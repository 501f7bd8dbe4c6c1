package contract

import (
	"errors"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/runtime/kernel"
	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/session/preflight"
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
		{"transform without an id", map[string]string{"RX": `flows:
        - {name: f, id: 0, actions: [{type: vlan_pop}, {type: queue, id: 0}]}`},
			"interfaces[0].rx.flows[0].id: a flow with vlan_pop needs an id other than 0: packets are known by it"},
		{"core", map[string]string{"CORE": "1000"},
			"interfaces[0].rx.queues[0].cpu_core: core 1000 is not one that this process may use"},
		{"virtual socket", map[string]string{"LOOPBACK": "{mode: sw, clock: virtual}", "IFACE": strings.ReplaceAll(endpoint, "%N%", "")},
			"interfaces[1].socket_config: engine socket can't run on the virtual clock"},
		{"one address twice", map[string]string{"IFACE": strings.ReplaceAll(endpoint, "%N%", "1") + strings.ReplaceAll(endpoint, "%N%", "2")},
			"interfaces[2].socket_config.local_addr: udp://127.0.0.1:5001 is the address of interface sock1 already"},
		{"offload of an endpoint", map[string]string{"IFACE": strings.ReplaceAll(endpoint, "%N%", "") + `  tx:
        queues:
        - {name: s1, id: 0, poll_mode: direct, memory_regions: [packets], offloads: [tx_eth_src]}
    `},
			"interfaces[1].tx.queues[0].offloads: a socket sends no Ethernet header that could be filled in"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			cfg, _, err := spec.ParseText("rx.yaml", fill(c.texts), spec.Options{})
			if err != nil {
				t.Fatal(err)
			}
			s, err := session.Open(cfg, session.Env{Scheduler: task.NewScheduler()})
			if err == nil {
				s.Close()
			}
			var refused *preflight.OpenError
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestOpenReportsAllObstacles(t *testing.T) {
	cfg, _, err := spec.ParseText("rx.yaml", fill(map[string]string{"LOOPBACK": "hw", "CORE": "1000"}), spec.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = session.Open(cfg, session.Env{Scheduler: task.NewScheduler()})
	var refused *preflight.OpenError
	if !errors.As(err, &refused) || len(refused.Issues) != 2 {
		t.Errorf("got %v", err)
	}
}

// TestOwnedMemory: a region without memory of its own is a valid configuration, which opens with a binding alone.
func TestOwnedMemory(t *testing.T) {
	text := fill(map[string]string{"REGIONS": "- {name: mine, kind: host, affinity: 0, num_bufs: 64, buf_size: 2048, owned: false}"})
	cfg, _, err := spec.ParseText("rx.yaml", text, spec.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if obstacles := preflight.Obstacles(cfg); len(obstacles) > 0 {
		t.Error(obstacles)
	}
	env := session.Env{Scheduler: task.NewScheduler()}
	needs, err := session.Requirements(cfg, env)
	if err != nil || len(needs) != 2 || needs[1].Name != "mine" || needs[1].Capacity < int64(needs[1].NumBufs*needs[1].SlotSize) {
		t.Fatalf("%+v, %v", needs, err)
	}
	_, err = session.Open(cfg, env)
	if session.StatusName(err) != "INVALID_PARAMETER" || !strings.Contains(err.Error(), "rx.yaml:9:75: memory_regions[1].owned: cannot open memory region mine: ") {
		t.Errorf("without a binding: %v", err)
	}
	array, err := kernel.NewArray("host", "uint8", []int{int(needs[1].Capacity)}, session.HostGPU)
	if err != nil {
		t.Fatal(err)
	}
	env.Bindings = map[string]session.Binding{"mine": {Array: array, Bytes: -1}}
	s, err := session.Open(cfg, env)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
}

// TestSharedMemory: a shared region lies in a file of its own, without a binding, and not on a GPU.
func TestSharedMemory(t *testing.T) {
	open := func(region string, bindings map[string]session.Binding) (*session.Session, error) {
		cfg, _, err := spec.ParseText("rx.yaml", fill(map[string]string{"REGIONS": "- {name: mine, affinity: 0, num_bufs: 64, buf_size: 2048, " + region + "}"}), spec.Options{})
		if err != nil {
			return nil, err
		}
		return session.Open(cfg, session.Env{Scheduler: task.NewScheduler(), Bindings: bindings})
	}
	for _, kind := range []string{"host", "huge"} {
		s, err := open("shared: true, kind: "+kind, nil)
		if err != nil {
			t.Fatal(err)
		}
		if report := strings.Join(s.Report(), "\n"); !strings.Contains(report, "memory region mine: ") || !strings.Contains(report, "in a file of its own") {
			t.Errorf("%s: report %s", kind, report)
		}
		s.Close()
	}
	for _, c := range []struct{ region, want string }{
		{"kind: device, shared: true", "memory on a GPU can't be shared"},
		{"kind: host, shared: true, owned: false", "memory of the application (owned: false) can't be shared"},
	} {
		if _, err := open(c.region, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.region, err)
		}
	}
	array, err := kernel.NewArray("host", "uint8", []int{1 << 20}, session.HostGPU)
	if err != nil {
		t.Fatal(err)
	}
	_, err = open("kind: host, shared: true", map[string]session.Binding{"mine": {Array: array, Bytes: -1}})
	if session.StatusName(err) != "INVALID_PARAMETER" || !strings.Contains(err.Error(), "remove the binding or the key") {
		t.Errorf("with a binding: %v", err)
	}
}
