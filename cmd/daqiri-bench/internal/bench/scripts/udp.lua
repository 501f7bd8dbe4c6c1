-- udp.lua: numbered datagrams through the kernel's UDP on loopback, sent and received in one process as fast as it
-- goes. What is missing is known from the numbers. Prints figures as JSON.
--   daqiri-run udp.lua --size 1024 --seconds 2
local daqiri = require "daqiri"
local args = daqiri.args{
  port = { 7151, help = "to use on 127.0.0.1" },
  size = { 1024, unit = "bytes", help = "of a datagram" },
  seconds = { 1, help = "to measure, after a tenth of that to warm up" },
}

local room = math.max(2048, args.size)
local s = daqiri.open{ daqiri = { cfg = {
  version = 1, stream_type = "socket", master_core = 0,
  memory_regions = {
    { name = "rx_packets", kind = "host", affinity = 0, num_bufs = math.ceil(64 * 2 ^ 20 / room), buf_size = room },
    { name = "tx_packets", kind = "host", affinity = 0, num_bufs = math.max(512, math.ceil(4 * 2 ^ 20 / room)), buf_size = room },
  },
  interfaces = {
    { name = "rx_port", address = "127.0.0.1", socket_config = { mode = "server", local_addr = "udp://127.0.0.1:" .. args.port },
      rx = { queues = { { name = "rx", id = 0, poll_mode = "direct", batch_size = 256, memory_regions = { "rx_packets" } } } } },
    { name = "tx_port", address = "127.0.0.1", socket_config = { mode = "client", remote_addr = "udp://127.0.0.1:" .. args.port },
      tx = { queues = { { name = "tx", id = 0, cpu_core = -1, batch_size = 256, memory_regions = { "tx_packets" } } } } },
  },
} } }

local number = { at = "start", bit_offset = 0, bit_width = 48, endianness = "little" }
local rx, tx = s:rx_queue("rx_port"), s:tx_queue("tx_port")
local packets, top = 0, -1
rx:on_burst(function(b)
  packets, top = packets + b.n, math.max(top, b:column(number):max())
end)
tx:transmit{ template = tx:template{ payload_bytes = args.size,
  vary = { { at = "start", bit_offset = 0, bit_width = 48, endianness = "little", start = 0, step = 1 } } } }
s:start()

s:measure{ seconds = args.seconds / 10 }
local m = s:measure{ seconds = args.seconds }
tx:transmit{ template = false }
repeat local quiet = s:measure{ seconds = 0.05 } until quiet.rx_port.rx.packets == 0
local sent = s:stats().tx_port.tx.packets
print(daqiri.json{ packets = m.rx_port.rx.packets, bytes = m.rx_port.rx.bytes, seconds = m.seconds,
  cpu_seconds = m.process.cpu_seconds, offered_pps = m.tx_port.tx.packets / m.seconds, missing = sent - packets, gaps = top + 1 - packets, sent = sent })
