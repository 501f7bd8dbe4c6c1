package suite

import (
	"fmt"
	"testing"

	"github.com/daqiri/daqiri-run/bindings"
)

// busyHandler sends 200 packets to a handler that is busy in its first call until a packet was dropped or a number of 5 ms periods have passed,
// and prints the dropped and received counts.
const busyHandler = `
local daqiri, t = require "daqiri", require "check"
local function region(name) return { name = name, kind = "host", affinity = 0, num_bufs = 4096, buf_size = 256 } end
local s = daqiri.open{
  version = 1, stream_type = "raw", master_core = 0, loopback = "sw", memory_regions = { region "out", region "in" },
  interfaces = { { name = "a", address = "loop0",
    rx = { queues = { { name = "r0", id = 0, cpu_core = -1, batch_size = 1, memory_regions = { "in" } } } },
    tx = { queues = { { name = "t0", id = 0, cpu_core = -1, batch_size = 8, memory_regions = { "out" } } } } } } }
local seen, looks, most = 0, 0, %s
s:rx_queue("a"):on_burst(function(b)
  for _ = 1, seen == 0 and 4000 or 0 do -- of 5 ms; a longer wait has no effect
    local till = s:clock() + 5e6
    while s:clock() < till do end
    looks = looks + 1
    if s:stats().on_burst1.dropped > 0 or looks == most then break end
  end
  seen = seen + b.n
end%s)
s:start()
for _ = 1, 25 do t.send(s:tx_queue("a"), 8, { payload_bytes = 18 }) end
local sum = s:stop()
print(sum.on_burst1.dropped > 0, sum.on_burst1.dropped + seen, sum.a.rx.dropped)
`

// TestPolicyOfOnBurst checks that a handler loses packets only if its policy allows it.
func TestPolicyOfOnBurst(t *testing.T) {
	const waits, drops = "false\t200\t0\n", "true\t200\t0\n"
	for _, c := range []struct{ looks, options, want string }{
		{"60", "", waits}, {"60", `, { policy = "wait" }`, waits}, {"4000", `, { policy = "drop" }`, drops},
	} {
		o := run(t, "policy.lua", fmt.Sprintf(busyHandler, c.looks, c.options), func(rt *bindings.Runtime) { prepare(t, rt, "policy.lua", "real") })
		if o.err != nil || o.out != c.want {
			t.Errorf("on_burst(fn%s): %q, want %q: %v", c.options, o.out, c.want, o.err)
		}
		balanced(t, o)
	}
}
