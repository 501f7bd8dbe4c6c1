-- columns.lua: numbers of fields of bursts that go round: a column of three fields of F-engine packets, or one of a field
-- behind three parts that a VITA 49 packet may have or lack. Prints figures as JSON.
--   daqiri-run columns.lua --what place --seconds 2
local daqiri = require "daqiri"
local args = daqiri.args{
  what = { "column", help = "column or place" },
  columns = { 16, help = "of each burst" },
  batch = { 1024, unit = "packets", help = "of a burst" },
  seconds = { 1, help = "to measure, after a tenth of that to warm up" },
}
local cases = {
  column = { format = "chips", number = "seq * nchan + chan0", sent = { seq = 7, nchan = 109, chan0 = 600 },
    varies = "seq", want = function(i) return (7 + i - 1) * 109 + 600 end },
  place = { format = "vrt", number = "fractional_time", varies = "fractional_time", want = function(i) return 1000 + i - 1 end,
    sent = { packet_type = "data_with_stream_id", has_class_id = 1, tsi = "utc", tsf = "picoseconds", fractional_time = 1000 } },
}
local case = assert(cases[args.what], "--what is column or place")

local s = daqiri.open{ daqiri = { cfg = {
  version = 1, stream_type = "raw", master_core = 0, loopback = "sw",
  memory_regions = { { name = "packets", kind = "host", affinity = 0, num_bufs = 8192, buf_size = 2048 } },
  interfaces = { { name = "port", address = "loopback",
    rx = { queues = { { name = "rx", id = 0, poll_mode = "direct", batch_size = args.batch, memory_regions = { "packets" } } } },
    tx = { queues = { { name = "tx", id = 0, poll_mode = "direct", batch_size = args.batch, memory_regions = { "packets" } } } },
  } },
} } }
local rx, tx = s:rx_queue("port"), s:tx_queue("port")
local bursts, wrong = 0, 0
rx:on_burst(function(b)
  local column
  for _ = 1, args.columns do column = b:column(case.number, case.format) end
  if column and (column[1] ~= case.want(1) or column[b.n] ~= case.want(b.n)) then wrong = wrong + 1 end
  bursts = bursts + 1
  tx:send(b)
end)

s:start()
case.sent.payload, case.sent.format = ("x"):rep(1024), case.format
local form = tx:template(case.sent)
for _ = 1, 2 do
  local b = tx:alloc(args.batch):fill(form)
  b:set({ [case.varies] = { case.sent[case.varies], 1 } }, case.format)
  assert(tx:send(b))
end
s:measure{ seconds = args.seconds / 10 }
bursts = 0
local m = s:measure{ seconds = args.seconds }
print(daqiri.json{ bursts = bursts, columns = args.columns, wrong = wrong, cpu_seconds = m.process.cpu_seconds })
