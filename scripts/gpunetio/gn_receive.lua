-- gn_receive.lua: a kernel receives packets itself (GPU-initiated networking): a warp takes descriptors from its receive ring; all its
-- threads read the packets in place and release them. For each batch it notifies the script through a semaphore.
--   daqiri-run gn_receive.lua                  the kernel runs on the CPU: needs a C++ or C compiler
--   daqiri-run gn_receive.lua --memory gpu     on a GPU: needs NVRTC
local daqiri = require "daqiri"
local args = daqiri.args{ packets = 4000, payload = 200, memory = "host" }

local s = daqiri.open({ version = 1, stream_type = "raw", master_core = 0, loopback = { mode = "sw", clock = "real" },
  memory_regions = {
    { name = "out", kind = "host", affinity = 0, num_bufs = 256, buf_size = 512 },
    { name = "in", kind = "host_pinned", affinity = 0, num_bufs = 8192, buf_size = 512 } }, -- the most packets that may wait for the kernel
  interfaces = {
    { name = "instrument", address = "a", tx = { queues = { { name = "tx", id = 0, cpu_core = -1, batch_size = 64, memory_regions = { "out" } } } } },
    { name = "gpu", address = "b", rx = { queues = { { name = "rx", id = 0, cpu_core = -1, batch_size = 64, timeout_us = 50, memory_regions = { "in" } } } } } } },
  { memory = args.memory == "host" and "host" or nil })

local k = daqiri.kernel{ name = "receiver", persistent = true, rings = { rx = 256, semaphores = 16 }, grid = 1, block = 32, src = [[
#include "gn.h"
__global__ void receiver(void *context, unsigned long long *sums)
{
    gn_side side;
    gn_rx rx;
    gn_sem done;
    gn_u64 first;
    gn_u32 n;
    if (gn_open(&side, context) != GN_OK || gn_rx_open(&rx, &side, 0) != GN_OK || gn_sem_open(&done, &side, 0) != GN_OK) return;
    for (;;) {
        int status = gn_recv(&rx, GN_BY_WARP, 32, GN_LIMIT, &first, &n, 0);
        if (status == GN_TIMEOUT) continue;
        if (status != GN_OK) break; // GN_ABORTED: k:stop()
        if (threadIdx.x < n) {
            gn_packet p;
            if (gn_rx_read(&rx, first + threadIdx.x, &p) == GN_OK) {
                const unsigned char *bytes = (const unsigned char *)gn_pointer(&side, p.place);
                unsigned long long number = 0;
                for (int k = 42; k < 46; k++) number = number << 8 | bytes[k];
                atomicAdd(&sums[0], number); // the packet's number
                atomicAdd(&sums[1], (unsigned long long)p.bytes);
                atomicAdd(&sums[2], 1ull);
            }
        }
        gn_release(&rx, GN_BY_WARP, first, n);
        if (threadIdx.x == 0) gn_sem_push(&done, first, n, GN_LIMIT, 0);
    }
}
]] }

local sums = daqiri.array{ kind = "host_pinned", type = "uint64", shape = 3 }
k:start{ rx = s:rx_queue("gpu"), semaphores = 1, policy = "wait", args = { "context", sums } }
local counted, next_ticket, gaps = 0, 0, 0
k.semaphores[1]:on_ready(function(first, count)
  if first ~= next_ticket then gaps = gaps + 1 end
  next_ticket, counted = first + count, counted + count
  if counted == args.packets then s:stop() end
end)

local tx = s:tx_queue("instrument")
tx:transmit{ template = tx:template{ udp_dst = 7148, payload_bytes = args.payload, vary = { { at = "payload", bit_offset = 0, bit_width = 32, step = 1 } } },
  count = args.packets }
s:run{ seconds = 100 }
k:stop()
local n = args.packets
print(("%d packets of %d bytes, sum of numbers %d"):format(sums:get(3), sums:get(2) / sums:get(3), sums:get(1)))
print(("%d packets counted by the semaphore, %d gaps, %d descriptors"):format(counted, gaps, k.received))
local ring = s:stats().receiver.rx
print(("ring: in %d, out %d, held %d"):format(ring["in"], ring.out, ring.held))
assert(sums:get(1) == n * (n - 1) / 2 and counted == n and gaps == 0)
