-- One end of a cable: a kernel sends numbered packets, or receives and marks their numbers.
local daqiri = require "daqiri"
local args = daqiri.args{ role = "", packets = 1000, address = "veth0", udp = "", lossy = false }
local sends, udp = args.role == "send", args.udp ~= ""
local HEAD = udp and 0 or 14 -- bytes in front of the number

local port = { name = "port", address = udp and args.udp:match("[%d.]+") or args.address }
local queue = { { name = "q", id = 0, cpu_core = -1, batch_size = 64, memory_regions = { "packets" } } }
if udp then port.socket_config = sends and { mode = "client", remote_addr = "udp://" .. args.udp } or { mode = "server", local_addr = "udp://" .. args.udp } end
if not sends then queue[1].timeout_us = 100 end
port[sends and "tx" or "rx"] = { queues = queue }
local s = daqiri.open({ version = 1, stream_type = udp and "socket" or "raw", engine = "gpunetio", master_core = 0, interfaces = { port },
  memory_regions = { { name = "packets", kind = "host_pinned", affinity = 0, num_bufs = 8192, buf_size = 2048 },
    sends and { name = "frames", kind = "host_pinned", affinity = 0, num_bufs = args.packets, buf_size = 2048 } or nil } }, { memory = "host" })

local k = daqiri.kernel{ entry = args.role, name = args.role, memory = "host", persistent = true, grid = 1, block = 32,
  rings = { tx = 256, rx = args.lossy and 16 or 1024 }, src = [[
#include "gn.h"
// Every thread sends each 32nd packet of 200 bytes, each out of a buffer of its own.
__global__ void send(void *context, unsigned int region, unsigned int stride, unsigned int packets, unsigned int head, unsigned long long *failed)
{
    gn_side side;
    gn_tx tx;
    unsigned int wrong = 0;
    if (gn_open(&side, context) != GN_OK || gn_tx_open(&tx, &side, 0) != GN_OK) return;
    for (unsigned int n = threadIdx.x; n < packets; n += 32) {
        gn_u64 place = gn_place(region, (gn_u64)n * stride);
        unsigned char *p = (unsigned char *)gn_pointer(&side, place);
        for (unsigned int k = 0; k < head; k++) p[k] = k < 6 ? 0xff : k == 6 ? 2 : k < 12 ? 0 : k == 12 ? 0x88 : 0xb5;
        for (unsigned int k = 0; k < 4; k++) p[head + k] = (unsigned char)(n >> (24 - 8 * k));
        for (unsigned int k = head + 4; k < 200; k++) p[k] = (unsigned char)(n + k);
        wrong += gn_send(&tx, GN_BY_THREAD, place, 200, 0, 0, GN_LIMIT, 0) != GN_OK;
    }
    if (wrong + (gn_flush(&tx, GN_LIMIT) != GN_OK)) atomicAdd(failed, wrong + 1ull);
}

// counts: packets, those seen before, those with a wrong byte.
__global__ void receive(void *context, unsigned int packets, unsigned int head, unsigned int nap_ns, unsigned char *seen, unsigned long long *counts)
{
    gn_side side;
    gn_rx rx;
    gn_u64 first;
    gn_u32 n;
    if (gn_open(&side, context) != GN_OK || gn_rx_open(&rx, &side, 0) != GN_OK) return;
    for (int reply; (reply = gn_recv(&rx, GN_BY_WARP, 32, GN_LIMIT, &first, &n, 0)) != GN_ABORTED;) {
        gn_packet p;
        if (reply == GN_OK && threadIdx.x < n && gn_rx_read(&rx, first + threadIdx.x, &p) == GN_OK) {
            const unsigned char *b = (const unsigned char *)gn_pointer(&side, p.place);
            unsigned int number = (unsigned int)b[head] << 24 | b[head + 1] << 16 | b[head + 2] << 8 | b[head + 3];
            int wrong = p.bytes != 200 || number >= packets || p.time == 0 || p.time > 1000000000000ull; // since the session's start
            for (unsigned int k = head + 4; k < 200 && !wrong; k++) wrong = b[k] != (unsigned char)(number + k);
            atomicAdd(&counts[0], 1ull);
            atomicAdd(&counts[1], wrong ? 0ull : (unsigned long long)(seen[number] != 0));
            atomicAdd(&counts[2], (unsigned long long)wrong);
            if (!wrong) seen[number] = 1;
        }
        for (gn_u64 until = gn_now() + nap_ns; nap_ns && gn_now() < until;) {}
        if (reply == GN_OK) gn_release(&rx, GN_BY_WARP, first, n);
    }
}
]] }

s:start()
if sends then
  local failed = daqiri.array{ kind = "host_pinned", type = "uint64", shape = 1 }
  k:start{ tx = s:tx_queue("port"), regions = { "frames" }, limit = "60s",
    args = { "context", "frames", s:region("frames").stride, args.packets, HEAD, failed } }
  assert(k:wait{ timeout = 100 })
  local ring, queue = s:stats().send.tx, s:stats().port.tx
  print(daqiri.json{ ring_in = ring["in"], ring_out = ring.out, completed = k.completed, failed = failed:get(1), queue_out = queue.out, queue_dropped = queue.dropped })
  k:stop{ timeout = 60 }
  return
end

local seen = daqiri.array{ kind = "host_pinned", type = "uint8", shape = args.packets }
local counts = daqiri.array{ kind = "host_pinned", type = "uint64", shape = 3 }
k:start{ rx = s:rx_queue("port"), policy = args.lossy and "drop" or "wait",
  args = { "context", args.packets, HEAD, args.lossy and 200000 or 0, seen, counts } }
s:every(0.01, function()
  local ring, queue = s:stats().receive.rx, s:stats().port.rx
  if ring.out + ring.dropped + queue.dropped >= args.packets then s:stop() end
end)
s:after(0, function() print("ready") end)
s:run{ seconds = 100 }
k:stop{ timeout = 60 }
local ring, queue, marked = s:stats().receive.rx, s:stats().port.rx, 0
for n = 1, args.packets do marked = marked + seen:get(n) end
print(daqiri.json{ ring_in = ring["in"], ring_out = ring.out, ring_dropped = ring.dropped, ring_held = ring.held, queue_dropped = queue.dropped,
  packets = counts:get(1), again = counts:get(2), wrong = counts:get(3), marked = marked })
