-- A kernel for the host calls a function of the C library that no kernel may: by its distance from one that kernels have. Beside it the
-- session records packets. Prints what the call gave back; "ready" before the kernel starts.
local daqiri = require "daqiri"
local args = daqiri.args{ distance = 0, text = "", first = 0, second = 0, third = 0, seconds = 60 }
local function queue(name, region) return { name = name, id = 0, cpu_core = -1, batch_size = 64, memory_regions = { region } } end
local function region(name) return { name = name, kind = "host", affinity = 0, num_bufs = 512, buf_size = 2048 } end
local into = queue("rx", "in")
into.timeout_us = 1000
local s = daqiri.open({ version = 1, stream_type = "raw", master_core = 0, loopback = { mode = "sw", clock = "real" },
  memory_regions = { region("frames"), region("out"), region("in") },
  interfaces = { { name = "kernel", address = "a", tx = { queues = { queue("own", "frames") } } },
    { name = "source", address = "c", tx = { queues = { queue("tx", "out") } } },
    { name = "sink", address = "b", rx = { queues = { into } } } } }, { memory = "host" })
local k = daqiri.kernel{ name = "hostile", persistent = true, memory = "host", grid = 1, block = 1, src = [[
#include "gn.h"
typedef long (*function)(long, long, long, long);
__global__ void hostile(void *context, long distance, const unsigned char *text, long first, long second, long third, long long *gave)
{
    function f = (function)((char *)(void *)printf + distance);
    if (distance == 0) return;
    gave[0] = (int)f(first == -1 ? (long)text : first, second == -1 ? (long)text : second, third, 0);
}
]] }
local text = daqiri.array{ kind = "host_pinned", memory = "host", type = "uint8", shape = 256 }
for i = 1, #args.text do text:set(i, args.text:byte(i)) end
local gave = daqiri.array{ kind = "host_pinned", memory = "host", type = "int64", shape = 1 }
gave:set(1, -999)
s:pipe(s:rx_queue("sink"), s:write_pcap{ name = "disk", policy = "wait" })
local tx = s:tx_queue("source")
tx:pace{ pps = 500 }
tx:transmit{ template = tx:template{ payload_bytes = 200 } }
s:start()
s:after(0.2, function()
  k:start{ tx = s:tx_queue("kernel"), restarts = 1, session = s,
    args = { "context", args.distance, text, args.first, args.second, args.third, gave } }
end)
s:run{ seconds = args.seconds }
print(gave:get(1))
