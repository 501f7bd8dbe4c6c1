package spec

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/runtime/spec/schema"
)

const twoQueues = `
version: 1
stream_type: raw
master_core: 0
loopback: sw
memory_regions:
- {name: m, kind: device, affinity: 3, num_bufs: 64, buf_size: 2048}
interfaces:
- name: rx_port
  address: loopback
  rx:
    queues:
    - {name: low, id: 1, cpu_core: 1, batch_size: 8, memory_regions: [m]}
    - {name: high, id: 0, cpu_core: 2, batch_size: 8, memory_regions: [m]}
`

func TestOverride(t *testing.T) {
	batch := func(i int) func(*Config) any {
		return func(c *Config) any { return c.Interfaces[0].RX.Queues[i].BatchSize }
	}
	tests := []struct {
		name  string
		set   Override
		get   func(*Config) any
		want  any
		fault string
	}{
		{"index", Override{Path: "interfaces[0].rx.queues[0].batch_size", Text: "16"}, batch(0), 16, ""},
		{"id before index", Override{Path: "interfaces.rx_port.rx.queues.0.batch_size", Text: "16"}, batch(1), 16, ""},
		{"name", Override{Path: "interfaces.rx_port.rx.queues.low.batch_size", Text: "0x10"}, batch(0), 16, ""},
		{"bare index", Override{Path: "memory_regions.0.num_bufs", Text: "128"},
			func(c *Config) any { return c.MemoryRegions[0].NumBufs }, 128, ""},
		{"prefix", Override{Path: "daqiri.cfg.log_level", Text: "error"}, func(c *Config) any { return c.LogLevel }, "error", ""},
		{"decoded value", Override{Path: "rx_meta_buffers", Value: 512.0}, func(c *Config) any { return c.RxMetaBuffers }, 512, ""},
		{"map value", Override{Path: "loopback", Text: "{mode: sw, delay: 2us}"}, func(c *Config) any { return c.Loopback.DelayNS }, int64(2000), ""},
		{"new keys", Override{Path: "interfaces.rx_port.tx.queues[0]", Text: "{name: t, id: 0, poll_mode: direct, memory_regions: [m]}"},
			func(c *Config) any { return c.Interfaces[0].TX.Queues[0].BatchSize }, 256, ""},
		{"address", Override{Path: "interfaces.rx_port.address", Text: "pcap:a b.pcap"}, func(c *Config) any { return c.Interfaces[0].Address }, "pcap:a b.pcap", ""},
		{"empty text", Override{Path: "interfaces.rx_port.engine", Text: "xdp"}, func(c *Config) any { return c.Interfaces[0].EngineName() }, "xdp", ""},
		{"out of range", Override{Path: "interfaces.rx_port.rx.queues.0.batch_size", Text: "0"}, nil, nil,
			"--set interfaces.rx_port.rx.queues.0.batch_size: interfaces[0].rx.queues[1].batch_size: 0 is outside 1..1048576"},
		{"same path", Override{Path: "master_core", Text: "x"}, nil, nil, `--set master_core: "x" is not a whole number`},
		{"misspelt key", Override{Path: "interfaces.rx_port.rx.queues.0.batchsize", Text: "1"}, nil, nil,
			`interfaces[0].rx.queues[1].batchsize: unknown key`},
		{"unknown element", Override{Path: "interfaces.rx_prt.address", Text: "x"}, nil, nil,
			`--set interfaces.rx_prt.address: no element is called "rx_prt"; did you mean "rx_port"?`},
		{"index too far", Override{Path: "interfaces[3].address", Text: "x"}, nil, nil, "index 3 is outside a list of 1"},
		{"index into a map", Override{Path: "loopback[0]", Text: "x"}, nil, nil, `the value above it is "sw"`},
		{"map as a list", Override{Path: "interfaces[0].rx[0]", Text: "x"}, nil, nil, "this is a map, not a list"},
		{"bad YAML", Override{Path: "engine", Text: "[", Source: "set"}, nil, nil, `set engine: the value "[": not YAML`},
		{"bad path", Override{Path: "interfaces[x].name", Text: "1"}, nil, nil, "brackets hold an index"},
		{"empty step", Override{Path: "interfaces..name", Text: "1"}, nil, nil, "an empty step"},
		{"empty value", Override{Path: "log_level", Text: ""}, nil, nil, `--set log_level: "" is not one of`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg, _, err := ParseText("two.yaml", twoQueues, Options{Set: []Override{tt.set}})
			checkFault(t, err, tt.fault)
			if err == nil && tt.get(cfg) != tt.want {
				t.Errorf("got %v, want %v", tt.get(cfg), tt.want)
			}
		})
	}
}

