-- Copy stages: bursts in another region, what is counted, what is refused. Here within the host's memory; tests/gpu has GPUs.
local daqiri = require "daqiri"

local function region(name, num_bufs, buf_size) return { name = name, kind = "host", affinity = 0, num_bufs = num_bufs, buf_size = buf_size } end
local function queue(name, regions, more)
  local q = { name = name, id = 0, cpu_core = -1, batch_size = 64, memory_regions = regions }
  for k, v in pairs(more or {}) do q[k] = v end
  return q
end
local function open(whole)
  return daqiri.open{ version = 1, stream_type = "raw", master_core = 0, loopback = { mode = "sw", clock = "virtual", seed = 1 },
    memory_regions = { region("packets", 4096, 256), region("headers", 4096, 42), region("others", 128, 128), region("batches", 8, 256) },
    interfaces = { { name = "port", address = "loop0", tx = { queues = { queue("tx", { "packets" }) } },
      rx = { queues = { queue("rx", whole and { "packets" } or { "headers", "packets" }, { timeout_us = 10 }) } } } } }
end
local function try(fn, ...) local ok, err = pcall(fn, ...) assert(not ok) return tostring(err) end
local function has(text, part) assert(text:find(part, 1, true), text) end
local function send(s, ...)
  local tx = s:tx_queue("port")
  for _, payload in ipairs{ ... } do
    local b = tx:alloc(1)
    b:fill(tx:template{ udp_dst = 7148, payload = payload })
    assert(tx:send(b))
  end
end

-- Segments become one, in order; flow, time and length stay; what doesn't fit is dropped; what comes out goes on in a pipe.
do
  local s = open()
  local copy = s:copy{ name = "copy", memory_region = "others" }
  assert(copy.kind == "copy")
  local seen, times = {}, {}
  s:pipe(s:rx_queue("port"), copy, s:filter{ name = "wanted", where = "udp_dst == 7148" }, s:count{ name = "behind" })
  s:rx_queue("port"):on_burst(function(b) for i = 1, b.n do times[#times + 1] = b:rx_timestamps()[i] end end)
  copy:on_burst(function(b)
    assert(b.segments == 1)
    for i = 1, b.n do
      local p = b:packet(i)
      seen[#seen + 1] = { p:bytes(42), p:u16(36), b:rx_timestamps()[i] }
    end
  end)
  s:after(0, function() send(s, "one", ("two"):rep(20), ("x"):rep(100), "three") end)
  local l = s:run{ seconds = 0.001 }
  assert(#seen == 3 and seen[1][1] == "one" and seen[2][1] == ("two"):rep(20) and seen[3][1] == "three", #seen)
  assert(seen[1][2] == 7148 and seen[1][3] == times[1] and seen[3][3] == times[4])
  assert(l.copy["in"] == 4 and l.copy.out == 3 and l.copy.dropped_by.too_long == 1 and l.copy.held == 0, l)
  assert(l.behind.out == 3 and l.port.rx.packets == 4)
end

-- What is known of an aggregate goes with it, and outlives it.
do
  local s = open(true)
  local blocks = s:reorder{ name = "blocks", memory_region = "batches", packets_per_batch = 4, slot_bytes = 8, fill = 46,
    payload_byte_offset = 43, sequence_number = { bit_offset = 336, bit_width = 8 }, timeout_us = 20 }
  local copy = s:copy{ name = "copy", memory_region = "others" }
  s:pipe(s:rx_queue("port"), blocks, copy)
  local kept = {}
  copy:on_burst(function(b) kept[#kept + 1] = b:keep() end)
  s:after(0, function() send(s, "\0zero", "\1one", "\3three", "\5five") end)
  s:run{ seconds = 0.001 }
  assert(#kept == 2 and kept[1].batch_id == 0 and kept[1].missing == 1 and kept[2].missing == 3)
  assert(kept[1].data:bytes(0, 32) == "zero....one.............three..." and kept[2].data:bytes(8, 6) == "five..")
  assert(kept[1].present[1] and kept[1].present[2] and not kept[1].present[3] and kept[1].present[4])
  s:close()
end

-- Without a buffer packets are dropped, or wait.
do
  local s = open()
  local held = {}
  local copy = s:copy{ name = "copy", memory_region = "batches" }
  s:pipe(s:rx_queue("port"), copy)
  copy:on_burst(function(b) held[#held + 1] = b:keep() end)
  s:after(0, function() for i = 1, 12 do send(s, "p" .. i) end end)
  local l = s:run{ seconds = 0.001 }
  assert(l.copy.dropped_by.no_packet_buffer == 4 and l.copy.out == 8, l)
  for _, b in ipairs(held) do b:free() end
  s:close()
end

-- What can't be.
do
  local s = open()
  has(try(s.copy, s, {}), "memory_region")
  has(try(s.copy, s, { memory_region = "nowhere" }), "copy")
  local copy = s:copy{ name = "copy", memory_region = "others", data_types = { input_type = "int8", output_type = "fp32" } }
  has(try(s.pipe, s, s:rx_queue("port"), copy), "with data_types it takes payloads in one segment, and queue rx holds frames")
  local plain = s:copy{ name = "plain", memory_region = "others" }
  s:pipe(s:rx_queue("port"), plain)
  has(try(s.pipe, s, plain, plain), "a stage cannot consume its own output")
  s:close()
end
