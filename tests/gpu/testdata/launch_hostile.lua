-- A kernel that is launched on the host does what no kernel may: it calls a function of the C library by its distance from one that kernels
-- have, spins (distance 1), or writes to an address that is not its own (2). Beside it the session records packets. With how = "launch" the
-- script launches it once and prints the error, and what the call gave back; with "stage" it gets each burst.
local daqiri = require "daqiri"
local args = daqiri.args{ how = "launch", distance = 0, text = "", first = 0, second = 0, third = 0, seconds = 60 }
local function queue(name, region) return { name = name, id = 0, cpu_core = -1, batch_size = 64, memory_regions = { region } } end
local function region(name) return { name = name, kind = "host", affinity = 0, num_bufs = 512, buf_size = 2048 } end
local into = queue("rx", "in")
into.timeout_us = 1000
local s = daqiri.open{ version = 1, stream_type = "raw", master_core = 0, loopback = { mode = "sw", clock = "real" },
  memory_regions = { region("out"), region("in") },
  interfaces = { { name = "source", address = "c", tx = { queues = { queue("tx", "out") } } },
    { name = "sink", address = "b", rx = { queues = { into } } } } }
local k = daqiri.kernel{ name = "hostile", memory = "host", grid = 1, block = 1, src = [[
typedef long (*function)(long, long, long, long);
__global__ void hostile(long distance, const unsigned char *text, long first, long second, long third, long long *gave)
{
    function f = (function)((char *)(void *)printf + distance);
    if (distance == 1) for (volatile int a = 1; a;) ;
    if (distance == 2) *(volatile int *)first = 1;
    gave[0] = (int)f(first == -1 ? (long)text : first, second == -1 ? (long)text : second, third, 0);
}
]] }
local text = daqiri.array{ kind = "host", type = "uint8", shape = 256 }
for i = 1, #args.text do text:set(i, args.text:byte(i)) end
local gave = daqiri.array{ kind = "host", type = "int64", shape = 1 }
gave:set(1, -999)
local list = { args.distance, text, args.first, args.second, args.third, gave }
local arrives = s:rx_queue("sink")
s:pipe(arrives, s:write_pcap{ name = "disk", policy = "wait" })
if args.how == "stage" then s:pipe(arrives, k:stage{ args = list, session = s }) end
local tx = s:tx_queue("source")
tx:pace{ pps = 500 }
tx:transmit{ template = tx:template{ payload_bytes = 200 } }
s:start()
print("ready")
if args.how == "launch" then
  s:after(0.2, function()
    local ok, err = pcall(k.launch, k, unpack(list))
    print(ok and gave:get(1) or err)
    s:stop()
  end)
end
s:run{ seconds = args.seconds }
