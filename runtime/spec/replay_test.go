package spec

import (
	"fmt"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/runtime/spec/schema"
)

const replayed = `
version: 1
stream_type: raw
master_core: 0
loopback: %s
memory_regions: [{name: m, kind: host, affinity: 0, num_bufs: 64, buf_size: 2048}]
interfaces:
- name: src
  address: %s
  replay: %s
  rx: {queues: [{name: q, id: 0, poll_mode: direct, memory_regions: [m]}]}
`

func TestReplay(t *testing.T) {
	tests := []struct{ address, replay, want, fault string }{
		{"pcap:a", "{}", "1 0 0 1", ""},
		{"pcap:a", "{speed: 2.5, loops: 3}", "2.5 0 0 3", ""},
		{"pcap:a", "{speed: max, loops: forever}", "0 0 0 0", ""},
		{"pcap:a", "{rate: 1Gbit/s}", "0 1000000000 0 1", ""},
		{"pcap:a", "{pps: 1e6}", "0 0 1e+06 1", ""},
		{"pcap:a", "{speed: 1, pps: 1e6}", "", "interfaces[0].replay.pps: excludes speed: a capture has one pace"},
		{"pcap:a", "{speed: 0}", "", `interfaces[0].replay.speed: "0" is not a factor above 0, or max`},
		{"pcap:a", "{rate: 0}", "", "a rate of 0 replays nothing"},
		{"pcap:a", "{rate: 1e6}", "0 1000000 0 1", ""},
		{"pcap:a", `{rate: "1e6"}`, "", `"1e6" has no unit: give the number 1e6, or text with a unit, "1e6bit/s"`},
		{"pcap:a", "{loops: 0}", "", `"0" is not a number of loops from 1 on, or forever`},
		{"pcap:a", "{lops: 2}", "", `unknown key; did you mean "loops"?`},
		{"eth0", "{}", "", "interfaces[0].replay: belongs to interfaces with the address pcap:FILE; src is served by engine loop"},
	}
	for _, tt := range tests {
		cfg, _, err := ParseText("x.yaml", fmt.Sprintf(replayed, "sw", tt.address, tt.replay), Options{})
		checkFault(t, err, tt.fault)
		if err != nil {
			continue
		}
		i := cfg.Interfaces[0]
		if got := fmt.Sprint(i.Replay.Speed, i.Replay.RateBPS, i.Replay.PPS, i.Replay.Loops); got != tt.want || i.EngineName() != schema.EnginePCAP {
			t.Errorf("%s: %s on %s, want %s", tt.replay, got, i.EngineName(), tt.want)
		}
	}
}

// TestReplaySocket replays datagrams through a socket interface with a capture as address.
func TestReplaySocket(t *testing.T) {
	const text = `
version: 1
master_core: 0
stream_type: socket
memory_regions: [{name: m, kind: host, affinity: 0, num_bufs: 16, buf_size: 64}]
interfaces:
- name: src
  address: pcap:a
  socket_config: {mode: server, local_addr: "udp://10.0.0.1:1"}
  rx: {queues: [{name: q, id: 0, poll_mode: direct, memory_regions: [m]}]}
`
	for _, tt := range []struct{ old, new, fault string }{
		{"", "", ""},
		{"udp:", "tcp:", "interfaces[0].address: a capture replays datagrams, and interface src is a tcp endpoint"},
		{"  socket_config", "  engine: socket\n  socket_config", "interfaces[0].engine: engine socket does not replay captures, pcap does"},
		{"  rx:", "  tx: {queues: [{name: q, id: 0, poll_mode: direct, memory_regions: [m]}]}\n  rx:", "cannot transmit"},
	} {
		cfg, _, err := ParseText("x.yaml", strings.Replace(text, tt.old, tt.new, 1), Options{})
		checkFault(t, err, tt.fault)
		if err == nil && cfg.Interfaces[0].EngineName() != schema.EnginePCAP {
			t.Errorf("%s, not %s", cfg.Interfaces[0].EngineName(), schema.EnginePCAP)
		}
	}
}

// TestSourceKeepsReplay replaces the capture of an interface that has replay settings.
func TestSourceKeepsReplay(t *testing.T) {
	for arg, want := range map[string]float64{"b.pcap": 3, "b.pcap,speed=1": 1, "b.pcap,loops=2": 1} {
		source, err := ParseSource(arg)
		if err != nil {
			t.Fatal(err)
		}
		cfg, _, err := ParseText("x.yaml", fmt.Sprintf(replayed, "sw", "pcap:a", "{speed: 3}"), Options{Sources: []SourceFile{source}})
		if err != nil {
			t.Fatal(err)
		}
		if i := cfg.Interfaces[0]; i.Address != "pcap:b.pcap" || i.Replay.Speed != want {
			t.Errorf("%s: %s at speed %v, want %v", arg, i.Address, i.Replay.Speed, want)
		}
	}
}

