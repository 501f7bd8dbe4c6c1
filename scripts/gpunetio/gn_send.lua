-- gn_send.lua: a kernel sends packets itself (GPU-initiated networking): it writes frames into a region and posts a descriptor for each
-- into its transmit ring; the proxy, on the queue's worker, passes them to the engine. The receiver counts packets and checks every byte.
--   daqiri-run gn_send.lua                     the kernel runs on the CPU: needs a C++ or C compiler
--   daqiri-run gn_send.lua --memory gpu        on a GPU: needs NVRTC
local daqiri = require "daqiri"
local args = daqiri.args{ packets = 4000, bytes = 256, warps = 2, memory = "host" }

local function queue(name, region) return { name = name, id = 0, cpu_core = -1, batch_size = 64, memory_regions = { region } } end
local s = daqiri.open({ version = 1, stream_type = "raw", master_core = 0, loopback = { mode = "sw", clock = "real" },
  memory_regions = {
    { name = "frames", kind = "host_pinned", affinity = 0, num_bufs = 256, buf_size = 2048 },
    { name = "out", kind = "host_pinned", affinity = 0, num_bufs = 256, buf_size = 2048 },
    { name = "in", kind = "host", affinity = 0, num_bufs = 8192, buf_size = 2048 } }, -- the most packets that may wait for the script
  interfaces = {
    { name = "gpu", address = "a", tx = { queues = { queue("tx", "out") } } },
    { name = "receiver", address = "b", rx = { queues = { { name = "rx", id = 0, cpu_core = -1, batch_size = 64, timeout_us = 50, memory_regions = { "in" } } } } } } },
  { memory = args.memory == "host" and "host" or nil })

-- Each thread sends every n-th packet. The kernel may reuse a buffer once its ticket is complete.
local k = daqiri.kernel{ name = "sender", persistent = true, rings = { tx = 64 }, grid = 1, block = 32 * args.warps, src = [[
#include "gn.h"
__device__ void fill(unsigned char *p, unsigned int bytes, unsigned int number)
{
    for (unsigned int k = 0; k < bytes; k++) p[k] = (unsigned char)(number + k);
    for (unsigned int k = 0; k < 6; k++) p[k] = 255;
    p[12] = 0x88;
    p[13] = 0xb5;
    for (unsigned int k = 0; k < 4; k++) p[14 + k] = (unsigned char)(number >> (24 - 8 * k));
}

__global__ void sender(void *context, unsigned int region, unsigned int stride, unsigned int packets, unsigned int bytes, unsigned long long *failed)
{
    gn_side side;
    gn_tx tx;
    gn_u64 ticket = 0;
    unsigned int threads = gridDim.x * blockDim.x, me = blockIdx.x * blockDim.x + threadIdx.x, sent = 0, wrong = 0;
    if (gn_open(&side, context) != GN_OK || gn_tx_open(&tx, &side, 0) != GN_OK) {
        atomicAdd(failed, 1ull);
        return;
    }
    for (unsigned int n = me; n < packets; n += threads) {
        gn_u64 place = gn_place(region, (gn_u64)me * stride);
        if (sent > 0) wrong += gn_wait(&tx, ticket, GN_LIMIT) != GN_OK;
        fill((unsigned char *)gn_pointer(&side, place), bytes, n);
        wrong += gn_send(&tx, GN_BY_THREAD, place, bytes, 0, 0, GN_LIMIT, &ticket) != GN_OK;
        sent++;
    }
    if (wrong > 0) atomicAdd(failed, (unsigned long long)wrong);
}
]] }

local seen, wrong, got = {}, 0, 0
s:rx_queue("receiver"):on_burst(function(b)
  for i = 1, b.n do
    local p = b:packet(i)
    local number = p:u32(14)
    local bytes, same = p:bytes(18, args.bytes - 18), not seen[number] and p.length == args.bytes
    for at = 1, #bytes, 61 do same = same and bytes:byte(at) == (number + 17 + at) % 256 end
    seen[number] = true
    got = got + 1
    if not same then wrong = wrong + 1 end
    if got == args.packets then s:stop() end
  end
end, { policy = "wait" })

local failed = daqiri.array{ kind = "host_pinned", type = "uint64", shape = 1 }
s:start()
k:start{ tx = s:tx_queue("gpu"), regions = { "frames" }, args = { "context", "frames", s:region("frames").stride, args.packets, args.bytes, failed } }
assert(k:wait{ timeout = 100 })
k:stop()
s:run{ seconds = 100 }
local l = s:stats()
print(("%d packets posted, %d completed, %d refused, %d failed calls"):format(k.posted, k.completed, k.refused, failed:get(1)))
print(("%d packets received, %d of them wrong"):format(got, wrong))
local ring = l.sender.tx
print(("ring: in %d, out %d, held %d"):format(ring["in"], ring.out, ring.held))
assert(got == args.packets and wrong == 0 and k.fault == nil)
