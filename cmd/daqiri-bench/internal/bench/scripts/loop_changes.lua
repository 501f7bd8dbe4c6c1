-- loop_changes.lua: one task sends frames of 64 bytes and receives them through the loop engine, while receive queues
-- with a worker and a flow each are added to the same interface and deleted. Prints figures as JSON.
--   daqiri-run loop_changes.lua --queues 100 --seconds 2
local daqiri = require "daqiri"
local args = daqiri.args{
  queues = { 100, help = "that come and go in the time measured; 0: none" },
  batch = { 1024, unit = "packets", help = "of a burst" },
  seconds = { 1, help = "to measure, after a tenth of that to warm up" },
}
local PORT, IDS = 7148, 31

local function queue(name, regions)
  return { name = name, id = 0, poll_mode = "direct", batch_size = args.batch, memory_regions = regions }
end
local function flow(name, port, id)
  return { name = name, match = { udp_dst = port }, action = { type = "queue", id = id } }
end
-- A second flow, without packets: so that either side matches several.
local kept, other = flow("kept", PORT, 0), flow("other", PORT + 2, 0)
kept.id, other.id = 1, 2
local s = daqiri.open{ daqiri = { cfg = {
  version = 1, stream_type = "raw", master_core = 0, loopback = "sw",
  memory_regions = {
    { name = "packets", kind = "host", affinity = 0, num_bufs = 4 * args.batch, buf_size = 2048 },
    { name = "later", kind = "host", affinity = 0, num_bufs = 1024, buf_size = 2048 },
  },
  interfaces = { { name = "port", address = "loopback",
    rx = { flow_isolation = true, queues = { queue("rx", { "packets" }) }, flows = { kept, other } },
    tx = { queues = { queue("tx", { "packets" }) } } } },
} } }

-- The task answers each message with the packets so far and the CPU time of its own thread, in which they were sent,
-- classified and received.
local answers = {}
local worker = daqiri.task(function(from, to, port)
  local daqiri, packets = require "daqiri", 0
  from:on_burst(function(b) packets = packets + b.n end)
  to:transmit{ template = to:template{ udp_dst = port, payload_bytes = 22 } }
  daqiri.on_message(function()
    local f = assert(io.open "/proc/thread-self/schedstat")
    local ns = f:read "*n"
    f:close()
    daqiri.send{ packets = packets, ns = ns }
  end)
end, s:rx_queue("port"), s:tx_queue("port"), PORT)
worker:on_message(function(v) answers[#answers + 1] = v end)

-- change deletes the queue of the last call and adds the next one.
local i, changed, last = s:interface("port"), 0, nil
local function change()
  if last then
    i:delete_flows("later")
    assert(last:delete())
    last, changed = nil, changed + 1
  end
  if changed == args.queues then return end
  local id = 1 + changed % IDS
  last = assert(i:add_rx_queue{ name = "later" .. id, id = id, cpu_core = -1, batch_size = 32, memory_regions = { "later" } })
  assert(i:add_flows("later", { flow("later", PORT + 1, id) }))
end

s:start()
s:measure{ seconds = args.seconds / 10 }
if args.queues > 0 then s:every(args.seconds / (args.queues + 5), change) end
assert(worker:send "begin")
local m = s:measure{ seconds = args.seconds }
local came = changed
assert(worker:send "end")
while #answers < 2 do daqiri.sleep "1ms" end
print(daqiri.json{ packets = answers[2].packets - answers[1].packets, seconds = m.seconds, dropped = m.port.rx.dropped,
  cpu_seconds = (answers[2].ns - answers[1].ns) / 1e9, process_cpu_seconds = m.process.cpu_seconds, changed = came })
