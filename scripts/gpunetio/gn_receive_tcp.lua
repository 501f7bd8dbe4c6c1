-- gn_receive_tcp.lua: a kernel receives TCP packets, which a flow steers to its queue, and counts kinds of segments and of HTTP.
-- The kernel has the shape of DOCA's sample receive_tcp (gpu_packet_processing): a semaphore hands counts to the script while the kernel runs.
--   daqiri-run gn_receive_tcp.lua                   a kernel on the CPU: needs a C++ compiler
--   daqiri-run gn_receive_tcp.lua --memory gpu      on a GPU: needs NVRTC
local daqiri = require "daqiri"
local args = daqiri.args{ packets = { 120, help = "of each kind" }, memory = "host" }
local s = daqiri.open("gn_net.yaml", { memory = args.memory == "host" and "host" or nil })

local FREE, READY, ITEMS = 0, 1, 64 -- an item has a status, the number of packets, the first one, and counts
local sem = daqiri.array{ kind = "host_pinned", type = "uint64", shape = { ITEMS + 1, 11 } } -- the first row is the semaphore's own
local k = daqiri.kernel{ entry = "receive_tcp", persistent = true, rings = { rx = 256 }, grid = 1, block = 32, src = [[
#include <doca_gpunetio_dev_eth_rxq.cuh>
#include <doca_gpunetio_dev_sem.cuh>

struct stats_tcp {
    unsigned long long http_get, http_post, http, syn, fin, ack, others, all;
};

__device__ bool starts(const uint8_t *p, const char *with)
{
    while (*with && *p == (uint8_t)*with) p++, with++;
    return *with == 0;
}

__device__ void count(const uint8_t *frame, uint32_t bytes, struct stats_tcp *s)
{
    const uint8_t *tcp = frame + 14 + (frame[14] & 15) * 4, *data = tcp + (tcp[12] >> 4) * 4;
    bool room = data + 5 <= frame + bytes, fin = tcp[13] & 1, syn = tcp[13] & 2, ack = tcp[13] & 16;
    atomicAdd(&s->all, 1ull);
    if (room && starts(data, "GET ")) atomicAdd(&s->http_get, 1ull);
    else if (room && starts(data, "POST ")) atomicAdd(&s->http_post, 1ull);
    else if (room && starts(data, "HTTP")) atomicAdd(&s->http, 1ull);
    else if (syn) atomicAdd(&s->syn, 1ull);
    else if (fin) atomicAdd(&s->fin, 1ull);
    else if (ack) atomicAdd(&s->ack, 1ull);
    else atomicAdd(&s->others, 1ull);
}

// One warp of a queue: it counts what it receives and reports each batch in an item of the semaphore, which has counts of its own.
__global__ void receive_tcp(struct doca_gpu_eth_rxq *rxq, struct doca_gpu_semaphore_gpu *sem, uint32_t items, uint32_t *exit_flag)
{
    __shared__ struct stats_tcp counts;
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
            struct stats_tcp *stats;
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

local total, item = { 0, 0, 0, 0, 0, 0, 0, 0 }, 0
s:every(0.0005, function()
  while sem:get(item + 2, 1) == READY do
    for k = 1, #total do total[k] = total[k] + sem:get(item + 2, 3 + k) end
    sem:set(item + 2, 1, FREE)
    item = (item + 1) % ITEMS
  end
  if total[#total] == 6 * args.packets then s:stop() end
end)

s:start()
k:start{ rx = s:rx_queue("gpu", 1), policy = "wait", args = { { rxq = 1 }, { semaphore = sem }, ITEMS, { exit = true } } }
local tx = s:tx_queue("net")
local function send(count, fields) -- a packet, count times
  local frame = daqiri.format("ethernet"):encode{ destination = s:interface("gpu").mac, source = s:interface("net").mac, type = "ipv4",
    payload = daqiri.format("ipv4"):encode{ time_to_live = 64, protocol = "tcp", source = "10.0.0.1", destination = "10.0.0.2",
      payload = daqiri.format("tcp"):encode(fields) } }
  local t = tx:template{ bytes = frame }
  for first = 1, count, 32 do
    local b = assert(tx:alloc(math.min(32, count - first + 1))):fill(t)
    b:checksums()
    assert(tx:send(b))
  end
end
local function segment(fields, payload)
  fields.source_port, fields.destination_port, fields.payload = 4000, 80, payload or ""
  send(args.packets, fields)
end
segment{ syn = 1 }
segment{ ack = 1 }
segment({ psh = 1, ack = 1 }, "GET / HTTP/1.1\r\n\r\n")
segment({ psh = 1, ack = 1 }, "POST /form HTTP/1.1\r\n\r\n")
segment({ psh = 1, ack = 1 }, "HTTP/1.1 200 OK\r\n\r\n")
segment{ fin = 1, ack = 1 }
s:run{ seconds = 100 }
k:stop()
print(("TCP: %d packets, %d HTTP GET, %d HTTP POST, %d HTTP, %d SYN, %d FIN, %d ACK, %d others"):format(total[8], unpack(total, 1, 7)))
for k = 1, 6 do assert(total[k] == args.packets) end
