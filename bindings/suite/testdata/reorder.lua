-- Reorder stages: rules, what a burst says, what is refused.
local daqiri = require "daqiri"
local args = daqiri.args{ dir = "." }

local function open(timeout_us)
  return daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "raw", master_core = 0,
    loopback = { mode = "sw", clock = "virtual", seed = 1 },
    memory_regions = { { name = "packets", kind = "host", affinity = 0, num_bufs = 4096, buf_size = 1024 },
      { name = "batches", kind = "host", affinity = 0, num_bufs = 16, buf_size = 4096 } },
    interfaces = { { name = "port", address = "loop0",
      tx = { queues = { { name = "tx", id = 0, cpu_core = -1, batch_size = 64, memory_regions = { "packets" } } } },
      rx = { queues = { { name = "rx", id = 0, cpu_core = -1, batch_size = 64, timeout_us = timeout_us, memory_regions = { "packets" } } } } } } } } }
end

-- Frames of 60 bytes: a number of 16 bits, an antenna of 8 bits, and a byte that follows from both.
local function send(s, packets)
  local tx = s:tx_queue("port")
  local b = tx:alloc(#packets)
  for i, p in ipairs(packets) do
    local v = b:packet(i)
    b:set_lengths(60)
    v = b:packet(i)
    v:set_u16(14, p[1]) v:set_u8(16, p[2] or 0)
    v:set_u8(17, (p[1] * 16 + (p[2] or 0)) % 256)
  end
  assert(tx:send(b))
end

local function try(fn, ...) local ok, err = pcall(fn, ...) assert(not ok) return tostring(err) end
local function has(text, part) assert(text:find(part, 1, true), text) end

-- Packets that are split behind their header: what is no data, by the header in the first segment, has no place in blocks and heaps of the second.
do
  local rx = { name = "rx", id = 0, cpu_core = -1, batch_size = 64, timeout_us = 10, memory_regions = { "heads", "packets" } }
  local s = daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "raw", master_core = 0, loopback = { mode = "sw", clock = "virtual", seed = 1 },
    memory_regions = { { name = "heads", kind = "host", affinity = 0, num_bufs = 256, buf_size = 50 }, { name = "packets", kind = "host", affinity = 0, num_bufs = 256, buf_size = 1024 },
      { name = "batches", kind = "host", affinity = 0, num_bufs = 16, buf_size = 4096 } },
    interfaces = { { name = "port", address = "loop0", rx = { queues = { rx } },
      tx = { queues = { { name = "tx", id = 0, cpu_core = -1, batch_size = 64, memory_regions = { "packets" } } } } } } } } }
  local frames = daqiri.format{ name = "frames", udp_port = 7000, { "kind", "u32" }, { "n", "u32" }, data = "kind < 2", sequence = "n" }
  local blocks = s:reorder{ name = "blocks", memory_region = "batches", format = frames, segment = 2, packets_per_batch = 4, slot_bytes = 20 }
  local heaps = s:heaps{ name = "heaps", memory_region = "batches", format = frames, segment = 2, id = "n // 4", offset = "n % 4 * 20", heap_bytes = 80 }
  s:pipe(s:rx_queue("port"), blocks)
  s:pipe(s:rx_queue("port"), heaps)
  local tx, b = s:tx_queue("port"), nil
  s:start()
  blocks:get_burst{ timeout_us = 0 }
  heaps:get_burst{ timeout_us = 0 }
  b = tx:alloc(12)
  b:fill(tx:template{ udp_dst = 7000, payload_bytes = 28 })
  for i = 1, 12 do -- each third is a trailer with the number of the data before it
    local v = b:packet(i)
    v:set_u32(42, i % 3 == 0 and 2 or i % 3 - 1)
    v:set_u32(46, (i - 1) - math.floor(i / 3))
    for k = 50, 69 do v:set_u8(k, i) end
  end
  assert(tx:send(b))
  for _, stage in ipairs{ blocks, heaps } do
    for k, senders in ipairs{ { 1, 2, 4, 5 }, { 7, 8, 10, 11 } } do
      local a = stage:get_burst{ timeout_us = 1000 }
      assert(a.batch_id == k - 1 and a.missing == 0, a.missing)
      for at, i in ipairs(senders) do assert(a.data:bytes((at - 1) * 20, 20) == string.char(i):rep(20), stage.name) end
    end
  end
  local l = s:stats()
  assert(l.blocks.dropped_by.bad_place == 4 and l.heaps.dropped_by.bad_format == 4 and l.blocks.dropped == 4 and l.heaps.dropped == 4, tostring(l.heaps))
  s:close()
