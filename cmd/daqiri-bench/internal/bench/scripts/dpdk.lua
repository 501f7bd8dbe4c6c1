-- dpdk.lua: what DPDK's devices receive goes out again, on one thread: of one device to itself, of two each to the other.
-- A handler sends it on, or a native stage. Prints figures as JSON.
--   daqiri-run dpdk.lua --a vdev:net_null0 --seconds 2
local daqiri = require "daqiri"
local args = daqiri.args{
  a = { "vdev:net_null0", help = "a device" },
  b = { "", help = "another, joined to it by a cable" },
  batch = { 512, unit = "packets", help = "of a burst" },
  first = { 0, unit = "packets", help = "that each device sends first, to go round" },
  handler = { true, help = "send in an on_burst handler; false: in a native stage" },
  seconds = { 1, help = "to measure, after a tenth of that to warm up" },
}

local function queue(name)
  return { name = name, id = 0, poll_mode = "direct", batch_size = args.batch, memory_regions = { "packets" } }
end
local function port(name, address)
  return { name = name, address = address, rx = { queues = { queue "rx" } }, tx = { queues = { queue "tx" } } }
end
local ports = { port("a", args.a) }
if args.b ~= "" then ports[2] = port("b", args.b) end
local s = daqiri.open{ daqiri = { cfg = {
  version = 1, stream_type = "raw", master_core = 0,
  memory_regions = { { name = "packets", kind = "huge", affinity = 0, num_bufs = 16384, buf_size = 2048 } },
  interfaces = ports,
} } }

local lost = 0
for k, from in ipairs(ports) do
  local rx, tx = s:rx_queue(from.name), s:tx_queue(ports[#ports + 1 - k].name)
  if args.handler then
    rx:on_burst(function(b) if not tx:send(b) then lost = lost + 1 end end)
  else
    s:pipe(rx, tx)
  end
  if args.first > 0 then
    tx:transmit{ template = tx:template{ eth_dst = "02:00:00:00:00:01", udp_dst = 7148, payload_bytes = 22 }, count = args.first }
  end
end
s:start()

s:measure{ seconds = args.seconds / 10 }
local m = s:measure{ seconds = args.seconds }
local packets = 0
for _, p in ipairs(ports) do packets = packets + m[p.name].rx.packets end
print(daqiri.json{ packets = packets, lost = lost, seconds = m.seconds, cpu_seconds = m.process.cpu_seconds })
