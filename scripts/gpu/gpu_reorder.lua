-- gpu_reorder.lua: packets that arrive out of order become blocks in a GPU's memory: the GPU moves payloads from pinned memory to
-- their slots, converts int16 in network byte order to fp32, and fills gaps. A copy returns each block to
-- the host, where its sum is compared with what was sent.
--   daqiri-run gpu_reorder.lua                  the same on the CPU
--   daqiri-run gpu_reorder.lua --memory gpu     on a GPU
local daqiri = require "daqiri"
local args = daqiri.args{ packets = 4096, loss = 0.01, clock = "virtual", memory = "host" }

local SAMPLES, PER = 256, 64 -- samples per packet, packets per block
local function queue(name, region) return { name = name, id = 0, poll_mode = "direct", batch_size = 64, memory_regions = { region } } end
local s = daqiri.open({ version = 1, stream_type = "raw", master_core = 0,
  loopback = { mode = "sw", clock = args.clock, loss = args.loss, reorder = 0.05, seed = 7 },
  memory_regions = {
    { name = "out", kind = "host", affinity = 0, num_bufs = 1024, buf_size = 1024 },
    { name = "in", kind = "host_pinned", affinity = 0, num_bufs = 4096, buf_size = 1024 },
    { name = "blocks", kind = "device", affinity = 0, num_bufs = 16, buf_size = 4 * SAMPLES * PER },
    { name = "back", kind = "host_pinned", affinity = 0, num_bufs = 16, buf_size = 4 * SAMPLES * PER } },
  interfaces = {
    { name = "instrument", address = "a", tx = { queues = { queue("tx", "out") } } },
    { name = "receiver", address = "b", rx = { queues = { queue("rx", "in") } } } } },
  { memory = args.memory == "host" and "host" or nil })

-- Each packet has a 4-byte header and SAMPLES samples of 16 bits; the first two samples are its number.
local vary = { { at = "payload", bit_offset = 32, bit_width = 32, step = 1 } }
local tx = s:tx_queue("instrument")
local template = tx:template{ udp_dst = 7148, payload_bytes = 4 + 2 * SAMPLES, vary = vary }

local blocks = s:reorder{ name = "blocks", memory_region = "blocks", packets_per_batch = PER, slot_bytes = 2 * SAMPLES, fill = 0,
  sequence_number = { bit_offset = 8 * (42 + 4), bit_width = 32 }, payload_byte_offset = 42 + 4, timeout_us = 500,
  data_types = { input_type = "int16", output_type = "fp32", endianness = "network" } }
local back = s:copy{ name = "back", memory_region = "back" }
s:pipe(s:rx_queue("receiver"), blocks, back)

-- The first two samples of a packet are the halves of its number: they show whether its slot is correct.
local function half(p, at) -- an fp32 converted from int16; returns 0 to 65535
  local e = p:u8(at + 3) % 128 * 2 + math.floor(p:u8(at + 2) / 128)
  local v = e == 0 and 0 or (p:u8(at) + 256 * p:u8(at + 1) + 65536 * (p:u8(at + 2) % 128) + 2 ^ 23) * 2 ^ (e - 150)
  return p:u8(at + 3) >= 128 and 65536 - v or v
end
local n, wrong, missing = 0, 0, 0
back:on_burst(function(b)
  n, missing = n + 1, missing + b.missing
  for slot = 0, PER - 1 do
    local at = slot * 4 * SAMPLES
    local number = half(b.data, at) * 65536 + half(b.data, at + 4)
    if number ~= (b.present[slot + 1] and b.batch_id * PER + slot or 0) then wrong = wrong + 1 end
  end
end, { policy = "wait" })

tx:transmit{ template = template, count = args.packets }
s:run{ seconds = 1 }
print(("%d blocks of %d packets, %d packets missing, %d in the wrong place"):format(n, PER, missing, wrong))
assert(wrong == 0)
