-- gn_simple_send.lua: the threads of a kernel send a packet each, again and again, and one waits for their completion. The receiver counts the packets.
-- The kernel has the shape of DOCA's sample gpunetio_simple_send.
--   daqiri-run gn_simple_send.lua                     a kernel on the CPU: needs a C++ compiler
--   daqiri-run gn_simple_send.lua --scope block       the threads of a block send together (thread, warp)
--   daqiri-run gn_simple_send.lua -p 1                the script polls the ring
--   daqiri-run gn_simple_send.lua --seconds 10        for a time, not a number of rounds
--   daqiri-run gn_simple_send.lua --memory gpu        on a GPU: needs NVRTC
local daqiri = require "daqiri"
local args = daqiri.args{ threads = 32, bytes = 256, rounds = 100, seconds = { 0, help = "instead of rounds" },
  p = { 0, help = "1: the script polls the ring" }, scope = { "thread", choices = { "thread", "warp", "block" } }, memory = "host" }
local proxy = args.p == 1
local s = daqiri.open({ version = 1, stream_type = "raw", master_core = 0, loopback = { mode = "sw", clock = "real" },
  memory_regions = { { name = "frames", kind = "host_pinned", affinity = 0, num_bufs = args.threads, buf_size = 2048 },
    { name = "packets", kind = "host", affinity = 0, num_bufs = 8192, buf_size = 2048 } },
  interfaces = { { name = "gpu", address = "loop0", tx = { queues = { { name = "tx", id = 0, cpu_core = not proxy and -1 or nil,
      poll_mode = proxy and "direct" or nil, batch_size = 64, memory_regions = { "frames" } } } } },
    { name = "net", address = "loop1", rx = { queues = { { name = "rx", id = 0, cpu_core = -1, batch_size = 64, timeout_us = 50, memory_regions = { "packets" } } } } } } },
  { memory = args.memory == "host" and "host" or nil })

local k = daqiri.kernel{ entry = ("send<DOCA_GPUNETIO_ETH_EXEC_SCOPE_%s>"):format(args.scope:upper()), persistent = true, rings = { tx = 1024 }, grid = 1,
  block = args.threads, src = [[
#include <doca_gpunetio_dev_eth_txq.cuh>

template <enum doca_gpu_dev_eth_exec_scope scope>
__global__ void send(struct doca_gpu_eth_txq *txq, uint8_t *buffers, uint32_t mkey, uint32_t stride, uint32_t bytes, uint64_t rounds, uint32_t *exit_flag,
                     unsigned long long *failed)
{
    uint8_t *frame = buffers + (uint64_t)threadIdx.x * stride;
    bool last = threadIdx.x == blockDim.x - 1;
    doca_gpu_dev_eth_ticket_t ticket;
    __shared__ uint32_t stopped;

    for (uint32_t k = 0; k < bytes; k++) frame[k] = k < 6 ? 255 : k == 12 ? 0x88 : k == 13 ? 0xb5 : threadIdx.x;
    __threadfence_system();
    for (uint64_t n = 0; rounds == 0 || n < rounds; n++) {
        if (last) stopped = DOCA_GPUNETIO_VOLATILE(*exit_flag);
        __syncthreads();
        if (stopped) break;
        doca_gpu_dev_eth_txq_send<DOCA_GPUNETIO_ETH_RESOURCE_SHARING_MODE_GPU, DOCA_GPUNETIO_ETH_SYNC_SCOPE_GPU, DOCA_GPUNETIO_ETH_NIC_HANDLER_AUTO, scope>(
            txq, (uint64_t)frame, mkey, bytes, last ? DOCA_GPUNETIO_ETH_SEND_FLAG_NOTIFY : DOCA_GPUNETIO_ETH_SEND_FLAG_NONE, &ticket);
        if (last && doca_gpu_dev_eth_txq_poll_completion_at(txq, n, DOCA_GPUNETIO_ETH_WAIT_FLAG_B) != DOCA_SUCCESS) failed[0]++;
        __syncthreads();
    }
}
]] }

local received, wrong = 0, 0
s:rx_queue("net"):on_burst(function(b)
  received = received + b.n
  for i = 1, b.n do
    local p = b:packet(i)
    if p.length ~= args.bytes or p:u8(14) >= args.threads or p:u8(14) ~= p:u8(args.bytes - 1) then wrong = wrong + 1 end
  end
end, { policy = "wait" })

local failed = daqiri.array{ kind = "host_pinned", type = "uint64", shape = 1 }
s:start()
k:start{ tx = s:tx_queue("gpu"), args = { { txq = 1 }, { address = "frames" }, { key = "frames" }, s:region("frames").stride, args.bytes,
  args.seconds > 0 and 0 or args.rounds, { exit = true }, failed } }
if proxy then s:every(1e-4, function() s:interface("gpu"):progress() end) end
if args.seconds > 0 then s:after(args.seconds, function() k:stop() end) end
s:every(0.001, function()
  if not k.running and received == k.posted then s:stop() end
end)
s:run{ seconds = args.seconds + 100 }
print(("%d packets of %d bytes sent, %d failed; %d received, %d wrong"):format(k.posted, args.bytes, failed:get(1) + k.refused, received, wrong))
assert(received == k.posted and received > 0 and wrong == 0 and failed:get(1) == 0, k.fault)
