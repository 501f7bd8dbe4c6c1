-- gn_engine.lua: the loop engine driven by a kernel (GPU-initiated networking), or by the CPU as ever, to compare: frames that a kernel
-- sends are received and counted; frames that the CPU sends, or another kernel, are received by a kernel, which may read them. Prints
-- figures as JSON.
--   daqiri-run gn_engine.lua --what send                   on the host: it takes a C++ or C compiler
--   daqiri-run gn_engine.lua --what pass --read --memory gpu        on a GPU: it takes NVRTC
--   daqiri-run gn_engine.lua --what send --by cpu
local daqiri = require "daqiri"
local args = daqiri.args{
  what = { "send", choices = { "send", "receive", "pass" }, help = "what the kernel does; pass: one sends, another one receives" },
  by = { "kernel", choices = { "kernel", "cpu" }, help = "cpu: the same engine without a kernel: a template sends, a stage counts" },
  size = { 1024, unit = "bytes", help = "of a frame" },
  rings = { 1, help = "of the queue" },
  slots = { 1024, help = "of a ring" },
  blocks = { 8, help = "of the kernel, for each ring, on a GPU; on the host one" },
  batch = { 32, help = "packets that a warp takes at once" },
  read = { false, help = "receive: the kernel reads every frame into memory of its own" },
  memory = { "host", help = "gpu: the kernel runs there" },
  seconds = { 1, help = "to measure, after a tenth of that to warm up" },
}
local gpu, kernel = args.memory == "gpu", args.by == "kernel"
local sends, receives = args.what ~= "receive", args.what ~= "send"
local blocks = (gpu and args.blocks or 1) * args.rings
local DEPTH = 8 -- packets of a thread that are on their way

-- The engine copies each packet into the receiver's memory, as others do: by reference only to read it as fast as a kernel can.
local like = args.read and args.size or args.size + 128
local function queue(name, region, timeout)
  return { name = name, id = 0, cpu_core = -1, batch_size = 256, timeout_us = timeout, memory_regions = { region } }
end
local s = daqiri.open({ version = 1, stream_type = "raw", master_core = 0, loopback = { mode = "sw", clock = "real" },
  memory_regions = {
    { name = "frames", kind = "host_pinned", affinity = 0, num_bufs = sends and kernel and blocks * 32 * DEPTH or 64, buf_size = args.size },
    { name = "out", kind = "host_pinned", affinity = 0, num_bufs = 4096, buf_size = args.size },
    { name = "in", kind = "host_pinned", affinity = 0, num_bufs = 4096, buf_size = like } },
  interfaces = {
    { name = "sender", address = "a", tx = { queues = { queue("tx", "out") } } },
    { name = "receiver", address = "b", rx = { queues = { queue("rx", "in", 20) } } } } },
  { memory = not gpu and "host" or nil })
local tx, rx = s:tx_queue("sender"), s:rx_queue("receiver")

