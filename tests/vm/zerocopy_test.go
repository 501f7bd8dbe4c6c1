package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/require"
)

// homesScript receives on eth1 by two NIC queues into two regions, in two queues. Who sends from a queue of eth1 gets
// the answers by that queue: so the machine's taps choose.
const homesScript = `
local daqiri = require "daqiri"
local function queues(names)
  local list = {}
  for k, name in ipairs(names) do
    list[k] = { name = name, id = k - 1, poll_mode = "direct", batch_size = 16, memory_regions = { name } }
  end
  return list
end
local regions = {}
for k, name in ipairs{ "out", "rx0", "rx1", "tx0", "tx1" } do
  regions[k] = { name = name, kind = "host", affinity = 0, num_bufs = 512, buf_size = 1600 }
end
local s = daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "raw", master_core = 0, memory_regions = regions,
  interfaces = { { name = "a", address = "eth0", tx = { queues = queues{ "out" } } },
    { name = "b", address = "eth1", tx = { queues = queues{ "tx0", "tx1" } }, rx = { queues = queues{ "rx0", "rx1" },
      flows = { { name = "one", id = 11, match = { udp_dst = 7148 }, action = { type = "queue", id = 0 } },
                { name = "two", id = 12, match = { udp_dst = 7149 }, action = { type = "queue", id = 1 } } } } } } } } }
for _, line in ipairs(s:report()) do print(line) end
local got = 0
for k = 0, 1 do
  s:rx_queue("b", k):on_burst(function(b) got = got + b:count(("flow_id == %d"):format(11 + k)) end)
end
s:start()
local wanted = 0
local function send(n, port, by)
  local back, out = s:tx_queue("b", by), s:tx_queue("a")
  back:transmit{ count = 1, template = back:template{ payload_bytes = 64, udp_src = port, udp_dst = 4000, ipv4_src = "10.0.0.2", ipv4_dst = "10.0.0.1" } }
  s:measure{ seconds = 0.3 }
  out:transmit{ count = n, template = out:template{ payload_bytes = 64, udp_src = 4000, udp_dst = port, ipv4_src = "10.0.0.1", ipv4_dst = "10.0.0.2" } }
  wanted = wanted + n
  for _ = 1, 200 do
    if got == wanted then break end
    s:measure{ seconds = 0.05 }
  end
  print(("by NIC queue %d to port %d: %d of %d"):format(by, port, got, wanted))
end
send(40, 7148, 0)
send(30, 7149, 1)
send(10, 7148, 1)
send(5, 7149, 0)
s:stop("all sent")
for k = 0, 1 do
  local q = s:stats().b.rx[k]
  print(("rx%d: %d in, %d copied"):format(k, q["in"], q.copied))
end
`

// TestZeroCopy runs the contract suite over AF_XDP with zero-copy, which virtio-net has from Linux 6.13 on: a newer
// kernel than the distribution's. The cards have two queues each way. Then frames by each of them into regions of two
// queues: what comes by a queue's own is not copied; the driver's counters say which came by which.
func TestZeroCopy(t *testing.T) {
	t.Parallel()
	need(t)
	if os.Getuid() != 0 {
		require.Lack(t, "zero-copy", "cards with several queues need taps, which need root")
	}
	if _, err := getKernel(cache, newer); err != nil {
		require.Lack(t, "zero-copy", err.Error())
	}
	dir := t.TempDir()
	script, suite := filepath.Join(dir, "homes.lua"), filepath.Join(dir, "suite")
	if err := os.WriteFile(script, []byte(homesScript), 0o644); err != nil {
		t.Fatal(err)
	}
	folder, err := buildTest(context.Background(), "../../runtime/session/contract", suite)
	if err != nil {
		t.Fatal(err)
	}
	k, _ := getKernel(cache, newer)
	m := machine{virtio: 2, queues: 2, memory: 1536, dir: folder, env: []string{"DAQIRI_TEST_DEVICES=eth0,eth1"}}
	o := try(t, k, m, quote(build(t, "./cmd/daqiri-run"))+` --summary full `+quote(script)+` 2>&1
		ethtool -S eth1
		exec `+quote(suite)+` `+strings.Join(quoted(contract("zero-copy")), " "))
	if passed := count(o.stdout, `    --- PASS: \w+/zero-copy/`); o.code != 0 || o.err != nil || passed < 20 {
		t.Errorf("exit code %d, %v, %d tests passed\n%s", o.code, o.err, passed, o.stderr)
	}
	for _, want := range []string{
		"AF_XDP on eth1: zero-copy", "queue rx0: direct: packets from NIC queue 0 stay", "queue rx1: direct: packets from NIC queue 1 stay",
		"rx0: 50 in, 10 copied", "rx1: 35 in, 5 copied", "rx0_xdp_redirects: 45", "rx1_xdp_redirects: 40",
	} {
		if !strings.Contains(o.stdout, want) {
			t.Errorf("the machine does not say %q", want)
		}
	}
	if t.Failed() {
		t.Log(o.stdout)
	}
}
