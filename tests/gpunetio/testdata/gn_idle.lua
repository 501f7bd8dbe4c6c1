-- A kernel with rings of both kinds that has nothing to do; the program rests beside it.
local daqiri = require "daqiri"
local args = daqiri.args{ seconds = 60, memory = "host" }
local function queue(name, region) return { name = name, id = 0, cpu_core = -1, batch_size = 64, memory_regions = { region } } end
local function region(name) return { name = name, kind = "host_pinned", affinity = 0, num_bufs = 64, buf_size = 2048 } end
local into = queue("rx", "in")
into.timeout_us = 1000
local s = daqiri.open({ version = 1, stream_type = "raw", master_core = 0, loopback = { mode = "sw", clock = "real" },
  memory_regions = { region("out"), region("in") },
  interfaces = { { name = "gpu", address = "a", tx = { queues = { queue("tx", "out") } }, rx = { queues = { into } } } } }, { memory = "host" })
local k = daqiri.kernel{ name = "idle", persistent = true, memory = args.memory, grid = 1, block = 1, rings = { tx = 256, rx = 256 }, src = [[
#include "gn.h"
#include <unistd.h>
__global__ void idle(void *context)
{
    gn_side side;
    gn_rx rx;
    gn_u64 first;
    gn_u32 n;
    if (gn_open(&side, context) != GN_OK || gn_rx_open(&rx, &side, 0) != GN_OK) return;
    while (gn_recv(&rx, GN_BY_THREAD, 1, 0, &first, &n, 0) == GN_AGAIN) {
        usleep(10000); // as one on a GPU would take no time of the CPU
        gn_beat(&side);
    }
}
]] }
s:start()
k:start{ tx = s:tx_queue("gpu"), rx = s:rx_queue("gpu") }
s:after(0, function() print("ready") end)
s:run{ seconds = args.seconds }
print(k:stop())
