-- Samples of packets and aggregates: golden packets of every format that declares them, and numbers computed by hand.
local daqiri, t, printed = require "daqiri", require "check", require "printed"

local function open()
  return daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "raw", master_core = 0, loopback = { mode = "sw", clock = "virtual", seed = 1 },
    memory_regions = { { name = "packets", kind = "host", affinity = 0, num_bufs = 512, buf_size = 2048 },
      { name = "blocks", kind = "host", affinity = 0, num_bufs = 8, buf_size = 4096 } },
    interfaces = { { name = "port", address = "loop0",
      tx = { queues = { { name = "tx", id = 0, cpu_core = -1, batch_size = 64, memory_regions = { "packets" } } } },
      rx = { queues = { { name = "rx", id = 0, cpu_core = -1, batch_size = 64, timeout_us = 10, memory_regions = { "packets" } } } } } } } } }
end

local function try(fn, ...) local ok, err = pcall(fn, ...) assert(not ok) return tostring(err) end
local function has(text, part) assert(text:find(part, 1, true), text) end

-- received sends UDP payloads and passes one burst of them to fn.
local function received(payloads, fn)
  local s, bursts = open(), 0
  s:rx_queue("port"):on_burst(function(b) bursts = bursts + 1 fn(b, s) end)
  s:start()
  local tx = s:tx_queue "port"
  local b = tx:alloc(#payloads)
  b:fill(tx:template{ udp_dst = 7148, payload_bytes = 1000 })
  local lengths = {}
  for i, p in ipairs(payloads) do
    b:packet(i):set_bytes(42, p)
    lengths[i] = 42 + #p
  end
  b:set_lengths(lengths)
  b:set{ udp_dst = 7148 }
  for i, p in ipairs(payloads) do
    b:packet(i):set_u16(16, 28 + #p)
    b:packet(i):set_u16(38, 8 + #p)
  end
  b:checksums()
  assert(tx:send(b))
  s:run{ seconds = 0.001 }
  assert(bursts == 1, bursts)
end

local function numbers(x)
  local out = {}
  for i = 1, #x do
    local re, im = x:get(i)
    out[#out + 1] = im and ("%g%+gi"):format(re, im) or ("%g"):format(re)
  end
  return table.concat(out, " ")
end

local function encoded(name, values)
  return daqiri.format(name):encode(values)
end

-- golden checks the type, the numbers, the shape and the raw packets of the payloads.
local function golden(name, payloads, want)
  received(payloads, function(b)
    local x = b:samples(name, want.options)
    t.equal({ x.type, numbers(x), x.raw, x.shape and table.concat(x.shape, "x") or "none", x.complex },
      { want.type, want.numbers, want.raw or 0, want.shape or "none", want.type:sub(1, 1) == "c" })
    t.equal({ x.rate, x.frequency, x.time }, { want.rate, want.frequency, want.time })
  end)
end

local D = "\18\52\86\120\154\188\222\240" -- 12 34 56 78 9a bc de f0
golden("vdif", { encoded("vdif", { bits_minus_1 = 1, log2_channels = 1, payload = "\27\165" .. ("\0"):rep(6) }), encoded("vdif", { bits_minus_1 = 6, payload = D }),
  encoded("vdif", { bits_minus_1 = 1, invalid = 1, payload = D }) },
  { type = "o2.lsb", numbers = "3.3165 1 -1 -3.3165 -1 -1 1 1" .. (" -3.3165"):rep(24), shape = "16x2", raw = 1, time = 946684800 })
golden("vdif", { encoded("vdif", { bits_minus_1 = 7, complex = 1, payload = D }) }, { type = "co8", numbers = "-110-76i -42-8i 26+60i 94+112i", shape = "4x1", time = 946684800 })
golden("vdif", { encoded("vdif", { bits_minus_1 = 0, legacy = 1, payload = D }) }, { type = "o1.lsb", shape = "64x1", time = 946684800, numbers =
  "-1 1 -1 -1 1 -1 -1 -1 -1 -1 1 -1 1 1 -1 -1 -1 1 1 -1 1 -1 1 -1 -1 -1 -1 1 1 1 1 -1 -1 1 -1 1 1 -1 -1 1 -1 -1 1 1 1 1 -1 1 -1 1 1 1 1 -1 1 1 -1 -1 -1 -1 1 1 1 1" })
golden("ata-snap", { encoded("ata-snap", { snap_version = 128, snap_type = 1, n_chans = 2, payload = D }), encoded("ata-snap", { snap_version = 128, snap_type = 2, payload = D }) },
  { type = "ci4", numbers = "1+2i 3+4i 5+6i 7-8i -7-6i -5-4i -3-2i -1+0i", shape = "2x2x2", raw = 1 })
golden("chips", { encoded("chips", { nchan = 4, payload = D }) }, { type = "ci4", numbers = "1+2i 3+4i 5+6i 7-8i -7-6i -5-4i -3-2i -1+0i", shape = "4x2" })
golden("snap2", { encoded("snap2", { nchan = 2, npol = 4, payload = D }) }, { type = "ci4", numbers = "1+2i 3+4i 5+6i 7-8i -7-6i -5-4i -3-2i -1+0i", shape = "2x4" })
golden("psi", { encoded("psi", { det_type = "jungfrau", payload = D }), encoded("psi", { det_type = "mythen3", payload = D }) },
  { type = "u16le", numbers = "13330 30806 48282 61662", raw = 1 })
golden("gvsp", { encoded("gvsp", { block_id = 1, packet_format = "leader", payload_type = "image", pixel_format = 0x010c0047 }),
  encoded("gvsp", { block_id = 1, packet_format = "data", packet_id = 1, payload = D:sub(1, 6) }), encoded("gvsp", { block_id = 2, packet_format = "data", payload = D }) },
  { type = "u12.lsb", numbers = "1042 1379 2680 3017", raw = 1 })
golden("gvsp-64", { encoded("gvsp-64", { block_id = 1, packet_format = "leader", payload_type = "image", pixel_format = 0x01100005 }),
  encoded("gvsp-64", { block_id = 1, packet_format = "data", packet_id = 1, payload = D:sub(1, 4) }) }, { type = "u12/16le", numbers = "1042 2134" })
golden("gvsp", { encoded("gvsp", { packet_format = "data", payload = D:sub(1, 6) }) }, { type = "u10.gev", numbers = "72 347 482 753", options = { type = "Mono10Packed" } })

-- A context packet names the type, the rate and the frequency of its stream only.
local context = encoded("vrt-context", { stream_id = 7, indicators = 0x08208000, rf_frequency = 1000 * 2 ^ 20, sample_rate = 256 * 2 ^ 20, packing_method = 1, real_complex = 1,
  packing_field_size = 11, item_size = 11 })
local function data(stream) return encoded("vrt", { packet_type = "data_with_stream_id", stream_id = stream, payload = D .. "\15\30\45\60" }) end
golden("vrt", { context, data(7), data(8) }, { type = "ci12", numbers = "291+1110i 1929-1348i -529+15i 482-708i", rate = 256, frequency = 1000, raw = 1 })
local timed = { packet_type = "data_with_stream_id", stream_id = 7, tsi = "utc", tsf = "picoseconds", integer_time = 1700000000, fractional_time = 5e11,
  payload = D .. "\15\30\45\60" }
local function at(changes, time)
  for k, v in pairs(changes) do timed[k] = v end
  golden("vrt", { encoded("vrt", timed), context }, { options = { type = "ci12", packet = 1 }, type = "ci12", numbers = "291+1110i 1929-1348i -529+15i 482-708i", time = time })
end
at({}, 1700000000.5)
at({ tsi = "gps" }, nil) -- another epoch
at({ tsi = "utc", tsf = "sample_count" }, nil)
golden("vdif", { encoded("vdif", { epoch = 49, seconds = 100, bits_minus_1 = 7, payload = D }) }, -- the second half of 2024
  { type = "o8", numbers = "-110 -76 -42 -8 26 60 94 112", shape = "8x1", time = 1719792100 })
golden("vdif", { encoded("vdif", { epoch = 49, seconds = 100, frame = 1, bits_minus_1 = 7, payload = D }) },
  { type = "o8", numbers = "-110 -76 -42 -8 26 60 94 112", shape = "8x1" })
golden("vrt", { encoded("vrt-context", { stream_id = 7, indicators = 0x8000, packing_method = 1, item_size = 11, packing_field_size = 13 }), data(7) },
  { type = "u8", numbers = "", raw = 1 })

-- A format with a scale, a count and a time per packet.
local mine = daqiri.format{ name = "mine", samples = { type = "i12", count = "n", scale = "2 ^ -gain", offset = 1, time = "at * 1e-3", rate = 1000 },
  { "n", 8 }, { "gain", 8 }, { "at", 16 } }
received({ mine:encode{ n = 3, gain = 1, at = 1500, payload = D:sub(1, 5) }, mine:encode{ n = 1, gain = 0, payload = D }, mine:encode{ n = 9, payload = D } }, function(b, s)
  local x = b:samples(mine)
  assert(numbers(x) == "146 555.5 965 292" and x.raw == 1 and x.time == 1.5 and x.rate == 1000, numbers(x))
  assert(numbers(b:samples(mine, { packet = 2 })) == "292" and #x == 4 and tostring(x) == "4 samples of i12")
  assert(x:mean() == (146 + 555.5 + 965 + 292) / 4)
  assert(math.abs(x:power() - (146 ^ 2 + 555.5 ^ 2 + 965 ^ 2 + 292 ^ 2) / 4) < 1e-6)
  local counts = x:histogram()
  assert(counts[0x123] == 2 and counts[0x456] == 1 and counts[0x789] == 1 and counts[0] == nil)
  has(try(b.samples, b), "a format that declares samples, or the option type, expected")
  has(try(b.samples, b, "simple"), "format simple declares no samples: give the option type")
  has(try(b.samples, b, nil, { type = "i13le" }), "\"i13le\" is not a valid sample type")
  has(try(b.packet(b, 1).samples, b:packet(1)), "b:samples(format, { packet = 1 })")
  has(try(x.get, x, 5), "sample")
  local none = b:samples(mine, { packet = 3 })
  assert(#none == 0 and none:mean() == nil and none:power() == nil and none:spectrum() == nil and none.shape == nil)
  local z = b:samples(nil, { type = "ci8", packet = 1 })
  assert(z.raw == 1 and z.complex) -- 9 bytes are not whole
end)

-- A tone of +1/8 of the rate at half of the full scale is at that frequency, not at its mirror.
local tone = {}
for i = 0, 255 do
  tone[i + 1] = string.char(math.floor(64 * math.cos(math.pi * i / 4) + 0.5) % 256, math.floor(64 * math.sin(math.pi * i / 4) + 0.5) % 256)
end
received({ table.concat(tone), table.concat(tone) }, function(b)
  local x = b:samples(nil, { type = "ci8" })
  local w = x:spectrum{ points = 64, window = "none" }
  assert(w.blocks == 8 and w.peak_frequency == 0.125 and math.abs(w.peak + 6.02) < 0.05 and #w.levels == 64 and w.frequencies[1] == -0.5, w.peak)
  assert(x:spectrum{ points = 512, continuous = true }.blocks == 1 and x:spectrum{ points = 512 } == nil)
  assert(x:spectrum{ points = 64, step = 2, window = "none" }.peak_frequency == 0.125)
  has(try(x.spectrum, x, { points = 100 }), "100 is not a valid number of points")
  local re, im = x:mean()
  assert(math.abs(re) < 0.01 and math.abs(im) < 0.01 and x:power() == (4096 + 2 * 45 ^ 2) / 2)
  assert(x:histogram()[192] == 128) -- -64, once in each of 64 turns in both parts

  -- Pictures: numbers, because stdout is not a terminal.
  local function plotted(options)
    options.type = "ci8"
    return printed(function() b:plot(options) end)
  end
  has(plotted{}, "Frequency (cycles/sample)\taverage (dBFS)\tmax hold\tmin hold\n")
  has(plotted{ points = 64, window = "none" }, "\n0.125\t-6.0\t-6.0\t-6.0\n")
  assert(not plotted{ points = 64 }:find "\n%-0.125\t%-[0-9]%.")
  has(plotted{ points = 64, step = 2, first = 2, window = "none" }, "\n0.25\t-6.1\t-6.1\t-6.1\n")
  has(plotted{ kind = "histogram" }, "\n-64\t128\n")
  has(plotted{ kind = "time" }, "Time (samples)\treal part, least\t")
  has(plotted{ kind = "constellation", packet = 1 }, "Real part (codes)\tImaginary part (codes)\n64\t0\n")
  has(plotted{ kind = "waterfall", points = 64 }, "the newest on top")
  has(try(b.plot, b, { type = "ci8", points = 512 }), "cannot draw the spectrum: a transform needs 512 consecutive finite samples")
  has(plotted{ points = 512, continuous = true, window = "none" }, "\n0.125\t-6.0")
  has(try(b.plot, b, { type = "i8", kind = "constellation" }), "the samples are real")
  has(try(b.plot, b), "a format that declares samples, or the option type, expected")
  has(try(b.plot, b, { format = "simple" }), "format simple declares no samples: give the option type")
  has(try(b.plot, b, { type = "ci8", kind = "spectra" }), "spectra")
  has(try(b.plot, b, { type = "ci8", points = 100 }), "100 is not a valid number of points")
  local file = os.tmpname()
  os.remove(file)
  for _, kind in ipairs{ "spectrum", "waterfall", "histogram", "time", "constellation" } do
    b:plot{ type = "ci8", kind = kind, file = file }
    has(try(b.plot, b, { type = "ci8", kind = kind, file = file }), file .. " is there, and stays as it is")
    b:plot{ type = "ci8", kind = kind, file = file, overwrite = true }
    local f = assert(io.open(file, "rb"))
    assert(f:read(8) == "\137PNG\r\n\26\n")
    f:close()
    os.remove(file)
  end
  has(try(b.plot, b, { type = "ci8", file = file .. "/x.png" }), "cannot create the picture")
end)

-- Aggregates: slots that are whole.
do
  local s, seen = open(), 0
  local blocks = s:reorder{ name = "blocks", memory_region = "blocks", format = "simple", packets_per_batch = 3, slot_bytes = 8, timeout_us = 50 }
  s:pipe(s:rx_queue "port", blocks)
  blocks:on_burst(function(a)
    seen = seen + 1
    local x = a.data:samples(3, { type = "co4" })
    assert(numbers(x) == "-7-6i -5-4i -3-2i -1+0i 1+2i 3+4i 5+6i 7-8i" and x.raw == 0, numbers(x))
    x = a.data:samples(nil, { type = "i16be" })
    assert(#x == 8 and x.raw == 1 and x:get(1) == 4660)
    assert(a.data:samples(2, { type = "i8" }).raw == 1)
    assert(a.data:samples(nil, { type = "co4" }):spectrum{ points = 16, continuous = true } == nil) -- slot 2 is missing
    local lines = printed(function() a:plot{ type = "ci8", kind = "time" } end)
    has(lines, "\n3\t-34\t-34\t-16\t-16\n4\t-\t-\t-\t-\n") -- 0xde 0xf0, then slot 2
    has(lines, "\n8\t18\t18\t52\t52\n")
    has(printed(function() a:plot{ format = "chips", kind = "histogram" } end), "\n-8\t2\n")
    has(try(a.plot, a), "the data were not converted: give the option type")
    assert(a.data:samples(1, { format = "chips" }):get(2) == 3)
    has(try(a.data.samples, a.data), "the data were not converted: give the option type")
    has(try(a.data.samples, a.data, 1, { format = "vdif" }), "format vdif: the type of its samples depends on 'bits_minus_1' of each packet: give the option type")
  end)
  s:start()
  local tx = s:tx_queue "port"
  for _, n in ipairs{ 0, 2 } do
    assert(tx:send(tx:alloc(1):fill(tx:template{ udp_dst = 7148, format = "simple", seq = n, payload = D })))
  end
  s:run{ seconds = 0.001 }
  assert(seen == 1)
end

-- Conversions by the type that a format declares; gaps of offset binary are filled with the code of 0.
do
  local s = open()
  local o4 = daqiri.format{ name = "chime", samples = { type = "co4", scale = 0.5 }, sequence = "seq", { "seq", 32 } }
  local varying = daqiri.format{ name = "varying", samples = { type = "co4", scale = "seq * 0.5" }, sequence = "seq", { "seq", 32 } }
  local function reorder(options)
    local o = { memory_region = "blocks", format = o4, packets_per_batch = 2, slot_bytes = 8, timeout_us = 50 }
    for k, v in pairs(options) do o[k] = v or nil end
    return s:reorder(o)
  end
  local function converts(types, format)
    return s:convert{ memory_region = "blocks", format = format or o4, data_types = types }
  end
  local function copies(types, format) return s:copy{ memory_region = "blocks", format = format, at = "payload", data_types = types } end
  has(try(reorder, { format = "vdif", packets_per_batch = false, batch = "seconds", slot = "frame", slots = 2, data_types = { output_type = "f32" } }), "format vdif: the type of its samples depends on 'bits_minus_1' of each packet: give input_type")
  has(try(converts, { output_type = "f32" }, "vrt"), "format vrt: the type of its samples is in packets of vrt-context: give input_type")
  has(try(copies, { output_type = "f32" }, varying), 'format varying: the scale "seq * 0.5" of its samples depends on each packet')
  has(try(converts, { output_type = "f32" }, "simple"), "input_type")
  has(try(converts, { output_type = "f32", scale = 0 }), "0 is not a valid scale")
  local floats, packed, bytes, over = reorder{ name = "floats", data_types = { output_type = "cf32" } }, reorder{ name = "packed" }, reorder{ name = "bytes", fill = 17 },
    reorder{ name = "over", data_types = { output_type = "cf32", scale = 2, offset = 1 } }
  local made = {}
  for _, st in ipairs{ floats, packed, bytes, over } do
    s:pipe(s:rx_queue "port", s:filter{ where = "len > 0" }, st)
    st:on_burst(function(a) made[st.name] = st == floats and numbers(a.data:samples(nil, { type = "cf32le" })) .. " in " .. a.dtype
      or st == over and numbers(a.data:samples(1, { type = "cf32le" })) or daqiri.hex(a.data:bytes(0, 16)) end)
  end
  s:start()
  local tx = s:tx_queue "port"
  assert(tx:send(tx:alloc(1):fill(tx:template{ udp_dst = 7148, format = o4, seq = 0, payload = D })))
  s:run{ seconds = 0.001 }
  assert(made.floats == "-3.5-3i -2.5-2i -1.5-1i -0.5+0i 0.5+1i 1.5+2i 2.5+3i 3.5-4i in fp32", made.floats)
  assert(made.over == "-12-10i -8-6i -4-2i 0+2i 4+6i 8+10i 12+14i 16-14i", made.over)
  has(made.packed:gsub("%X", ""), "123456789abcdef08888888888888888")
  has(made.bytes:gsub("%X", ""), "123456789abcdef01111111111111111")
end
