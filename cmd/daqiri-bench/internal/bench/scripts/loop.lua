-- loop.lua: frames of 64 bytes through the loop engine, and what they cost in CPU time: one interface receives its own, one
-- thread sends, matches a flow from the bytes, receives and runs the handler. Prints figures as JSON.
--   daqiri-run loop.lua --batch 1024 --seconds 2
local daqiri = require "daqiri"
local args = daqiri.args{
  batch = { 1024, unit = "packets", help = "of a burst" },
  copy = { false, help = "receive into a region of another size, so that packets are copied" },
  handler = { true, help = "count in an on_burst handler; false: in a native stage" },
  seconds = { 1, help = "to measure, after a tenth of that to warm up" },
}

local regions = { { name = "packets", kind = "host", affinity = 0, num_bufs = 16384, buf_size = 2048 } }
if args.copy then regions[2] = { name = "copies", kind = "host", affinity = 0, num_bufs = 16384, buf_size = 1920 } end
local s = daqiri.open{ daqiri = { cfg = {
  version = 1, stream_type = "raw", master_core = 0, loopback = "sw",
  memory_regions = regions,
  interfaces = { { name = "port", address = "loopback",
    rx = {
      flow_isolation = true,
      queues = { { name = "rx", id = 0, poll_mode = "direct", batch_size = args.batch, memory_regions = { regions[#regions].name } } },
      flows = { { name = "science", id = 7, match = { udp_dst = 7148 }, action = { type = "queue", id = 0 } } },
    },
    tx = { queues = { { name = "tx", id = 0, poll_mode = "direct", batch_size = args.batch, memory_regions = { "packets" } } } },
  } },
} } }

local rx, tx = s:rx_queue("port"), s:tx_queue("port")
local packets, bursts = 0, 0
if args.handler then
  rx:on_burst(function(b) packets, bursts = packets + b.n, bursts + 1 end)
else
  s:pipe(rx, s:count{ name = "counted" })
end
tx:transmit{ template = tx:template{ udp_dst = 7148, payload_bytes = 22 } }
s:start()

s:measure{ seconds = args.seconds / 10 }
packets, bursts = 0, 0
local m = s:measure{ seconds = args.seconds }
if not args.handler then packets, bursts = m.counted.packets, m.counted.packets / args.batch end
print(daqiri.json{ packets = packets, bursts = bursts, seconds = m.seconds, cpu_seconds = m.process.cpu_seconds,
  allocations = m.process.allocations, dropped = m.port.rx.dropped })
