-- gn_engine.lua: the loop engine driven by a kernel (GPU-initiated networking), or by the CPU as ever, to compare: frames that a kernel
-- sends are received and counted; frames that the CPU sends are received by a kernel, which may read them. Prints figures as JSON.
--   daqiri-run gn_engine.lua --what send                   on the host: it takes a C++ or C compiler
--   daqiri-run gn_engine.lua --what receive --read --queues 4 --memory gpu          on a GPU: it takes NVRTC
--   daqiri-run gn_engine.lua --what send --by cpu
local daqiri = require "daqiri"
local args = daqiri.args{
  what = { "send", choices = { "send", "receive" }, help = "what the kernel does" },
  by = { "kernel", choices = { "kernel", "cpu" }, help = "cpu: the same engine without a kernel: a template sends, a stage counts" },
  size = { 1024, unit = "bytes", help = "of a frame" },
  rings = { 1, help = "of each queue; to receive, one" },
  queues = { 1, help = "each way, with a worker each; a queue's packets go to the other side's of its number" },
  slots = { 1024, help = "of a ring" },
  blocks = { 8, help = "of the kernel, for each ring, on a GPU; on the host one" },
  batch = { 32, help = "packets that a warp takes at once" },
  read = { false, help = "receive: the kernel reads every frame into memory of its own" },
  memory = { "host", help = "gpu: the kernel runs there" },
  seconds = { 1, help = "to measure, after a tenth of that to warm up" },
}
local gpu, kernel = args.memory == "gpu", args.by == "kernel"
local sends, rings = args.what == "send", args.rings * args.queues
assert(sends or args.rings == 1, "--rings: of a queue that receives each would get all packets")
local blocks = (gpu and args.blocks or 1) * rings
local DEPTH = 8 -- packets of a thread that are on their way

-- The engine copies each packet into the receiver's memory, as others do: by reference only to read it as fast as a kernel can.
local like = args.read and args.size or args.size + 128
local PORT = 7148
local out, into, flows = {}, {}, {}
for q = 1, args.queues do
  out[q] = { name = "tx" .. q, id = q - 1, cpu_core = -1, batch_size = 256, memory_regions = { "out" } }
  into[q] = { name = "rx" .. q, id = q - 1, cpu_core = -1, batch_size = 256, timeout_us = 20, memory_regions = { "in" } }
  flows[q] = { name = "flow" .. q, id = q, match = { udp_dst = PORT + q }, action = { type = "queue", id = q - 1 } }
end
local s = daqiri.open({ version = 1, stream_type = "raw", master_core = 0, loopback = { mode = "sw", clock = "real" },
  memory_regions = {
    { name = "frames", kind = "host_pinned", affinity = 0, num_bufs = sends and kernel and blocks * 32 * DEPTH or 64, buf_size = args.size },
    { name = "out", kind = "host_pinned", affinity = 0, num_bufs = 4096 * args.queues, buf_size = args.size },
    { name = "in", kind = "host_pinned", affinity = 0, num_bufs = 4096 * args.queues, buf_size = like } },
  interfaces = {
    { name = "sender", address = "a", tx = { queues = out } },
    { name = "receiver", address = "b", rx = { queues = into, flows = args.queues > 1 and flows or nil } } } },
  { memory = not gpu and "host" or nil })

