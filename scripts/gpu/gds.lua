-- gds.lua: writes blocks of packets from a GPU's memory to a disk: directly from the GPU by cuFile (GPUDirect Storage), or
-- through pinned memory; the report's notes show the path and the reason. The file is read back and compared with what was sent.
--   daqiri-run gds.lua                              the same on the CPU
--   daqiri-run gds.lua --memory gpu --dir /nvme0    on a GPU; DAQIRI_CUFILE=off: without cuFile
local daqiri = require "daqiri"
local args = daqiri.args{ packets = 2048, loss = 0.01, clock = "virtual", memory = "host", dir = "." }

local BYTES, PER = 1024, 64 -- bytes of a payload, packets per block: data fill whole pages, as cuFile requires
local function queue(name, region) return { name = name, id = 0, poll_mode = "direct", batch_size = 64, memory_regions = { region } } end
local s = daqiri.open({ version = 1, stream_type = "raw", master_core = 0,
  loopback = { mode = "sw", clock = args.clock, loss = args.loss, reorder = 0.05, seed = 7 },
  memory_regions = {
    { name = "out", kind = "host", affinity = 0, num_bufs = 1024, buf_size = 2048 },
    { name = "in", kind = "host_pinned", affinity = 0, num_bufs = 4096, buf_size = 2048 },
    { name = "blocks", kind = "device", affinity = 0, num_bufs = 16, buf_size = BYTES * PER } }, -- a multiple of 4096: buffers begin at page boundaries
  interfaces = {
    { name = "instrument", address = "a", tx = { queues = { queue("tx", "out") } } },
    { name = "receiver", address = "b", rx = { queues = { queue("rx", "in") } } } } },
  { memory = args.memory == "host" and "host" or nil })

local tx = s:tx_queue("instrument")
local template = tx:template{ udp_dst = 7148, payload_bytes = BYTES, vary = { { at = "payload", bit_offset = 0, bit_width = 32, step = 1 } } }
local blocks = s:reorder{ name = "blocks", memory_region = "blocks", packets_per_batch = PER, slot_bytes = BYTES, fill = 0xee, policy = "wait",
  at = "payload", sequence_number = { at = "payload", bit_offset = 0, bit_width = 32 }, timeout_us = 500 }
local disk = s:write_blocks{ name = "gds", dirs = { args.dir }, policy = "wait" }
s:pipe(s:rx_queue("receiver"), blocks, disk)
tx:transmit{ template = template, count = args.packets }
local l = s:run{ seconds = 1 }

-- Format of the file: native/writer/BLOCKS.md. The number of each packet is at the start of its slot.
local function number(text, at, bytes) -- little-endian
  local n = 0
  for i = bytes, 1, -1 do n = n * 256 + text:byte(at + i) end
  return n
end
local n, wrong, missing = 0, 0, 0
local file = assert(io.open(disk.paths[1], "rb"))
local head = file:read(4096)
local step, data_at = number(head, 16, 8), number(head, 24, 4)
for block in function() return file:read(step) end do
  local id, present_at = number(block, 8, 8), number(head, 68, 4)
  for slot = 0, PER - 1 do
    local at, bits = data_at + slot * BYTES, block:byte(present_at + math.floor(slot / 8) + 1)
    local there = math.floor(bits / 2 ^ (slot % 8)) % 2 == 1
    local a, b, c, d = block:byte(at + 1, at + 4)
    local got = ((a * 256 + b) * 256 + c) * 256 + d
    if got ~= (there and id * PER + slot or 0xeeeeeeee) then wrong = wrong + 1 end
    if not there then missing = missing + 1 end
  end
  n = n + 1
end
print(("%d blocks of %d packets, %d packets missing, %d in the wrong place"):format(n, PER, missing, wrong))
assert(wrong == 0 and n == l.gds.written)
