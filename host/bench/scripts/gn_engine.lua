-- gn_engine.lua: the loop engine driven by a kernel (GPU-initiated networking), or by the CPU as ever, to compare: frames that a kernel
-- sends are received and counted; frames that the CPU sends are received by a kernel, which may read them. Prints figures as JSON.
--   daqiri-run gn_engine.lua --what send                   on the host: it takes a C++ or C compiler
--   daqiri-run gn_engine.lua --what receive --read --memory gpu     on a GPU: it takes NVRTC
--   daqiri-run gn_engine.lua --what send --by cpu
local daqiri = require "daqiri"
local args = daqiri.args{
  what = { "send", choices = { "send", "receive" }, help = "what the kernel does" },
  by = { "kernel", choices = { "kernel", "cpu" }, help = "cpu: the same engine without a kernel: a template sends, a stage counts" },
  size = { 1024, unit = "bytes", help = "of a frame" },
  rings = { 1, help = "of the queue" },
  slots = { 1024, help = "of a ring" },
  blocks = { 8, help = "of the kernel, for each ring, on a GPU; on the host one" },
  read = { false, help = "receive: the kernel reads every frame into memory of its own" },
  memory = { "host", help = "gpu: the kernel runs there" },
  seconds = { 1, help = "to measure, after a tenth of that to warm up" },
}
local gpu, kernel = args.memory == "gpu", args.by == "kernel"
local send = args.what == "send"
local blocks = (gpu and args.blocks or 1) * args.rings
local DEPTH = 8 -- packets of a thread that are on their way

-- The engine copies each packet into the receiver's memory, as others do: by reference only to read it as fast as a kernel can.
local like = args.read and args.size or args.size + 128
local function queue(name, region, timeout)
  return { name = name, id = 0, cpu_core = -1, batch_size = 256, timeout_us = timeout, memory_regions = { region } }
end
local s = daqiri.open({ version = 1, stream_type = "raw", master_core = 0, loopback = { mode = "sw", clock = "real" },
  memory_regions = {
    { name = "frames", kind = "host_pinned", affinity = 0, num_bufs = send and kernel and blocks * 32 * DEPTH or 64, buf_size = args.size },
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
                     unsigned long long *failed)
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
            if (said != GN_ABORTED && said != GN_OK) atomicAdd(failed, 1ull);
            break;
        }
    }
}

// A warp takes packets, reads each of them into its own memory where it is told to, and gives them back.
__device__ void keep(unsigned char *to, const unsigned char *from, unsigned int bytes)
{
    unsigned int lanes = blockDim.x < 32 ? blockDim.x : 32;
    const uint4 *p = (const uint4 *)((unsigned long long)from & ~15ull);
    for (unsigned int k = threadIdx.x % 32; k < bytes / 16; k += lanes) ((uint4 *)to)[k] = p[k];
}

__global__ void receive(void *port, unsigned int rings, unsigned char *memory, unsigned int size, unsigned int read, unsigned long long *bytes)
{
    gn_side side;
    gn_rx rx;
    gn_u64 first, sum = 0;
    gn_u32 n;
    gn_packet p;
    unsigned int scope = blockDim.x < 32 ? GN_BY_THREAD : GN_BY_WARP, warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (gn_open(&side, port) != GN_OK || gn_rx_open(&rx, &side, blockIdx.x % rings) != GN_OK) return;
    for (;;) {
        int said = gn_recv(&rx, scope, 32, GN_LIMIT, &first, &n, 0);
        if (said == GN_TIMEOUT) continue;
        if (said != GN_OK) break;
        if (scope == GN_BY_THREAD || threadIdx.x % 32 == 0) sum += n;
        for (unsigned int k = 0; read && k < n; k++)
            if (gn_rx_read(&rx, first + k, &p) == GN_OK)
                keep(memory + (gn_u64)warp * (size + 16), (const unsigned char *)gn_pointer(&side, p.place), p.bytes);
        gn_release(&rx, scope, first, n);
    }
    atomicAdd(bytes, sum * size);
}
]]

local k, told
if kernel then
  told = daqiri.array{ kind = "host_pinned", type = "uint64", shape = 1 }
  k = daqiri.kernel{ name = "kernel", persistent = true, entry = args.what, src = src, rings = { tx = args.slots, rx = args.slots },
    grid = blocks, block = gpu and (send and 32 or 128) or 1 }
end
local rings = {}
for r = 1, args.rings do rings[r] = send and tx or rx end
if kernel and send then
  s:pipe(rx, s:count{ name = "counted" })
  s:start()
  k:start{ tx = rings, regions = { "frames" },
    args = { "port", args.rings, "frames", s:region("frames").stride, args.size, DEPTH, told } }
else
  if kernel then
    local memory = daqiri.array{ kind = gpu and "device" or "host_pinned", type = "uint8", shape = blocks * 4 * (args.size + 16) }
    k:start{ rx = rings, policy = "wait", args = { "port", args.rings, memory, args.size, args.read and 1 or 0, told } }
  else
    s:pipe(rx, s:count{ name = "counted" })
  end
  tx:transmit{ template = tx:template{ udp_dst = 7148, payload_bytes = args.size - 42 } }
  s:start()
end

repeat s:measure{ seconds = args.seconds / 10 } until not k or not k.running or k.completed + k.received > 0
local function ring_packets() -- of each ring that sends, so far
  local list, l = {}, s:stats().kernel
  for r = 1, args.rings do list[r] = l[args.rings == 1 and "tx" or "tx" .. r].out end
  return list
end
local before = kernel and { got = k.received, rings = send and ring_packets() }
local m = s:measure{ seconds = args.seconds }
local out = { seconds = m.seconds, cpu_seconds = m.process.cpu_seconds }
if kernel and not send then out.packets = k.received - before.got else out.packets = m.counted.packets end
if kernel and send then
  local least, sum = math.huge, 0
  for r, n in ipairs(ring_packets()) do
    local mine = n - before.rings[r]
    least, sum = math.min(least, mine), sum + mine
  end
  out.least_share = least / (sum / args.rings)
end
out.bytes = out.packets * args.size
if kernel then
  assert(k:stop())
  assert(k.fault == nil, k.fault)
  if send then assert(told:get(1) == 0, told:get(1) .. " calls failed") else assert(told:get(1) <= k.received * args.size) end
end
tx:transmit{ template = false }
print(daqiri.json(out))