local src = [[
#include "gn.h"
// Every thread sends one packet after the other, up to `depth` before the first of them is waited for; the engine is what is measured, so
// the frames are written once.
__global__ void send(void *context, unsigned int rings, unsigned int frames, unsigned int stride, unsigned int size, unsigned int depth,
                     unsigned long long *account)
{
    gn_side side;
    gn_tx tx;
    gn_u64 ticket[8], reported;
    unsigned int me = blockIdx.x * blockDim.x + threadIdx.x, scope = blockDim.x < 32 ? GN_BY_THREAD : GN_BY_WARP;
    if (gn_open(&side, context) != GN_OK || gn_tx_open(&tx, &side, blockIdx.x % rings) != GN_OK) return;
    for (unsigned int n = 0; n < depth; n++) {
        unsigned char *p = (unsigned char *)gn_pointer(&side, gn_place(frames, (gn_u64)(me * depth + n) * stride));
        for (unsigned int k = 0; k < size; k++) p[k] = (unsigned char)(k < 6 ? 255 : k + n);
        p[12] = 0x88;
        p[13] = 0xb5;
    }
    for (unsigned int n = 0;; n++) {
        gn_u64 place = gn_place(frames, (gn_u64)(me * depth + n % depth) * stride);
        int reply = n < depth ? GN_OK : gn_wait(&tx, ticket[n % depth], GN_LIMIT);
        if (reply == GN_OK || scope == GN_BY_WARP) { // all lanes of a warp come along
            int e = gn_send(&tx, scope, place, size, 0, 0, GN_LIMIT, &reported);
            if (reply == GN_OK) reply = e;
        }
        ticket[n % depth] = reported;
        if (scope == GN_BY_WARP ? gn_ballot(reply != GN_OK) : reply != GN_OK) {
            if (reply != GN_ABORTED && reply != GN_OK) atomicAdd(account, 1ull);
            break;
        }
    }
}

// Of a packet a lane has 16 reads of 16 bytes on their way: 8192 bytes of a warp, as each takes microseconds on the bus.
#define READS 16
__device__ void keep(unsigned char *to, const unsigned char *from, unsigned int bytes)
{
    unsigned int lanes = blockDim.x < 32 ? blockDim.x : 32, n = bytes / 16, k = threadIdx.x % 32;
    const uint4 *p = (const uint4 *)((unsigned long long)from & ~15ull);
    uint4 v[READS];
    for (; k + (READS - 1) * lanes < n; k += READS * lanes) {
        for (unsigned int i = 0; i < READS; i++) v[i] = p[k + i * lanes];
        for (unsigned int i = 0; i < READS; i++) ((uint4 *)to)[k + i * lanes] = v[i];
    }
    for (; k < n; k += lanes) ((uint4 *)to)[k] = p[k];
}

// Where a packet lies: its region's base is asked for once.
__device__ const unsigned char *bytes_of(const gn_side *side, gn_u64 place, gn_u32 *region, const unsigned char **base)
{
    if (gn_place_region(place) != *region) {
        *region = gn_place_region(place);
        *base = (const unsigned char *)gn_pointer(side, gn_place(*region, 0));
    }
    return *base + gn_place_offset(place);
}

// A warp takes packets and their descriptors at once, reads each packet into its own memory where it is reported to, and gives them back.
__global__ void receive(void *context, unsigned int rings, unsigned char *memory, unsigned int room, unsigned int read, unsigned int most,
                        unsigned long long *account)
{
    gn_side side;
    gn_rx rx;
    gn_u64 first, sum = 0;
    gn_u32 n, region = ~0u;
    const unsigned char *base = 0;
    gn_packet p;
    unsigned int scope = blockDim.x < 32 ? GN_BY_THREAD : GN_BY_WARP, warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (gn_open(&side, context) != GN_OK || gn_rx_open(&rx, &side, blockIdx.x % rings) != GN_OK) return;
    for (;;) {
        int reply = gn_recv(&rx, scope, most, GN_LIMIT, &first, &n, 0);
        if (reply == GN_TIMEOUT) continue;
        if (reply != GN_OK) break;
        if (scope == GN_BY_THREAD || threadIdx.x % 32 == 0) sum += n;
        if (read && scope == GN_BY_WARP) gn_rx_read_warp(&rx, first, n, &p);
        for (unsigned int k = 0; read && k < n; k++) {
            if (scope == GN_BY_THREAD && gn_rx_read(&rx, first + k, &p) != GN_OK) break;
            gn_u64 place = scope == GN_BY_WARP ? gn_shuffle(p.place, k) : p.place;
            gn_u32 bytes = scope == GN_BY_WARP ? (gn_u32)gn_shuffle(p.bytes, k) : p.bytes;
            keep(memory + (gn_u64)warp * room, bytes_of(&side, place, &region, &base), bytes);
        }
        gn_release(&rx, scope, first, n);
    }
    atomicAdd(account + 1, sum);
}
]]

local account = daqiri.array{ kind = "host_pinned", type = "uint64", shape = 2 }
local function made(entry, lanes)
  return daqiri.kernel{ name = entry, persistent = true, entry = entry, src = src, rings = { tx = args.slots, rx = args.slots },
    grid = blocks, block = gpu and lanes or 1 }
end

local k = kernel and made(args.what, sends and 32 or 128)
local rx, tx = {}, {}
for q = 1, args.queues do rx[q] = s:rx_queue("receiver", q - 1) end
for r = 1, rings do tx[r] = s:tx_queue("sender", (r - 1) % args.queues) end
if k and not sends then
  local room = 16 * math.ceil(args.size / 16) -- of a warp
  local memory = daqiri.array{ kind = gpu and "device" or "host_pinned", type = "uint8", shape = blocks * 4 * room }
  k:start{ rx = rx, policy = "wait", args = { "context", rings, memory, room, args.read and 1 or 0, args.batch, account } }
else
  for q = 1, args.queues do s:pipe(rx[q], s:count{ name = "counted" .. q }) end
end
s:start()
if k and sends then
  k:start{ tx = tx, regions = { "frames" }, args = { "context", rings, "frames", s:region("frames").stride, args.size, DEPTH, account } }
else
  for q = 1, args.queues do tx[q]:transmit{ template = tx[q]:template{ udp_dst = PORT + q, payload_bytes = args.size - 42 } } end
end

local function passed() return k.completed + k.received end
repeat s:measure{ seconds = args.seconds / 10 } until not k or passed() > 0 or not k.running
local function ring_packets() -- of each ring that sends, so far
  local list, l = {}, s:stats().send
  for r = 1, rings do list[r] = l[rings == 1 and "tx" or "tx" .. r].out end
  return list
end
local before = { got = k and k.received, rings = k and sends and ring_packets() }
local m = s:measure{ seconds = args.seconds }
local figures = { seconds = m.seconds, cpu_seconds = m.process.cpu_seconds }
if k and not sends then
  figures.packets = k.received - before.got
else
  figures.packets = 0
  for q = 1, args.queues do figures.packets = figures.packets + m["counted" .. q].packets end
end
figures.bytes = figures.packets * args.size
if before.rings then
  local least, sum = math.huge, 0
  for r, n in ipairs(ring_packets()) do
    local mine = n - before.rings[r]
    least, sum = math.min(least, mine), sum + mine
  end
  figures.least_share = least / (sum / rings)
end
if not (k and sends) then
  for q = 1, args.queues do tx[q]:transmit{ template = false } end
end
if k then
  assert(k:stop{ timeout = 60 })
  assert(k.fault == nil, k.fault)
  assert(account:get(1) == 0, account:get(1) .. " calls failed")
  local took = account:get(2)
  assert(sends or took <= k.received and took >= figures.packets, ("%d packets received, %d taken"):format(k.received, took))
end
print(daqiri.json(figures))