func TestParseSource(t *testing.T) {
	tests := []struct{ arg, want, fault string }{
		{"a.pcap", " a.pcap 1 0 0 1", ""},
		{"rx_port=a.pcap", "rx_port a.pcap 1 0 0 1", ""},
		{"./x=a.pcap", " ./x=a.pcap 1 0 0 1", ""},
		{"rx=d,1.pcap,speed=2,loops=forever", "rx d,1.pcap 2 0 0 0", ""},
		{"a,rate=10Mbit/s,loops=7", " a 0 10000000 0 7", ""},
		{"a,rate=1000", "", `rate: "1000" has no unit: write it like "1000bit/s"`},
		{"a,pps=1000", " a 0 0 1000 1", ""},
		{"a,speed=max", " a 0 0 0 1", ""},
		{"a,sped=2", "", `"a,sped=2": unknown key sped; did you mean "speed"?`},
		{"a,colour=red", " a,colour=red 1 0 0 1", ""},
		{"a,speed=2,pps=3", "", "speed excludes pps"},
		{"a,loops=many", "", `loops: "many" is not a number of loops`},
		{"", "", "names no file"},
		{",loops=2", "", "names no file"},
	}
	for _, tt := range tests {
		s, err := ParseSource(tt.arg)
		checkFault(t, err, tt.fault)
		if err != nil {
			continue
		}
		if got := fmt.Sprint(s.Interface, " ", s.File, " ", s.Replay.Speed, " ", s.Replay.RateBPS, " ", s.Replay.PPS, " ", s.Replay.Loops); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.arg, got, tt.want)
		}
	}
}

// TestSources replaces two receivers and a sender with captures.
func TestSources(t *testing.T) {
	const text = `
version: 1
stream_type: %s
master_core: 0
memory_regions: [{name: m, kind: host, affinity: 0, num_bufs: 64, buf_size: 2048}]
interfaces:
- name: one
  address: 0000:3b:00.0
  rx: {queues: [{name: q, id: 0, poll_mode: direct, memory_regions: [m]}]}
  tx: {queues: [{name: q, id: 0, poll_mode: direct, memory_regions: [m]}]}
- name: two
  address: eth1
  rx: {queues: [{name: q, id: 0, poll_mode: direct, memory_regions: [m]}]}
- name: out
  address: eth2
  tx: {queues: [{name: q, id: 0, poll_mode: direct, memory_regions: [m]}]}
%s`
	const socket = `
- name: sock
  address: 10.0.0.1
  socket_config: {mode: server, local_addr: "udp://10.0.0.1:1"}
  rx: {queues: [{name: q, id: 0, poll_mode: direct, memory_regions: [m]}]}
`
	tests := []struct{ args, extra, want, fault string }{
		{"a.pcap", "", "pcap:a.pcap pcap:a.pcap ", ""},
		{"a.pcap two=b.pcap", "", "pcap:a.pcap pcap:b.pcap ", ""},
		{"two=b.pcap a.pcap", "", "pcap:a.pcap pcap:b.pcap ", ""},
		{"two=b.pcap", "", "", "interface one receives, and no --source is for it: add --source one=FILE"},
		{"a.pcap tow=b.pcap", "", "", `there is no interface tow; did you mean "two"?`},
		{"a.pcap out=b.pcap", "", "", "--source out: the interface does not receive"},
		{"a two=b two=c", "", "", "interface two has two captures, b is one of them: it replays one"},
		{"one=a two=b c", "", "", "no interface of x.yaml is left to replay c"},
		{"-", "", "", "standard input is the capture of interface one already: add --source two=FILE"},
		{"- two=b.pcap", "", "pcap:- pcap:b.pcap ", ""},
		{"a.pcap", socket, "pcap:a.pcap pcap:a.pcap  pcap:a.pcap", ""},
		{"a.pcap", strings.Replace(socket, "udp:", "tcp:", 1), "", "--source replays datagrams, and interface sock is a tcp endpoint"},
	}
	for _, tt := range tests {
		var opts Options
		for _, arg := range strings.Fields(tt.args) {
			s, err := ParseSource(arg)
			if err != nil {
				t.Fatal(err)
			}
			opts.Sources = append(opts.Sources, s)
		}
		stream := schema.StreamRaw
		if tt.extra != "" {
			stream = schema.StreamMixed
		}
		cfg, _, err := ParseText("x.yaml", fmt.Sprintf(text, stream, tt.extra), opts)
		checkFault(t, err, tt.fault)
		if err != nil {
			continue
		}
		var got []string
		for _, i := range cfg.Interfaces {
			got = append(got, i.Address)
			if i.EngineName() != schema.EnginePCAP || (i.Replay != nil) != (i.RX != nil) {
				t.Errorf("%s: %s on %s, replay %v", tt.args, i.Name, i.EngineName(), i.Replay)
			}
		}
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("%s: %q, want %q", tt.args, s, tt.want)
		}
	}
}
