-- gn_receive_udp.lua: a kernel receives UDP packets, which a flow steers to its queue, and counts DNS among them.
-- The kernel has the shape of DOCA's sample receive_udp (gpu_packet_processing): a semaphore hands counts to the script while the kernel runs.
--   daqiri-run gn_receive_udp.lua                   a kernel on the CPU: needs a C++ compiler
--   daqiri-run gn_receive_udp.lua --memory gpu      on a GPU: needs NVRTC
local daqiri = require "daqiri"
local args = daqiri.args{ packets = { 120, help = "of each kind" }, memory = "host" }
local s = daqiri.open("gn_net.yaml", { memory = args.memory == "host" and "host" or nil })

local FREE, READY, ITEMS = 0, 1, 64 -- an item has a status, the number of packets, the first one, and counts
local sem = daqiri.array{ kind = "host_pinned", type = "uint64", shape = { ITEMS + 1, 6 } } -- the first row is the semaphore's own
local k = daqiri.kernel{ entry = "receive_udp", persistent = true, rings = { rx = 256 }, grid = 1, block = 32, src = [[
#include <doca_gpunetio_dev_eth_rxq.cuh>
#include <doca_gpunetio_dev_sem.cuh>

struct stats_udp {
    unsigned long long dns, others, all;
};

__device__ void count(const uint8_t *frame, uint32_t bytes, struct stats_udp *s)
{
    const uint8_t *udp = frame + 14 + (frame[14] & 15) * 4;
    bool dns = (udp[0] << 8 | udp[1]) == 53 || (udp[2] << 8 | udp[3]) == 53;
    atomicAdd(dns ? &s->dns : &s->others, 1ull);
    atomicAdd(&s->all, 1ull);
}

// One warp of a queue: it counts what it receives and reports each batch in an item of the semaphore, which has counts of its own.
__global__ void receive_udp(struct doca_gpu_eth_rxq *rxq, struct doca_gpu_semaphore_gpu *sem, uint32_t items, uint32_t *exit_flag)
{
    __shared__ struct stats_udp counts;
    __shared__ struct doca_gpu_dev_eth_rxq_attr attr[32];
    __shared__ uint64_t first;
    __shared__ uint32_t n;
    uint32_t item = 0;

    while (DOCA_GPUNETIO_VOLATILE(*exit_flag) == 0) {
        if (threadIdx.x == 0) counts = {};
        __syncthreads();
        if (doca_gpu_dev_eth_rxq_recv<DOCA_GPUNETIO_ETH_EXEC_SCOPE_WARP, DOCA_GPUNETIO_ETH_MCST_AUTO, DOCA_GPUNETIO_ETH_NIC_HANDLER_AUTO,
                                      DOCA_GPUNETIO_ETH_RX_ATTR_ALL>(rxq, 32, 500000, &first, &n, attr) != DOCA_SUCCESS) break;
        if (threadIdx.x < n) count((const uint8_t *)doca_gpu_dev_eth_rxq_get_pkt_addr(rxq, first + threadIdx.x), attr[threadIdx.x].bytes, &counts);
        __syncthreads();
        if (n > 0 && threadIdx.x == 0) {
            enum doca_gpu_semaphore_status status;
            struct stats_udp *stats;
            do {
                doca_gpu_dev_semaphore_get_status(sem, item, &status);
            } while (status != DOCA_GPU_SEMAPHORE_STATUS_FREE && DOCA_GPUNETIO_VOLATILE(*exit_flag) == 0);
            doca_gpu_dev_semaphore_get_custom_info_addr(sem, item, (void **)&stats);
            *stats = counts;
            doca_gpu_dev_semaphore_set_packet_info(sem, item, DOCA_GPU_SEMAPHORE_STATUS_READY, n, first);
            item = (item + 1) % items;
        }
        __syncthreads();
    }
}
]] }

local total, item = { 0, 0, 0 }, 0
s:every(0.0005, function()
  while sem:get(item + 2, 1) == READY do
    for k = 1, #total do total[k] = total[k] + sem:get(item + 2, 3 + k) end
    sem:set(item + 2, 1, FREE)
    item = (item + 1) % ITEMS
  end
  if total[#total] == 3 * args.packets then s:stop() end
end)

s:start()
k:start{ rx = s:rx_queue("gpu", 0), policy = "wait", args = { { rxq = 1 }, { semaphore = sem }, ITEMS, { exit = true } } }
local tx = s:tx_queue("net")
local function send(count, fields) -- a packet, count times
  local frame = daqiri.format("ethernet"):encode{ destination = s:interface("gpu").mac, source = s:interface("net").mac, type = "ipv4",
    payload = daqiri.format("ipv4"):encode{ time_to_live = 64, protocol = "udp", source = "10.0.0.1", destination = "10.0.0.2",
      payload = daqiri.format("udp"):encode(fields) } }
  local t = tx:template{ bytes = frame }
  for first = 1, count, 32 do
    local b = assert(tx:alloc(math.min(32, count - first + 1))):fill(t)
    b:checksums()
    assert(tx:send(b))
  end
end
send(args.packets, { source_port = 4000, destination_port = 53, payload = ("q"):rep(30) })
send(args.packets, { source_port = 53, destination_port = 4000, payload = ("a"):rep(60) })
send(args.packets, { source_port = 4000, destination_port = 7148, payload = ("x"):rep(30) })
s:run{ seconds = 100 }
k:stop()
print(("UDP: %d packets, %d DNS, %d others"):format(total[3], total[1], total[2]))
assert(total[3] == 3 * args.packets and total[1] == 2 * args.packets)
