-- gn_write_lat.lua: measures the latency of a write from one kernel to a peer's kernel (GPU-initiated one-sided writes): the client puts
-- a few bytes and a signal, the server's kernel puts them back, and the client measures the time. Latency is half of a round trip.
--   daqiri-run gn_write_lat.lua                     the kernels run on the CPU: needs a C++ or C compiler
--   daqiri-run gn_write_lat.lua --memory gpu        on a GPU: needs NVRTC
--   daqiri-run gn_write_lat.lua --rate              prints the latency: median, 99 % and maximum
local daqiri = require "daqiri"
local args = daqiri.args{ trips = 200, bytes = { 8, unit = "bytes", help = "of a write" }, rate = false, memory = "host" }

local function region(name, bytes) return { name = name, kind = "host_pinned", affinity = 0, num_bufs = 1, buf_size = bytes } end
local function queue(name) return { name = name, id = 0, cpu_core = -1, batch_size = 32, memory_regions = { "frames" } } end
local s = daqiri.open({ version = 1, stream_type = "raw", master_core = 0, loopback = { mode = "sw", clock = "real" },
  memory_regions = { { name = "frames", kind = "host_pinned", affinity = 0, num_bufs = 64, buf_size = 64 }, -- for the queues; never sent
    region("client_out", args.bytes), region("client_in", args.bytes + 16), region("server_out", args.bytes), region("server_in", args.bytes + 16) },
  interfaces = { { name = "near", address = "a", tx = { queues = { queue "client_tx" } } },
    { name = "far", address = "b", tx = { queues = { queue "server_tx" } } } } },
  { memory = args.memory == "host" and "host" or nil })

-- A region contains the signal in its first 8 bytes, and the data from byte 16 on.
local text = [[
#include "gn.h"
__device__ int put(const gn_tx *tx, unsigned int out, unsigned int peer, unsigned int bytes)
{
    return gn_put_signal(tx, GN_BY_THREAD, gn_place(peer, 16), gn_place(out, 0), bytes, gn_place(peer, 0), 1, GN_LIMIT, 0);
}

__global__ void client(void *context, unsigned int out, unsigned int in, unsigned int peer, unsigned int trips, unsigned int bytes,
                       unsigned long long *took, unsigned long long *wrong)
{
    gn_side side;
    gn_tx tx;
    if (gn_open(&side, context) != GN_OK || gn_tx_open(&tx, &side, 0) != GN_OK) return;
    unsigned char *p = (unsigned char *)gn_pointer(&side, gn_place(out, 0));
    const volatile unsigned char *q = (const volatile unsigned char *)gn_pointer(&side, gn_place(in, 16));
    for (unsigned int n = 0; n < trips; n++) {
        for (unsigned int k = 0; k < bytes; k++) p[k] = (unsigned char)(n * 31 + k);
        gn_u64 from = gn_now();
        int status = put(&tx, out, peer, bytes);
        if (status == GN_OK) status = gn_wait_signal(&side, gn_place(in, 0), n + 1, 20000000000ull);
        took[n] = gn_now() - from;
        unsigned int same = 0;
        for (unsigned int k = 0; k < bytes; k++) same += q[k] == (unsigned char)(n * 31 + k);
        if (status != GN_OK || same != bytes) wrong[0]++;
        if (status != GN_OK) break;
    }
}

__global__ void server(void *context, unsigned int out, unsigned int in, unsigned int peer, unsigned int trips, unsigned int bytes)
{
    gn_side side;
    gn_tx tx;
    if (gn_open(&side, context) != GN_OK || gn_tx_open(&tx, &side, 0) != GN_OK) return;
    unsigned char *p = (unsigned char *)gn_pointer(&side, gn_place(out, 0));
    const volatile unsigned char *q = (const volatile unsigned char *)gn_pointer(&side, gn_place(in, 16));
    for (unsigned int n = 0; n < trips; n++) {
        if (gn_wait_signal(&side, gn_place(in, 0), n + 1, 20000000000ull) != GN_OK) return;
        for (unsigned int k = 0; k < bytes; k++) p[k] = q[k];
        if (put(&tx, out, peer, bytes) != GN_OK) return;
    }
    gn_flush(&tx, GN_LIMIT);
}
]]
local function kernel(entry)
  return daqiri.kernel{ entry = entry, persistent = true, rings = { tx = 16, ops = { "put" } }, grid = 1, block = 1, src = text }
end
local client, server = kernel "client", kernel "server"
local took = daqiri.array{ kind = "host_pinned", type = "uint64", shape = args.trips }
local wrong = daqiri.array{ kind = "host_pinned", type = "uint64", shape = 1 }

s:start()
server:start{ tx = s:tx_queue("far"), regions = { "server_out", "server_in" }, remote = { "client_in" },
  args = { "context", "server_out", "server_in", "client_in", args.trips, args.bytes } }
client:start{ tx = s:tx_queue("near"), regions = { "client_out", "client_in" }, remote = { "server_in" },
  args = { "context", "client_out", "client_in", "server_in", args.trips, args.bytes, took, wrong } }
assert(client:wait{ timeout = 100 } and server:wait{ timeout = 100 })
client:stop()
server:stop()
local l, us = s:stats(), {}
print(("%d round trips of %d bytes, %d wrong"):format(l.server.tx.one_sided, args.bytes, wrong:get(1)))
for n = 1, args.trips do us[n] = took:get(n) / 2000 end
table.sort(us)
assert(us[1] > 0, "a write took no time")
local function at(part) return us[math.ceil(part * args.trips)] end
if args.rate then print(("write latency: %.2f us median, %.2f us 99 %%, %.2f us at most"):format(at(0.5), at(0.99), at(1))) end
assert(wrong:get(1) == 0 and l.client.tx.one_sided == args.trips and l.server.tx.one_sided == args.trips)
