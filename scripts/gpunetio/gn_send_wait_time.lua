-- gn_send_wait_time.lua: a kernel sends bursts of packets, each burst at a time of its own: the queue keeps packets until then. The receiver records when
-- they arrive. The kernel has the shape of DOCA's sample gpunetio_send_wait_time.
--   daqiri-run gn_send_wait_time.lua                     a kernel on the CPU: needs a C++ compiler
--   daqiri-run gn_send_wait_time.lua --interval 100      from one burst to the next, in ms
--   daqiri-run gn_send_wait_time.lua --late              also prints how exactly they left
--   daqiri-run gn_send_wait_time.lua --memory gpu        on a GPU: needs NVRTC
local daqiri = require "daqiri"
local args = daqiri.args{
  bursts = 8,
  interval = { 40, unit = "ms", help = "from one burst to the next" },
  ahead = { 50, unit = "ms", help = "from now to the first" },
  late = false, memory = "host" }
local s = daqiri.open("gn_net.yaml", { memory = args.memory == "host" and "host" or nil })

local PACKETS, BYTES = 32, 1024 -- of a burst, of a packet
local k = daqiri.kernel{ name = "pulses", entry = "send_wait_time", persistent = true, rings = { tx = 1024 }, grid = 1, block = PACKETS, src = [[
#include <doca_gpunetio_dev_eth_txq.cuh>

__global__ void send_wait_time(struct doca_gpu_eth_txq *txq, uint8_t *buffers, uint32_t mkey, uint32_t stride, uint32_t bytes,
                               const unsigned long long *times, uint32_t bursts, unsigned long long *failed)
{
    bool last = threadIdx.x == blockDim.x - 1;
    doca_gpu_dev_eth_ticket_t ticket;
    uint32_t done = 0;

    for (uint32_t burst = 0; burst < bursts; burst++) {
        uint8_t *frame = buffers + (uint64_t)(burst * blockDim.x + threadIdx.x) * stride;
        for (uint32_t k = 0; k < bytes; k++) frame[k] = k < 6 ? 255 : k == 12 ? 0x88 : k == 13 ? 0xb5 : burst;
        __threadfence_system();
        doca_gpu_dev_eth_txq_wait_send<DOCA_GPUNETIO_ETH_RESOURCE_SHARING_MODE_GPU, DOCA_GPUNETIO_ETH_SYNC_SCOPE_GPU, DOCA_GPUNETIO_ETH_NIC_HANDLER_AUTO,
                                       DOCA_GPUNETIO_ETH_EXEC_SCOPE_WARP>(txq, times[burst], (uint64_t)frame, mkey, bytes,
                                                                          last ? DOCA_GPUNETIO_ETH_SEND_FLAG_NOTIFY : DOCA_GPUNETIO_ETH_SEND_FLAG_NONE, &ticket);
    }
    if (last && doca_gpu_dev_eth_txq_poll_completion(txq, bursts, DOCA_GPUNETIO_ETH_WAIT_FLAG_B, &done) != DOCA_SUCCESS) failed[0]++;
    if (last && done != bursts) failed[0]++;
}
]] }

local failed = daqiri.array{ kind = "host_pinned", type = "uint64", shape = 1 }
local times = daqiri.array{ kind = "host_pinned", type = "uint64", shape = args.bursts }
local first -- arrival of the first burst at the earliest, ns of the session's clock
local received, early, disorder, now = 0, 0, 0, 0
s:rx_queue("net"):on_burst(function(b)
  local at = b:rx_timestamps()
  for i = 1, b.n do
    local burst = b:packet(i):u8(14)
    if burst < now then disorder = disorder + 1 end
    if at[i] < first + burst * args.interval * 1e6 then early = early + 1 end
    now, received = burst, received + 1
  end
  if received == args.bursts * PACKETS then s:stop() end
end, { policy = "wait" })

s:start()
first = s:clock() + args.ahead * 1e6
local start = daqiri.time "now" + args.ahead * 1e-3
for n = 1, args.bursts do times:set(n, (start + (n - 1) * args.interval * 1e-3).nic) end
k:start{ tx = s:tx_queue("gpu"), args = { { txq = 1 }, { address = "answers" }, { key = "answers" }, s:region("answers").stride, BYTES, times, args.bursts, failed } }
s:run{ seconds = 100 }
assert(k:wait{ timeout = 100 })
k:stop()
local tx = s:stats().gpu.tx
print(("%d packets came, %d with a time; %d out of order, %d before their time, %d failed calls"):format(received, tx.timed, disorder, early, failed:get(1)))
if args.late then print(("%d late; off by %d ns (99 %%), %d at most"):format(tx.late, tx.time_error.p99, tx.time_error.max)) end
assert(received == args.bursts * PACKETS and disorder == 0 and early == 0 and failed:get(1) == 0)
