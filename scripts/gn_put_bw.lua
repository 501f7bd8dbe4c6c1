-- gn_put_bw.lua: a client's kernel puts messages into a server's memory and signals (GPU-initiated one-sided writes); the server's kernel
-- waits for the signal and checks every byte. Both are of one session over the loop engine, whose peers' memory is a region (`remote`).
--   daqiri-run gn_put_bw.lua                   a thread posts each message, on the CPU: it takes a C++ or C compiler
--   daqiri-run gn_put_bw.lua --scope warp      the 32 threads of a warp post together
--   daqiri-run gn_put_bw.lua --proxy           no worker: the script moves the rings itself, by i:progress()
--   daqiri-run gn_put_bw.lua --rate            prints what was achieved
local daqiri = require "daqiri"
local args = daqiri.args{ messages = 2000, bytes = 4096, scope = "thread", proxy = false, rate = false, memory = "host" }
assert(args.scope == "thread" or args.scope == "warp", "--scope: thread or warp, got " .. args.scope)

local SLOTS = 64 -- of the window; a message and its number mod 256 fill one
local function queue(name)
  return { name = name, id = 0, cpu_core = not args.proxy and -1 or nil, poll_mode = args.proxy and "direct" or nil, batch_size = 32, memory_regions = { "frames" } }
end
local s = daqiri.open({ version = 1, stream_type = "raw", master_core = 0, loopback = { mode = "sw", clock = "real" },
  memory_regions = {
    { name = "frames", kind = "host_pinned", affinity = 0, num_bufs = 64, buf_size = 64 }, -- the queue's: nothing of it is sent
    { name = "source", kind = "host_pinned", affinity = 0, num_bufs = SLOTS, buf_size = args.bytes },
    { name = "window", kind = "host_pinned", affinity = 0, num_bufs = SLOTS, buf_size = args.bytes },
    { name = "signals", kind = "host_pinned", affinity = 0, num_bufs = 1, buf_size = 64 } },
  interfaces = { { name = "link", address = "loop0", tx = { queues = { queue("tx") } } } } },
  { memory = args.memory == "host" and "host" or nil })

local text = [[
#include "gn.h"
__device__ unsigned char byte_of(unsigned int message, unsigned int k) { return (unsigned char)(message * 7 + k * 13); }

// Every thread puts every n-th message into the slot of its number, after the signal says that the slot's last one was checked.
__global__ void client(void *port, unsigned int source, unsigned int window, unsigned int signals, unsigned int stride, unsigned int messages,
                       unsigned int bytes, unsigned int slots, int scope, unsigned long long *failed)
{
    gn_side side;
    gn_tx tx;
    gn_u64 ticket = 0;
    if (gn_open(&side, port) != GN_OK || gn_tx_open(&tx, &side, 0) != GN_OK) return;
    for (unsigned int n = threadIdx.x; n < messages; n += blockDim.x) {
        gn_u64 from = gn_place(source, (gn_u64)(n % slots) * stride), to = gn_place(window, (gn_u64)(n % slots) * stride);
        unsigned char *p = (unsigned char *)gn_pointer(&side, from);
        if (n >= slots && gn_wait_signal(&side, gn_place(signals, 8), n - slots + 1, 20000000000ull) != GN_OK) break;
        for (unsigned int k = 0; k < bytes; k++) p[k] = byte_of(n, k);
        int said = gn_put_signal(&tx, scope, to, from, bytes, gn_place(signals, 16 + 8 * (n % 4)), 1, GN_LIMIT, &ticket);
        if (said == GN_OK) said = gn_wait(&tx, ticket, GN_LIMIT);
        if (said != GN_OK) atomicAdd(failed, 1ull);
    }
}

// Checks messages in their order; those of n % 4 have a signal of their own, of which message n is number n / 4 + 1.
__global__ void server(void *port, unsigned int window, unsigned int signals, unsigned int stride, unsigned int messages, unsigned int bytes,
                       unsigned int slots, unsigned long long *wrong)
{
    gn_side side;
    if (gn_open(&side, port) != GN_OK) return;
    for (unsigned int n = 0; n < messages; n++) {
        const unsigned char *p = (const unsigned char *)gn_pointer(&side, gn_place(window, (gn_u64)(n % slots) * stride));
        for (;;) { // puts of a warp come in any order among them
            unsigned int k = 0;
            while (k < bytes && *(volatile const unsigned char *)&p[k] == byte_of(n, k)) k++;
            if (k == bytes) break;
            gn_u64 sum = 0;
            for (unsigned int s = 0; s < 4; s++) sum += gn_load((const gn_u64 *)gn_pointer(&side, gn_place(signals, 16 + 8 * s)));
            if (sum >= n + 32 || gn_peek(&side.proxy->abort)) {
                atomicAdd(wrong, 1ull);
                break;
            }
            gn_beat(&side);
            gn_pause();
        }
        gn_store((gn_u64 *)gn_pointer(&side, gn_place(signals, 8)), n + 1);
    }
}
]]
local function kernel(entry, block)
  return daqiri.kernel{ entry = entry, persistent = true, rings = { tx = 64, ops = { "put" } }, grid = 1, block = block, src = text }
end
local client, server = kernel("client", args.scope == "warp" and 32 or 1), kernel("server", 1)
local failed, wrong = daqiri.array{ kind = "host_pinned", type = "uint64", shape = 1 }, daqiri.array{ kind = "host_pinned", type = "uint64", shape = 1 }

s:start()
local stride, from = s:region("source").stride, daqiri.time "now"
server:start{ regions = { "window", "signals" }, args = { "port", "window", "signals", stride, args.messages, args.bytes, SLOTS, wrong } }
client:start{ tx = s:tx_queue("link"), regions = { "source" }, remote = { "window", "signals" },
  args = { "port", "source", "window", "signals", stride, args.messages, args.bytes, SLOTS, args.scope == "warp" and 1 or 0, failed } }
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
