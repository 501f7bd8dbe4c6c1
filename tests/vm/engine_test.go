package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/require"
)

// library is the dpdk engine that `make build` has left at the root.
func library(t *testing.T) string {
	t.Helper()
	path := filepath.Join(root(t), "libdaqiri_dpdk.so")
	if _, err := os.Stat(path); err != nil {
		require.Lack(t, "dpdk", err.Error()+": `make build` makes it where libdpdk is")
	}
	return path
}

// contract are the arguments for the contract suite over one engine. What no device changes runs in one mode only.
func contract(engine string) []string {
	same := "TestContract(ColumnsAndSelections|Errors|Ownership|StopIsSeen|TapDropsForItself|TeeIsReadOnly)/.*/direct"
	return []string{"-test.run", "TestContract.*/" + engine, "-test.skip", same, "-test.parallel", "1", "-test.v"}
}

// TestEngineOnCards runs the contract suite over two PCI cards, by address: each test opens them, and closes them.
func TestEngineOnCards(t *testing.T) {
	t.Parallel()
	need(t)
	var out, complaints bytes.Buffer
	m := machine{nics: 2, memory: 1536, timeout: 3 * patience, stdout: &out, stderr: &complaints,
		env: []string{"DAQIRI_DPDK=" + library(t), "DAQIRI_TEST_CARDS=0000:00:05.0,0000:00:06.0"}}
	code, err := start(context.Background(), &m, cache, "", "../../runtime/session/contract",
		contract("cards"))
	if passed := count(out.String(), `    --- PASS: \w+/cards/`); code != 0 || err != nil || passed < 20 {
		t.Errorf("exit code %d, %v, %d tests passed\n%s%s", code, err, passed, out.String(), complaints.String())
	}
}

const steerScript = `
local daqiri = require "daqiri"
local args = daqiri.args{ range = false }
local queues = {}
for k = 0, 1 do queues[k + 1] = { name = "rx" .. k, id = k, batch_size = 32, poll_mode = "direct", memory_regions = { "packets" } } end
local flows = { { name = "a", id = 11, match = { udp_dst = 7001 }, action = { type = "queue", id = 1 } },
  { name = "b", id = 12, match = { udp_dst = 7002 }, action = { type = "queue", id = 0 } } }
if args.range then flows[3] = { name = "c", id = 13, match = { udp_dst = "7100-7200" }, action = { type = "queue", id = 1 } } end
local s = daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "raw", master_core = 0,
  memory_regions = { { name = "packets", kind = "host", affinity = 0, num_bufs = 2048, buf_size = 2048 } },
  interfaces = { { name = "port", address = "vdev:net_tap0,iface=dtap0", rx = { queues = queues, flows = flows } } } } } }
local n = 0
for k = 0, 1 do
  s:rx_queue("port", k):on_burst(function(b)
    for _, id in ipairs(b:flow_ids()) do
      print(("queue %d flow %d"):format(k, id))
      n = n + 1
    end
    if n == 50 then s:stop("all there") end
  end)
end
s:start()
os.execute("(tcpreplay -q -i dtap0 -p 500 " .. os.getenv("DAQIRI_FRAMES") .. "; sleep 1; tc -s filter show dev dtap0 parent 1:) >/dev/shm/sent 2>&1 &")
s:run{ seconds = 60 }
os.execute("sleep 3; cat /dev/shm/sent")
`

// TestSteering gives net_tap our flows: the device's rules put packets into their queues, tagged ones and those that no
// rule of the device sees are found by software, and with a rule that it refuses software does all.
func TestSteering(t *testing.T) {
	t.Parallel()
	k := need(t, "tcpreplay", "tc")
	env := []string{"DAQIRI_DPDK=" + library(t)}
	program, dir := build(t, "./cmd/daqiri-run"), t.TempDir()
	frames, script := filepath.Join(dir, "frames.pcap"), filepath.Join(dir, "steer.lua")
	env = append(env, "DAQIRI_FRAMES="+frames)
	scapy(t, `
from scapy.all import *
e, ip = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02"), IP(src="10.0.0.1", dst="10.0.1.1")
wrpcap("`+frames+`", [e / ip / UDP(sport=1000, dport=port) / bytes(40) for port in (7001, 7002, 7003, 7150) for k in range(10)]
    + [e / Dot1Q(vlan=7) / ip / UDP(sport=1000, dport=7001) / bytes(40)] * 10)`)
	if err := os.WriteFile(script, []byte(steerScript), 0o644); err != nil {
		t.Fatal(err)
	}
	daqiri := quote(program) + ` --allow-exec --summary full ` + quote(script)
	runs := strings.Split(must(t, k, machine{dir: root(t), env: env}, `
		echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6 # the kernel's own packets would be counted
		(`+daqiri+` && echo ==== && `+daqiri+` --range) 2>&1`), "====\n")
	for i, c := range []struct {
		says   string
		want   map[string]int
		kernel int // packets that the device's rule for port 7001 took
	}{
		{"flows: the device puts packets into their queues", map[string]int{"queue 1 flow 11": 20, "queue 0 flow 12": 10, "queue 0 flow 0": 20}, 1},
		{"flows: software: ", map[string]int{"queue 1 flow 11": 20, "queue 0 flow 12": 10, "queue 0 flow 0": 10, "queue 1 flow 13": 10}, 0},
	} {
		got := map[string]int{}
		for line := range strings.Lines(runs[i]) {
			if line = strings.TrimSpace(line); strings.HasPrefix(line, "queue ") {
				got[line]++
			}
		}
		for line, n := range c.want {
			if got[line] != n {
				t.Errorf("%s: %d times %q, want %d", c.says, got[line], line, n)
			}
		}
		if !strings.Contains(runs[i], c.says) {
			t.Errorf("the report lacks %q", c.says)
		}
		if n := count(runs[i], `dst_port 7001\n[^#]*?queue_mapping 1 pipe\n[^#]*?Sent \d+ bytes 10 pkt`); n != c.kernel {
			t.Errorf("%s: %d rules of the kernel's took the 10 packets to port 7001, want %d", c.says, n, c.kernel)
		}
		if t.Failed() {
			t.Log(runs[i])
		}
	}
}
