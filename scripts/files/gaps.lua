-- gaps.lua: counts the packets that are missing in a capture, by the numbers of their format: how many, when and of which stream.
--   daqiri-run gaps --file day1.pcapng --format vrt --where 'udp_dst == 4991'
--   daqiri-run gaps --file day1.pcapng --format simple --by ipv4_src --every 10
-- Without --file it shows two streams on a wire that loses packets, in memory.
local daqiri = require "daqiri"
local args = daqiri.args{
  file = { "", help = "the capture, pcap or pcapng" },
  format = { "simple", help = "format of the packets, which has a sequence number (daqiri-run help formats)" },
  counter = { type = "string", help = "field that counts packets, instead of the format's sequence number" },
  by = { type = "string", help = "what distinguishes streams, such as ipv4_src or a field of the format" },
  where = { "ip_proto == 17", help = "which packets count, a condition" },
  every = { 1, unit = "s", help = "of the capture, between two lines" },
  window = { type = "number", unit = "packets", help = "how far behind the highest number a packet may come" },
}

local s, q
if args.file ~= "" then
  s = daqiri.open({ daqiri = { cfg = { version = 1, stream_type = "raw", master_core = 0, loopback = { mode = "sw", clock = "virtual" },
    memory_regions = { { name = "packets", kind = "host", affinity = 0, num_bufs = 2048, buf_size = 65536 } },
    interfaces = { { name = "capture", address = "pcap:" .. args.file,
      rx = { queues = { { name = "rx", id = 0, cpu_core = -1, batch_size = 256, memory_regions = { "packets" } } } } } } } } })
  q = s:rx_queue("capture")
else
  s = daqiri.open(nil, { set = { loopback = { mode = "sw", clock = "virtual", loss = 0.01, dup = 0.002, reorder = 0.005, seed = 7 } } })
  q, args.by, args.every = s:rx_queue("loop0"), "udp_dst", 0.005
  local tx = s:tx_queue("loop0")
  tx:pace{ pps = 1e6 }
  tx:transmit{ count = 10000, template = tx:template{ format = args.format, payload_bytes = 64,
    vary = { udp_dst = { start = 7001, max = 7002 }, seq = { start = 5, every = 2 } } } }
end

s:pipe(q, s:filter{ name = "chosen", where = args.where },
  s:gaps{ name = "gaps", format = args.format, counter = args.counter, by = args.by, window = args.window })

local before = 0
s:every(args.every, function()
  local l = s:stats()
  if l.gaps.missing > before then print(("until %.9g s %d packets are missing"):format(l.seconds, l.gaps.missing)) end
  before = l.gaps.missing
end)
local sum = s:run{ seconds = args.file == "" and 0.1 or nil }
local g = sum.gaps
print(("of %d packets %d are missing: %d came, %d of them out of order; %d came again, %d late"):format(
  g.expected, g.missing, g.unique, g.reordered, g.duplicate, g.late))
local several, streams = pcall(function() return g.source end)
for name, stream in pairs(several and streams or {}) do
  print(("  stream %s: %d missing, %d came"):format(name, stream.missing, stream.packets))
end
