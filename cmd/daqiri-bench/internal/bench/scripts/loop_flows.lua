-- loop_flows.lua: frames of 64 bytes of several flows to as many queues through the loop engine on one thread, and what
-- they cost in CPU time. Where there are more flows than queues, 16, each transmit queue sends its own in turn, about a
-- burst of each. Whether every flow got some is seen at the end. Prints figures as JSON.
--   daqiri-run loop_flows.lua --flows 8 --seconds 2
local daqiri = require "daqiri"
local args = daqiri.args{
  flows = { 2, help = "on UDP ports of their own" },
  turns = { false, help = "begin a transmission after each burst, as it is with more flows than queues" },
  batch = { 1024, unit = "packets", help = "of a burst" },
  seconds = { 1, help = "to measure, after a tenth of that to warm up" },
}
local PORT, QUEUES = 7148, math.min(args.flows, 16)

local regions, rx, tx, flows = {}, {}, {}, {}
for q = 1, QUEUES do
  local name = "queue" .. q
  regions[q] = { name = name, kind = "host", affinity = 0, num_bufs = 4 * args.batch, buf_size = 2048 }
  rx[q] = { name = "rx" .. q, id = q - 1, poll_mode = "direct", batch_size = args.batch, memory_regions = { name } }
  tx[q] = { name = "tx" .. q, id = q - 1, poll_mode = "direct", batch_size = args.batch, memory_regions = { name } }
end
for k = 1, args.flows do
  flows[k] = { name = "flow" .. k, id = k, match = { udp_dst = PORT + k }, action = { type = "queue", id = (k - 1) % QUEUES } }
end
local s = daqiri.open{ daqiri = { cfg = {
  version = 1, stream_type = "raw", master_core = 0, loopback = "sw",
  memory_regions = regions,
  interfaces = { { name = "port", address = "loopback", rx = { flow_isolation = true, queues = rx, flows = flows }, tx = { queues = tx } } },
} } }

local packets, empty = 0, 0
for q = 1, QUEUES do
  local out, templates, turn = s:tx_queue("port", q - 1), {}, 0
  for k = q, args.flows, QUEUES do
    templates[#templates + 1] = out:template{ udp_dst = PORT + k, payload_bytes = 22 }
  end
  s:rx_queue("port", q - 1):on_burst(function(b)
    packets = packets + b.n
    if args.turns or #templates > 1 then
      turn = turn % #templates + 1
      out:transmit{ template = templates[turn] }
    end
  end)
  out:transmit{ template = templates[1] }
end
s:start()

s:measure{ seconds = args.seconds / 10 }
packets = 0
local m = s:measure{ seconds = args.seconds }
for _, f in ipairs(s:interface("port"):flows()) do empty = empty + (f.packets == 0 and 1 or 0) end
print(daqiri.json{ packets = packets, seconds = m.seconds, cpu_seconds = m.process.cpu_seconds, dropped = m.port.rx.dropped, empty = empty })
