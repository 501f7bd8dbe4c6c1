-- share.lua: packets over the loop engine into blocks, which the script lends to a program that attaches. One thread sends, receives and assembles.
-- Prints figures as JSON; cpu_seconds is the time of that thread.
--   daqiri-run share.lua --path ./live --seconds 2      -- once a reader attaches to ./live
--   daqiri-run share.lua --seconds 2                    -- without s:share
local daqiri = require "daqiri"
local args = daqiri.args{
  size = { 8192, unit = "bytes", help = "of a packet's samples" },
  per = { 32, unit = "packets", help = "of a block" },
  batch = { 32, unit = "packets", help = "of a burst" },
  path = { "", help = "of the socket; none: the blocks are not lent" },
  lend = { 16, unit = "blocks", help = "that the reader may have" },
  seconds = { 1, help = "to measure, after a tenth of that to warm up" },
}

local s = daqiri.open{ daqiri = { cfg = {
  version = 1, stream_type = "raw", master_core = 0, loopback = "sw",
  memory_regions = {
    { name = "packets", kind = "host", affinity = 0, num_bufs = 1024, buf_size = 64 + args.size },
    { name = "blocks", kind = "host", affinity = 0, num_bufs = 64 + args.lend, buf_size = args.per * args.size, shared = true },
  },
  interfaces = { { name = "port", address = "loopback",
    rx = { queues = { { name = "rx", id = 0, poll_mode = "direct", batch_size = args.batch, memory_regions = { "packets" } } } },
    tx = { queues = { { name = "tx", id = 0, poll_mode = "direct", batch_size = args.batch, memory_regions = { "packets" } } } },
  } },
} } }
local rx, tx = s:rx_queue("port"), s:tx_queue("port")

local pipe = { s:reorder{ name = "blocks", memory_region = "blocks", at = "payload", payload_byte_offset = 8, slot_bytes = args.size,
  sequence_number = { at = "payload", bit_offset = 0, bit_width = 64 }, packets_per_batch = args.per } }
if args.path ~= "" then pipe[2] = s:share{ name = "live", path = args.path, lend = args.lend, readers = 1 } end
pipe[#pipe + 1] = s:count{ name = "behind" }
s:pipe(rx, unpack(pipe))
while args.path ~= "" and #s:stage("live").readers == 0 do daqiri.sleep "1ms" end

-- The CPU time of this thread, which polls both queues.
local function cpu_seconds()
  local f = assert(io.open "/proc/thread-self/schedstat")
  local ns = f:read "*n"
  f:close()
  return ns / 1e9
end

tx:transmit{ template = tx:template{ udp_dst = 4096, payload_bytes = 8 + args.size,
  vary = { { at = "payload", bit_offset = 0, bit_width = 64, step = 1 } } } }
s:start()
s:measure{ seconds = args.seconds / 10 }
local before = cpu_seconds()
local m = s:measure{ seconds = args.seconds }
local out = { blocks = m.behind.out, bytes = m.behind.out * args.per * args.size, partial = m.blocks.partial, seconds = m.seconds,
  cpu_seconds = cpu_seconds() - before, process_cpu_seconds = m.process.cpu_seconds, dropped = m.port.rx.dropped + m.blocks.dropped }
if args.path ~= "" then
  out.lent, out.missed = m.live.lent, m.live.missed + m.live.dropped
end
print(daqiri.json(out))
