-- s3.lua: frames from memory to an S3 store, many in an object, as fast as it takes them. Prints figures as JSON: the bytes
-- of the objects, and the seconds from the first packet until the last object is there. Credentials come from the environment.
--   daqiri-run s3.lua --endpoint http://127.0.0.1:7070 --bucket bucket --objects 1000
local daqiri = require "daqiri"
local args = daqiri.args{
  endpoint = { "", help = "URL of the store" },
  bucket = { "bucket", help = "of the objects" },
  per = { 256, help = "packets of an object" },
  size = { 1024, unit = "bytes", help = "of a frame" },
  objects = { 1000, help = "to upload" },
}

local s = daqiri.open{ daqiri = { cfg = {
  version = 1, stream_type = "raw", master_core = 0, loopback = "sw",
  memory_regions = { { name = "packets", kind = "host", affinity = 0, num_bufs = 8192, buf_size = args.size } },
  interfaces = { { name = "port", address = "loopback",
    rx = { queues = { { name = "rx", id = 0, cpu_core = -1, batch_size = 256, timeout_us = 1000, memory_regions = { "packets" } } } },
    tx = { queues = { { name = "tx", id = 0, cpu_core = -1, batch_size = 256, memory_regions = { "packets" } } } },
  } },
} } }

local count, tx = args.objects * args.per, s:tx_queue("port")
local up = s:write_s3{ name = "up", bucket = args.bucket, prefix = "packets", endpoint = args.endpoint, packets_per_object = args.per, policy = "wait" }
s:pipe(s:rx_queue("port"), up)
tx:transmit{ count = count, template = tx:template{ udp_dst = 7148, payload_bytes = args.size - 42 } }
local started = os.clock()
local sum = s:run{ packets = count }
print(daqiri.json{ packets = sum.up.packets, bytes = count * args.size, seconds = os.clock() - started, objects = sum.up.objects,
  cpu_seconds = sum.process.cpu_seconds })