func TestOverrideOfOtherSection(t *testing.T) {
	text := "daqiri:\n  cfg:\n" + indent(twoQueues) + "bench_rx: {seconds: 5}\n"
	cfg, _, err := ParseText("x", text, Options{Set: []Override{{Path: "bench_rx.seconds", Text: "7"}}})
	if err != nil {
		t.Fatal(err)
	}
	if got := cfg.Extra["bench_rx"].(map[string]any)["seconds"]; got != int64(7) {
		t.Errorf("bench_rx.seconds = %v", got)
	}
}

func indent(text string) string {
	out := ""
	for _, line := range splitLines(text) {
		out += "    " + line + "\n"
	}
	return out
}

func TestParseOverride(t *testing.T) {
	o, err := ParseOverride("a.b=c=d")
	if err != nil || o.Path != "a.b" || o.Text != "c=d" {
		t.Errorf("%+v, %v", o, err)
	}
	for _, bad := range []string{"a.b", "=c"} {
		if _, err := ParseOverride(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func TestEngines(t *testing.T) {
	raw := func(address, extra string) string {
		return "version: 1\nstream_type: raw\nmaster_core: 0\n" + extra + `
memory_regions: [{name: m, kind: host, affinity: 0, num_bufs: 64, buf_size: 2048}]
interfaces:
- name: p
  address: ` + address + `
  rx: {queues: [{name: q, id: 0, poll_mode: direct, memory_regions: [m]}]}
`
	}
	endpoint := func(uri, extra string) string {
		return "version: 1\nstream_type: socket\nmaster_core: 0\n" + extra + `
memory_regions: [{name: m, kind: host, affinity: 0, num_bufs: 64, buf_size: 2048}]
interfaces:
- name: p
  address: 10.0.0.1
  socket_config: {mode: server, local_addr: "` + uri + `"}
  roce_config: {transport_mode: RC}
  rx: {queues: [{name: q, id: 0, poll_mode: direct, memory_regions: [m]}]}
`
	}
	tests := []struct {
		name, text, force, want, fault string
	}{
		{"PCI address", raw("0000:3b:00.0", ""), "", "dpdk", ""},
		{"short PCI address", raw(`"3b:00.0"`, ""), "", "dpdk", ""},
		{"vdev", raw("vdev:net_ring0", ""), "", "dpdk", ""},
		{"capture", raw("pcap:a.pcap", ""), "", "pcap", ""},
		{"Linux interface", raw("enp1s0f0np0.100", ""), "", "xdp", ""},
		{"loopback", raw("anything at all", "loopback: sw"), "", "loop", ""},
		{"forced loop", raw("0000:3b:00.0", ""), "loop", "loop", ""},
		{"forced over own key", raw("eth0\n  engine: xdp", ""), "loop", "loop", ""},
		{"own key over loopback", raw("eth0\n  engine: xdp", "loopback: sw"), "", "xdp", ""},
		{"file key", raw("eth0", "engine: dpdk"), "", "dpdk", ""},
		{"file key and capture", raw("pcap:x", "engine: dpdk"), "", "pcap", ""},
		{"file key loop", raw("eth0", "engine: loop"), "", "loop", ""},
		{"ibverbs of raw interfaces", raw("mlx5_0:2", "engine: ibverbs"), "", "ibverbs", ""},
		{"ibverbs as an interface's key", raw("eth0\n  engine: ibverbs", ""), "", "ibverbs", ""},
		{"udp", endpoint("udp://10.0.0.1:1", ""), "", "", "roce_config: belongs to roce:// endpoints"},
		{"roce", endpoint("roce://10.0.0.1:1", "engine: ibverbs"), "", "rdma", ""},
		{"gpunetio of raw interfaces", raw("eth0", "engine: gpunetio"), "", "xdp", ""},
		{"gpunetio of a card", raw("0000:03:00.0", "engine: gpunetio"), "", "dpdk", ""},
		{"gpunetio of roce", endpoint("roce://10.0.0.1:1", "engine: gpunetio"), "", "rdma", ""},
		{"roce on socket", endpoint("roce://10.0.0.1:1", "engine: socket"), "", "", "engine: socket does not serve roce endpoints"},
		{"socket forced to loop", endpoint("roce://10.0.0.1:1", ""), "loop", "", "sockets cannot run on the loop engine"},
		{"socket with loopback", endpoint("roce://10.0.0.1:1", "loopback: sw"), "", "", "sockets cannot run on the loop engine"},
		{"raw forced to socket", raw("eth0", ""), "socket", "", "serves endpoints"},
		{"unknown forced engine", raw("eth0", ""), "lop", "", "--engine lop: not one of " + strings.Join(schema.InterfaceEngines, ", ") + `; did you mean "loop"?`},
		{"IP address", raw("10.0.0.1", ""), "", "", "is an IP address"},
		{"Ethernet address", raw(`"02:00:00:00:00:01"`, ""), "", "", "is an Ethernet address"},
		{"URI as address", raw("udp://10.0.0.1:5", ""), "", "", "belongs into socket_config"},
		{"loopback address without loopback", raw("loopback", ""), "", "", `needs loopback: "sw"`},
		{"no file", raw(`"pcap:"`, ""), "", "", "the file is missing"},
		{"nonsense", raw("not an address", ""), "", "", "is neither a PCI address"},
		{"engine of the wrong class", raw("eth0", "engine: socket"), "", "", "socket does not serve raw interfaces"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg, _, err := ParseText("x.yaml", tt.text, Options{Engine: tt.force})
			checkFault(t, err, tt.fault)
			if err != nil {
				return
			}
			if got := cfg.Interfaces[0].EngineName(); got != tt.want {
				t.Errorf("engine %s, want %s", got, tt.want)
			}
			if loop := tt.want == "loop"; loop != (cfg.Loopback.Mode == "sw") && tt.name != "own key over loopback" {
				t.Errorf("loopback mode %q with engine %s", cfg.Loopback.Mode, tt.want)
			}
		})
	}
}

// TestLoopServesEveryRawFile parses all raw configurations for the loop engine.
func TestLoopServesEveryRawFile(t *testing.T) {
	for _, d := range documents(t) {
		cfg, _, err := ParseText(d.name, d.text, Options{Engine: "loop", Memory: "host"})
		if err != nil {
			checkFault(t, err, "sockets cannot run on the loop engine")
			continue
		}
		for _, i := range cfg.Interfaces {
			if i.EngineName() != schema.EngineLoop {
				t.Errorf("%s: %s runs on %s", d.name, i.Name, i.EngineName())
			}
		}
		for _, r := range cfg.MemoryRegions {
			if r.Kind == schema.KindDevice || r.Kind == schema.KindHostPinned {
				t.Errorf("%s: region %s is %s", d.name, r.Name, r.Kind)
			}
		}
	}
}

func TestFileErrors(t *testing.T) {
	_, _, err := ParseFile(filepath.Join(t.TempDir(), "none.yaml"), Options{})
	checkFault(t, err, "none.yaml: no such file")
	_, _, err = ParseFile("/dev/zero", Options{})
	checkFault(t, err, "larger than 16 MiB")
	_, _, err = ParseText("x", twoQueues, Options{Memory: "gpu"})
	checkFault(t, err, "--memory gpu: not supported, only host is")
}
