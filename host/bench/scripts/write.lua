-- write.lua: frames from memory into one file, as fast as the disk takes them. Prints figures as JSON: the bytes of the
-- file, and the seconds from the first packet until the file is closed.
--   daqiri-run write.lua --form pcap --size 1024 --dir /data --bytes 1e9
local daqiri = require "daqiri"
local args = daqiri.args{
  form = { "pcap", choices = { "pcap", "pcapng", "raw" }, help = "of the file" },
  size = { 1024, unit = "bytes", help = "of a frame" },
  dir = { ".", help = "folder for the file" },
  bytes = { 1e9, help = "to write" },
}

local s = daqiri.open{ daqiri = { cfg = {
  version = 1, stream_type = "raw", master_core = 0, loopback = "sw",
  memory_regions = { { name = "packets", kind = "host", affinity = 0, num_bufs = 8192, buf_size = args.size } },
  interfaces = { { name = "port", address = "loopback",
    rx = { queues = { { name = "rx", id = 0, cpu_core = -1, batch_size = 256, timeout_us = 1000, memory_regions = { "packets" } } } },
    tx = { queues = { { name = "tx", id = 0, cpu_core = -1, batch_size = 256, memory_regions = { "packets" } } } },
  } },
} } }

local out
if args.form == "raw" then
  out = s:write_raw{ name = "disk", dirs = { args.dir }, policy = "wait", per = "file" }
else
  out = s:write_pcap{ name = "disk", dirs = { args.dir }, policy = "wait", format = args.form }
end
s:pipe(s:rx_queue("port"), out)
local tx = s:tx_queue("port")
local count = math.ceil(args.bytes / args.size)
tx:transmit{ count = count, template = tx:template{ udp_dst = 7148, payload_bytes = args.size - 42 } }
local started = os.clock()
local sum = s:run{ packets = count }
print(daqiri.json{ packets = sum.disk.packets, bytes = count * args.size, seconds = os.clock() - started,
  dropped = sum.disk.dropped, cpu_seconds = sum.process.cpu_seconds })
