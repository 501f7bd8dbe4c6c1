-- gn_dark.lua: a kernel asks for copies between a region that the CPU reaches and one that it doesn't, which it writes itself.
local daqiri = require "daqiri"
local s = daqiri.open{ version = 1, stream_type = "raw", master_core = 0, loopback = { mode = "sw", clock = "real" },
  memory_regions = { { name = "frames", kind = "host_pinned", affinity = 0, num_bufs = 64, buf_size = 64 },
    { name = "lit", kind = "host_pinned", affinity = 0, num_bufs = 1, buf_size = 4096 }, { name = "dark", kind = "device", affinity = 0, num_bufs = 1, buf_size = 4096 } },
  interfaces = { { name = "link", address = "loop0", tx = { queues = { { name = "tx", id = 0, cpu_core = -1, batch_size = 32, memory_regions = { "frames" } } } } } } }
local k = daqiri.kernel{ name = "copier", persistent = true, rings = { tx = 16, ops = { "copy" } }, grid = 1, block = 1, src = [[
#include "gn.h"
__global__ void copier(void *context, unsigned int lit, unsigned int dark, unsigned long long *said)
{
    gn_side side;
    gn_tx tx;
    gn_u64 ticket;
    if (gn_open(&side, context) != GN_OK || gn_tx_open(&tx, &side, 0) != GN_OK) return;
    volatile unsigned char *there = (unsigned char *)gn_pointer(&side, gn_place(dark, 0));
    there[4095] = 41;
    said[3] = there[4095] + 1;
    for (int k = 0; k < 3; k++) {
        said[k] = 99;
        if (gn_copy(&tx, GN_BY_THREAD, gn_place(k == 0 ? dark : lit, k == 2 ? 2048 : 0), gn_place(k == 1 ? dark : lit, 0), 1024, GN_LIMIT, &ticket) == GN_OK) said[k] = gn_wait(&tx, ticket, GN_LIMIT);
    }
}
]] }
local said = daqiri.array{ kind = "host_pinned", type = "uint64", shape = 4 }
s:start()
k:start{ tx = s:tx_queue("link"), regions = { "lit", "dark" }, limit = "20s", timers = true, args = { "context", "lit", "dark", said } }
assert(k:wait{ timeout = 60 })
print("said", said:get(1), said:get(2), said:get(3), said:get(4), k.fault, s:stats().copier.tx.dropped)
k:stop{ timeout = 60 }
