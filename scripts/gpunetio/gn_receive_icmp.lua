-- gn_receive_icmp.lua: a kernel receives ICMP packets, which a flow steers to its queue, and answers echo requests out of the buffer that they came in.
-- The kernel has the shape of DOCA's sample receive_icmp (gpu_packet_processing).
--   daqiri-run gn_receive_icmp.lua                   a kernel on the CPU: needs a C++ compiler
--   daqiri-run gn_receive_icmp.lua --memory gpu      on a GPU: needs NVRTC
local daqiri = require "daqiri"
local args = daqiri.args{ packets = { 120, help = "of each kind" }, memory = "host" }
local s = daqiri.open("gn_net.yaml", { memory = args.memory == "host" and "host" or nil })

local k = daqiri.kernel{ entry = "receive_icmp", persistent = true, rings = { rx = 256, tx = 64 }, grid = 1, block = 32, src = [[
#include <doca_gpunetio_dev_eth_rxq.cuh>
#include <doca_gpunetio_dev_eth_txq.cuh>

__device__ void exchange(uint8_t *a, uint8_t *b, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) {
        uint8_t was = a[k];
        a[k] = b[k];
        b[k] = was;
    }
}

// Makes the reply of an echo request in place; the checksum follows the type (RFC 1624).
__device__ bool reply(uint8_t *frame)
{
    uint8_t *icmp = frame + 14 + (frame[14] & 15) * 4;
    uint32_t sum = (icmp[2] << 8 | icmp[3]) + 0x0800;
    if (icmp[0] != 8) return false;
    exchange(frame, frame + 6, 6);
    exchange(frame + 26, frame + 30, 4);
    sum = (sum & 0xffff) + (sum >> 16);
    icmp[0] = 0;
    icmp[2] = (uint8_t)(sum >> 8);
    icmp[3] = (uint8_t)sum;
    return true;
}

__global__ void receive_icmp(struct doca_gpu_eth_rxq *rxq, struct doca_gpu_eth_txq *txq, uint32_t *exit_flag, unsigned long long *counts)
{
    __shared__ struct doca_gpu_dev_eth_rxq_attr attr[32];
    __shared__ uint64_t first;
    __shared__ uint32_t n;
    doca_gpu_dev_eth_ticket_t ticket;

    while (DOCA_GPUNETIO_VOLATILE(*exit_flag) == 0) {
        if (doca_gpu_dev_eth_rxq_recv<DOCA_GPUNETIO_ETH_EXEC_SCOPE_WARP, DOCA_GPUNETIO_ETH_MCST_AUTO, DOCA_GPUNETIO_ETH_NIC_HANDLER_AUTO,
                                      DOCA_GPUNETIO_ETH_RX_ATTR_ALL>(rxq, 32, 500000, &first, &n, attr) != DOCA_SUCCESS) break;
        if (threadIdx.x < n) {
            uint64_t at = doca_gpu_dev_eth_rxq_get_pkt_addr(rxq, first + threadIdx.x);
            if (reply((uint8_t *)at)) {
                doca_gpu_dev_eth_txq_send(txq, at, doca_gpu_dev_eth_rxq_get_pkt_mkey(rxq), attr[threadIdx.x].bytes, DOCA_GPUNETIO_ETH_SEND_FLAG_NONE, &ticket);
                atomicAdd(&counts[1], 1ull);
            }
            atomicAdd(&counts[0], 1ull);
        }
        __syncthreads();
    }
}
]] }
local counts = daqiri.array{ kind = "host_pinned", type = "uint64", shape = 2 }

-- Received replies: echo replies with the bytes of their request, each number once, and a correct checksum.
local icmp, replies, wrong, seen = daqiri.format "icmp", 0, 0, {}
local function sum16(bytes)
  local sum = 0
  for at = 1, #bytes, 2 do sum = sum + bytes:byte(at) * 256 + (bytes:byte(at + 1) or 0) end
  while sum > 0xffff do sum = sum % 65536 + math.floor(sum / 65536) end
  return sum
end
s:rx_queue("net"):on_burst(function(b)
  local r = b:select("ip_proto == 1 and type == type.echo_reply and ipv4_dst == 10.0.0.1", icmp)
  wrong, replies = wrong + b.n - (r and r.n or 0), replies + (r and r.n or 0)
  for i = 1, r and r.n or 0 do
    local message, number = r:packet(i):bytes(34), r:column("echo_sequence", icmp)[i]
    if seen[number] or sum16(message) ~= 0xffff or message:sub(9) ~= ("ping"):rep(14) then wrong = wrong + 1 end
    seen[number] = true
  end
end)
s:every(0.002, function()
  if counts:get(1) == 2 * args.packets and replies == args.packets then s:stop() end
end)

s:start()
k:start{ rx = s:rx_queue("gpu", 2), tx = s:tx_queue("gpu"), policy = "wait", args = { { rxq = 1 }, { txq = 1 }, { exit = true }, counts } }
local tx = s:tx_queue("net")
local function send(count, fields) -- a packet, count times
  local frame = daqiri.format("ethernet"):encode{ destination = s:interface("gpu").mac, source = s:interface("net").mac, type = "ipv4",
    payload = daqiri.format("ipv4"):encode{ time_to_live = 64, protocol = "icmp", source = "10.0.0.1", destination = "10.0.0.2",
      payload = daqiri.format("icmp"):encode(fields) } }
  local t = tx:template{ bytes = frame, vary = { { at = "start", bit_offset = 320, bit_width = 16, step = 1 } } }
  for first = 1, count, 32 do
    local b = assert(tx:alloc(math.min(32, count - first + 1))):fill(t)
    b:checksums()
    assert(tx:send(b))
  end
end
send(args.packets, { type = "unreachable", code = 3, payload = ("x"):rep(28) })
send(args.packets, { type = "echo_request", echo_id = 7, payload = ("ping"):rep(14) })
s:run{ seconds = 100 }
k:stop()
print(("ICMP: %d packets, %d answered; %d replies came, %d wrong"):format(counts:get(1), counts:get(2), replies, wrong))
assert(replies == args.packets and wrong == 0 and k.refused == 0, k.fault)
