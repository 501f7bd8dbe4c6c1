-- A kernel, on the host or (--memory device) a GPU, fails in the first of its lives, with a packet in its hand, and does its work in the next one; a second kernel sends all the while.
local daqiri = require "daqiri"
local args = daqiri.args{ fault = "trap", restarts = 50, memory = "host" }
local FAULTS = { trap = 1, outside = 2, never = 3, leaves = 4, aborts = 5 }

local function queue(name, id, region) return { name = name, id = id, cpu_core = -1, batch_size = 64, memory_regions = { region } } end
local function region(name) return { name = name, kind = "host_pinned", affinity = 0, num_bufs = 64, buf_size = 2048 } end
local into = queue("rx", 0, "in")
into.timeout_us = 50
local s = daqiri.open({ version = 1, stream_type = "raw", master_core = 0, loopback = { mode = "sw", clock = "real" },
  memory_regions = { { name = "foreign", kind = "host", affinity = 0, num_bufs = 64, buf_size = 1024 }, region("frames"), region("others"), region("out"), region("in") },
  interfaces = { { name = "gpu", address = "a", tx = { queues = { queue("first", 0, "out"), queue("second", 1, "out") } } },
    { name = "receiver", address = "b", rx = { queues = { into } } } } }, { memory = "host" })

local source = [[
#include "gn.h"
__device__ int send(const gn_side *side, gn_tx *tx, unsigned int region)
{
    gn_u64 ticket, place = gn_place(region, 0);
    unsigned char *p = (unsigned char *)gn_pointer(side, place);
    for (unsigned int k = 0; k < 64; k++) p[k] = k < 6 ? 255 : 0x88;
    int err = gn_send(tx, GN_BY_THREAD, place, 64, 0, 0, GN_LIMIT, &ticket);
    return err == GN_OK ? gn_wait(tx, ticket, GN_LIMIT) : err;
}

// Sends until it is told to end: done[0]. done[1]: packets, done[2]: calls that failed.
__global__ void steady(void *context, unsigned int region, unsigned long long *done)
{
    gn_side side;
    gn_tx tx;
    if (gn_open(&side, context) != GN_OK || gn_tx_open(&tx, &side, 0) != GN_OK) return;
    while (!*(volatile unsigned long long *)&done[0]) {
        int err = send(&side, &tx, region);
        done[err == GN_OK ? 1 : 2]++;
        if (err == GN_ABORTED) return;
    }
}

// lives[0]: how often it began; [1], [2]: when it failed, and began again; [3]: it did its work.
__global__ void faulty(void *context, unsigned int region, unsigned int fault, unsigned long long *lives)
{
    gn_side side;
    gn_tx tx;
    gn_rx rx;
    gn_u64 first;
    gn_u32 n;
    if (threadIdx.x > 1 || (fault != 4 && threadIdx.x > 0)) return;
    unsigned long long life = threadIdx.x ? 1 : atomicAdd(&lives[0], 1ull) + 1;
    if (gn_open(&side, context) != GN_OK || gn_tx_open(&tx, &side, 0) != GN_OK || gn_rx_open(&rx, &side, 0) != GN_OK) return;
    if (fault == 4) { // one takes a ticket and leaves; the other waits behind it
        if (threadIdx.x) lives[3] = send(&side, &tx, region); else gn_reserve(&tx, 1, GN_LIMIT, &first);
        return;
    }
    if (life > 1 && !lives[2]) lives[2] = gn_now();
    while (gn_recv(&rx, GN_BY_THREAD, 1, GN_LIMIT, &first, &n, 0) == GN_TIMEOUT) {}
    if (life > 1) {
        gn_release(&rx, GN_BY_THREAD, first, n);
        lives[3] = send(&side, &tx, region) == GN_OK;
        return;
    }
    lives[1] = gn_now();
    if (fault == 1) *(volatile int *)0 = 1;
    if (fault == 2) *((volatile unsigned char *)gn_pointer(&side, gn_place(region, 0)) - 1) = 1; // of region "foreign"
#ifdef ABORTS // a function of the host's
    abort();
#endif
    for (volatile int on = 1; on;) {}
}
]]
if args.fault == "aborts" then source = "#define ABORTS\n" .. source end
local function kernel(name, block, memory) return daqiri.kernel{ name = name, entry = name, memory = memory, persistent = true, grid = 1, block = block, src = source } end
local function array(memory) return daqiri.array{ kind = memory == "host" and "host_pinned" or "device", memory = memory, type = "uint64", shape = 4 } end
local steady, faulty, done, lives = kernel("steady", 1, "host"), kernel("faulty", 32, args.memory), array("host"), array(args.memory)

s:start()
faulty:start{ tx = s:tx_queue("gpu", 1), rx = s:rx_queue("receiver"), regions = { "frames" }, limit = "20s", timeout = args.fault == "never" and "500ms" or "60s", restarts = args.restarts,
  args = { "context", "frames", FAULTS[args.fault], lives } }
steady:start{ tx = s:tx_queue("gpu", 0), regions = { "others" }, limit = "20s", timeout = "60s", args = { "context", "others", done } }
assert(faulty:wait{ timeout = 60 })
done:set(1, 1)
assert(steady:wait{ timeout = 60 })
local after = array(args.memory) -- its place still does other work of the program's
local plain = daqiri.kernel{ name = "plain", memory = args.memory, grid = 1, block = 1, src = "__global__ void plain(unsigned long long *p) { p[3] = 7; }" }
assert(plain:launch(after):wait{ timeout = 60 })
local fault = faulty.fault
steady:stop{ timeout = 60 }
faulty:stop{ timeout = 60 }
local tx, rx, other = s:stats().faulty.tx, s:stats().faulty.rx, s:stats().steady.tx
print(daqiri.json{ restarted = faulty.restarted, after = after:get(4), worked = lives:get(4), fault = fault or "", replaced_ms = (lives:get(3) - lives:get(2)) / 1e6,
  held = tx.held + rx.held + other.held, stopped = rx.dropped, sent = done:get(2), failed = done:get(3), completed = steady.completed,
  others = steady.restarted, out = other.out, bad_out = tx.out })
