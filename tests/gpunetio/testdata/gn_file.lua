-- gn_file.lua: a kernel writes records into two files in turn, all of a region at once, and what can't be written. `--dir`: where; full.raw there is a disk
-- without room.
local daqiri = require "daqiri"
local args = daqiri.args{ dir = "", records = 400, mode = "worker", kind = "host_pinned", memory = "host" }
local direct = args.mode == "direct"
local s = daqiri.open({ version = 1, stream_type = "raw", master_core = 0, loopback = { mode = "sw", clock = "real" },
  memory_regions = { { name = "frames", kind = "host", affinity = 0, num_bufs = 64, buf_size = 256 },
    { name = "data", kind = args.kind, affinity = 0, num_bufs = 1, buf_size = 1048576 } },
  interfaces = { { name = "link", address = "loop0", tx = { queues = { { name = "tx", id = 0, cpu_core = not direct and -1 or nil, poll_mode = direct and "direct" or nil,
    batch_size = 32, memory_regions = { "frames" } } } } } } }, { memory = args.memory == "host" and "host" or nil })
local function writer(name) return s:write_raw{ name = name, per = "file", dir = args.dir, prefix = name } end
local even, odd, whole, full = writer("even"), writer("odd"), writer("whole"), writer("full")
local k = daqiri.kernel{ name = "scribe", persistent = true, rings = { tx = 16, ops = { "file" } }, grid = 1, block = 1, src = [[
#include "gn.h"
__device__ void fill(unsigned char *p, unsigned int n, unsigned int bytes)
{
    for (unsigned int k = 0; k < bytes; k++) p[k] = (unsigned char)(n * 37 + k * 11 + (k >> 8));
}

__global__ void scribe(void *context, unsigned int data, unsigned int records, unsigned long long *said)
{
    gn_side side;
    gn_tx tx;
    gn_u64 tickets[8], ticket;
    if (gn_open(&side, context) != GN_OK || gn_tx_open(&tx, &side, 0) != GN_OK) return;
    for (unsigned int n = 0; n < records + 8; n++) {
        unsigned int bytes = 1 + n * 7919 % 3000;
        if (n >= 8) said[0] += gn_wait(&tx, tickets[n % 8], GN_LIMIT) == GN_OK;
        if (n >= records) continue;
        fill((unsigned char *)gn_pointer(&side, gn_place(data, n % 8 * 4096)), n, bytes);
        gn_file(&tx, GN_BY_THREAD, n % 2, gn_place(data, n % 8 * 4096), bytes, GN_LIMIT, &tickets[n % 8]);
    }
    fill((unsigned char *)gn_pointer(&side, gn_place(data, 0)), 5, 1048576);
    struct { unsigned int writer; gn_u64 from, bytes; } rest[] = { { 2, 0, 1048576 }, { 4, 0, 8 }, { ~0u, 0, 8 }, { 2, 1048570, 8 }, { 3, 0, 5000 }, { 2, 0, 1 } };
    for (int k = 0; k < 6; k++) {
        said[k + 1] = 99;
        if (gn_file(&tx, GN_BY_THREAD, rest[k].writer, gn_place(data, rest[k].from), (gn_u32)rest[k].bytes, GN_LIMIT, &ticket) == GN_OK)
            said[k + 1] = gn_wait(&tx, ticket, GN_LIMIT);
    }
}
]] }
local said = daqiri.array{ kind = args.memory == "host" and "host" or "host_pinned", type = "uint64", shape = 7 }
s:start()
k:start{ tx = s:tx_queue("link"), regions = { "data" }, writers = { even, odd, whole, full }, limit = "20s", timers = true, args = { "context", "data", args.records, said } }
assert(k:wait{ timeout = 60 })
local l = s:stats()
local tx, lost = l.scribe.tx, l.full
print("said", said:get(1), said:get(2), said:get(3), said:get(4), said:get(5), said:get(6), said:get(7))
print("ring", tx["in"], tx.out, tx.dropped, tx.held, k.refused, tx.file_time.max > 0)
print("files", l.even.out, l.odd.out, l.whole.out, lost["in"], lost.out, lost.dropped)
k:stop{ timeout = 60 }
