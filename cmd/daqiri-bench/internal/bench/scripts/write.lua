-- write.lua: frames from memory into one file, as fast as the disk takes them. Prints figures as JSON: the bytes of the
-- file, and the seconds from the first packet until the file is closed.
--   daqiri-run write.lua --form pcap --size 1024 --dir /data --bytes 1e9
local daqiri = require "daqiri"
local args = daqiri.args{
  form = { "pcap", choices = { "pcap", "pcapng", "raw", "blocks" }, help = "of the file; blocks are put in order first, 4 MiB each" },
  size = { 1024, unit = "bytes", help = "of a frame; of what a block keeps of it" },
  dir = { ".", help = "folder for the file" },
  bytes = { 1e9, help = "to write" },
  memory = { "host", choices = { "host", "gpu" }, help = "where blocks lie before they are written" },
}

local blocks = args.form == "blocks"
local frame = blocks and args.size + 50 or args.size -- headers and a number, which blocks leave out
local slots = math.floor(2^22 / args.size)
local gpu = args.memory == "gpu"
local regions = { { name = "packets", kind = gpu and "host_pinned" or "host", affinity = 0, num_bufs = 8192, buf_size = frame } }
if blocks then regions[2] = { name = "blocks", kind = gpu and "device" or "host", affinity = 0, num_bufs = 8, buf_size = slots * args.size } end

local s = daqiri.open{ daqiri = { cfg = {
  version = 1, stream_type = "raw", master_core = 0, loopback = "sw",
  memory_regions = regions,
  interfaces = { { name = "port", address = "loopback",
    rx = { queues = { { name = "rx", id = 0, cpu_core = -1, batch_size = 256, timeout_us = 1000, memory_regions = { "packets" } } } },
    tx = { queues = { { name = "tx", id = 0, cpu_core = -1, batch_size = 256, memory_regions = { "packets" } } } },
  } },
} } }

local tx, out = s:tx_queue("port"), nil
local count = math.ceil(args.bytes / args.size)
local packet = { udp_dst = 7148, payload_bytes = frame - 42 }
if blocks then
  count = math.ceil(count / slots) * slots
  packet.vary = { { at = "payload", bit_offset = 0, bit_width = 64, step = 1 } }
  local order = s:reorder{ name = "order", memory_region = "blocks", at = "payload", payload_byte_offset = 8, slot_bytes = args.size,
    sequence_number = { at = "payload", bit_offset = 0, bit_width = 64 }, packets_per_batch = slots, policy = "wait" }
  out = s:write_blocks{ name = "disk", dirs = { args.dir }, policy = "wait" }
  s:pipe(s:rx_queue("port"), order, out)
elseif args.form == "raw" then
  out = s:write_raw{ name = "disk", dirs = { args.dir }, policy = "wait", per = "file" }
else
  out = s:write_pcap{ name = "disk", dirs = { args.dir }, policy = "wait", format = args.form }
end
if not blocks then s:pipe(s:rx_queue("port"), out) end
tx:transmit{ count = count, template = tx:template(packet) }
local started = os.clock()
local sum = s:run{ packets = count }
print(daqiri.json{ packets = sum.disk.packets, bytes = count * args.size, seconds = os.clock() - started,
  dropped = sum.disk.dropped + (blocks and sum.order.dropped + sum.order.missing or 0), cpu_seconds = sum.process.cpu_seconds })
