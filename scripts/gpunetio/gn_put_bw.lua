-- gn_put_bw.lua: a client's kernel puts messages into a server's memory and signals (GPU-initiated one-sided writes); the server's kernel
-- waits for the signal of each, checks every byte and signals back. Both are in one session: over the loop engine, where the memory of a peer is a
-- region (`remote`), or over RDMA, where each side lends the memory that the other writes to.
--   daqiri-run gn_put_bw.lua                   one thread posts each message, on the CPU: needs a C++ or C compiler
--   daqiri-run gn_put_bw.lua --scope warp      the 32 threads of a warp post together
--   daqiri-run gn_put_bw.lua --proxy           without a worker: the script polls the rings, with i:progress()
--   daqiri-run gn_put_bw.lua --memory gpu      on a GPU: needs NVRTC
--   daqiri-run gn_put_bw.lua --rate            prints the bandwidth achieved
--   daqiri-run gn_put_bw.lua --at 10.9.0.1 --from 10.9.0.2   addresses of the RDMA devices of server and client
local daqiri = require "daqiri"
local args = daqiri.args{ messages = 1000, bytes = 4096, scope = "thread", proxy = false, rate = false, memory = "host", at = "", from = "", port = 4096 }
assert(args.scope == "thread" or args.scope == "warp", "--scope: thread or warp, got " .. args.scope)
assert(args.bytes % 16 == 0, "--bytes: a multiple of 16, got " .. args.bytes)

local SLOTS, CREDIT = 64, 16 -- slots of the window, each with its own signal; messages that the server checks before it reports them
local rdma = args.at ~= ""
local function queue(name)
  return { { name = name, id = 0, cpu_core = not args.proxy and -1 or nil, poll_mode = args.proxy and "direct" or nil, batch_size = 32, memory_regions = { "frames" } } }
end
local function region(name, n, bytes, access)
  return { name = name, kind = "host_pinned", affinity = 0, num_bufs = n, buf_size = bytes, access = rdma and access or nil }
end
local function side(name, address, config)
  return { name = name, address = address, socket_config = config, roce_config = rdma and { transport_mode = "RC" } or nil,
    rx = rdma and { queues = queue(name .. "_rx") } or nil, tx = { queues = queue(name .. "_tx") } }
end
local lent = { "local", "rdma_write" }
local config = { version = 1, stream_type = "raw", master_core = 0, loopback = { mode = "sw", clock = "real" },
  memory_regions = { region("frames", 256, 256), -- for the queues, and the messages that describe lent memory
    region("source", SLOTS, args.bytes), region("window", SLOTS, args.bytes, lent),
    region("signals", 1, 8 * SLOTS, lent), region("checked", 1, 8, lent) }, -- one word per slot; messages checked
  interfaces = { side("client_port", "loop0"), side("server_port", "loop1") } }
if rdma then
  local at = ("roce://%s:%d"):format(args.at, args.port)
  config.stream_type, config.loopback = "socket", nil
  config.interfaces = { side("client_port", args.from, { mode = "client", local_addr = "roce://" .. args.from, remote_addr = at }),
    side("server_port", args.at, { mode = "server", local_addr = at }) }
end
local s = daqiri.open(config, { memory = args.memory == "host" and "host" or nil })

