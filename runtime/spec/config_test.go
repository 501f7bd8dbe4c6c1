package spec

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func splitLines(text string) []string { return strings.Split(strings.Trim(text, "\n"), "\n") }

func good(t *testing.T, name string) *Config {
	t.Helper()
	cfg, _, err := ParseFile(filepath.Join("testdata", "good", name), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// TestValues checks one value of each kind of key.
func TestValues(t *testing.T) {
	raw, tun, classes := good(t, "raw_all_keys.yaml"), good(t, "tunnels.yaml"), good(t, "flow_classes.yaml")
	v6 := classes.Interfaces[0].RX.Flows[4].Match
	socks, legacy, mixed := good(t, "sockets.yaml"), good(t, "legacy_endpoints.yaml"), good(t, "mixed.yaml")
	rx, tx := raw.Interfaces[0].RX, raw.Interfaces[0].TX
	match := rx.Flows[0].Match
	six := tun.Interfaces[0].TX.Flows[2].Actions[0].Tunnel
	vx, nv := tun.Interfaces[0].TX.Flows[0].Actions[0].Tunnel, tun.Interfaces[0].RX.Flows[0].Actions[0].Tunnel
	tests := []struct {
		name      string
		got, want any
	}{
		{"hex number", raw.RxMetaBuffers, 512},
		{"default of log_level", tun.LogLevel, "warn"},
		{"default of meta buffers", tun.TxMetaBuffers, 256},
		{"default of access", raw.MemoryRegions[1].Access, []string{"local"}},
		{"default of owned", raw.MemoryRegions[0].Owned, true},
		{"core", rx.Queues[0].CPUCore, 4},
		{"unpinned core", rx.Queues[2].CPUCore, -1},
		{"core of a direct queue", rx.Queues[3].CPUCore, -1},
		{"batch of a direct queue", rx.Queues[3].BatchSize, 64},
		{"default batch of a direct queue", tx.Queues[1].BatchSize, 256},
		{"segments", rx.Queues[0].MemoryRegions, []string{"headers", "samples"}},
		{"single port", *match.UDPSrc, PortRange{7000, 7000}},
		{"port range", *match.UDPDst, PortRange{7148, 7151}},
		{"address", *match.IPv4Src, netip.MustParsePrefix("10.17.16.60/32")},
		{"prefix", *match.IPv4Dst, netip.MustParsePrefix("239.2.0.0/16")},
		{"length", *match.IPv4Len, uint16(1052)},
		{"Ethernet", rx.Flows[1].Match.Ethernet.Dst.String(), "02:00:00:00:00:02"},
		{"RSS", rx.Flows[1].QueueIDs(), []int{1, 2}},
		{"catch-all", rx.Flows[4].Match, Match{Source: rx.Flows[4].Match.Source}},
		{"IPv6 prefix", *v6.IPv6Src, netip.MustParsePrefix("2001:db8::/32")},
		{"IPv6 address", *v6.IPv6Dst, netip.MustParsePrefix("2001:db8::7/128")},
		{"TCP, tag", fmt.Sprint(v6.TCPSrc, v6.TCPDst, *v6.VLANID), "1-1023 443 7"},
		{"EtherType", *classes.Interfaces[0].RX.Flows[5].Match.EtherType, uint16(0x806)},
		{"packets per batch", rx.ReorderConfigs[0].PacketsPerBatch, int64(100)},
		{"derived packets per batch", rx.ReorderConfigs[1].PacketsPerBatch, int64(128)},
		{"default of missing_action", good(t, "hardware_loopback.yaml").Interfaces[0].RX.ReorderConfigs[0].MissingAction, "passthrough"},
		{"flat VLAN", *tx.Flows[0].Actions[0].VLAN, VLAN{100, 3, 1, 0x88a8}},
		{"nested VLAN with defaults", *tx.Flows[0].Actions[1].VLAN, VLAN{200, 0, 0, 0x8100}},
		{"pacing", tx.Queues[0].PacingMbps, int64(10000)},
		{"vxlan", fmt.Sprintf("%x %d %d %d %s %s", vx.VNI, vx.UDPSrc, vx.UDPDst, vx.TTL, vx.EthDst, vx.IPv4Dst), "abcdef 49152 4790 32 02:00:00:00:00:02 192.0.2.2"},
		{"outer IPv6", six.IPv6() && !vx.IPv6(), true},
		{"outer IPv6 source", six.IPv6Src.String(), "2001:db8::1"},
		{"outer IPv6 hop limit", six.HopLimit, uint8(64)},
		{"outer IPv6 traffic class", six.Class, uint8(184)},
		{"gre", tun.Interfaces[0].TX.Flows[1].Actions[0].Tunnel.GREProtocol, uint16(0x6558)},
		{"nvgre", fmt.Sprint(nv.TNI, nv.FlowID, nv.TTL), "77 3 0"},
		{"loopback map", fmt.Sprint(classes.Loopback.Mode, classes.Loopback.Seed, classes.Loopback.Clock, classes.Loopback.Loss, classes.Loopback.Dup, classes.Loopback.DelayNS, classes.Loopback.RateBPS), "sw42virtual0.001 0.0001 2000 10000000000"},
		{"flex match", *classes.Interfaces[0].RX.Flows[3].Match.Flex, FlexMatch{5, 0x1f, 0xffffffff}},
		{"eCPRI id", *classes.Interfaces[0].RX.Flows[1].Match.ECPRI.ID, uint16(65535)},
		{"IPv6 endpoint", socks.Interfaces[0].SocketConfig.Local.String(), "tcp://[::1]:6001"},
		{"host name", socks.Interfaces[1].SocketConfig.Remote.Host, "camera-3.example.org"},
		{"framing", fmt.Sprint(socks.Interfaces[0].SocketConfig.Framing.LengthPrefix, socks.Interfaces[0].SocketConfig.Framing.Endianness, socks.Interfaces[0].SocketConfig.Framing.IncludesHeader), "4hosttrue"},
		{"fixed framing", socks.Interfaces[1].SocketConfig.Framing.Fixed, 1024},
		{"alias", socks.Interfaces[2].RX.Queues[0].MemoryRegions, []string{"messages"}},
		{"merge", socks.Interfaces[1].RX.HardwareTimestamps, true},
		{"legacy endpoint", legacy.Interfaces[0].SocketConfig.Remote.String(), "udp://127.0.0.1:5001"},
		{"merged list", mixed.Interfaces[2].RX.Queues[0].TimeoutUS, int64(100)},
		{"engines", fmt.Sprint(mixed.Interfaces[0].EngineName(), mixed.Interfaces[1].EngineName(), mixed.Interfaces[2].EngineName(), mixed.Interfaces[3].EngineName()), "pcapxdpdpdksocket"},
		{"other section", raw.Extra["recorder"], map[string]any{"folder": "/data", "seconds": int64(60)}},
	}
	for _, tt := range tests {
		if !reflect.DeepEqual(tt.got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, tt.got, tt.want)
		}
	}
}

// TestPositions checks that other layers can report errors at the line of a key.
func TestPositions(t *testing.T) {
	cfg := good(t, "raw_all_keys.yaml")
	q := cfg.Interface("digitizer").RX.Queues[0]
	got := q.Key("cpu_core").Errorf("core %d does not exist", q.CPUCore).Error()
	want := filepath.Join("testdata", "good", "raw_all_keys.yaml") + ":36:11: interfaces[0].rx.queues[0].cpu_core: core 4 does not exist"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if at := q.Key("offloads"); at.Pos != q.Pos {
		t.Errorf("a key that was not written is at %v, want %v", at.Pos, q.Pos)
	}
	if cfg.Region("samples").Pos.Line != 19 {
		t.Errorf("region at %v", cfg.Region("samples").Pos)
	}
}

func TestErrorsUnwrap(t *testing.T) {
	_, _, err := ParseText("x.yaml", "version: 1\nstream_type: rw\n", Options{})
	var first Issue
	if !errors.As(fmt.Errorf("open: %w", err), &first) || first.Path == "" && first.Text == "" {
		t.Errorf("no issue inside %v", err)
	}
}

func TestWarnings(t *testing.T) {
	text := strings.Replace(Default()+"    debug: true\n", "      rx:\n", "      rx:\n        dynamic_flow_capacity: 8\n", 1)
	text = strings.Replace(text, "    interfaces:", "    - {name: spare, kind: host, affinity: 0, num_bufs: 1, buf_size: 1, access: [rdma_read]}\n\n    interfaces:", 1)
	cfg, warnings, err := ParseText("w.yaml", text, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if u := cfg.Unused(); len(u) != 1 || u[0].Name != "spare" || !strings.Contains(u[0].Error(), `region "spare" is used by no queue and no reorder config`) {
		t.Errorf("unused regions: %v", u)
	}
	want := []string{"access: rdma_read and rdma_write have no effect", "dynamic_flow_capacity: has no effect",
		"debug: has no effect; use log_level"}
	if len(warnings) != len(want) {
		t.Fatalf("%d warnings, want %d: %v", len(warnings), len(want), warnings)
	}
	for i, w := range warnings {
		if !strings.Contains(w.Error(), want[i]) || w.Pos.Line == 0 {
			t.Errorf("warning %q, want %q", w, want[i])
		}
	}
}

func TestInspectGolden(t *testing.T) {
	for _, name := range []string{"raw_all_keys", "sockets", "flow_classes"} {
		plan, err := json.MarshalIndent(Inspect(good(t, name+".yaml")), "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		golden(t, filepath.Join("testdata", "plan", name+".json"), string(plan)+"\n")
	}
}

// TestTable parses the default session from the table that a Lua program would pass.
func TestTable(t *testing.T) {
	queue := func() map[string]any {
		return map[string]any{"name": "q", "id": 0.0, "poll_mode": "direct", "memory_regions": []any{"m"}}
	}
	table := func() map[string]any {
		return map[string]any{
			"version": 1.0, "stream_type": "raw", "master_core": 0, "loopback": "sw",
			"memory_regions": []any{map[string]any{
				"name": "m", "kind": "host", "affinity": 0.0, "num_bufs": int64(64), "buf_size": 2048.0, "owned": true,
			}},
			"interfaces": []any{map[string]any{
				"name": "p", "address": "x", "rx": map[string]any{"queues": []any{queue()}, "flows": map[string]any{}},
			}},
		}
	}
	first := func(m map[string]any) map[string]any { return m["interfaces"].([]any)[0].(map[string]any) }
	tests := []struct {
		name   string
		change func(map[string]any) any
		fault  string
	}{
		{"good", func(m map[string]any) any { return m }, ""},
		{"wrapped", func(m map[string]any) any {
			return map[string]any{"daqiri": map[string]any{"cfg": m}, "recorder": map[string]any{"a": []any{1.5, nil}}}
		}, ""},
		{"empty table as a match", func(m map[string]any) any {
			first(m)["rx"].(map[string]any)["flows"] = []any{map[string]any{"name": "f", "id": 1.0, "match": []any{}, "action": map[string]any{"type": "queue", "id": 0.0}}}
			return m
		}, ""},
		{"fraction", func(m map[string]any) any { m["master_core"] = 1.5; return m }, "table: master_core: 1.5 is not a whole number"},
		{"unknown key", func(m map[string]any) any { first(m)["adress"] = "y"; return m }, "table: interfaces[0].adress: unknown key"},
		{"no queues", func(m map[string]any) any { first(m)["rx"] = map[string]any{}; return m }, "table: interfaces[0].rx: queues is required"},
		{"itself", func(m map[string]any) any { m["loopback"] = m; return m }, "contains itself"},
		{"function", func(m map[string]any) any { m["log_level"] = func() {}; return m }, "table: log_level: a func() cannot be part"},
		{"empty", func(map[string]any) any { return map[string]any{} }, "the configuration is empty"},
		{"nil", func(map[string]any) any { return nil }, "the configuration is empty"},
		{"number", func(map[string]any) any { return 5.0 }, "5 where a map"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg, _, err := ParseTable(tt.change(table()), Options{})
			checkFault(t, err, tt.fault)
			if err == nil && cfg.Interfaces[0].RX.Queues[0].BatchSize != 256 {
				t.Error("wrong batch size")
			}
		})
	}
}

func TestYAMLForms(t *testing.T) {
	head := "version: 1\nstream_type: raw\nmaster_core: 0\nloopback: sw\n"
	tests := []struct{ name, text, fault string }{
		{"byte order mark", "\ufeff%YAML 1.2\n---\n" + head, "interfaces is required"},
		{"comments before the directive", "# a\n\n%YAML 1.2\n# b\n---\n" + head, "interfaces is required"},
		{"windows lines", strings.ReplaceAll("%YAML 1.2\n---\n"+head, "\n", "\r\n"), "x.yaml:3:1: interfaces is required"},
		{"merge of duplicates", "a: &a {x: 1}\nversion: 1\n<<: [*a, *a]\n", "a: unknown key"},
		{"deep nesting", "version: " + strings.Repeat("[", 100) + strings.Repeat("]", 100), "nested deeper than 64 levels"},
		{"exploding aliases", "version: 1\na: &a [1,1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n" +
			"d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e]\n", "more than 200000 values"},
		{"unknown anchor", "version: *nowhere\n", "unknown anchor"},
		{"unknown tag", "version: !secret 1\n", "unknown tag !secret"},
		{"scalar document", "just text\n", `"just text" where a map`},
		{"cfg is a list", "daqiri:\n  cfg: []\n", "daqiri.cfg: a list where a map is expected"},
		{"cfg missing", "daqiri: {}\n", "x.yaml:1:1: daqiri: cfg is required"},
		{"beside cfg", "daqiri:\n  cfg: {version: 1}\n  config: 3\n", "daqiri.config: unknown key"},
		{"nothing of ours", "bench_rx: 1\n", "no configuration here"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := ParseText("x.yaml", tt.text, Options{})
			checkFault(t, err, tt.fault)
		})
	}
}
