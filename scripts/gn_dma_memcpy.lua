-- gn_dma_memcpy.lua: a kernel has the proxy copy memory from one region to another (as DMA queues do for GPUNetIO), waits for the end of
-- each copy and compares.
--   daqiri-run gn_dma_memcpy.lua                   the kernel runs on the CPU: it takes a C++ or C compiler
--   daqiri-run gn_dma_memcpy.lua --memory gpu      on a GPU: it takes NVRTC
local daqiri = require "daqiri"
local args = daqiri.args{ copies = 16, bytes = 1048576, memory = "host" }

local s = daqiri.open({ version = 1, stream_type = "raw", master_core = 0, loopback = { mode = "sw", clock = "real" },
  memory_regions = {
    { name = "frames", kind = "host_pinned", affinity = 0, num_bufs = 64, buf_size = 64 },
    { name = "from", kind = "host_pinned", affinity = 0, num_bufs = 1, buf_size = args.bytes },
    { name = "to", kind = "host_pinned", affinity = 0, num_bufs = 1, buf_size = args.bytes } },
  interfaces = { { name = "link", address = "loop0", tx = { queues = { { name = "tx", id = 0, cpu_core = -1, batch_size = 32, memory_regions = { "frames" } } } } } } },
  { memory = args.memory == "host" and "host" or nil })

local k = daqiri.kernel{ name = "copier", persistent = true, rings = { tx = 16, ops = { "copy" } }, grid = 1, block = 1, src = [[
#include "gn.h"
__global__ void copier(void *port, unsigned int from, unsigned int to, unsigned int copies, unsigned int bytes, unsigned long long *result)
{
    gn_side side;
    gn_tx tx;
    gn_u64 ticket;
    if (gn_open(&side, port) != GN_OK || gn_tx_open(&tx, &side, 0) != GN_OK) return;
    unsigned char *p = (unsigned char *)gn_pointer(&side, gn_place(from, 0));
    const volatile unsigned char *q = (const volatile unsigned char *)gn_pointer(&side, gn_place(to, 0));
    for (unsigned int n = 0; n < copies; n++) {
        for (unsigned int i = 0; i < bytes; i++) p[i] = (unsigned char)(n * 31 + i * 7);
        int said = gn_copy(&tx, GN_BY_THREAD, gn_place(to, 0), gn_place(from, 0), bytes, GN_LIMIT, &ticket);
        if (said == GN_OK) said = gn_wait(&tx, ticket, GN_LIMIT);
        result[0] += said == GN_OK;
        for (unsigned int i = 0; i < bytes; i++) result[1] += q[i] != (unsigned char)(n * 31 + i * 7);
    }
}
]] }
local result = daqiri.array{ kind = "host_pinned", type = "uint64", shape = 2 }
s:start()
k:start{ tx = s:tx_queue("link"), regions = { "from", "to" }, args = { "port", "from", "to", args.copies, args.bytes, result } }
assert(k:wait{ timeout = 60 })
k:stop()
print(("%d copies of %d bytes done, %d bytes differ, %d refused"):format(result:get(1), args.bytes, result:get(2), k.refused))
assert(result:get(1) == args.copies and result:get(2) == 0)
