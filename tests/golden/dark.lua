-- dark.lua: packets whose second segment lies where the CPU can't read it: what works, and how everything else refuses.
local daqiri = require "daqiri"

local function region(name, kind, size) return { name = name, kind = kind, affinity = 0, num_bufs = 256, buf_size = size } end
local function queue(name, regions, id)
  return { name = name, id = id or 0, poll_mode = "direct", batch_size = 16, memory_regions = regions }
end
local s = daqiri.open{ version = 1, stream_type = "raw", master_core = 0, loopback = { mode = "sw", clock = "virtual" },
  memory_regions = { region("flat", "host", 2048), region("headers", "host", 64), region("data", "dark", 2048),
    region("blocks", "host", 65536) },
  interfaces = {
    { name = "src", address = "a", tx = { queues = { queue("out", { "flat" }), queue("parts", { "flat", "blocks" }, 1) } } },
    { name = "dst", address = "b", rx = { queues = { queue("in", { "headers", "data" }) } },
      tx = { queues = { queue("on", { "headers", "data" }) } } },
  } }
local tx, parts, rx, on = s:tx_queue("src", 0), s:tx_queue("src", 1), s:rx_queue("dst"), s:tx_queue("dst")
local int16 = { input_type = "int16", output_type = "fp32", endianness = "network" }
local number = { bit_offset = 336, bit_width = 32 }

local function refused(what, fn, ...)
  local ok, result, status, text = pcall(fn, ...)
  local why = not ok and tostring(result):gsub("^.-dark.lua:%d+: ", "") or status and status .. ": " .. tostring(text)
  print(what .. ":", why or "works")
end

-- Stages: a pipe is refused as a whole, before packets flow.
local count, sample = s:count{ name = "count" }, s:sample{ name = "sample", every = 2 }
local disk = s:write_raw{ name = "disk", dirs = { "captures" } }
refused("pipe to a writer", s.pipe, s, rx, count, sample, disk)
refused("reorder", s.pipe, s, rx, count, s:reorder{ name = "order", memory_region = "blocks", segment = 2, packets_per_batch = 16,
  slot_bytes = 600, sequence_number = number })
refused("reorder into it", s.reorder, s, { name = "into", memory_region = "data", packets_per_batch = 2, sequence_number = number })
refused("convert", s.pipe, s, rx, s:convert{ name = "floats", memory_region = "blocks", payload_byte_offset = 42, data_types = int16 })
refused("forward to a queue of host memory", s.pipe, s, rx, parts)
refused("count, sample, filter", s.pipe, s, rx, count, sample, s:filter{ name = "port", where = "udp_dst == 7148" })

local bursts = 0
rx:on_burst(function(b)
  bursts = bursts + 1
  if bursts > 1 then return refused("send by a queue of such memory", on.send, on, b) end
  print("burst", b.n, b.segments, b.bytes, b:lengths(2)[1], b:column("udp_dst"):sum())
  print("select", b:select("udp_dst == 7148").n)
  refused("packet, segment 1", b.packet, b, 1, 1)
  refused("packet, segment 2", b.packet, b, 1, 2)
  refused("set", b.set, b, { udp_dst = 7149 })
  refused("write", disk.write, disk, b)
  refused("send by a queue of host memory", parts.send, parts, b)
  refused("keep", b.keep, b)
  refused("free a segment", b.free, b, { segment = 2 })
  print("after", b.bytes)
  refused("free", b.free, b)
end)
tx:transmit{ template = tx:template{ udp_dst = 7148, payload_bytes = 600 }, count = 32 }
s:run{}
