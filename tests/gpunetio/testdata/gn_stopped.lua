-- A kernel sends and waits until it is told to end, and says how its waits ended. The program is stopped meanwhile.
local daqiri = require "daqiri"
local LIMIT_MS = 200
local s = daqiri.open({ version = 1, stream_type = "raw", master_core = 0, loopback = { mode = "sw", clock = "real" },
  memory_regions = { { name = "out", kind = "host_pinned", affinity = 0, num_bufs = 64, buf_size = 2048 } },
  interfaces = { { name = "gpu", address = "a", tx = { queues = { { name = "q", id = 0, cpu_core = -1, batch_size = 64, memory_regions = { "out" } } } } } } }, { memory = "host" })
local k = daqiri.kernel{ name = "sender", persistent = true, memory = "host", grid = 1, block = 1, rings = { tx = 8 }, src = [[
#include "gn.h"
#include <time.h>
static gn_u64 ran(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (gn_u64)t.tv_sec * 1000000000 + (gn_u64)t.tv_nsec;
}
// said: whether it is to end; waits that were in time; that ended at their limit, and the ns of the longest; that ended otherwise; the ns that the longest of
// those at their limit ran; how many of those took a tenth more than the limit at most
__global__ void sender(void *context, unsigned long long limit, unsigned long long *said)
{
    gn_side side;
    gn_tx tx;
    if (gn_open(&side, context) != GN_OK || gn_tx_open(&tx, &side, 0) != GN_OK) return;
    while (!*(volatile unsigned long long *)&said[0]) {
        gn_u64 ticket, from = gn_now(), cpu = ran();
        int err = gn_send(&tx, GN_BY_THREAD, gn_place(0, 0), 64, 0, 0, GN_LIMIT, &ticket);
        if (err == GN_OK) from = gn_now(), cpu = ran(), err = gn_wait(&tx, ticket, GN_LIMIT);
        gn_u64 took = gn_now() - from;
        cpu = ran() - cpu;
        said[err == GN_OK ? 1 : err == GN_TIMEOUT ? 2 : 4]++;
        if (err == GN_ABORTED) return;
        if (err != GN_TIMEOUT) continue;
        if (took > said[3]) said[3] = took;
        if (cpu > said[5]) said[5] = cpu;
        said[6] += took <= limit + limit / 10;
    }
}
]] }
local said = daqiri.array{ kind = "host_pinned", type = "uint64", shape = 7 }
s:start()
k:start{ tx = s:tx_queue("gpu"), limit = LIMIT_MS .. "ms", args = { "context", LIMIT_MS * 1000000, said } }
print("ready")
for _ = 1, 300 do
  if said:get(3) >= 3 then break end
  daqiri.sleep(0.1)
end
said:set(1, 1)
assert(k:wait{ timeout = 60 })
k:stop{ timeout = 60 }
print(daqiri.json{ in_time = said:get(2), at_limit = said:get(3), longest_ms = said:get(4) / 1e6, longest_run_ms = said:get(6) / 1e6, within = said:get(7), other = said:get(5), restarted = k.restarted,
  posted = k.posted, completed = k.completed })