local text = [[
#include "gn.h"
__device__ uint4 word_of(unsigned int message, unsigned int k)
{
    uint4 w = { message, k, message * 2654435761u ^ k, ~k };
    return w;
}
__device__ gn_u64 slot_signal(unsigned int signals, unsigned int slot) { return gn_place(signals, 8 * slot); }

// Puts the messages in their order, `group` of them posted at once, each once its slot's last one was checked.
__global__ void client(void *context, unsigned int source, unsigned int window, unsigned int signals, unsigned int checked, unsigned int stride,
                       unsigned int messages, unsigned int bytes, unsigned int slots, unsigned int group, unsigned long long *failed)
{
    __shared__ int status;
    gn_side side;
    gn_tx tx;
    unsigned int me = threadIdx.x;
    if (gn_open(&side, context) != GN_OK || gn_tx_open(&tx, &side, 0) != GN_OK) return;
    for (unsigned int first = 0; first < messages; first += group) {
        unsigned int n = messages - first < group ? messages - first : group, least = first + n;
        if (me == 0) status = least <= slots ? GN_OK : gn_wait_signal(&side, gn_place(checked, 0), least - slots, 20000000000ull);
        __syncthreads();
        if (status != GN_OK) break;
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
    if (me == 0 && (status != GN_OK || gn_flush(&tx, GN_LIMIT) != GN_OK)) atomicAdd(failed, 1ull);
}

// Waits for the signal of each message's slot, then checks all of it, once, and signals the client.
__global__ void server(void *context, unsigned int window, unsigned int signals, unsigned int checked, unsigned int stride, unsigned int messages,
                       unsigned int bytes, unsigned int slots, unsigned int credit, unsigned long long *wrong)
{
    __shared__ int status;
    gn_side side;
    gn_tx tx;
    if (gn_open(&side, context) != GN_OK || gn_tx_open(&tx, &side, 0) != GN_OK) return;
    for (unsigned int n = 0; n < messages; n++) {
        const uint4 *p = (const uint4 *)gn_pointer(&side, gn_place(window, (gn_u64)(n % slots) * stride));
        if (threadIdx.x == 0) status = gn_wait_signal(&side, slot_signal(signals, n % slots), n / slots + 1, 20000000000ull);
        __syncthreads();
        if (status != GN_OK) break;
        for (unsigned int k = threadIdx.x; k < bytes / 16; k += blockDim.x) {
            uint4 is = p[k], want = word_of(n, k);
            if (is.x != want.x || is.y != want.y || is.z != want.z || is.w != want.w) atomicAdd(wrong, 1ull);
        }
        __syncthreads();
        if (threadIdx.x == 0 && (n + 1) % credit == 0 && gn_signal(&tx, GN_BY_THREAD, gn_place(checked, 0), credit, GN_LIMIT, 0) != GN_OK) atomicAdd(wrong, 1ull);
    }
    if (threadIdx.x == 0 && (status != GN_OK || gn_flush(&tx, GN_LIMIT) != GN_OK)) atomicAdd(wrong, 1ull);
}
]]
local THREADS = args.memory == "host" and 32 or 64
local function kernel(entry)
  return daqiri.kernel{ entry = entry, persistent = true, rings = { tx = 64, ops = { "put", "add" } }, grid = 1, block = THREADS, src = text }
end
local client, server = kernel("client"), kernel("server")
local failed, wrong = daqiri.array{ kind = "host_pinned", type = "uint64", shape = 1 }, daqiri.array{ kind = "host_pinned", type = "uint64", shape = 1 }

local conns = {}
for _, name in ipairs(rdma and { "client", "server" } or {}) do
  s:interface(name .. "_port"):on_connection(function(c) conns[name] = c end)
end
s:start()
local function progress() -- polls the rings, with --proxy
  if not args.proxy then return daqiri.sleep(1e-3) end
  s:interface("client_port"):progress()
  s:interface("server_port"):progress()
end
if rdma then
  while not (conns.client and conns.server) do progress() end
  for _, name in ipairs{ "window", "signals" } do assert(conns.server:lend(name, { access = "rdma_write" })) end
  assert(conns.client:lend("checked", { access = "rdma_write" }))
  while not (conns.client.remotes.window and conns.client.remotes.signals and conns.server.remotes.checked) do progress() end
end
local stride, from = s:region("source").stride, daqiri.time "now"
server:start{ tx = s:tx_queue("server_port"), conn = conns.server, regions = { "window", "signals" }, remote = { "checked" },
  args = { "context", "window", "signals", "checked", stride, args.messages, args.bytes, SLOTS, CREDIT, wrong } }
client:start{ tx = s:tx_queue("client_port"), conn = conns.client, regions = { "source", "checked" }, remote = { "window", "signals" },
  args = { "context", "source", "window", "signals", "checked", stride, args.messages, args.bytes, SLOTS, args.scope == "warp" and 32 or 1, failed } }
while args.proxy and (client.running or server.running) do progress() end
assert(client:wait{ timeout = 100 } and server:wait{ timeout = 100 })
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
