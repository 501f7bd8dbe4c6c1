-- rewrite.lua: packets that go round: a native stage rewrites the IPv4 source of every packet, checksums follow, and they go back to
-- where they came from. Prints figures as JSON.
--   daqiri-run rewrite.lua --seconds 2
--   daqiri-run rewrite.lua --stage=false       -- a count in the stage's place: what the way costs without it
local daqiri = require "daqiri"
local args = daqiri.args{
  batch = { 1024, unit = "packets", help = "of a burst" },
  bursts = { 12, help = "on their way at once" },
  stage = { true, help = "rewrite" },
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

-- A running number: every pass changes every packet.
local stage = args.stage and s:rewrite{ name = "edit", ipv4_src = { "10.1.1.1", 1 } } or s:count{ name = "edit" }
s:pipe(rx, stage, tx)

s:start()
local form = tx:template{ udp_dst = 4096, payload_bytes = 22 }
for _ = 1, args.bursts do
  local b = tx:alloc(args.batch)
  b:fill(form)
  assert(tx:send(b))
end
s:measure{ seconds = args.seconds / 10 }
local m = s:measure{ seconds = args.seconds }
print(daqiri.json{ packets = m.edit.out, rewritten = m.edit.rewritten, dropped = m.edit.dropped, seconds = m.seconds, cpu_seconds = m.process.cpu_seconds })
