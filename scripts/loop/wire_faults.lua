-- wire_faults.lua: compares what a receiver detects on a faulty wire, by sequence numbers alone, with the counters of the wire.
--   daqiri-run wire_faults --loss 0.01 --seed 7
-- Loss, duplicates and reordering depend only on the seed and the packet's position: every run, threaded or not, loses the same packets.
local daqiri = require "daqiri"
local args = daqiri.args{
  config = { "virtual.yaml", help = "has tx_port and rx_port on the loop engine" },
  count = { 10000, unit = "packets", help = "to send" },
  loss = { 0.01, help = "part of the packets that the wire loses" },
  dup = { 0.002, help = "part that arrives twice" },
  reorder = { 0.005, help = "part that is overtaken" },
  seed = 7,
}

local s = daqiri.open(args.config, { set = { ["loopback.loss"] = args.loss, ["loopback.dup"] = args.dup,
  ["loopback.reorder"] = args.reorder, ["loopback.seed"] = args.seed } })
local seq_field = { at = "payload", bit_offset = 0, bit_width = 32 }    -- a field is a name or a location
local seen, again, late, last = {}, 0, 0, -1
s:rx_queue("rx_port"):on_burst(function(b)
  local seq = b:column(seq_field)
  for i = 1, #seq do
    local n = seq[i]
    if seen[n] then again = again + 1 elseif n < last then late = late + 1 end
    seen[n], last = true, math.max(last, n)
  end
end)

local tx = s:tx_queue("tx_port")
tx:pace{ pps = 1e6 }
tx:transmit{ count = args.count, template = tx:template{ payload_bytes = 64,
  vary = { { at = "payload", bit_offset = 0, bit_width = 32, step = 1 } } } }
s:run{ seconds = 2 * args.count / 1e6 }

local missing = 0
for n = 0, args.count - 1 do if not seen[n] then missing = missing + 1 end end
print(("of %d packets %d are missing, %d came again, %d came late"):format(args.count, missing, again, late))
