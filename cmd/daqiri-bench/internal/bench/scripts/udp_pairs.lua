-- udp_pairs.lua: pairs of a sender and a receiver of datagrams on loopback, each receiver in a task and each sender in a
-- worker of its own. What is missing is known from the senders' counts. Prints figures as JSON.
--   daqiri-run udp_pairs.lua --ports 7151,7152 --size 1024 --seconds 2
local daqiri = require "daqiri"
local args = daqiri.args{
  ports = { "7151", help = "of the pairs, on 127.0.0.1" },
  size = { 1024, unit = "bytes", help = "of a datagram" },
  seconds = { 1, help = "to measure, after a tenth of that to warm up" },
}

local room = math.max(2048, args.size)
local regions, interfaces, pairs_n = {}, {}, 0
for port in args.ports:gmatch("%d+") do
  pairs_n = pairs_n + 1
  local rx, tx = "rx" .. pairs_n, "tx" .. pairs_n
  regions[#regions + 1] = { name = rx, kind = "host", affinity = 0, num_bufs = math.ceil(64 * 2 ^ 20 / room), buf_size = room }
  regions[#regions + 1] = { name = tx, kind = "host", affinity = 0, num_bufs = math.max(512, math.ceil(4 * 2 ^ 20 / room)), buf_size = room }
  interfaces[#interfaces + 1] = { name = rx, address = "127.0.0.1", socket_config = { mode = "server", local_addr = "udp://127.0.0.1:" .. port },
    rx = { queues = { { name = "rx", id = 0, poll_mode = "direct", batch_size = 256, memory_regions = { rx } } } } }
  interfaces[#interfaces + 1] = { name = tx, address = "127.0.0.1", socket_config = { mode = "client", remote_addr = "udp://127.0.0.1:" .. port },
    tx = { queues = { { name = "tx", id = 0, cpu_core = -1, batch_size = 256, memory_regions = { tx } } } } }
end
local s = daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "socket", master_core = 0, memory_regions = regions, interfaces = interfaces } } }

for k = 1, pairs_n do
  daqiri.task(function(rx)
    local packets = 0
    rx:on_burst(function(b) packets = packets + b.n end)
  end, s:rx_queue("rx" .. k))
  local tx = s:tx_queue("tx" .. k)
  tx:transmit{ template = tx:template{ payload_bytes = args.size } }
end
s:start()

s:measure{ seconds = args.seconds / 10 }
local m = s:measure{ seconds = args.seconds }
for k = 1, pairs_n do s:tx_queue("tx" .. k):transmit{ template = false } end
local quiet
repeat
  local last = s:measure{ seconds = 0.05 }
  quiet = 0
  for k = 1, pairs_n do quiet = quiet + last["rx" .. k].rx.packets end
until quiet == 0

local packets, bytes, offered, sent, got, all = 0, 0, 0, 0, 0, s:stats()
for k = 1, pairs_n do
  local rx, tx = "rx" .. k, "tx" .. k
  packets, bytes = packets + m[rx].rx.packets, bytes + m[rx].rx.bytes
  offered = offered + m[tx].tx.packets
  sent, got = sent + all[tx].tx.packets, got + all[rx].rx.packets
end
print(daqiri.json{ packets = packets, bytes = bytes, seconds = m.seconds, cpu_seconds = m.process.cpu_seconds,
  offered_pps = offered / m.seconds, sent = sent, missing = sent - got })
