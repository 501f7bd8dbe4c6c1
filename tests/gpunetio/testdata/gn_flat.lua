-- gn_flat.lua: a kernel sends frames, receives them, copies and writes to a file, as fast as it goes, until it has handed `count` descriptors over. Prints how
-- much memory the program has when it is warm and at the end, in KiB, and with `--every` in between. `--dir`: where the file is.
--   daqiri-run tests/gpunetio/testdata/gn_flat.lua --dir /tmp --count 1e12 --seconds 480 --every 10
local daqiri = require "daqiri"
local args = daqiri.args{ dir = "", count = 1000000, warm = 200000, every = 0, seconds = 300 }
local function queue(name, region) return { name = name, id = 0, cpu_core = -1, batch_size = 64, memory_regions = { region } } end
local function region(name) return { name = name, kind = "host_pinned", affinity = 0, num_bufs = 4096, buf_size = 2048 } end
local into = queue("rx", "in")
into.timeout_us = 50
local s = daqiri.open({ version = 1, stream_type = "raw", master_core = 0, loopback = { mode = "sw", clock = "real" },
  memory_regions = { region("frames"), region("out"), region("in") },
  interfaces = { { name = "gpu", address = "a", tx = { queues = { queue("tx", "out") } }, rx = { queues = { into } } } } }, { memory = "host" })
local disk = s:write_raw{ name = "disk", per = "file", dir = args.dir, prefix = "flat" }
local k = daqiri.kernel{ name = "flat", persistent = true, grid = 1, block = 1, rings = { tx = 256, rx = 256, ops = { "send", "copy", "file" } }, src = [[
#include "gn.h"
__global__ void flat(void *context, unsigned int frames, unsigned int stride, unsigned long long *counts)
{
    gn_side side;
    gn_tx tx;
    gn_rx rx;
    gn_u64 first, ticket;
    gn_u32 n;
    if (gn_open(&side, context) != GN_OK || gn_tx_open(&tx, &side, 0) != GN_OK || gn_rx_open(&rx, &side, 0) != GN_OK) return;
    int said = GN_OK;
    for (gn_u64 k = 0; said != GN_ABORTED; k++) {
        gn_u64 place = gn_place(frames, k % 2048 * stride), other = gn_place(frames, (2048 + k % 2048) * stride);
        unsigned char *p = (unsigned char *)gn_pointer(&side, place);
        for (int i = 0; i < 12; i++) p[i] = 255;
        p[12] = 0x88;
        p[13] = 0xb5;
        if (k % 64 == 0) said = gn_file(&tx, GN_BY_THREAD, 0, place, 64, GN_LIMIT, &ticket);
        else if (k % 64 == 1) said = gn_copy(&tx, GN_BY_THREAD, other, place, 64, GN_LIMIT, &ticket);
        else said = gn_send(&tx, GN_BY_THREAD, place, 64, 0, 0, GN_LIMIT, &ticket);
        counts[0] += said == GN_OK;
        if (gn_recv(&rx, GN_BY_THREAD, 32, 0, &first, &n, 0) != GN_OK) continue;
        counts[1] += n;
        gn_release(&rx, GN_BY_THREAD, first, n);
    }
}
]] }
local function memory()
  for line in io.lines("/proc/self/status") do
    local kib = line:match("^RssAnon:%s+(%d+)")
    if kib then return tonumber(kib) end
  end
end
local counts = daqiri.array{ kind = "host_pinned", type = "uint64", shape = 2 }
s:start()
k:start{ tx = s:tx_queue("gpu"), rx = s:rx_queue("gpu"), regions = { "frames" }, writers = { disk }, args = { "context", "frames", s:region("frames").stride, counts } }
local warm, over
s:every(0.1, function()
  if not warm and counts:get(1) >= args.warm then
    warm = memory()
    print("warm", warm)
  end
  if counts:get(1) < args.count or over then return end
  over = true
  print("end", memory())
  k:stop{ timeout = 60 }
  s:stop()
end)
if args.every > 0 then s:every(args.every, function() print(("%12d descriptors handed over, %d KiB"):format(counts:get(1), memory())) end) end
s:run{ seconds = args.seconds }
print("handed over", counts:get(1), "received", counts:get(2), "refused", k.refused)
