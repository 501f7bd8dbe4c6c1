-- gn_send_wait_time.lua: a kernel sets the send time of each of its packets (GPU-initiated networking): it posts them in advance, with
-- times of the session's clock, and the queue keeps them until then. The receiver records the arrival time of each.
--   daqiri-run gn_send_wait_time.lua                     the kernel runs on the CPU: needs a C++ or C compiler
--   daqiri-run gn_send_wait_time.lua --memory gpu        on a GPU: needs NVRTC
--   daqiri-run gn_send_wait_time.lua --late              also prints how exactly they left
local daqiri = require "daqiri"
local args = daqiri.args{
  packets = 400,
  step = { 100, unit = "us", help = "from one to the next" },
  ahead = { 50, unit = "ms", help = "from now to the first" },
  late = false, memory = "host" }

local s = daqiri.open({ version = 1, stream_type = "raw", master_core = 0, loopback = { mode = "sw", clock = "real" },
  memory_regions = {
    { name = "frames", kind = "host_pinned", affinity = 0, num_bufs = args.packets, buf_size = 256 },
    { name = "in", kind = "host", affinity = 0, num_bufs = 2048, buf_size = 256 } },
  interfaces = {
    { name = "gpu", address = "a", tx = { accurate_send = true, queues = { { name = "tx", id = 0, cpu_core = -1, batch_size = 32, memory_regions = { "frames" } } } } },
    { name = "receiver", address = "b", rx = { queues = { { name = "rx", id = 0, cpu_core = -1, batch_size = 32, timeout_us = 50, memory_regions = { "in" } } } } } } },
  { memory = args.memory == "host" and "host" or nil })

local k = daqiri.kernel{ name = "pulses", persistent = true, rings = { tx = 64 }, grid = 1, block = 1, src = [[
#include "gn.h"
__global__ void pulses(void *context, unsigned int region, unsigned int stride, unsigned int packets, unsigned long long start, unsigned long long step,
                       unsigned long long *failed)
{
    gn_side side;
    gn_tx tx;
    if (gn_open(&side, context) != GN_OK || gn_tx_open(&tx, &side, 0) != GN_OK) return;
    for (unsigned int n = 0; n < packets; n++) {
        gn_u64 place = gn_place(region, (gn_u64)n * stride);
        unsigned char *p = (unsigned char *)gn_pointer(&side, place);
        for (unsigned int k = 0; k < 64; k++) p[k] = k < 6 ? 255 : k == 12 ? 0x88 : k == 13 ? 0xb5 : 0;
        for (unsigned int k = 0; k < 4; k++) p[14 + k] = (unsigned char)(n >> (24 - 8 * k));
        if (gn_send(&tx, GN_BY_THREAD, place, 64, start + n * step, 0, 5000000000ull, 0) != GN_OK) failed[0]++;
    }
    if (gn_flush(&tx, 5000000000ull) != GN_OK) failed[0]++;
}
]] }

local came, order, early, first = 0, 0, 0, nil
local step = args.step * 1000
s:rx_queue("receiver"):on_burst(function(b)
  local at = b:rx_timestamps()
  for i = 1, b.n do
    local number = b:packet(i):u32(14)
    if number ~= came then order = order + 1 end
    if at[i] < first + number * step then early = early + 1 end
    came = came + 1
  end
  if came == args.packets then s:stop() end
end, { policy = "wait" })

local failed = daqiri.array{ kind = "host_pinned", type = "uint64", shape = 1 }
s:start()
first = math.floor(s:clock()) + args.ahead * 1000000
k:start{ tx = s:tx_queue("gpu"), args = { "context", "frames", s:region("frames").stride, args.packets, first, step, failed } }
s:run{ seconds = 100 }
assert(k:wait{ timeout = 100 })
k:stop()
local tx = s:stats().gpu.tx
print(("%d packets came, %d with a time; %d out of order, %d before their time, %d failed calls"):format(came, tx.timed, order, early, failed:get(1)))
if args.late then print(("%d late; off by %d ns (99 %%), %d at most"):format(tx.late, tx.time_error.p99, tx.time_error.max)) end
assert(came == args.packets and order == 0 and early == 0 and failed:get(1) == 0)
