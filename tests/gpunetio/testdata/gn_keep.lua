-- A kernel takes 5 of 12 packets, gives none of them back, and ends: prints what it received, and what was left behind.
local daqiri = require "daqiri"
local args = daqiri.args{ memory = "host", beside = false }
local memory = args.memory == "host" and "host" or nil -- of regions and arrays
local function queue(name, region) return { name = name, id = 0, cpu_core = -1, batch_size = 8, memory_regions = { region } } end
local function region(name) return { name = name, kind = "host_pinned", affinity = 0, num_bufs = 64, buf_size = 2048 } end
local into = queue("rx", "in")
into.timeout_us = 1000
local s = daqiri.open({ version = 1, stream_type = "raw", master_core = 0, loopback = { mode = "sw", clock = "real" },
  memory_regions = { region("out"), region("in") },
  interfaces = { { name = "gpu", address = "a", tx = { queues = { queue("tx", "out") } }, rx = { queues = { into } } } } }, { memory = memory })
local k = daqiri.kernel{ name = "keep", persistent = true, memory = args.memory, grid = 1, block = 1, rings = { tx = 256, rx = 256 }, src = [[
#include "gn.h"
__global__ void keep(void *context, volatile unsigned long long *words)
{
    gn_side side;
    gn_rx rx;
    gn_u64 first;
    gn_u32 n;
    if (gn_open(&side, context) != GN_OK || gn_rx_open(&rx, &side, 0) != GN_OK) return;
    while (words[0] < 5 && gn_recv(&rx, GN_BY_THREAD, 1, GN_LIMIT, &first, &n, 0) == GN_OK) words[0] += n;
    while (words[1] == 0) gn_beat(&side);
}
]] }
-- Another kernel on the GPU keeps this one in the program's process.
local beside = args.beside and daqiri.kernel{ name = "beside", memory = args.memory, grid = 1, block = 1, src = "__global__ void beside(int n) {}" }
local words = daqiri.array{ kind = "host_pinned", memory = memory, type = "uint64", shape = 2 }
local tx, deadline = s:tx_queue("gpu"), 60
s:start()
k:start{ tx = tx, rx = s:rx_queue("gpu"), args = { "context", words } }
for _ = 1, 3 do
  local b = tx:alloc(4)
  b:fill(tx:template{ udp_dst = 4096, payload = ("x"):rep(58) })
  assert(tx:send(b))
end
for _ = 1, deadline * 100 do
  if words:get(1) == 5 and s:stats().keep.rx["in"] == 12 then break end
  daqiri.sleep(0.01)
end
words:set(2, 1)
assert(k:wait{ timeout = deadline } and k:stop{ timeout = deadline })
local line = s:stats().keep.rx
print(("in %d, out %d of %d bytes, stopped %d, held %d"):format(line["in"], line.out, line.out_bytes, line.dropped_by.stopped, line.held))
s:close()
