package spec

import (
	"strings"
	"testing"
)

// endpoints returns a configuration of sockets with the given top-level keys and one line per interface.
func endpoints(top string, interfaces ...string) string {
	text := "version: 1\nstream_type: socket\nmaster_core: 0\n" + top +
		"memory_regions: [{name: m, kind: host, affinity: 0, num_bufs: 64, buf_size: 2048}]\ninterfaces:\n"
	for _, i := range interfaces {
		text += "- {name: " + i + ", rx: {queues: [{name: q, id: 0, cpu_core: -1, batch_size: 1, memory_regions: [m]}]}}\n"
	}
	return text
}

const (
	udpServer = `s, address: 10.0.0.1, socket_config: {mode: server, local_addr: "udp://10.0.0.1:5001"}`
	roce      = `, roce_config: {transport_mode: RC}`
)

func client(keys string) string {
	return "c, address: 10.0.0.2, socket_config: {mode: client, " + keys + "}"
}

// TestReferenceAccepts checks inputs that the reference's parser accepts, in addition to its files.
func TestReferenceAccepts(t *testing.T) {
	const remote = `remote_addr: "udp://10.0.0.1:5001"`
	local := func(c *Config) string { return c.Interfaces[len(c.Interfaces)-1].SocketConfig.Local.String() }
	for _, tt := range []struct {
		name, text string
		get        func(*Config) string
		want       string
	}{
		{"local_ip alone", endpoints("", client(remote+", local_ip: 10.0.0.2")), local, "udp://10.0.0.2"},
		{"local_port alone", endpoints("", client(remote+", local_port: 7000")), local, "udp://0.0.0.0:7000"},
		{"local_port alone, IPv6", endpoints("", client(`remote_addr: "udp://[::1]:5001", local_port: 7000`)), local, "udp://[::]:7000"},
		{"scheme of the other end", endpoints("", udpServer, client(`remote_addr: "tcp://10.0.0.1:5001", local_ip: 10.0.0.2`)), local, "tcp://10.0.0.2"},
		{"scheme of engine ibverbs", endpoints("engine: ibverbs\n", client("local_ip: 10.0.0.2")+roce), local, "roce://10.0.0.2"},
		{"roce port 0", endpoints("", client(`local_addr: "roce://10.0.0.2:0"`)+roce), local, "roce://10.0.0.2"},
		{"log_level in capitals", "log_level: INFO\n" + endpoints("", udpServer), func(c *Config) string { return c.LogLevel }, "info"},
		{"neither rx nor tx", strings.Replace(endpoints("", udpServer), ", rx: {queues: [{name: q, id: 0, cpu_core: -1, batch_size: 1, memory_regions: [m]}]}", "", 1),
			func(c *Config) string { return c.Interfaces[0].Name }, "s"},
		{"max_payload_size beyond 16 bits", endpoints("", client(remote+", max_payload_size: 1048576")),
			func(c *Config) string { return strings.Repeat("0", 1+c.Interfaces[0].SocketConfig.MaxPayloadSize) }, "0"},
	} {
		cfg, _, err := ParseText(tt.name, tt.text, Options{})
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		} else if got := tt.get(cfg); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// TestMasterCore checks for a warning if a queue uses the core that should not process packets, and for none otherwise.
func TestMasterCore(t *testing.T) {
	for core, want := range map[string]int{"0": 1, "1": 0, "-1": 0} {
		_, warnings, err := ParseText("cores", strings.Replace(endpoints("", udpServer), "cpu_core: -1", "cpu_core: "+core, 1), Options{})
		if err != nil || len(warnings) != want || want > 0 && !strings.Contains(warnings[0].Error(), "cpu_core: core 0 is the master_core") {
			t.Errorf("cpu_core %s: %v, %v", core, warnings, err)
		}
	}
}

// TestReferenceRefuses checks inputs that the reference's parser rejects.
func TestReferenceRefuses(t *testing.T) {
	const remote = `remote_addr: "udp://10.0.0.1:5001"`
	direct := func(key string) string {
		return strings.Replace(Default(), "poll_mode: direct\n", "poll_mode: direct\n          "+key+"\n", 1)
	}
	for _, tt := range []struct{ name, text, want string }{
		{"a client's address without a port", endpoints("", client(remote+`, local_addr: "udp://10.0.0.2"`)), "local_addr: needs a port"},
		{"a server's port 0", endpoints("", strings.Replace(udpServer, "udp://10.0.0.1:5001", "roce://10.0.0.1:0", 1)+roce), "a server needs a port"},
		{"a server's peer without a port", endpoints("", `s, address: 10.0.0.1, socket_config: {mode: server, local_addr: "roce://10.0.0.1:1", remote_addr: "roce://10.0.0.2:0"}`+roce), "a remote address needs a port"},
		{"udp port 0", endpoints("", client(`remote_addr: "udp://10.0.0.1:0"`)), `port "0" is not a number in 1..65535`},
		{"a server's local_port alone", endpoints("", udpServer, `t, address: 10.0.0.3, socket_config: {mode: server, local_port: 5002}`), "local_port: needs local_ip"},
		{"remote_port alone", endpoints("", udpServer, client("remote_port: 5002")), "remote_port: needs remote_ip"},
		{"no scheme at all", endpoints("", client("remote_ip: 10.0.0.1, remote_port: 5001")), "remote_ip: has no scheme"},
		{"both forms", endpoints("", client(remote+", remote_port: 5001")), "keep remote_addr only"},
		{"a level that is none", "log_level: LOUD\n" + endpoints("", udpServer), `log_level: "LOUD" is not one of`},
		{"negative payload", endpoints("", client(remote+", max_payload_size: -1")), "max_payload_size: -1 is outside"},
		{"direct with cpu_core", direct("cpu_core: 3"), "cpu_core: has no place with poll_mode direct"},
		{"direct with timeout_us", direct("timeout_us: 3"), "timeout_us: has no place with poll_mode direct"},
		{"an MTU that is none", endpoints("", client(`local_addr: "roce://10.0.0.2"`)+`, roce_config: {transport_mode: RC, mtu: 1500}`), "mtu: 1500 is not one of 256"},
		{"tcp with roce_config", endpoints("", udpServer+roce), "roce_config: belongs to roce:// endpoints"},
	} {
		_, _, err := ParseText(tt.name, tt.text, Options{})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

// strict is a configuration whose lines TestStrictRows changes one at a time.
const strict = `daqiri:
  cfg:
    version: 1
    stream_type: raw
    engine: ibverbs
    loopback: ""
    master_core: 0
    log_level: info
    tx_meta_buffers: 256
    rx_meta_buffers: 256
    memory_regions:
    - name: m
      kind: host
      affinity: 0
      num_bufs: 64
      buf_size: 8192
      access: [local]
    - {name: out, kind: host, affinity: 0, num_bufs: 8, buf_size: 32768}
    - {name: other, kind: host, affinity: 0, num_bufs: 8, buf_size: 32768}
    interfaces:
    - name: port
      address: 0000:3b:00.0
      rx:
        flow_isolation: true
        hardware_timestamps: false
        queues:
        - name: q
          id: 0
          cpu_core: 1
          batch_size: 32
          memory_regions: [m]
        flows:
        - name: f
          id: 5
          match: {udp_dst: 4096}
          action: {type: queue, id: 0}
        reorder_configs:
        - name: placed
          reorder_type: cpu
          reorder_engine: hw
          cyclic_sequence: true
          packet_size: 4096
          missing_action: drop
          memory_region: out
          payload_byte_offset: 64
          flow_ids: [5]
          method:
            seq_packets_per_batch:
              sequence_number: {bit_offset: 336, bit_width: 32}
              packets_per_batch: 8
      tx:
        queues:
        - name: t
          id: 0
          cpu_core: 2
          batch_size: 32
          memory_regions: [m]
          offloads: [tx_eth_src]
`

// TestStrictRows checks the rules of the reference's parser key by key: each change is refused at its line, or accepted.
func TestStrictRows(t *testing.T) {
	const accepted = ""
	for _, tt := range []struct{ from, to, want string }{
		{"version: 1", "version: 2", "version: 2"},
		{"version: 1", `version: "1"`, "version"},
		{"version: 1", "verzion: 1", "unknown key"},
		{"daqiri:\n", "daqiri:\n  cgf: 1\n", "unknown key"},
		{"master_core: 0", "master_core: -1", accepted},
		{"master_core: 0", "master_core: -2", "master_core"},
		{"cpu_core: 1", "cpu_core: -2", "cpu_core"},
		{"log_level: info", "log_level: loud", "log_level"},
		{"tx_meta_buffers: 256", "tx_meta_buffers: 0", "tx_meta_buffers"},
		{"rx_meta_buffers: 256", "rx_meta_buffers: 0", "rx_meta_buffers"},
		{"num_bufs: 64", "num_bufs: 064", "num_bufs"},
		{"num_bufs: 64", "num_bufs: 0o100", accepted},
		{"num_bufs: 64", "num_bufs: 0x40", accepted},
		{"num_bufs: 64", `num_bufs: "64"`, "num_bufs"},
		{"num_bufs: 64", "num_bufs: 64k", "num_bufs"},
		{"num_bufs: 64", "num_bufs: 0", "num_bufs"},
		{"buf_size: 8192\n", "buf_size: 0\n", "buf_size"},
		{"affinity: 0\n      num", "affinity: 65536\n      num", "affinity"},
		{"kind: host\n", "kind: hots\n", "kind"},
		{"access: [local]", "access: [local, local]", "access"},
		{"access: [local]", "access: [global]", "access"},
		{"access: [local]", "access: []", accepted},
		{"flow_isolation: true", `flow_isolation: "true"`, "flow_isolation"},
		{"hardware_timestamps: false", "hardware_timestamps: 1", "hardware_timestamps"},
		{"batch_size: 32\n          memory_regions: [m]\n        flows", "batch_size: 0\n          memory_regions: [m]\n        flows", "batch_size"},
		{"id: 0\n          cpu_core: 1", "id: 65536\n          cpu_core: 1", "id"},
		{"memory_regions: [m]\n        flows", "memory_regions: []\n        flows", "memory_regions"},
		{"offloads: [tx_eth_src]", "offloads: [tx_eth_src, tx_eth_src]", "offloads"},
		{"offloads: [tx_eth_src]", "offloads: [tx_cksum]", "offloads"},
		{"offloads: [tx_eth_src]", "timeout_us: 5", accepted},
		{"          match: {udp_dst: 4096}\n", "", "flows[0].match: must be one udp_dst"},
		{"match: {udp_dst: 4096}", "match: {udp_dst: 4096, udp_src: 1}", "must be one udp_dst"},
		{"match: {udp_dst: 4096}", "match: {ethernet: {}}", "ethernet"},
		{"match: {udp_dst: 4096}", "match: {ethernet: {dst: 02:00}}", "dst"},
		{"match: {udp_dst: 4096}", "match: {ethernet: {dst: 02:00:00:00:00:01, type: 3}}", "unknown key"},
		{"action: {type: queue, id: 0}", "actions: [{type: vlan_pop}, {type: queue, id: 0}]", "must be one queue only"},
		{"id: 5\n", "id: 4294967296\n", "id"},
		{"engine: ibverbs", "engine: rdma", "engine"},
		{"engine: ibverbs", "engine: dpdk", "reorder_engine: hw needs engine ibverbs"},
		{"engine: ibverbs", "engine: gpunetio", "reorder_engine: hw needs engine ibverbs"},
		{"engine: ibverbs", "engine: default", accepted},
		{`loopback: ""`, "loopback: sw", "reorder_engine: hw needs engine ibverbs"},
		{`loopback: ""`, "loopback: hw", accepted},
		{`loopback: ""`, "loopback: hard", "loopback"},
		{"address: 0000:3b:00.0", "address: pcap:x.pcap", "reorder_engine: hw needs engine ibverbs"},
		{"reorder_engine: hw", "reorder_engine: nic", "reorder_engine"},
		{"missing_action: drop", "missing_action: keep", "missing_action"},
		{"cyclic_sequence: true", "cyclic_sequence: false", "cyclic_sequence: must be true"},
		{"          cyclic_sequence: true\n", "", "cyclic_sequence: must be true"},
		{"packet_size: 4096", "packet_size: 0", "packet_size"},
		{"          packet_size: 4096\n", "", "packet_size"},
		{"packet_size: 4096", "packet_size: 8192", "packet_size: 8192 bytes from byte 64"},
		{"flow_isolation: true", "flow_isolation: false", "flow_isolation: must be true"},
		{"flow_isolation: true", "flow_isolation: true\n        dynamic_flow_capacity: 8", "no flow can be added"},
		{"flow_ids: [5]", "flow_ids: [5, 6]", "takes one flow"},
		{"flow_ids: [5]", "flow_ids: [4294967296]", "flow_ids"},
		{"flow_ids: [5]", "flow_ids: [5]\n          data_types: {input_type: int8, output_type: fp32}", "does not convert"},
		{"memory_region: out", "memory_region: m", "no other user"},
		{"packets_per_batch: 8", "packets_per_batch: 6", "power of two of packets_per_batch"},
		{"num_bufs: 8, buf_size: 32768}\n    - {name: other", "num_bufs: 6, buf_size: 32768}\n    - {name: other", "power of two, at least 4"},
		{"num_bufs: 8, buf_size: 32768}\n    - {name: other", "num_bufs: 8, buf_size: 65536}\n    - {name: other", "buf_size must be at least 32768"},
		{"num_bufs: 8, buf_size: 32768}\n    - {name: other", "num_bufs: 4194304, buf_size: 32768}\n    - {name: other", "more than 16777215 slots"},
		{"{bit_offset: 336, bit_width: 32}", "{bit_offset: 336, bit_width: 5}", "5 bits do not count to 64"},
		{"        flows:\n", "        - {name: q1, id: 1, cpu_core: 1, batch_size: 32, memory_regions: [m]}\n        flows:\n", "queues: 2: reorder_engine: hw"},
		{"        reorder_configs:\n", "        - {name: g, id: 6, match: {udp_dst: 1}, action: {type: queue, id: 0}}\n        reorder_configs:\n", "flows: 2: reorder_engine: hw"},
		{"        reorder_configs:\n", "        flex_items: [{name: x, id: 1, offset: 0, udp_dst_port: 1}]\n        reorder_configs:\n", "flex_items"},
	} {
		if strings.Count(strict, tt.from) != 1 {
			t.Fatalf("%q is %d times in the text", tt.from, strings.Count(strict, tt.from))
		}
		cfg, _, err := ParseText("s.yaml", strings.Replace(strict, tt.from, tt.to, 1), Options{})
		switch list := faults(t, cfg, err); {
		case tt.want == accepted && err != nil:
			t.Errorf("%q: %v", tt.to, err)
		case tt.want != accepted && err == nil:
			t.Errorf("%q is accepted", tt.to)
		case tt.want != accepted && !strings.Contains(err.Error(), tt.want):
			t.Errorf("%q: %v, want %q", tt.to, err, tt.want)
		default:
			for _, is := range list {
				if is.Pos.Line < 1 {
					t.Errorf("%q: an error without a line: %v", tt.to, is)
				}
			}
		}
	}
}

// TestEngineOfPCI checks which engine serves a PCI address without an engine key, and that a warning names the change of the default.
func TestEngineOfPCI(t *testing.T) {
	const changed = "no engine is given: since August 2026 this means ibverbs, before dpdk; here "
	text := strings.Replace(strict, "    engine: ibverbs\n", "", 1)
	verbs := func(address string) bool { return address == "0000:3b:00.0" }
	for _, tt := range []struct {
		text           string
		opts           Options
		engine, reason string
		warns          bool
	}{
		{text, Options{Verbs: verbs}, "ibverbs", "no engine is given, and the device offers verbs", true},
		{strings.Replace(text, "3b:00", "3c:00", 1), Options{Verbs: verbs}, "dpdk", "no engine is given, and the device offers no verbs", true},
		{text, Options{}, "dpdk", "no engine is given, and the device offers no verbs", true},
		{text, Options{Verbs: verbs, Engine: "loop"}, "loop", "", false},
		{strict, Options{}, "ibverbs", "", false},
	} {
		cfg, warnings, err := ParseText("f.yaml", tt.text, tt.opts)
		if err != nil {
			t.Fatal(err)
		}
		i, warned := cfg.Interfaces[0], ""
		for _, w := range warnings {
			if strings.Contains(w.Text, changed+tt.engine) && w.Path == "interfaces[0].address" {
				warned = w.Text
			}
		}
		if i.EngineName() != tt.engine || i.EngineReason() != tt.reason || (warned != "") != tt.warns {
			t.Errorf("%s, %q, warnings %v; want %s, %q, %v", i.EngineName(), i.EngineReason(), warnings, tt.engine, tt.reason, tt.warns)
		}
	}
}