end

-- By a sequence number, with get_burst; the rest of the pipe gets the aggregates.
do
  local s = open(10)
  local st = s:reorder{ name = "blocks", memory_region = "batches", payload_byte_offset = 17, slot_bytes = 43,
    sequence_number = { bit_offset = 112, bit_width = 16 }, packets_per_batch = 4, fill = 7, window = 2 }
  assert(st.kind == "reorder" and s:stage("blocks").name == "blocks")
  s:pipe(s:rx_queue("port"), st, s:count{ name = "behind" })
  s:start()
  st:get_burst{ timeout_us = 0 }
  send(s, { { 40 }, { 43 }, { 42 }, { 41 }, { 44 }, { 46 }, { 47 }, { 48 }, { 52 } })
  local a = st:get_burst{ timeout_us = 1000 }
  assert(a.batch_id == 10 and a.missing == 0 and a.expected == 4 and a.source_packets == 4 and a.slot_bytes == 43)
  assert(not a.timed_out and not a.cut and a.extra == nil and a.n == 1 and a.queue == "blocks")
  assert(a.last_time >= a.rx_time)
  assert(#a.data == 4 * 43 and a.data:u8(43) == 41 * 16 % 256 and a.present.text == "1111")
  local b = st:get_burst{ timeout_us = 1000 }
  local p = b.present
  assert(b.batch_id == 11 and b.missing == 1 and p.count == 3 and #p == 4 and p[1] and not p[2] and p[5] == nil)
  assert(#p:missing() == 1 and p:missing()[1] == 2 and #a.present:missing() == 0)
  assert(p.text == "1011" and p.hex == "b" and tostring(p) == "3 of 4", p.hex)
  assert(b.data:u8(43) == 7 and b.data:u8(85) == 7 and b.data:u8(86) == 46 * 16 % 256)
  b:free()
  has(try(function() return b.missing end), "already freed")
  assert(p.count == 3)
  local l = s:stats()
  assert(l.blocks.missing == 1 and l.blocks.expected == 8 and l.blocks.late == 0 and l.blocks.held == 2 and l.behind.out == 2)
  s:threshold("blocks.missing < 0.5 * blocks.expected")
  s:close()
end

-- By texts over fields, with on_burst; at the end what is open comes, too.
do
  local s = open(10)
  local st = s:reorder{ memory_region = "batches", payload_byte_offset = 17,
    fields = { number = { bit_offset = 112, bit_width = 16 }, antenna = { bit_offset = 128, bit_width = 8 } },
    batch = "number // 2", slot = "antenna * 2 + number % 2", extra = "number + 1000 * antenna", slots = 6, wrap = 2^15,
    timeout_us = 100, missing_action = "passthrough", hand_over = "eager", policy = "drop", source = "antenna" }
  s:threshold("reorder1.source.5.missing == 0")
  s:pipe(s:rx_queue("port"), st)
  local got = {}
  st:on_burst(function(b)
    got[#got + 1] = ("%d %s %s %s"):format(b.batch_id, b.present.text, tostring(b.timed_out), tostring(b.cut))
    local x = b.extra
    assert(x.name == "extra" and x[1] == 8 and x[2] == nil and x[6] == 2009 and x:max() == 2009)
  end)
  s:after(0, function() send(s, { { 8, 0 }, { 9, 2 }, { 8, 1 }, { 9, 3 } }) end)
  local l = s:run{ seconds = 0.01 }
  assert(#got == 1 and got[1] == "4 101001 true true", got[1])
  assert(l.reorder1.dropped_by.bad_place == 1 and l.reorder1.timeouts == 1)
  assert(l.reorder1.missing == 0 and l.reorder1.expected == 3 and l.reorder1.cut == 3) -- 101001 of the first batch came
  local by = l.reorder1.source
  assert(by[0].packets == 1 and by[2].packets == 1 and by[3].packets == 0 and by[3].dropped == 1 and by[0].missing == 0)
  has(l.failed[1], "reorder1.source.5.missing has no value: nothing came of it")
  assert(l.reorder1.completion_time.max > 0)
end

-- Parts of slots, a batch number, flows that pass.
do
  local s = open(10)
  local st = s:reorder{ name = "parts", memory_region = "batches", payload_byte_offset = 17, batch = "0 * len", slot = "0 * len",
    fields = { part = { bit_offset = 112, bit_width = 16 } }, offset = "part * 43", slots = 1, slot_bytes = 100, packet_bytes = 43, flow_ids = { 0 } }
  s:pipe(s:rx_queue("port"), st)
  s:start()
  st:get_burst{ timeout_us = 0 }
  send(s, { { 0 }, { 1 } })
  assert(st:get_burst{ timeout_us = 1000 } == nil)
  assert(s:stats().parts.held == 2)
  send(s, { { 2 }, { 3 } })
  daqiri.sleep("1ms")
  local d = s:stats().parts.dropped_by
  assert(d.too_long == 1 and d.bad_place == 1)
  s:close()
end

-- Conversions: each byte of the payload is one of two elements, and sizes are those of packets.
do
  local s = open(10)
  local st = s:reorder{ name = "floats", memory_region = "batches", payload_byte_offset = 17, slot_bytes = 43, fill = 0,
    sequence_number = { bit_offset = 112, bit_width = 16 }, packets_per_batch = 2,
    data_types = { input_type = "int4", output_type = "fp32" } }
  s:pipe(s:rx_queue("port"), st)
  s:start()
  st:get_burst{ timeout_us = 0 }
  send(s, { { 8, 9 }, { 9, 5 } }) -- 0x89: -8 and -7; 0x95: -7 and 5
  local a = st:get_burst{ timeout_us = 1000 }
  assert(a.dtype == "fp32" and a.slot_bytes == 43 * 8 and #a.data == 2 * 43 * 8)
  local bits = { [-8] = 0xc1000000, [-7] = 0xc0e00000, [5] = 0x40a00000 }
  local function at(place) local v = 0 for k = 3, 0, -1 do v = v * 256 + a.data:u8(place + k) end return v end
  assert(at(0) == bits[-8] and at(4) == bits[-7] and at(344) == bits[-7] and at(348) == bits[5])
  s:close()
  s = open(10)
  st = s:reorder{ name = "floats", memory_region = "batches", payload_byte_offset = 17, packets_per_batch = 2,
    sequence_number = { bit_offset = 112, bit_width = 16 }, data_types = { input_type = "int16", output_type = "fp32", endianness = "network" } }
  s:pipe(s:rx_queue("port"), st)
  s:start()
  st:get_burst{ timeout_us = 0 }
  send(s, { { 0 }, { 1 } }) -- 43 bytes each
  daqiri.sleep("1ms")
  assert(s:stats().floats.dropped_by.bad_payload == 2)
  s:close()
end

-- Likely mistakes are reported at the start, and a quota without room for one batch is refused.
do
  local s = open(10)
  local function early(name)
    return s:reorder{ name = name, memory_region = "batches", sequence_number = { bit_offset = 112, bit_width = 16 }, packets_per_batch = 4,
      slot_bytes = 43, timeout_us = 5 }
  end
  local first, second = early("first"), early("second")
  s:pipe(s:rx_queue("port"), first)
  has(try(s.pipe, s, s:rx_queue("port"), second, s:write_blocks{ name = "small", dir = args.dir, quota = "8KiB", manifest = false }),
    "writer small: its quota of 8192 bytes has no room for one batch of reorder second: a file with one has 12288")
  s:pipe(s:rx_queue("port"), second)
  second:on_burst(function() end)
  s:start()
  local report = table.concat(s:report(), "\n")
  has(report, "reorder first: its aggregates have no consumer")
  has(report, "reorder first: its timeout_us is 5, that of interface port: queue rx 10")
  assert(not report:find("second: its aggregates", 1, true), report)
  s:close()
end

-- A queue without timeout_us lets a burst go all the same; with 0 it waits until it is full, or for the end.
for timeout_us, want in pairs{ [-1] = 2, [0] = 0 } do
  local s = open(timeout_us >= 0 and timeout_us or nil)
  local seen, before = 0, 0
  s:rx_queue("port"):on_burst(function(b) seen = seen + b.n end)
  s:after(0, function() send(s, { { 1 }, { 2 } }) end)
  s:after(0.1, function() before = seen end)
  s:run{ seconds = 0.2 }
  assert(before == want and seen == 2, before .. " " .. seen)
  local report = table.concat(s:report(), "\n")
  assert((report:find("a burst is delivered after 1000 us at most", 1, true) ~= nil) == (timeout_us < 0), report)
end

-- Refusals.
local s = open(10)
local region = { memory_region = "batches" }
local function with(more) local t = { memory_region = "batches" } for k, v in pairs(more) do t[k] = v end return t end
local seq = { bit_offset = 0, bit_width = 16 }
has(try(s.reorder, s, {}), "'memory_region' is missing")
has(try(s.reorder, s, region), "'batch' is missing")
has(try(s.reorder, s, with{ sequence_number = seq }), "'packets_per_batch' is missing")
has(try(s.reorder, s, with{ sequence_number = seq, packets_per_batch = 4, slots = 4 }), "keep one of them")
has(try(s.reorder, s, with{ sequence_number = seq, packets_per_batch = 4, windows = 4 }), "did you mean 'window'")
has(try(s.reorder, s, with{ sequence_number = seq, packets_per_batch = 8192 }), "don't fit the buffers of region batches")
has(try(s.reorder, s, with{ sequence_number = seq, packets_per_batch = 4, fill = "ones" }), "neither zero, keep, nor a byte")
has(try(s.reorder, s, with{ sequence_number = seq, batch_number = { bit_offset = 0, bit_width = 8 }, packets_per_batch = 3 }), "power of 2")
has(try(s.reorder, s, with{ batch = "numbr", slot = "0", slots = 1, fields = { number = seq } }), "did you mean")
has(try(s.reorder, s, { memory_region = "batchs", sequence_number = seq, packets_per_batch = 4 }), 'did you mean "batches"')
has(try(s.reorder, s, with{ sequence_number = seq, packets_per_batch = 4, hand_over = "wait" }), "give a timeout")
local function typed(types, more) local t = with{ sequence_number = seq, packets_per_batch = 4, data_types = types }
  for k, v in pairs(more or {}) do t[k] = v end return t end
has(try(s.reorder, s, typed("fp32")), "a table expected")
has(try(s.reorder, s, typed{ input_type = "int16" }), "'output_type' is missing")
has(try(s.reorder, s, typed{ input_type = "int61", output_type = "fp32" }), "the nearest one is")
has(try(s.reorder, s, typed{ input_type = "int16", output_type = "int4" }), "is not a valid output type")
has(try(s.reorder, s, typed{ input_type = "int16", output_type = "fp32", order = "host" }), "order")
has(try(s.reorder, s, typed({ input_type = "int16", output_type = "fp32" }, { slot_bytes = 43 })), "slot_bytes 43 is not a whole number of elements of int16, which need 2 bytes")
has(try(s.reorder, s, typed({ input_type = "int4", output_type = "fp64" }, { slot_bytes = 100 })), "buf_size must be at least 6400")
local count = s:count{}
has(try(count.on_burst, count, print), "s:reorder")
local st = s:reorder(with{ name = "r", sequence_number = seq, packets_per_batch = 4 })
has(try(s.pipe, s, st, st), "a stage cannot consume its own output")
has(try(s.reorder, s, with{ name = "r", sequence_number = seq, packets_per_batch = 4 }), "taken")
s:close()
