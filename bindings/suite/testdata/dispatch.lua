-- A persistent kernel receives and hands groups of packets to a second kernel through a semaphore: the script launches it for each item.
-- On the real clock.
local daqiri = require "daqiri"
local GROUP, GROUPS = 8, 12
local source = [[
#include "gn.h"
#define GROUP 8
// Copies the number that each packet has into its group's place of `numbers`, which has 8: those of 4 items and the one being filled differ.
__global__ void collect(void *context, unsigned long long *numbers)
{
    gn_side side;
    gn_rx rx;
    gn_sem groups;
    gn_u64 first, got = 0;
    gn_u32 n;
    if (gn_open(&side, context) || gn_rx_open(&rx, &side, 0) || gn_sem_open(&groups, &side, 0)) return;
    while (gn_recv(&rx, GN_BY_THREAD, 1, 60000000000ull, &first, &n, 0) == GN_OK) {
        gn_packet p;
        gn_rx_read(&rx, first, &p);
        const unsigned char *b = (const unsigned char *)gn_pointer(&side, p.place) + 42;
        unsigned long long number = 0;
        for (int k = 0; k < 4; k++) number = number * 10 + (b[k] - '0');
        numbers[got++ % (8 * GROUP)] = number;
        gn_release(&rx, GN_BY_THREAD, first, n);
        if (got % GROUP == 0 && gn_sem_push(&groups, (got - GROUP) % (8 * GROUP), GROUP, 60000000000ull, 0) != GN_OK) return;
    }
}
// The second kernel: adds up a group.
__global__ void sum(const unsigned long long *numbers, unsigned int first, unsigned int count, unsigned long long *sums, unsigned int to)
{
    for (unsigned int k = 0; k < count; k++) sums[to] += numbers[first + k];
}
]]
local function queue(name) return { { name = name, id = 0, cpu_core = -1, timeout_us = name == "rx" and 10 or nil, batch_size = 8, memory_regions = { "packets" } } } end
local s = daqiri.open({ version = 1, stream_type = "raw", master_core = 0, loopback = { mode = "sw", clock = "real" },
  memory_regions = { { name = "packets", kind = "host", affinity = 0, num_bufs = 512, buf_size = 256 } },
  interfaces = { { name = "here", address = "a", tx = { queues = queue "tx" } }, { name = "there", address = "b", rx = { queues = queue "rx" } } } }, { memory = "host" })
local collect = daqiri.kernel{ entry = "collect", memory = "host", persistent = true, grid = 1, block = 1, rings = { rx = 64, semaphores = 4 }, src = source }
local sum = daqiri.kernel{ entry = "sum", memory = "host", grid = 1, block = 1, src = source }
local numbers = daqiri.array{ kind = "host_pinned", type = "uint64", shape = 8 * GROUP }
local sums = daqiri.array{ kind = "host_pinned", type = "uint64", shape = GROUPS }
s:start()
collect:start{ rx = s:rx_queue("there"), semaphores = 1, policy = "wait", args = { "context", numbers } }
local dispatched = 0
collect.semaphores[1]:on_ready(function(first, count)
  assert(assert(sum:launch(numbers, first, count, sums, dispatched)):wait{ timeout = 20 })
  dispatched = dispatched + 1 -- the item is given back now: its place is the first kernel's again
end)
local from = s:tx_queue("here")
for n = 1, GROUP * GROUPS do
  local b = from:alloc(1)
  b:fill(from:template{ udp_dst = 7148, payload = ("%04d"):format(n) })
  assert(from:send(b))
  if n % 16 == 0 then daqiri.sleep(1e-3) end
end
local until_ = daqiri.time "now" + 30
while dispatched < GROUPS and daqiri.time "now" < until_ do daqiri.sleep(2e-3) end
assert(dispatched == GROUPS, dispatched)
for g = 1, GROUPS do
  local last = g * GROUP
  assert(sums:get(g) == (last - GROUP + 1 + last) * GROUP / 2, g .. ": " .. tostring(sums:get(g)))
end
assert(collect:stop{ timeout = 20 })
s:close()
