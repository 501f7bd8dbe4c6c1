-- gn_put_bw.lua: a client's kernel puts messages into a server's memory and signals (GPU-initiated one-sided writes); the server's kernel
-- waits for the signal of each and checks every byte. Both are of one session over the loop engine, whose peers' memory is a region (`remote`).
--   daqiri-run gn_put_bw.lua                   a thread posts each message, on the CPU: it takes a C++ or C compiler
--   daqiri-run gn_put_bw.lua --scope warp      the 32 threads of a warp post together
--   daqiri-run gn_put_bw.lua --proxy           no worker: the script moves the rings itself, by i:progress()
--   daqiri-run gn_put_bw.lua --memory gpu      on a GPU: it takes NVRTC
--   daqiri-run gn_put_bw.lua --rate            prints what was achieved
local daqiri = require "daqiri"
local args = daqiri.args{ messages = 1000, bytes = 4096, scope = "thread", proxy = false, rate = false, memory = "host" }
assert(args.scope == "thread" or args.scope == "warp", "--scope: thread or warp, got " .. args.scope)
assert(args.bytes % 16 == 0, "--bytes: a multiple of 16, got " .. args.bytes)

local SLOTS = 64 -- of the window, each with a signal of its own
local function queue(name)
  return { name = name, id = 0, cpu_core = not args.proxy and -1 or nil, poll_mode = args.proxy and "direct" or nil, batch_size = 32, memory_regions = { "frames" } }
end
local s = daqiri.open({ version = 1, stream_type = "raw", master_core = 0, loopback = { mode = "sw", clock = "real" },
  memory_regions = {
    { name = "frames", kind = "host_pinned", affinity = 0, num_bufs = 64, buf_size = 64 }, -- the queue's: nothing of it is sent
    { name = "source", kind = "host_pinned", affinity = 0, num_bufs = SLOTS, buf_size = args.bytes },
    { name = "window", kind = "host_pinned", affinity = 0, num_bufs = SLOTS, buf_size = args.bytes },
    { name = "signals", kind = "host_pinned", affinity = 0, num_bufs = 1, buf_size = 64 + 8 * SLOTS } }, -- messages checked; a word for each slot
  interfaces = { { name = "link", address = "loop0", tx = { queues = { queue("tx") } } } } },
  { memory = args.memory == "host" and "host" or nil })

