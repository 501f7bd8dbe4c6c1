-- capture.lua: records the datagrams of another program into a pcap until no more come. Prints its readiness and then
-- figures, as JSON lines.
--   daqiri-run capture.lua --listen 0.0.0.0:7154 --size 8000 --dir /data
local daqiri = require "daqiri"
local args = daqiri.args{
  listen = { "127.0.0.1:7154", help = "HOST:PORT to receive at" },
  size = { 8000, unit = "bytes", help = "of the largest datagram" },
  dir = { ".", help = "folder for the file" },
}

local room = math.max(2048, args.size)
local s = daqiri.open{ daqiri = { cfg = {
  version = 1, stream_type = "socket", master_core = 0,
  memory_regions = { { name = "packets", kind = "host", affinity = 0, num_bufs = math.ceil(256 * 2 ^ 20 / room), buf_size = room } },
  interfaces = { { name = "port", address = "0.0.0.0", socket_config = { mode = "server", local_addr = "udp://" .. args.listen },
    rx = { queues = { { name = "rx", id = 0, cpu_core = -1, batch_size = 64, timeout_us = 1000, memory_regions = { "packets" } } } } } },
} } }
s:pipe(s:rx_queue("port"), s:write_pcap{ name = "disk", dirs = { args.dir } })
s:start()
print(daqiri.json{ ready = 1 })

repeat local first = s:measure{ seconds = 0.01 } until first.port.rx.packets > 0
repeat local quiet = s:measure{ seconds = 0.3 } until quiet.port.rx.packets == 0
local sum = s:stop("no more packets")
print(daqiri.json{ packets = sum.disk.packets, received = sum.port.rx.packets, dropped = sum.disk.dropped,
  cpu_seconds = sum.process.cpu_seconds })
