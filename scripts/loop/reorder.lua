-- reorder.lua: puts numbered packets into blocks, from a wire that loses, repeats and displaces some.
--   daqiri-run reorder --loss 0.01 --window 2
-- Each block has 32 slots. A missing packet leaves its slot filled with zeros, and is marked in b.present.
local daqiri = require "daqiri"
local args = daqiri.args{
  config = { "virtual.yaml", help = "has tx_port and rx_port on the loop engine" },
  count = { 3200, unit = "packets", help = "to send" },
  loss = { 0.002, help = "part of the packets that the wire loses" },
  dup = { 0.002, help = "part that arrives twice" },
  displaced = { 0.01, help = "part that is overtaken" },
  window = { 4, unit = "blocks", help = "open at a time" },
}

local s = daqiri.open(args.config, { set = { ["loopback.loss"] = args.loss, ["loopback.dup"] = args.dup,
  ["loopback.reorder"] = args.displaced } })
local blocks = s:reorder{ name = "blocks", memory_region = "packets", at = "payload", payload_byte_offset = 8,
  sequence_number = { at = "payload", bit_offset = 0, bit_width = 32 }, packets_per_batch = 32,
  window = args.window, timeout_us = 5000, fill = "zero" }
s:pipe(s:rx_queue("rx_port"), blocks)

local complete = 0
blocks:on_burst(function(b)
  if b.missing == 0 then complete = complete + 1 return end
  print(("block %d: %s%s"):format(b.batch_id, b.present.text, b.timed_out and " (its time was up)" or ""))
end)

local tx = s:tx_queue("tx_port")
tx:pace{ pps = 1e6 }
tx:transmit{ count = args.count, template = tx:template{ payload_bytes = 40,
  vary = { { at = "payload", bit_offset = 0, bit_width = 32, step = 1 } } } }
local l = s:run{ seconds = 2 * args.count / 1e6 }
print(("%d blocks were complete, %d had holes; of %d slots %d are missing"):format(complete, l.blocks.partial,
  l.blocks.expected, l.blocks.missing))
print(("%d packets came twice, %d too late"):format(l.blocks.dropped_by.duplicate, l.blocks.late))
