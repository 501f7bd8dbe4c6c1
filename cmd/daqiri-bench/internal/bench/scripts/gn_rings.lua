-- gn_rings.lua: rings between a kernel and the proxy (GPU-initiated networking), and nothing behind them: how long a descriptor takes there
-- and back, how many go through in a second, and how fast a kernel hands over what it writes into the host's memory. Prints figures as JSON.
--   daqiri-run gn_rings.lua --what echo                    on the host: it takes a C++ or C compiler
--   daqiri-run gn_rings.lua --what post --memory gpu       on a GPU: it takes NVRTC
--   daqiri-run gn_rings.lua --what post --rings 4 --proxies 2 --bytes 8192 --memory gpu
local daqiri = require "daqiri"
local args = daqiri.args{
  what = { "post", choices = { "echo", "post" }, help = "echo: one descriptor after the other, each waited for; post: as many as go through" },
  rings = { 1, help = "transmit rings" },
  proxies = { 1, help = "queues, each with a worker, that the rings are of in turn" },
  slots = { 1024, help = "of a ring" },
  warps = { 4, help = "that post into a ring; on the host one thread does" },
  bytes = { 0, help = "that are written into the host's memory for each descriptor" },
  batch = { 4, help = "of these that a warp writes, and then posts together" },
  memory = { "host", help = "gpu: the kernel runs there" },
  seconds = { 1, help = "to measure, after a tenth of that to warm up" },
}
local gpu = args.memory == "gpu"
local warps = gpu and args.warps or 1
local NS_A_BIN, BINS = 16, 16384
local ROUNDS = 4 -- before a warp writes over what it wrote
assert(args.batch <= 32, "--batch: at most 32, the lanes of a warp")

local queues = {}
for k = 1, args.proxies do
  queues[k] = { name = "tx" .. k, id = k - 1, cpu_core = -1, batch_size = 256, memory_regions = { "frames" } }
end
local s = daqiri.open({ version = 1, stream_type = "raw", master_core = 0, loopback = { mode = "sw", clock = "real" },
  memory_regions = {
    { name = "frames", kind = "host_pinned", affinity = 0, num_bufs = 64, buf_size = 64 }, -- the queues': nothing is sent
    { name = "signals", kind = "host_pinned", affinity = 0, num_bufs = 1, buf_size = 64 * 16 },
    { name = "out", kind = "host_pinned", affinity = 0, num_bufs = args.rings * warps * args.batch * ROUNDS, buf_size = math.max(64, args.bytes) } },
  interfaces = { { name = "port", address = "a", tx = { queues = queues } } } },
  { memory = not gpu and "host" or nil })

