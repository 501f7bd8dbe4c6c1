-- gn_simple_receive.lua: a kernel receives UDP packets and reports each batch in a semaphore, which the script reads while the kernel runs.
-- The kernel has the shape of DOCA's sample gpunetio_simple_receive.
--   daqiri-run gn_simple_receive.lua                     a kernel on the CPU: needs a C++ compiler
--   daqiri-run gn_simple_receive.lua --scope warp        a warp receives together (thread, block)
--   daqiri-run gn_simple_receive.lua --memory gpu        on a GPU: needs NVRTC
local daqiri = require "daqiri"
local args = daqiri.args{ packets = 4000, bytes = 200, scope = { "block", choices = { "thread", "warp", "block" } }, memory = "host" }
local s = daqiri.open("gn_net.yaml", { memory = args.memory == "host" and "host" or nil })

local ITEMS = 64 -- of the semaphore: each has a status, the number of packets, the first one, and the sum of their bytes
local k = daqiri.kernel{ entry = ("receive<DOCA_GPUNETIO_ETH_EXEC_SCOPE_%s>"):format(args.scope:upper()), persistent = true, rings = { rx = 4096 }, grid = 1,
  block = args.scope == "thread" and 1 or 32, src = [[
#include <doca_gpunetio_dev_eth_rxq.cuh>
#include <doca_gpunetio_dev_sem.cuh>

template <enum doca_gpu_dev_eth_exec_scope scope>
__global__ void receive(struct doca_gpu_eth_rxq *rxq, struct doca_gpu_semaphore_gpu *sem, uint32_t items, uint32_t *exit_flag)
{
    __shared__ uint64_t first;
    __shared__ uint32_t n;
    __shared__ struct doca_gpu_dev_eth_rxq_attr attr[2048];
    uint32_t item = 0;

    while (DOCA_GPUNETIO_VOLATILE(*exit_flag) == 0) {
        doca_error_t err = doca_gpu_dev_eth_rxq_recv<scope, DOCA_GPUNETIO_ETH_MCST_AUTO, DOCA_GPUNETIO_ETH_NIC_HANDLER_AUTO, DOCA_GPUNETIO_ETH_RX_ATTR_ALL>(
            rxq, 2048, 500000, &first, &n, attr);
        if (err != DOCA_SUCCESS) break;
        __syncthreads();
        if (n > 0 && threadIdx.x == 0) {
            enum doca_gpu_semaphore_status status;
            uint64_t *bytes, sum = 0;
            do {
                doca_gpu_dev_semaphore_get_status(sem, item, &status); // until the script has read the item's last use
            } while (status != DOCA_GPU_SEMAPHORE_STATUS_FREE && DOCA_GPUNETIO_VOLATILE(*exit_flag) == 0);
            for (uint32_t k = 0; k < n; k++) sum += attr[k].bytes;
            doca_gpu_dev_semaphore_get_custom_info_addr(sem, item, (void **)&bytes);
            *bytes = sum;
            doca_gpu_dev_semaphore_set_packet_info(sem, item, DOCA_GPU_SEMAPHORE_STATUS_READY, n, first);
            item = (item + 1) % items;
        }
        __syncthreads();
    }
}
]] }
local FREE, READY = 0, 1
local sem = daqiri.array{ kind = "host_pinned", type = "uint64", shape = { ITEMS + 1, 4 } } -- the first row is the semaphore's own

local received, bytes, gaps, item = 0, 0, 0, 0
s:every(0.0005, function()
  while sem:get(item + 2, 1) == READY do
    if sem:get(item + 2, 3) ~= received then gaps = gaps + 1 end
    received, bytes = received + sem:get(item + 2, 2), bytes + sem:get(item + 2, 4)
    sem:set(item + 2, 1, FREE)
    item = (item + 1) % ITEMS
  end
  if received == args.packets then s:stop() end
end)

s:start()
k:start{ rx = s:rx_queue("gpu", 0), policy = "wait", args = { { rxq = 1 }, { semaphore = sem }, ITEMS, { exit = true } } }
local tx = s:tx_queue("net")
tx:transmit{ template = tx:template{ udp_dst = 7148, payload_bytes = args.bytes - 42 }, count = args.packets }
s:run{ seconds = 100 }
k:stop()
local ring = s:stats().receive.rx
print(("%d packets of %d bytes received, %d gaps; ring: in %d, out %d"):format(received, bytes / received, gaps, ring["in"], ring.out))
assert(received == args.packets and bytes == args.packets * args.bytes and gaps == 0)
