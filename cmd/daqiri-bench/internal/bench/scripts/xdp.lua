-- xdp.lua: two devices whose frames go out of the other one, natively, on one thread, and what goes round between
-- them when they are the two ends of a cable. Prints its readiness as JSON; the benchmark counts at the devices.
--   daqiri-run xdp.lua --left veth0 --right veth1 --count 512 --seconds 2
local daqiri = require "daqiri"
local args = daqiri.args{
  left = { "veth0", help = "a Linux interface" },
  right = { "veth1", help = "the other end" },
  count = { 512, unit = "packets", help = "that go round in each direction" },
  core = { 0, help = "of the thread" },
  seconds = { 2, help = "to run" },
}
local function port(name, device)
  return { name = name, address = device,
    rx = { queues = { { name = "rx", id = 0, cpu_core = args.core, batch_size = 512, timeout_us = 100, memory_regions = { name .. "_in" } } } },
    tx = { queues = { { name = "tx", id = 0, cpu_core = args.core, batch_size = 512, memory_regions = { name .. "_out" } } } } }
end
local regions = {}
for _, name in ipairs{ "left", "right" } do
  regions[#regions + 1] = { name = name .. "_in", kind = "host", affinity = 0, num_bufs = 8192, buf_size = 1792 }
  regions[#regions + 1] = { name = name .. "_out", kind = "host", affinity = 0, num_bufs = 1024, buf_size = 1792 }
end
local s = daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "raw", master_core = 0, memory_regions = regions,
  interfaces = { port("left", args.left), port("right", args.right) } } } }
s:pipe(s:rx_queue("left"), s:tx_queue("right"))
s:pipe(s:rx_queue("right"), s:tx_queue("left"))
for _, name in ipairs{ "left", "right" } do
  local tx = s:tx_queue(name)
  tx:transmit{ count = args.count, template = tx:template{ payload_bytes = 22 } }
end
s:start()
print(daqiri.json{ ready = 1 })
s:measure{ seconds = args.seconds }
s:stop("measured")
