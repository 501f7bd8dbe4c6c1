-- gaps.lua: packets that go round: every pass gives them new numbers, a native stage follows the numbers, and they go back to where they
-- came from. Prints figures as JSON.
--   daqiri-run gaps.lua --seconds 2
--   daqiri-run gaps.lua --stage=false          -- a count in the stage's place: what the way costs without it
local daqiri = require "daqiri"
local args = daqiri.args{
  batch = { 1024, unit = "packets", help = "of a burst" },
  bursts = { 12, help = "on their way at once" },
  stage = { true, help = "follow the numbers" },
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

local stage = args.stage and s:gaps{ name = "numbers", format = "simple" } or s:count{ name = "numbers" }
s:pipe(rx, s:rewrite{ format = "simple", seq = { 0, 1 }, checksums = false }, stage, tx)

s:start()
local form = tx:template{ udp_dst = 4096, payload_bytes = 22 }
for _ = 1, args.bursts do
  local b = tx:alloc(args.batch)
  b:fill(form)
  assert(tx:send(b))
end
s:measure{ seconds = args.seconds / 10 }
local m = s:measure{ seconds = args.seconds }
print(daqiri.json{ packets = m.numbers.out, unique = m.numbers.unique, dropped = m.numbers.dropped, seconds = m.seconds,
  cpu_seconds = m.process.cpu_seconds })
