-- modify.lua: packets that go round: a handler rewrites the IPv4 source of every packet, checksums follow, counts one
-- UDP port, and sends the burst back to itself. Every third packet is TCP. Prints figures as JSON.
--   daqiri-run modify.lua --seconds 2
local daqiri = require "daqiri"
local args = daqiri.args{
  batch = { 1024, unit = "packets", help = "of a burst" },
  bursts = { 12, help = "on their way at once" },
  seconds = { 1, help = "to measure, after a tenth of that to warm up" },
}

local s = daqiri.open{ daqiri = { cfg = {
  version = 1, stream_type = "raw", master_core = 0, loopback = "sw",
  memory_regions = { { name = "packets", kind = "host", affinity = 0, num_bufs = 16384, buf_size = 2048 } },
  interfaces = { { name = "port", address = "loopback",
    rx = { queues = { { name = "rx", id = 0, poll_mode = "direct", batch_size = args.batch, memory_regions = { "packets" } } } },
    tx = { queues = { { name = "tx", id = 0, poll_mode = "direct", batch_size = args.batch, memory_regions = { "packets" } } } },
  } },
} } }
local rx, tx = s:rx_queue("port"), s:tx_queue("port")

-- Two sources in turn: every pass changes every packet.
local sources, turn = { "10.1.1.1", "10.2.2.2" }, 0
local packets, counted, lost = 0, 0, 0
rx:on_burst(function(b)
  turn = 3 - turn
  b:set{ ipv4_src = sources[turn] }
  packets, counted = packets + b.n, counted + b:count("udp_dst == 4096")
  if not tx:send(b) then lost = lost + 1 end
end)
turn = 1

s:start()
local forms = { tx:template{ udp_dst = 4096, payload_bytes = 22 }, tx:template{ udp_dst = 4097, payload_bytes = 22 },
  tx:template{ tcp_dst = 4096, payload_bytes = 10 } }
local bytes = {}
for i, form in ipairs(forms) do
  local b = tx:alloc(1)
  b:fill(form)
  bytes[i] = b:packet(1):bytes()
  b:free()
end
for _ = 1, args.bursts do
  local b = tx:alloc(args.batch)
  b:fill(forms[1])
  for i = 1, b.n do b:packet(i):set_bytes(0, bytes[i % 3 + 1]) end
  assert(tx:send(b))
end

s:measure{ seconds = args.seconds / 10 }
packets, counted = 0, 0
local m = s:measure{ seconds = args.seconds }
print(daqiri.json{ packets = packets, counted = counted, lost = lost, seconds = m.seconds, cpu_seconds = m.process.cpu_seconds })
