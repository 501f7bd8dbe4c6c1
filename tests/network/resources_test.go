package network

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
	"github.com/daqiri/daqiri-run/tests/tree"
)

// resourcesScript receives numbered datagrams. A second queue is added ten times and takes them over meanwhile, in a
// region that comes and goes with it where the engine has such. It prints how many numbers are missing or came twice,
// and whether both queues had some.
const resourcesScript = `
local daqiri = require "daqiri"
local args = daqiri.args{ device = "", engine = "", regions = true }
local regions = { { name = "m", kind = "host", affinity = 0, num_bufs = 4096, buf_size = 2048 } }
local late = { name = "late", kind = "host", affinity = 0, num_bufs = 1024, buf_size = 2048 }
if not args.regions then regions[2] = late end
local first = { name = "rx", id = 0, cpu_core = -1, batch_size = 32, timeout_us = 200, memory_regions = { "m" } }
local s = daqiri.open{ version = 1, stream_type = "raw", master_core = 0, memory_regions = regions,
  interfaces = { { name = "b", address = args.device, engine = args.engine ~= "" and args.engine or nil, rx = { queues = { first } } } } }
local b, seen, low, high, twice, count = s:interface("b"), {}, math.huge, 0, 0, { 0, 0 }
local function take(who) return function(x)
  local data = x:select("udp_dst == 7148")
  for i = 1, data and data.n or 0 do
    local n = data:packet(i):u32(14 + 20 + 8 + 4)
    twice = twice + (seen[n] and 1 or 0)
    seen[n], low, high, count[who] = true, math.min(low, n), math.max(high, n), count[who] + 1
  end
end end
s:rx_queue("b", 0):on_burst(take(1))
s:start()
while count[1] < 50 do daqiri.sleep("10ms") end -- before its bind a packet socket gets packets, and during it none
low = high
for life = 1, 10 do
  if args.regions then assert(s:add_region(late)) end
  local q = assert(b:add_rx_queue{ name = "more", id = 1, cpu_core = -1, batch_size = 32, timeout_us = 200, memory_regions = { "late" } })
  q:on_burst(take(2))
  assert(b:add_flows("f", { { name = "all", match = { udp_dst = 7148 }, action = { type = "queue", id = 1 } } }))
  local had = count[2]
  while count[2] < had + 50 do daqiri.sleep("1ms") end
  b:delete_flows("f")
  local now = count[1]
  while count[1] < now + 50 do daqiri.sleep("1ms") end -- what the second queue has arrives meanwhile
  assert(assert(q:delete()):wait{ timeout = 10 })
  if args.regions then assert(assert(s:delete_region("late")):wait{ timeout = 10 }) end
end
local missing = 0
for n = low, high do missing = missing + (seen[n] and 0 or 1) end
local line = s:stats().b
print(missing, twice, count[1] > 500, count[2] >= 500, line.rx.dropped)
`

// TestQueuesComeAndGo checks that no engine loses a datagram while a second queue is added and deleted.
func TestQueuesComeAndGo(t *testing.T) {
	for _, e := range []struct{ name, queues, device, regions string }{
		{"packet", "1", "veth0", "true"},
		{"xdp", "4", "veth0", "false"},
		{"dpdk", "1", "vdev:net_af_packet0,iface=veth0", "true"},
	} {
		t.Run(e.name, func(t *testing.T) {
			if e.name == "dpdk" {
				harness.Need(t, "dpdk")
				t.Setenv("DAQIRI_DPDK", filepath.Join(tree.Root, "libdaqiri_dpdk.so"))
			}
			engine := strings.TrimPrefix(e.name, "dpdk") // its address selects it
			comeAndGo(t, cableOf(t, e.queues), "--device", e.device, "--engine", engine, "--regions="+e.regions)
		})
	}
}

// comeAndGo runs resourcesScript at the receiving end of a cable.
func comeAndGo(t *testing.T, c *cable, args ...string) {
	program, dir := harness.Built(t), t.TempDir()
	script := filepath.Join(dir, "resources.lua")
	if err := os.WriteFile(script, []byte(resourcesScript), 0o644); err != nil {
		t.Fatal(err)
	}
	c.permanent() // AF_XDP takes ARP away from the kernel
	sender := c.Command(c.Send, "python3", "-c", endlessSender, "1000")
	if err := sender.Start(); err != nil {
		t.Fatal(err)
	}
	defer sender.Wait()
	defer sender.Process.Kill()
	if got := strings.Fields(c.In(c.Recv, append([]string{program, "--summary", "none", script}, args...)...)); strings.Join(got, " ") != "0 0 true true 0" {
		t.Errorf("missing, twice, first queue, second queue, dropped: %v, want 0 0 true true 0", got)
	}
}