local src = [[
#include "gn.h"
// Every thread sends one packet after the other, up to `depth` before the first of them is waited for; the engine is what is measured, so
// the frames are written once.
__global__ void send(void *port, unsigned int rings, unsigned int frames, unsigned int stride, unsigned int size, unsigned int depth,
                     unsigned long long *account)
{
    gn_side side;
    gn_tx tx;
    gn_u64 ticket[8], told;
    unsigned int me = blockIdx.x * blockDim.x + threadIdx.x, scope = blockDim.x < 32 ? GN_BY_THREAD : GN_BY_WARP;
    if (gn_open(&side, port) != GN_OK || gn_tx_open(&tx, &side, blockIdx.x % rings) != GN_OK) return;
    for (unsigned int n = 0; n < depth; n++) {
        unsigned char *p = (unsigned char *)gn_pointer(&side, gn_place(frames, (gn_u64)(me * depth + n) * stride));
        for (unsigned int k = 0; k < size; k++) p[k] = (unsigned char)(k < 6 ? 255 : k + n);
        p[12] = 0x88;
        p[13] = 0xb5;
    }
    for (unsigned int n = 0;; n++) {
        gn_u64 place = gn_place(frames, (gn_u64)(me * depth + n % depth) * stride);
        int said = n < depth ? GN_OK : gn_wait(&tx, ticket[n % depth], GN_LIMIT);
        if (said == GN_OK || scope == GN_BY_WARP) { // all lanes of a warp come along
            int e = gn_send(&tx, scope, place, size, 0, 0, GN_LIMIT, &told);
            if (said == GN_OK) said = e;
        }
        ticket[n % depth] = told;
        if (scope == GN_BY_WARP ? gn_ballot(said != GN_OK) : said != GN_OK) {
            if (said != GN_ABORTED && said != GN_OK) atomicAdd(account, 1ull);
            break;
        }
    }
}

// A warp takes packets, reads each of them into its own memory where it is told to, and gives them back. Of a packet it has 8 reads on
// their way, as each takes a while.
__device__ void keep(unsigned char *to, const unsigned char *from, unsigned int bytes)
{
    unsigned int lanes = blockDim.x < 32 ? blockDim.x : 32, n = bytes / 16, k = threadIdx.x % 32;
    const uint4 *p = (const uint4 *)((unsigned long long)from & ~15ull);
    uint4 v[8];
    for (; k + 7 * lanes < n; k += 8 * lanes) {
        for (unsigned int i = 0; i < 8; i++) v[i] = p[k + i * lanes];
        for (unsigned int i = 0; i < 8; i++) ((uint4 *)to)[k + i * lanes] = v[i];
    }
    for (; k < n; k += lanes) ((uint4 *)to)[k] = p[k];
}

__global__ void receive(void *port, unsigned int rings, unsigned char *memory, unsigned int size, unsigned int read, unsigned int most,
                        unsigned long long *account)
{
    gn_side side;
    gn_rx rx;
    gn_u64 first, sum = 0;
    gn_u32 n;
    gn_packet p;
    unsigned int scope = blockDim.x < 32 ? GN_BY_THREAD : GN_BY_WARP, warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (gn_open(&side, port) != GN_OK || gn_rx_open(&rx, &side, blockIdx.x % rings) != GN_OK) return;
    for (;;) {
        int said = gn_recv(&rx, scope, most, GN_LIMIT, &first, &n, 0);
        if (said == GN_TIMEOUT) continue;
        if (said != GN_OK) break;
        if (scope == GN_BY_THREAD || threadIdx.x % 32 == 0) sum += n;
        for (unsigned int k = 0; read && k < n; k++)
            if (gn_rx_read(&rx, first + k, &p) == GN_OK)
                keep(memory + (gn_u64)warp * (size + 16), (const unsigned char *)gn_pointer(&side, p.place), p.bytes);
        gn_release(&rx, scope, first, n);
    }
    atomicAdd(account + 1, sum * size);
}
]]

-- A kernel of the source on every ring.
local account = daqiri.array{ kind = "host_pinned", type = "uint64", shape = 2 }
local function made(entry, lanes)
  return daqiri.kernel{ name = entry, persistent = true, entry = entry, src = src, rings = { tx = args.slots, rx = args.slots },
    grid = blocks, block = gpu and lanes or 1 }
end
local function rings_of(queue)
  local list = {}
  for r = 1, args.rings do list[r] = queue end
  return list
end

local sender = kernel and sends and made("send", 32)
local receiver = kernel and receives and made("receive", 128)
local kernels = {} -- in the order in which they end: whoever sends, first
if sender then kernels[1] = sender end
if receiver then kernels[#kernels + 1] = receiver end
if receiver then
  local memory = daqiri.array{ kind = gpu and "device" or "host_pinned", type = "uint8", shape = blocks * 4 * (args.size + 16) }
  receiver:start{ rx = rings_of(rx), policy = "wait",
    args = { "port", args.rings, memory, args.size, args.read and 1 or 0, args.batch, account } }
else
  s:pipe(rx, s:count{ name = "counted" })
end
s:start()
if sender then
  sender:start{ tx = rings_of(tx), regions = { "frames" },
    args = { "port", args.rings, "frames", s:region("frames").stride, args.size, DEPTH, account } }
else
  tx:transmit{ template = tx:template{ udp_dst = 7148, payload_bytes = args.size - 42 } }
end

local function passed() return (sender and sender.completed or 0) + (receiver and receiver.received or 0) end
repeat s:measure{ seconds = args.seconds / 10 } until not kernel or passed() > 0 or not (sender or receiver).running
local function ring_packets() -- of each ring that sends, so far
  local list, l = {}, s:stats().send
  for r = 1, args.rings do list[r] = l[args.rings == 1 and "tx" or "tx" .. r].out end
  return list
end
local before = { got = receiver and receiver.received, rings = sender and ring_packets() }
local m = s:measure{ seconds = args.seconds }
local out = { seconds = m.seconds, cpu_seconds = m.process.cpu_seconds }
out.packets = receiver and receiver.received - before.got or m.counted.packets
if sender then
  local least, sum = math.huge, 0
  for r, n in ipairs(ring_packets()) do
    local mine = n - before.rings[r]
    least, sum = math.min(least, mine), sum + mine
  end
  out.least_share = least / (sum / args.rings)
end
out.bytes = out.packets * args.size
for _, k in ipairs(kernels) do
  assert(k:stop())
  assert(k.fault == nil, k.fault)
end
if sender then assert(account:get(1) == 0, account:get(1) .. " calls failed") end
if receiver then assert(account:get(2) <= receiver.received * args.size) end
tx:transmit{ template = false }
print(daqiri.json(out))
