-- gn_packet_processing.lua: a kernel processes UDP, TCP and ICMP packets, which flows steer to one queue each (GPU-initiated networking):
-- one block per ring counts packets, DNS and HTTP, and answers ICMP echo requests in place.
--   daqiri-run gn_packet_processing.lua                  the kernel runs on the CPU: needs a C++ or C compiler
--   daqiri-run gn_packet_processing.lua --memory gpu     on a GPU: needs NVRTC
local daqiri = require "daqiri"
local args = daqiri.args{ each = { 120, help = "packets of each kind" }, memory = "host" }

local function rx_queue(id, name) return { name = name, id = id, cpu_core = -1, batch_size = 64, timeout_us = 50, memory_regions = { "packets" } } end
local function tx_queue(name) return { name = name, id = 0, cpu_core = -1, batch_size = 64, memory_regions = { "packets" } } end
local function flow(id, queue, match) return { name = queue, id = id, match = match, action = { type = "queue", id = id - 1 } } end
local s = daqiri.open({ version = 1, stream_type = "raw", master_core = 0, loopback = { mode = "sw", clock = "real" },
  memory_regions = { { name = "packets", kind = "host_pinned", affinity = 0, num_bufs = 8192, buf_size = 512 } },
  interfaces = {
    { name = "net", address = "a", tx = { queues = { tx_queue "out" } }, rx = { queues = { rx_queue(0, "in") } } },
    { name = "gpu", address = "b", tx = { queues = { tx_queue "answers" } },
      rx = { queues = { rx_queue(0, "udp"), rx_queue(1, "tcp"), rx_queue(2, "icmp") }, flow_isolation = true,
        flows = { flow(1, "udp", { udp_dst = "1-65535" }), flow(2, "tcp", { tcp_dst = "1-65535" }), flow(3, "icmp", { ethertype = 0x0800 }) } } } } },
  { memory = args.memory == "host" and "host" or nil })

local k = daqiri.kernel{ name = "processor", persistent = true, rings = { rx = 256, tx = 64 }, grid = 3, block = 32, src = [[
#include "gn.h"
enum { UDP, DNS, TCP, HTTP, ICMP, ANSWERED, OTHER, FAILED };

__device__ unsigned int word(const unsigned char *p) { return (unsigned int)p[0] << 8 | p[1]; }
__device__ int starts(const unsigned char *p, const char *with)
{
    for (int k = 0; k < 4; k++)
        if (p[k] != (unsigned char)with[k]) return 0;
    return 1;
}
__device__ void exchange(unsigned char *a, unsigned char *b, int n)
{
    for (int k = 0; k < n; k++) {
        unsigned char was = a[k];
        a[k] = b[k];
        b[k] = was;
    }
}

__device__ void udp(const unsigned char *p, unsigned long long *counts)
{
    atomicAdd(&counts[UDP], 1ull);
    if (word(p) == 53 || word(p + 2) == 53) atomicAdd(&counts[DNS], 1ull);
}

__device__ void tcp(const unsigned char *p, unsigned int bytes, unsigned long long *counts)
{
    unsigned int head = (p[12] >> 4) * 4;
    atomicAdd(&counts[TCP], 1ull);
    if (bytes < head + 4) return;
    p += head;
    if (starts(p, "GET ") || starts(p, "POST") || starts(p, "HEAD") || starts(p, "PUT ") || starts(p, "HTTP")) atomicAdd(&counts[HTTP], 1ull);
}

// An echo request goes back as its reply; the checksum follows the type (RFC 1624).
__device__ void icmp(const gn_tx *tx, const gn_packet *packet, unsigned char *frame, unsigned char *p, unsigned long long *counts)
{
    gn_u64 ticket;
    atomicAdd(&counts[ICMP], 1ull);
    if (p[0] != 8) return;
    exchange(frame, frame + 6, 6);
    exchange(frame + 26, frame + 30, 4);
    unsigned int sum = word(p + 2) + 0x0800;
    sum = (sum & 0xffff) + (sum >> 16);
    p[0] = 0;
    p[2] = (unsigned char)(sum >> 8);
    p[3] = (unsigned char)sum;
    int status = gn_send(tx, GN_BY_THREAD, packet->place, packet->bytes, 0, 0, GN_LIMIT, &ticket);
    if (status == GN_OK) status = gn_wait(tx, ticket, GN_LIMIT); // which releases its buffer
    atomicAdd(&counts[status == GN_OK ? ANSWERED : FAILED], 1ull);
}

__global__ void processor(void *context, unsigned long long *counts)
{
    gn_side side;
    gn_rx rx;
    gn_tx tx;
    gn_u64 first;
    gn_u32 n;
    if (gn_open(&side, context) != GN_OK || gn_rx_open(&rx, &side, blockIdx.x) != GN_OK || gn_tx_open(&tx, &side, 0) != GN_OK) return;
    for (int status; (status = gn_recv(&rx, GN_BY_WARP, 32, GN_LIMIT, &first, &n, 0)) != GN_ABORTED;) {
        gn_packet packet;
        if (status != GN_OK) continue;
        if (threadIdx.x < n && gn_rx_read(&rx, first + threadIdx.x, &packet) == GN_OK) {
            unsigned char *frame = (unsigned char *)gn_pointer(&side, packet.place);
            unsigned int head = 14 + (frame[14] & 15) * 4, proto = frame[23];
            if (word(frame + 12) != 0x0800 || packet.bytes < head + 8) proto = 255;
            if (blockIdx.x == 0 && proto == 17) udp(frame + head, counts);
            else if (blockIdx.x == 1 && proto == 6 && packet.bytes >= head + 20) tcp(frame + head, packet.bytes - head, counts);
            else if (blockIdx.x == 2 && proto == 1) icmp(&tx, &packet, frame, frame + head, counts);
            else atomicAdd(&counts[OTHER], 1ull);
        }
        gn_release(&rx, GN_BY_WARP, first, n);
    }
}
]] }
local counts = daqiri.array{ kind = "host_pinned", type = "uint64", shape = 8 }
k:start{ rx = { s:rx_queue("gpu", 0), s:rx_queue("gpu", 1), s:rx_queue("gpu", 2) }, tx = s:tx_queue("gpu"), policy = "wait", args = { "context", counts } }

