-- loop_queues.lua: tasks with a queue of their own each, of one looped interface: every task sends frames of 64 bytes
-- of its flow and receives them. Prints figures as JSON.
--   daqiri-run loop_queues.lua --tasks 4 --seconds 2
local daqiri = require "daqiri"
local args = daqiri.args{
  tasks = { 1, help = "with a queue and a flow each" },
  batch = { 1024, unit = "packets", help = "of a burst" },
  seconds = { 1, help = "to measure, after a tenth of that to warm up" },
}
local PORT = 7148

local regions, rx, tx, flows = {}, {}, {}, {}
for k = 1, args.tasks do
  local name = "queue" .. k
  regions[k] = { name = name, kind = "host", affinity = 0, num_bufs = 4 * args.batch, buf_size = 2048 }
  rx[k] = { name = "rx" .. k, id = k - 1, poll_mode = "direct", batch_size = args.batch, memory_regions = { name } }
  tx[k] = { name = "tx" .. k, id = k - 1, poll_mode = "direct", batch_size = args.batch, memory_regions = { name } }
  flows[k] = { name = "flow" .. k, id = k, match = { udp_dst = PORT + k }, action = { type = "queue", id = k - 1 } }
end
local s = daqiri.open{ daqiri = { cfg = {
  version = 1, stream_type = "raw", master_core = 0, loopback = "sw",
  memory_regions = regions,
  interfaces = { { name = "port", address = "loopback", rx = { flow_isolation = true, queues = rx, flows = flows }, tx = { queues = tx } } },
} } }

for k = 1, args.tasks do
  daqiri.task(function(from, to, port)
    local packets = 0
    from:on_burst(function(b) packets = packets + b.n end)
    to:transmit{ template = to:template{ udp_dst = port, payload_bytes = 22 } }
  end, s:rx_queue("port", k - 1), s:tx_queue("port", k - 1), PORT + k)
end
s:start()

s:measure{ seconds = args.seconds / 10 }
local m = s:measure{ seconds = args.seconds }
print(daqiri.json{ packets = m.port.rx.packets, seconds = m.seconds, cpu_seconds = m.process.cpu_seconds, dropped = m.port.rx.dropped })
