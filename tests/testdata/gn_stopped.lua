-- A kernel sends and waits until it is told to end, and says how its waits ended. The program is stopped meanwhile.
local daqiri = require "daqiri"
local LIMIT_MS = 200
local s = daqiri.open({ version = 1, stream_type = "raw", master_core = 0, loopback = { mode = "sw", clock = "real" },
  memory_regions = { { name = "out", kind = "host_pinned", affinity = 0, num_bufs = 64, buf_size = 2048 } },
  interfaces = { { name = "gpu", address = "a", tx = { queues = { { name = "q", id = 0, cpu_core = -1, batch_size = 64, memory_regions = { "out" } } } } } } }, { memory = "host" })
local k = daqiri.kernel{ name = "sender", persistent = true, memory = "host", grid = 1, block = 1, rings = { tx = 8 }, src = [[
#include "gn.h"
// said: whether it is to end; waits that were in time; that ended at their limit, and the ns of the longest; that ended otherwise
__global__ void sender(void *port, unsigned long long *said)
{
    gn_side side;
    gn_tx tx;
    if (gn_open(&side, port) != GN_OK || gn_tx_open(&tx, &side, 0) != GN_OK) return;
    while (!*(volatile unsigned long long *)&said[0]) {
        gn_u64 ticket, from = gn_now();
        int err = gn_send(&tx, GN_BY_THREAD, gn_place(0, 0), 64, 0, 0, GN_LIMIT, &ticket);
        if (err == GN_OK) from = gn_now(), err = gn_wait(&tx, ticket, GN_LIMIT);
        gn_u64 took = gn_now() - from;
        said[err == GN_OK ? 1 : err == GN_TIMEOUT ? 2 : 4]++;
        if (err == GN_ABORTED) return;
        if (err == GN_TIMEOUT && took > said[3]) said[3] = took;
    }
}
]] }
local said = daqiri.array{ kind = "host_pinned", type = "uint64", shape = 5 }
s:start()
k:start{ tx = s:tx_queue("gpu"), limit = LIMIT_MS .. "ms", args = { "port", said } }
print("ready")
for _ = 1, 300 do
  if said:get(3) >= 3 then break end
  daqiri.sleep(0.1)
end
said:set(1, 1)
assert(k:wait{ timeout = 60 })
k:stop()
print(daqiri.json{ in_time = said:get(2), at_limit = said:get(3), longest_ms = said:get(4) / 1e6, other = said:get(5), restarted = k.restarted,
  posted = k.posted, completed = k.completed })