local src = [[
#include "gn.h"
#ifdef __CUDACC_RTC__
#define TICKS() ((gn_u64)clock64()) // the GPU's time has steps of up to a microsecond
#else
#define TICKS() gn_now()
#endif

__global__ void echo(void *context, unsigned int bins, unsigned int bin_ns, unsigned long long *count, unsigned long long *failed)
{
    gn_side side;
    gn_tx tx;
    gn_slot nop = gn_fill_nop();
    gn_u64 ticket;
    if (gn_open(&side, context) != GN_OK || gn_tx_open(&tx, &side, 0) != GN_OK) {
        *failed = 1;
        return;
    }
    gn_u64 began = gn_now(), from = TICKS();
    while (gn_now() - began < 5000000) continue;
    double ns = (double)(gn_now() - began) / (double)(TICKS() - from);
    for (;;) {
        from = TICKS();
        int reply = gn_submit(&tx, GN_BY_THREAD, &nop, GN_LIMIT, &ticket);
        if (reply == GN_OK) reply = gn_wait(&tx, ticket, GN_LIMIT);
        if (reply == GN_ABORTED) break;
        if (reply != GN_OK) ++*failed;
        gn_u64 bin = (gn_u64)((double)(TICKS() - from) * ns) / bin_ns;
        count[bin < bins ? bin : bins - 1]++;
    }
}

// The threads of a warp write what a descriptor stands for, 16 bytes at a time.
__device__ void fill(unsigned char *to, unsigned int bytes, unsigned int word)
{
    uint4 *p = (uint4 *)to;
    for (unsigned int k = threadIdx.x % 32; k < bytes / 16; k += blockDim.x < 32 ? blockDim.x : 32) p[k] = make_uint4(word, k, word, k);
}

// Each block posts into its ring: by warps, or, of one thread, 32 tickets at a time. A descriptor adds 1 to the ring's signal. Of what is
// written, `batch` descriptors are posted together: their fence waits until the bus has taken all that came before it.
__global__ void post(void *context, unsigned int rings, unsigned int signals, unsigned int out, unsigned int stride, unsigned int bytes,
                     unsigned int batch, unsigned int rounds, unsigned long long *sent)
{
    gn_side side;
    gn_tx tx;
    gn_u64 ticket = 0, n = 0;
    unsigned int ring = blockIdx.x % rings, warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, round = 0;
    if (gn_open(&side, context) != GN_OK || gn_tx_open(&tx, &side, ring) != GN_OK) return;
    gn_u64 at = gn_place(signals, ring * 64);
    gn_slot add = gn_fill_add(at, 1);
    unsigned char *base = (unsigned char *)gn_pointer(&side, gn_place(out, 0));
    for (;; round++) {
        for (unsigned int k = 0; bytes > 0 && k < batch; k++)
            fill(base + ((gn_u64)(warp * rounds + round % rounds) * batch + k) * stride, bytes, round);
        if (blockDim.x >= 32) {
            int posts = bytes == 0 || threadIdx.x % 32 < batch;
            gn_slot mine = posts ? add : gn_fill_nop();
            int reply = gn_submit(&tx, GN_BY_WARP, &mine, GN_LIMIT, &ticket);
            if (gn_ballot(reply != GN_OK)) break; // all lanes of a warp come along
            n += posts;
            continue;
        }
        unsigned int many = bytes > 0 ? batch : 32;
        if (gn_reserve(&tx, many, GN_LIMIT, &ticket) != GN_OK) break;
        for (unsigned int k = 0; k < many; k++) gn_commit(&tx, ticket + k, &add);
        gn_publish(&tx, ticket, many);
        n += many;
    }
    atomicAdd(sent, (unsigned long long)n);
}
]]

local tx = {}
for r = 1, args.rings do tx[r] = s:tx_queue("port", (r - 1) % args.proxies) end
local k = daqiri.kernel{ name = "kernel", persistent = true, entry = args.what, src = src,
  rings = { tx = args.slots, ops = { "add" } }, grid = args.what == "echo" and 1 or args.rings,
  block = args.what == "echo" and 1 or (gpu and 32 * warps or 1) }
local counts = daqiri.array{ kind = "host_pinned", type = "uint64", shape = BINS }
local failed = daqiri.array{ kind = "host_pinned", type = "uint64", shape = 1 }
local sent = daqiri.array{ kind = "host_pinned", type = "uint64", shape = 1 }
s:start()
k:start{ tx = tx, regions = { "out" }, remote = { "signals" },
  args = args.what == "echo" and { "context", BINS, NS_A_BIN, counts, failed }
    or { "context", args.rings, "signals", "out", s:region("out").stride, args.bytes, args.batch, ROUNDS, sent } }
repeat s:measure{ seconds = args.seconds / 10 } until k.completed > 0 or not k.running
counts:fill(0)
local before = k.completed
local m = s:measure{ seconds = args.seconds }
local done = k.completed - before
assert(k:stop{ timeout = 60 })
local out = { seconds = m.seconds, descriptors = done, cpu_seconds = m.process.cpu_seconds, refused = k.refused, failed = failed:get(1) }
if args.what == "post" then
  out.posted, out.sent, out.bytes = k.completed, sent:get(1), args.bytes > 0 and done * args.bytes or nil
  assert(k.completed <= sent:get(1) and k.refused == 0, ("%d posted, %d completed, %d refused"):format(sent:get(1), k.completed, k.refused))
else
  local total, all = 0, counts:snapshot()
  for b = 1, BINS do total = total + all:get(b) end
  local seen, want = 0, { p50 = 0.5, p999 = 0.999 }
  for b = 1, BINS do
    seen = seen + all:get(b)
    for name, share in pairs(want) do
      if seen >= share * total and not out[name] then out[name] = b * NS_A_BIN end
    end
  end
  out.n = total
end
print(daqiri.json(out))
