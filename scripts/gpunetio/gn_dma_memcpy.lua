-- gn_dma_memcpy.lua: a kernel requests memory copies between regions from the proxy (like DMA queues of GPUNetIO), waits for the
-- completion of each copy and compares the data.
--   daqiri-run gn_dma_memcpy.lua                   the kernel runs on the CPU: needs a C++ or C compiler
--   daqiri-run gn_dma_memcpy.lua --memory gpu      on a GPU: needs NVRTC
local daqiri = require "daqiri"
local args = daqiri.args{ copies = 16, bytes = 1048576, memory = "host" }
assert(args.bytes % 16 == 0, "--bytes: a multiple of 16, got " .. args.bytes)

local s = daqiri.open({ version = 1, stream_type = "raw", master_core = 0, loopback = { mode = "sw", clock = "real" },
  memory_regions = {
    { name = "frames", kind = "host_pinned", affinity = 0, num_bufs = 64, buf_size = 64 },
    { name = "from", kind = "host_pinned", affinity = 0, num_bufs = 1, buf_size = args.bytes },
    { name = "to", kind = "host_pinned", affinity = 0, num_bufs = 1, buf_size = args.bytes } },
  interfaces = { { name = "link", address = "loop0", tx = { queues = { { name = "tx", id = 0, cpu_core = -1, batch_size = 32, memory_regions = { "frames" } } } } } } },
  { memory = args.memory == "host" and "host" or nil })

local k = daqiri.kernel{ name = "copier", persistent = true, rings = { tx = 16, ops = { "copy" } }, grid = 1, block = args.memory == "host" and 32 or 64, src = [[
#include "gn.h"
__device__ uint4 word_of(unsigned int copy, unsigned int k)
{
    uint4 w = { copy, k, copy * 2654435761u ^ k, ~k };
    return w;
}

__global__ void copier(void *context, unsigned int from, unsigned int to, unsigned int copies, unsigned int bytes, unsigned long long *result)
{
    gn_side side;
    gn_tx tx;
    gn_u64 ticket;
    if (gn_open(&side, context) != GN_OK || gn_tx_open(&tx, &side, 0) != GN_OK) return;
    uint4 *p = (uint4 *)gn_pointer(&side, gn_place(from, 0));
    const uint4 *q = (const uint4 *)gn_pointer(&side, gn_place(to, 0));
    for (unsigned int n = 0; n < copies; n++) {
        for (unsigned int k = threadIdx.x; k < bytes / 16; k += blockDim.x) p[k] = word_of(n, k);
        __threadfence_system();
        __syncthreads();
        if (threadIdx.x == 0) {
            int status = gn_copy(&tx, GN_BY_THREAD, gn_place(to, 0), gn_place(from, 0), bytes, GN_LIMIT, &ticket);
            if (status == GN_OK) status = gn_wait(&tx, ticket, GN_LIMIT);
            result[0] += status == GN_OK;
        }
        __syncthreads();
        for (unsigned int k = threadIdx.x; k < bytes / 16; k += blockDim.x) {
            uint4 is = q[k], want = word_of(n, k);
            if (is.x != want.x || is.y != want.y || is.z != want.z || is.w != want.w) atomicAdd(&result[1], 1ull);
        }
    }
}
]] }
local result = daqiri.array{ kind = "host_pinned", type = "uint64", shape = 2 }
s:start()
k:start{ tx = s:tx_queue("link"), regions = { "from", "to" }, args = { "context", "from", "to", args.copies, args.bytes, result } }
assert(k:wait{ timeout = 100 })
k:stop()
print(("%d copies of %d bytes done, %d words differ, %d refused"):format(result:get(1), args.bytes, result:get(2), k.refused))
assert(result:get(1) == args.copies and result:get(2) == 0)
