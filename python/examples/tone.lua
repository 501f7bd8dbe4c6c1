-- tone.lua: packets with a tone over the loop engine, assembled to blocks, which the script lends to other programs and writes to files.
-- The Python programs in this folder read them. It sends once as many programs as `readers` are attached.
--   daqiri-run tone.lua --readers 0 --dir captures
local daqiri = require "daqiri"
local args = daqiri.args{
  samples = { 256, help = "complex ones of a packet" },
  per = { 8, unit = "packets", help = "of a block" },
  cycles = { 40, help = "of the tone in a packet; negative: a negative frequency" },
  blocks = { 64, help = "to send" },
  loss = { 0.01, help = "part of the packets that the wire loses" },
  readers = { 1, help = "to wait for" },
  dir = { "", help = "of block files; none: nothing is written" },
}

local BYTES = 4 * args.samples
local function queue() return { queues = { { name = "q", id = 0, cpu_core = -1, batch_size = 64, memory_regions = { "packets" } } } } end
local s = daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "raw", master_core = 0, loopback = { mode = "sw", loss = args.loss, seed = 1 },
  memory_regions = { { name = "packets", kind = "host", affinity = 0, num_bufs = 1024, buf_size = 128 + BYTES },
    { name = "blocks", kind = "host", affinity = 0, num_bufs = 128, buf_size = 2 * args.per * BYTES, shared = true } },
  interfaces = { { name = "port", address = "loop0", rx = queue(), tx = queue() } } } } }

local blocks = s:reorder{ name = "blocks", memory_region = "blocks", at = "payload", payload_byte_offset = 4, slot_bytes = BYTES,
  sequence_number = { at = "payload", bit_offset = 0, bit_width = 32 }, packets_per_batch = args.per, fill = "zero", policy = "wait",
  data_types = { input_type = "int16", output_type = "fp32", endianness = "network" } }
local live = s:share{ name = "live", policy = "wait", timeout = 60, header = { samples = args.samples, per = args.per } }
local stages = { blocks, live }
if args.dir ~= "" then stages[3] = s:write_blocks{ name = "disk", dirs = { args.dir }, policy = "wait" } end
stages[#stages + 1] = s:count{ name = "behind" }
s:pipe(s:rx_queue("port"), unpack(stages))

-- Real and imaginary part of each sample, as signed 16-bit integers with the highest byte first.
local bytes = {}
for k = 0, args.samples - 1 do
  local phase = 2 * math.pi * args.cycles * k / args.samples
  for _, part in ipairs{ math.cos(phase), math.sin(phase) } do
    local n = math.floor(8192 * part + 0.5) % 65536
    bytes[#bytes + 1] = string.char(math.floor(n / 256), n % 256)
  end
end

while #live.readers < args.readers do daqiri.sleep "10ms" end
local tx = s:tx_queue("port")
tx:pace{ pps = 4000 }
tx:transmit{ count = args.blocks * args.per, template = tx:template{ payload = "\0\0\0\0" .. table.concat(bytes),
  vary = { { at = "payload", bit_offset = 0, bit_width = 32, step = 1 } } } }
s:every(0.05, function() if s:stats().port.tx.out >= args.blocks * args.per then s:stop "all packets were sent" end end)
s:run()
