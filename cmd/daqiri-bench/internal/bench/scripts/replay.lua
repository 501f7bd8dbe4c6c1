-- replay.lua: replays a capture over and over, flat out, into nothing or onto a device, and prints figures as a JSON line;
-- or once, with the gaps that it has.
--   daqiri-run replay.lua --file a.pcap --seconds 2
--   daqiri-run replay.lua --file a.pcap --to eth1 --once
local daqiri = require "daqiri"
local args = daqiri.args{
  file = { "", help = "the capture" },
  to = { "", help = "device to send on; else packets are counted" },
  seconds = { 1, unit = "s", help = "how long" },
  once = { false, help = "send it once, with its own gaps" },
}

local interfaces = { { name = "src", address = "pcap:" .. args.file, replay = { speed = "max", loops = args.once and 1 or "forever" },
  rx = { queues = { { name = "rx", id = 0, cpu_core = -1, batch_size = 512, memory_regions = { "packets" } } } } } }
if args.to ~= "" then
  interfaces[2] = { name = "out", address = args.to,
    tx = { queues = { { name = "tx", id = 0, cpu_core = -1, batch_size = 512, memory_regions = { "packets" } } } } }
end
local s = daqiri.open{ version = 1, stream_type = "raw", master_core = 0, interfaces = interfaces,
  memory_regions = { { name = "packets", kind = "host", affinity = 0, num_bufs = 8192, buf_size = 1920 } } }
s:pipe(s:rx_queue("src"), args.to ~= "" and s:tx_queue("out") or s:count{ name = "n" })
if args.once then
  s:tx_queue("out"):pace{ follow = "rx_timestamp" }
  s:threshold("out.tx.packets == src.rx.packets")
  s:run{}
  return
end
s:start()
s:measure{ seconds = 0.2 }
local m = s:measure{ seconds = args.seconds }
local packets = args.to ~= "" and m.out.tx.packets or m.src.rx.out
print(daqiri.json{ packets = packets, seconds = m.seconds, cpu_seconds = m.process.cpu_seconds })
s:stop("enough")
