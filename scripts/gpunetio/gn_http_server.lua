-- gn_http_server.lua: a kernel answers HTTP requests. Its first block receives TCP packets and hands each GET to the second one through a semaphore, whose
-- items have room for the request's headers; the second block writes the answers into buffers of its own and sends them.
-- The kernel has the shape of DOCA's samples receive_tcp and http_server (gpu_packet_processing): a segment for a request, without a connection's state.
--   daqiri-run gn_http_server.lua                   a kernel on the CPU: needs a C++ compiler
--   daqiri-run gn_http_server.lua --memory gpu      on a GPU: needs NVRTC
local daqiri = require "daqiri"
local args = daqiri.args{ requests = { 60, help = "of each page" }, memory = "host" }
local s = daqiri.open("gn_net.yaml", { memory = args.memory == "host" and "host" or nil })

local ITEMS = 64
local sem = daqiri.array{ kind = "host_pinned", type = "uint64", shape = { ITEMS + 1, 3 + 8 } } -- 64 bytes of info_http an item
local counts = daqiri.array{ kind = "host_pinned", type = "uint64", shape = 2 }
local k = daqiri.kernel{ entry = "http_server", persistent = true, rings = { rx = 256, tx = 64 }, grid = 2, block = 32, src = [[
#include <doca_gpunetio_dev_buf.cuh>
#include <doca_gpunetio_dev_eth_rxq.cuh>
#include <doca_gpunetio_dev_eth_txq.cuh>
#include <doca_gpunetio_dev_sem.cuh>

#define HEADERS 54 // Ethernet, IPv4 and TCP without options
#define BUFFERS 1024
struct info_http {
    uint8_t headers[HEADERS];
    uint16_t page; // 0 index.html, 1 contacts.html, 2 another
};

__device__ uint32_t word(const uint8_t *p) { return p[0] << 8 | p[1]; }
__device__ void put(uint8_t *p, uint32_t v, int bytes)
{
    for (int k = 0; k < bytes; k++) p[k] = (uint8_t)(v >> 8 * (bytes - 1 - k));
}

__device__ uint32_t append(uint8_t *to, uint32_t at, const char *text)
{
    while (*text) to[at++] = (uint8_t)*text++;
    return at;
}

__device__ bool starts(const uint8_t *p, const char *with)
{
    while (*with && *p == (uint8_t)*with) p++, with++;
    return *with == 0;
}

__device__ uint32_t sum(const uint8_t *p, uint32_t bytes, uint32_t sum)
{
    for (uint32_t k = 0; k < bytes; k++) sum += k % 2 ? p[k] : p[k] << 8;
    while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
    return sum;
}

// Writes the answer to a request and returns its length.
__device__ uint32_t answer(uint8_t *p, const struct info_http *info)
{
    const uint8_t *q = info->headers;
    uint32_t data = word(q + 16) - 40, seq = word(q + 38) << 16 | word(q + 40);
    uint32_t n = append(p, HEADERS, info->page < 2 ? "HTTP/1.1 200 OK\r\n\r\n" : "HTTP/1.1 404 Not Found\r\n\r\n");
    n = append(p, n, info->page == 0 ? "<html>Index</html>" : info->page == 1 ? "<html>Contacts</html>" : "");

    for (int k = 0; k < HEADERS; k++) p[k] = q[k];
    for (int k = 0; k < 6; k++) p[k] = q[6 + k], p[6 + k] = q[k];
    for (int k = 0; k < 4; k++) p[26 + k] = q[30 + k], p[30 + k] = q[26 + k];
    for (int k = 0; k < 2; k++) p[34 + k] = q[36 + k], p[36 + k] = q[34 + k];
    for (int k = 0; k < 4; k++) p[38 + k] = q[42 + k];
    put(p + 42, seq + data, 4);
    put(p + 16, n - 14, 2);
    put(p + 24, 0, 2);
    put(p + 24, ~sum(p + 14, 20, 0) & 0xffff, 2);
    put(p + 50, 0, 2);
    put(p + 50, ~sum(p + 26, n - 26, 6 + n - 34) & 0xffff, 2); // of the addresses, the protocol, the length, and the segment
    return n;
}

__device__ void receive(struct doca_gpu_eth_rxq *rxq, struct doca_gpu_semaphore_gpu *sem, uint32_t items, uint32_t *exit_flag, unsigned long long *counts)
{
    __shared__ uint64_t first;
    __shared__ uint32_t n;
    uint32_t next = 0;

    while (DOCA_GPUNETIO_VOLATILE(*exit_flag) == 0) {
        if (doca_gpu_dev_eth_rxq_recv<DOCA_GPUNETIO_ETH_EXEC_SCOPE_WARP>(rxq, 32, 500000, &first, &n, NULL) != DOCA_SUCCESS) break;
        for (uint32_t k = 0; k < n && threadIdx.x == 0; k++) {
            const uint8_t *frame = (const uint8_t *)doca_gpu_dev_eth_rxq_get_pkt_addr(rxq, first + k), *data = frame + HEADERS;
            enum doca_gpu_semaphore_status status;
            struct info_http *info;
            counts[0]++;
            if (word(frame + 16) < 46 || !starts(data, "GET /")) continue;
            do {
                doca_gpu_dev_semaphore_get_status(sem, next, &status);
            } while (status != DOCA_GPU_SEMAPHORE_STATUS_FREE && DOCA_GPUNETIO_VOLATILE(*exit_flag) == 0);
            doca_gpu_dev_semaphore_get_custom_info_addr(sem, next, (void **)&info);
            for (int i = 0; i < HEADERS; i++) info->headers[i] = frame[i];
            info->page = starts(data + 5, "index.html ") ? 0 : starts(data + 5, "contacts.html ") ? 1 : 2;
            doca_gpu_dev_semaphore_set_status(sem, next, DOCA_GPU_SEMAPHORE_STATUS_READY);
            next = (next + 1) % items;
        }
        __syncthreads();
    }
}

// Each thread has items and buffers of its own. There are more buffers than slots of the ring, so that a packet has left before its buffer is used again.
__device__ void serve(struct doca_gpu_eth_txq *txq, struct doca_gpu_semaphore_gpu *sem, uint32_t items, struct doca_gpu_buf_arr *buffers, uint32_t *exit_flag,
                      unsigned long long *counts)
{
    uint32_t item = threadIdx.x, buffer = threadIdx.x, mkey;
    doca_gpu_dev_eth_ticket_t ticket;
    enum doca_gpu_semaphore_status status;
    struct info_http *info;
    struct doca_gpu_buf *buf;
    uintptr_t at;

    while (DOCA_GPUNETIO_VOLATILE(*exit_flag) == 0) {
        doca_gpu_dev_semaphore_get_status(sem, item, &status);
        if (status != DOCA_GPU_SEMAPHORE_STATUS_READY) continue;
        doca_gpu_dev_semaphore_get_custom_info_addr(sem, item, (void **)&info);
        doca_gpu_dev_buf_get_buf(buffers, buffer, &buf);
        doca_gpu_dev_buf_get_addr(buf, &at);
        doca_gpu_dev_buf_get_mkey(buf, &mkey);
        doca_gpu_dev_eth_txq_send(txq, at, mkey, answer((uint8_t *)at, info), DOCA_GPUNETIO_ETH_SEND_FLAG_NONE, &ticket);
        doca_gpu_dev_semaphore_set_status(sem, item, DOCA_GPU_SEMAPHORE_STATUS_FREE);
        atomicAdd(&counts[1], 1ull);
        item = (item + blockDim.x) % items;
        buffer = (buffer + blockDim.x) % BUFFERS;
    }
}

__global__ void http_server(struct doca_gpu_eth_rxq *rxq, struct doca_gpu_eth_txq *txq, struct doca_gpu_semaphore_gpu *sem, uint32_t items,
                            struct doca_gpu_buf_arr *buffers, uint32_t *exit_flag, unsigned long long *counts)
{
    if (blockIdx.x == 0) receive(rxq, sem, items, exit_flag, counts);
    else serve(txq, sem, items, buffers, exit_flag, counts);
}
]] }

