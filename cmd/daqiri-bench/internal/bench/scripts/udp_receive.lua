-- udp_receive.lua: receives numbered datagrams of another program and reports what they cost and which are missing. Prints
-- its readiness and then figures, as JSON lines; it waits for the first datagram and ends when no more come.
--   daqiri-run udp_receive.lua --listen 0.0.0.0:7152 --size 1024 --seconds 2
local daqiri = require "daqiri"
local args = daqiri.args{
  listen = { "127.0.0.1:7152", help = "HOST:PORT to receive at" },
  size = { 1024, unit = "bytes", help = "of the largest datagram" },
  seconds = { 1, help = "to measure, after a tenth of that to warm up" },
}

local room = math.max(2048, args.size)
local s = daqiri.open{ daqiri = { cfg = {
  version = 1, stream_type = "socket", master_core = 0,
  memory_regions = { { name = "packets", kind = "host", affinity = 0, num_bufs = math.ceil(64 * 2 ^ 20 / room), buf_size = room } },
  interfaces = { { name = "port", address = "0.0.0.0", socket_config = { mode = "server", local_addr = "udp://" .. args.listen },
    rx = { queues = { { name = "rx", id = 0, cpu_core = -1, batch_size = 256, timeout_us = 200, memory_regions = { "packets" } } } } } },
} } }

local number = { at = "start", bit_offset = 0, bit_width = 48, endianness = "little" }
local packets, top = 0, -1
s:rx_queue("port"):on_burst(function(b)
  packets, top = packets + b.n, math.max(top, b:column(number):max())
end)
s:start()
print(daqiri.json{ ready = 1 })

repeat s:measure{ seconds = 0.01 } until packets > 0
s:measure{ seconds = args.seconds / 10 }
local m = s:measure{ seconds = args.seconds }
repeat local quiet = s:measure{ seconds = 0.1 } until quiet.port.rx.packets == 0
print(daqiri.json{ packets = m.port.rx.packets, bytes = m.port.rx.bytes, seconds = m.seconds, received = packets,
  cpu_seconds = m.process.cpu_seconds, gaps = top + 1 - packets })
