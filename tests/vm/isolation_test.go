package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const isolationScript = `
local daqiri = require "daqiri"
local args = daqiri.args{ ports = "7148" }
local s = daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "raw", master_core = 0,
  memory_regions = { { name = "packets", kind = "host", affinity = 0, num_bufs = 2048, buf_size = 2048 } },
  interfaces = { { name = "port", address = "vdev:net_tap0,iface=dtap0", rx = { flow_isolation = true,
    queues = { { name = "rx", id = 0, batch_size = 32, poll_mode = "direct", memory_regions = { "packets" } } },
    flows = { { name = "mine", id = 5, match = { udp_dst = args.ports }, action = { type = "queue", id = 0 } } } } } } } } }
local n = 0
s:rx_queue("port"):on_burst(function(b) n = n + b.n end)
s:start()
os.execute("(tcpreplay -q -i dtap0 -p 500 " .. os.getenv("DAQIRI_FRAMES") .. "; tc -s filter show dev dtap0 parent 1:) >/dev/shm/sent 2>&1; touch /dev/shm/done &")
s:every(0.2, function() if io.open("/dev/shm/done") then s:stop("all sent") end end)
s:run{ seconds = 60 }
os.execute("cat /dev/shm/sent; rm /dev/shm/done")
print("got " .. n)
`

// TestIsolation has net_tap give what its rules say, and nothing else: the kernel counts what it took and what it kept.
// Where the device refuses a rule, software isolates.
func TestIsolation(t *testing.T) {
	k := need(t, "tcpreplay", "tc")
	program, dir := build(t, "./cmd/daqiri-run"), t.TempDir()
	frames, script := filepath.Join(dir, "frames.pcap"), filepath.Join(dir, "isolation.lua")
	env := []string{"DAQIRI_DPDK=" + library(t), "DAQIRI_FRAMES=" + frames}
	scapy(t, `
from scapy.all import *
e = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
wrpcap("`+frames+`", [e / ip / UDP(sport=1000, dport=port) / bytes(40) for port, n in ((7148, 10), (7149, 30))
    for ip in (IP(src="10.0.0.1", dst="10.0.1.1"), IPv6(src="fd00::1", dst="fd00::2")) for k in range(n)])`)
	if err := os.WriteFile(script, []byte(isolationScript), 0o644); err != nil {
		t.Fatal(err)
	}
	run := quote(program) + ` --allow-exec --summary full ` + quote(script)
	output := must(t, k, machine{dir: root(t), env: env}, `
		echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6 # the kernel's own packets would be counted
		`+run+` 2>&1; echo ------; `+run+` --ports 7100-7148 2>&1`)
	device, software, _ := strings.Cut(output, "------")
	for _, c := range []struct{ name, output, says string }{
		{"device", device, "flow_isolation: device: what no rule wants stays with the kernel"},
		{"software", software, "flow_isolation: software from now on"},
	} {
		if !strings.Contains(c.output, "\ngot 20\n") || !strings.Contains(c.output, c.says) {
			t.Errorf("%s: 20 packets were due, and the report was to say %q", c.name, c.says)
		}
	}
	if n := count(device, `dst_port 7148\n[^#]*?Sent \d+ bytes 10 pkt`); n != 2 {
		t.Errorf("%d rules of the kernel's took 10 packets each, want one for each version of IP", n)
	}
	if count(device, `gact action drop\n[^#]*?Sent \d+ bytes 60 pkt`) != 1 || strings.Contains(device, "no_flow") {
		t.Error("the kernel did not keep the 60 packets that no rule wants")
	}
	if !strings.Contains(software, "port.wire.0.no_flow: 60 ") {
		t.Error("software did not drop the 60 packets that no rule wants")
	}
	if t.Failed() {
		t.Log(output)
	}
}