-- Received replies: echo replies with the bytes of their request and a correct checksum.
local icmp, replies, wrong = daqiri.format "icmp", 0, 0
local function sum16(bytes)
  local sum = 0
  for at = 1, #bytes, 2 do sum = sum + bytes:byte(at) * 256 + (bytes:byte(at + 1) or 0) end
  while sum > 0xffff do sum = sum % 65536 + math.floor(sum / 65536) end
  return sum
end
local numbers = {}
s:rx_queue("net"):on_burst(function(b)
  local r = b:select("ip_proto == 1 and type == type.echo_reply and ipv4_dst == 10.0.0.1", icmp)
  wrong = wrong + b.n - (r and r.n or 0)
  for i = 1, r and r.n or 0 do
    local message = r:packet(i):bytes(34)
    numbers[r:column("echo_sequence", icmp)[i]] = true
    replies = replies + 1
    if sum16(message) ~= 0xffff or message:sub(9) ~= ("ping"):rep(14) then wrong = wrong + 1 end
  end
end)
s:every(0.002, function() -- until all packets are counted and answered
  local seen = counts:get(1) + counts:get(3) + counts:get(5) + counts:get(7)
  if replies == args.each and seen == 8 * args.each and counts:get(6) + counts:get(8) == replies then s:stop() end
end)

-- Three kinds of packets each over UDP and TCP, two over ICMP.
s:start()
local tx = s:tx_queue("net")
local function send(protocol, fields)
  local frame = daqiri.format("ethernet"):encode{ destination = s:interface("gpu").mac, source = s:interface("net").mac, type = "ipv4",
    payload = daqiri.format("ipv4"):encode{ time_to_live = 64, protocol = protocol, source = "10.0.0.1", destination = "10.0.0.2",
      payload = daqiri.format(protocol):encode(fields) } }
  local number = protocol == "icmp" and { { at = "start", bit_offset = 320, bit_width = 16, step = 1 } } or nil
  local t = tx:template{ bytes = frame, vary = number }
  for first = 1, args.each, 32 do
    local b = assert(tx:alloc(math.min(32, args.each - first + 1))):fill(t)
    b:checksums()
    assert(tx:send(b))
  end
end
send("udp", { source_port = 4000, destination_port = 53, payload = ("q"):rep(30) })
send("udp", { source_port = 53, destination_port = 4000, payload = ("a"):rep(60) })
send("udp", { source_port = 4000, destination_port = 7148, payload = ("x"):rep(30) })
send("tcp", { source_port = 4000, destination_port = 80, psh = 1, ack = 1, payload = "GET / HTTP/1.1\r\n\r\n" })
send("tcp", { source_port = 80, destination_port = 4000, psh = 1, ack = 1, payload = "HTTP/1.1 200 OK\r\n\r\n" })
send("tcp", { source_port = 4000, destination_port = 80, ack = 1, payload = "" })
send("icmp", { type = "unreachable", code = 3, payload = ("x"):rep(28) })
send("icmp", { type = "echo_request", echo_id = 7, payload = ("ping"):rep(14) })
s:run{ seconds = 100 }
k:stop()
print(("UDP %d, of it DNS %d; TCP %d, of it HTTP %d; ICMP %d, of it answered %d"):format(counts:get(1), counts:get(2), counts:get(3), counts:get(4),
  counts:get(5), counts:get(6)))
local different = 0
for _ in pairs(numbers) do different = different + 1 end
print(("%d replies with %d numbers, %d wrong; %d packets at another queue, %d failed calls"):format(replies, different, wrong, counts:get(7), counts:get(8)))
local l = s:stats().gpu.rx
print(("queues: %d packets, %d dropped"):format(l.packets, l.dropped))
assert(replies == args.each and wrong == 0 and counts:get(7) == 0)
