-- two_gpus.lua: packets go into the memory of GPU 0, from there into that of GPU 1, and back to the host, where each byte is checked.
-- With --between the way from one GPU to the other leads through pinned memory.
--   daqiri-run tests/gpu/testdata/two_gpus.lua       on a host with two GPUs
local daqiri = require "daqiri"
local args = daqiri.args{ packets = 2000, bytes = 200, between = false }
-- Each region has room for all packets, so that none is dropped where the copies are slow.
local function region(name, kind, gpu) return { name = name, kind = kind, affinity = gpu or 0, num_bufs = args.packets + 64, buf_size = 256 } end
local function queue(name, r) return { name = name, id = 0, poll_mode = "direct", batch_size = 64, memory_regions = { r } } end
local s = daqiri.open{ version = 1, stream_type = "raw", master_core = 0, loopback = { mode = "sw", clock = "real" },
  memory_regions = { region("out", "host"), region("in", "host_pinned"), region("first", "device", 0), region("middle", "host_pinned"), region("second", "device", 1),
    region("back", "host_pinned") },
  interfaces = { { name = "a", address = "a", tx = { queues = { queue("tx", "out") } } }, { name = "b", address = "b", rx = { queues = { queue("rx", "in") } } } } }
local first, middle = s:copy{ name = "first", memory_region = "first", policy = "wait" }, args.between and s:copy{ name = "middle", memory_region = "middle", policy = "wait" }
local second, back = s:copy{ name = "second", memory_region = "second", policy = "wait" }, s:copy{ name = "back", memory_region = "back", policy = "wait" }
if middle then s:pipe(s:rx_queue("b"), first, middle, second, back) else s:pipe(s:rx_queue("b"), first, second, back) end
local n, wrong = 0, 0
back:on_burst(function(b)
  for i = 1, b.n do
    local p = b:packet(i)
    if p.length ~= args.bytes + 42 or p:u32(42) ~= n or p:bytes(46) ~= ("gpu "):rep((args.bytes - 4) / 4) then wrong = wrong + 1 end
    n = n + 1
  end
  if n == args.packets then s:stop() end
end, { policy = "wait" })
local tx = s:tx_queue("a")
tx:transmit{ template = tx:template{ udp_dst = 7148, payload = "\0\0\0\0" .. ("gpu "):rep((args.bytes - 4) / 4), vary = { { at = "payload", bit_offset = 0, bit_width = 32, step = 1 } } },
  count = args.packets }
s:run{ seconds = 100 }
print(("%d packets through two GPUs, %d wrong"):format(n, wrong))
assert(n == args.packets and wrong == 0)