-- Received answers, by their text; those with a wrong checksum or acknowledgement are wrong.
local PAGES = { ["index.html"] = "HTTP/1.1 200 OK\r\n\r\n<html>Index</html>", ["contacts.html"] = "HTTP/1.1 200 OK\r\n\r\n<html>Contacts</html>",
  ["none.html"] = "HTTP/1.1 404 Not Found\r\n\r\n" }
local pages, answers, wrong = {}, 0, 0
local function sum16(bytes, sum)
  for at = 1, #bytes, 2 do sum = sum + bytes:byte(at) * 256 + (bytes:byte(at + 1) or 0) end
  while sum > 0xffff do sum = sum % 65536 + math.floor(sum / 65536) end
  return sum
end
s:rx_queue("net"):on_burst(function(b)
  for i = 1, b.n do
    local p = b:packet(i)
    local text = p:bytes(54)
    answers, pages[text] = answers + 1, (pages[text] or 0) + 1
    if sum16(p:bytes(14, 20), 0) ~= 0xffff or sum16(p:bytes(26), 6 + p.length - 34) ~= 0xffff or p:u32(38) ~= 2000 then wrong = wrong + 1 end
  end
  if answers == 3 * args.requests then s:stop() end
end)

s:start()
k:start{ rx = s:rx_queue("gpu", 1), tx = s:tx_queue("gpu"), policy = "wait",
  args = { { rxq = 1 }, { txq = 1 }, { semaphore = sem }, ITEMS, { buffers = "answers", bytes = 2048 }, { exit = true }, counts } }
local tx = s:tx_queue("net")
for page in pairs(PAGES) do
  local frame = daqiri.format("ethernet"):encode{ destination = s:interface("gpu").mac, source = s:interface("net").mac, type = "ipv4",
    payload = daqiri.format("ipv4"):encode{ time_to_live = 64, protocol = "tcp", source = "10.0.0.1", destination = "10.0.0.2",
      payload = daqiri.format("tcp"):encode{ source_port = 4000, destination_port = 80, psh = 1, ack = 1, sequence_number = 1000, acknowledgment = 2000,
        payload = "GET /" .. page .. " HTTP/1.1\r\n\r\n" } } }
  local t = tx:template{ bytes = frame }
  for first = 1, args.requests, 32 do
    local b = assert(tx:alloc(math.min(32, args.requests - first + 1))):fill(t)
    b:checksums()
    assert(tx:send(b))
  end
end
s:run{ seconds = 100 }
k:stop()
for _, page in ipairs{ "index.html", "contacts.html", "none.html" } do print(("%s: %d answers"):format(page, pages[PAGES[page]] or 0)) end
print(("%d requests, %d answered, %d wrong"):format(counts:get(1), counts:get(2), wrong))
for _, text in pairs(PAGES) do assert(pages[text] == args.requests) end
assert(wrong == 0 and k.refused == 0, k.fault)
