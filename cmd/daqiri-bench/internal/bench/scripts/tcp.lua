-- tcp.lua: a TCP stream over loopback, sent and received in one process as fast as it goes. Prints figures as JSON.
--   daqiri-run tcp.lua --seconds 2
local daqiri = require "daqiri"
local args = daqiri.args{
  port = { 7153, help = "to use on 127.0.0.1" },
  size = { 65536, unit = "bytes", help = "of a packet, which is a piece of the stream" },
  seconds = { 1, help = "to measure, after a tenth of that to warm up" },
}

local s = daqiri.open{ daqiri = { cfg = {
  version = 1, stream_type = "socket", master_core = 0,
  memory_regions = {
    { name = "rx_packets", kind = "host", affinity = 0, num_bufs = 512, buf_size = args.size },
    { name = "tx_packets", kind = "host", affinity = 0, num_bufs = 64, buf_size = args.size },
  },
  interfaces = {
    { name = "server", address = "127.0.0.1", socket_config = { mode = "server", local_addr = "tcp://127.0.0.1:" .. args.port },
      rx = { queues = { { name = "rx", id = 0, poll_mode = "direct", batch_size = 16, memory_regions = { "rx_packets" } } } } },
    { name = "client", address = "127.0.0.1", socket_config = { mode = "client", remote_addr = "tcp://127.0.0.1:" .. args.port },
      tx = { queues = { { name = "tx", id = 0, cpu_core = -1, batch_size = 16, memory_regions = { "tx_packets" } } } } },
  },
} } }

local bytes = 0
s:rx_queue("server"):on_burst(function(b) bytes = bytes + b.bytes end)
local tx = s:tx_queue("client")
tx:transmit{ template = tx:template{ payload_bytes = args.size } }
s:start()

repeat s:measure{ seconds = 0.01 } until bytes > 0
s:measure{ seconds = args.seconds / 10 }
bytes = 0
local m = s:measure{ seconds = args.seconds }
print(daqiri.json{ bytes = bytes, seconds = m.seconds, cpu_seconds = m.process.cpu_seconds })
