-- convert.lua: converts 16-bit samples in network byte order to floats: packet by packet, and in blocks.
--   daqiri-run convert --output fp16
-- after.pcap contains the packets with floats, and headers with their new lengths; before.pcap the packets as received.
local daqiri = require "daqiri"
local args = daqiri.args{
  config = { "virtual.yaml", help = "has tx_port and rx_port on the loop engine" },
  input = { "int16", help = "type of the samples" },
  output = { "fp32", help = "type that they become" },
  count = { 16, unit = "packets", help = "to send" },
  dir = { "captures", help = "folder for both captures" },
}
local HEAD, SAMPLES, BLOCK = 8, 64, 4 -- bytes of the number before the samples; samples per packet; packets per block

local s = daqiri.open(args.config)
local rx, tx = s:rx_queue("rx_port"), s:tx_queue("tx_port")
local types = { input_type = args.input, output_type = args.output, endianness = "network" }
local floats = s:convert{ name = "floats", memory_region = "packets", at = "payload", payload_byte_offset = HEAD, data_types = types }
local blocks = s:reorder{ name = "blocks", memory_region = "packets", at = "payload", payload_byte_offset = HEAD,
  sequence_number = { at = "payload", bit_offset = 0, bit_width = 64 }, packets_per_batch = BLOCK, timeout_us = 5000, data_types = types }
s:pipe(rx, floats, s:write_pcap{ name = "after", dir = args.dir, policy = "wait", manifest = false })
s:pipe(rx, s:write_pcap{ name = "before", dir = args.dir, policy = "wait", manifest = false })
s:pipe(rx, blocks)
blocks:on_burst(function(b)
  print(("block %d: %d bytes of %s, its second packet begins with %s"):format(b.batch_id, #b.data, b.dtype, b.data:hex(b.slot_bytes, 16)))
end)

-- The first samples of a packet continue from the previous packet, from both ends of the range; the others are constant.
local vary = { { at = "payload", bit_offset = 0, bit_width = 64, step = 1 } }
for k, first in ipairs{ -32768, -1, 32000, 7 } do
  vary[k + 1] = { at = "payload", bit_offset = 8 * HEAD + 16 * (k - 1), bit_width = 16, start = first % 65536, step = 48 * k }
end
tx:pace{ pps = 1e6 }
tx:transmit{ count = args.count, template = tx:template{ payload_bytes = HEAD + 2 * SAMPLES, udp_dst = 7148, vary = vary } }
s:threshold("floats.dropped == 0")
local l = s:run{ packets = args.count, seconds = 2 * args.count / 1e6 + 1 }
print(("%d packets of %d bytes came, %d of %d were passed on"):format(l.floats["in"], l.floats.in_bytes / l.floats["in"],
  l.floats.out, l.floats.out_bytes / l.floats.out))