local text = [[
#include "gn.h"
__device__ uint4 word_of(unsigned int message, unsigned int k)
{
    uint4 w = { message, k, message * 2654435761u ^ k, ~k };
    return w;
}
__device__ gn_u64 slot_signal(unsigned int signals, unsigned int slot) { return gn_place(signals, 64 + 8 * slot); }

// Puts the messages in their order, `group` of them posted at once, each once its slot's last one was checked.
__global__ void client(void *port, unsigned int source, unsigned int window, unsigned int signals, unsigned int stride, unsigned int messages,
                       unsigned int bytes, unsigned int slots, unsigned int group, unsigned long long *failed)
{
    __shared__ int said;
    gn_side side;
    gn_tx tx;
    unsigned int me = threadIdx.x;
    if (gn_open(&side, port) != GN_OK || gn_tx_open(&tx, &side, 0) != GN_OK) return;
    for (unsigned int first = 0; first < messages; first += group) {
        unsigned int n = messages - first < group ? messages - first : group, least = first + n;
        if (me == 0) said = least <= slots ? GN_OK : gn_wait_signal(&side, gn_place(signals, 0), least - slots, 20000000000ull);
        __syncthreads();
        if (said != GN_OK) break;
        for (unsigned int m = first; m < first + n; m++) {
            uint4 *p = (uint4 *)gn_pointer(&side, gn_place(source, (gn_u64)(m % slots) * stride));
            for (unsigned int k = me; k < bytes / 16; k += blockDim.x) p[k] = word_of(m, k);
        }
        __threadfence_system();
        __syncthreads();
        if (me < group) { // a thread, or the first warp
            unsigned int slot = (first + me) % slots;
            gn_slot post = gn_fill_move(GN_OP_PUT, gn_place(source, (gn_u64)slot * stride), gn_place(window, (gn_u64)slot * stride), bytes);
            gn_fill_signal(&post, slot_signal(signals, slot), 1);
            if (me >= n) post = gn_fill_nop();
            if (gn_submit(&tx, group == 1 ? GN_BY_THREAD : GN_BY_WARP, &post, GN_LIMIT, 0) != GN_OK) atomicAdd(failed, 1ull);
        }
    }
    if (me == 0 && (said != GN_OK || gn_flush(&tx, GN_LIMIT) != GN_OK)) atomicAdd(failed, 1ull);
}

// Waits for the signal of each message's slot, then looks at all of it, once.
__global__ void server(void *port, unsigned int window, unsigned int signals, unsigned int stride, unsigned int messages, unsigned int bytes,
                       unsigned int slots, unsigned long long *wrong)
{
    __shared__ int said;
    gn_side side;
    if (gn_open(&side, port) != GN_OK) return;
    for (unsigned int n = 0; n < messages; n++) {
        const uint4 *p = (const uint4 *)gn_pointer(&side, gn_place(window, (gn_u64)(n % slots) * stride));
        if (threadIdx.x == 0) said = gn_wait_signal(&side, slot_signal(signals, n % slots), n / slots + 1, 20000000000ull);
        __syncthreads();
        if (said != GN_OK) break;
        for (unsigned int k = threadIdx.x; k < bytes / 16; k += blockDim.x) {
            uint4 is = p[k], want = word_of(n, k);
            if (is.x != want.x || is.y != want.y || is.z != want.z || is.w != want.w) atomicAdd(wrong, 1ull);
        }
        __syncthreads();
        if (threadIdx.x == 0) gn_store((gn_u64 *)gn_pointer(&side, gn_place(signals, 0)), n + 1);
    }
    if (threadIdx.x == 0 && said != GN_OK) atomicAdd(wrong, 1ull);
}
]]
local THREADS = args.memory == "host" and 32 or 64
local function kernel(entry)
  return daqiri.kernel{ entry = entry, persistent = true, rings = { tx = 64, ops = { "put" } }, grid = 1, block = THREADS, src = text }
end
local client, server = kernel("client"), kernel("server")
local failed, wrong = daqiri.array{ kind = "host_pinned", type = "uint64", shape = 1 }, daqiri.array{ kind = "host_pinned", type = "uint64", shape = 1 }

s:start()
local stride, from = s:region("source").stride, daqiri.time "now"
server:start{ regions = { "window", "signals" }, args = { "port", "window", "signals", stride, args.messages, args.bytes, SLOTS, wrong } }
client:start{ tx = s:tx_queue("link"), regions = { "source" }, remote = { "window", "signals" },
  args = { "port", "source", "window", "signals", stride, args.messages, args.bytes, SLOTS, args.scope == "warp" and 32 or 1, failed } }
if args.proxy then
  local port = s:interface("link")
  while client.running or server.running do port:progress() end
end
assert(client:wait{ timeout = 60 } and server:wait{ timeout = 60 })
local seconds = daqiri.time "now" - from
client:stop()
server:stop()
local ring = s:stats().client.tx
print(("%d messages of %d bytes, %d failed, %d wrong"):format(ring.one_sided, args.bytes, failed:get(1), wrong:get(1)))
if args.rate then print(("%.2f Gbit/s, %.0f messages/s"):format(ring.one_sided_bytes * 8e-9 / seconds, ring.one_sided / seconds)) end
if wrong:get(1) == 0 and failed:get(1) == 0 and ring.one_sided == args.messages then
  print("Validation successful! Data received correctly from client.")
else
  print("Validation failed")
  daqiri.exit_code = 1
end
