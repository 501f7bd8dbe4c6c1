-- Convert stages: what becomes of packets, what is counted, what is refused.
local daqiri = require "daqiri"

local function open()
  return daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "raw", master_core = 0,
    loopback = { mode = "sw", clock = "virtual", seed = 1 },
    memory_regions = { { name = "packets", kind = "host", affinity = 0, num_bufs = 4096, buf_size = 256 },
      { name = "floats", kind = "host", affinity = 0, num_bufs = 128, buf_size = 256 },
      { name = "few", kind = "host", affinity = 0, num_bufs = 63, buf_size = 256 } },
    interfaces = { { name = "port", address = "loop0",
      tx = { queues = { { name = "tx", id = 0, cpu_core = -1, batch_size = 64, memory_regions = { "packets" } } } },
      rx = { queues = { { name = "rx", id = 0, cpu_core = -1, batch_size = 64, timeout_us = 10, memory_regions = { "packets" } } } } } } } } }
end

local function send(s, payload)
  local tx = s:tx_queue("port")
  local b = tx:alloc(1)
  b:fill(tx:template{ udp_dst = 7148, payload = payload })
  assert(tx:send(b))
end

local function try(fn, ...) local ok, err = pcall(fn, ...) assert(not ok) return tostring(err) end
local function has(text, part) assert(text:find(part, 1, true), text) end
local types = { input_type = "int16", output_type = "fp32", endianness = "network" }

-- The value of the fp32 at a place, from its bits.
local function float(p, at)
  local low, high = p:u8(at) + 256 * p:u8(at + 1) + 65536 * (p:u8(at + 2) % 128), p:u8(at + 3) % 128 * 2 + math.floor(p:u8(at + 2) / 128)
  local sign = p:u8(at + 3) >= 128 and -1 or 1
  return high == 0 and 0 or sign * (1 + low / 2 ^ 23) * 2 ^ (high - 127)
end

-- Payloads are converted, headers stay and say how long the packet is.
do
  local s = open()
  local st = s:convert{ name = "floats", memory_region = "floats", at = "payload", data_types = types }
  assert(st.kind == "convert" and s:stage("floats").name == "floats")
  local seen = {}
  s:pipe(s:rx_queue("port"), st, s:filter{ where = "udp_dst == 7148" }, s:count{ name = "behind" })
  s:rx_queue("port"):on_burst(function(b) seen[#seen + 1] = #b:packet(1) end)
  s:after(0, function()
    send(s, "\0\1\255\254\127\255\128\0" .. ("\0\5"):rep(20)) -- 1, -2, 32767, -32768, fives
    send(s, ("x"):rep(21)) -- no whole number of elements
    send(s, ("x"):rep(200)) -- too long for a buffer
  end)
  local l = s:run{ seconds = 0.001 }
  assert(l.floats["in"] == 3 and l.floats.out == 1 and l.behind.out == 1 and l.behind.bytes == 42 + 24 * 4, l)
  assert(l.floats.dropped_by.bad_payload == 1 and l.floats.dropped_by.too_long == 1)
  assert(seen[1] == 42 + 48, "what came is as it was")
end

do
  local s = open()
  local st = s:convert{ memory_region = "floats", payload_byte_offset = 42, data_types = types }
  local got
  s:pipe(s:rx_queue("port"), st, s:tx_queue("port")) -- it comes back, and once more
  s:rx_queue("port"):on_burst(function(b)
    local p = b:packet(1)
    if #p ~= 42 + 24 * 4 then return end
    got = { p:u16(16), p:u16(38), float(p, 42), float(p, 46), float(p, 50), float(p, 54), float(p, 58), float(p, 134) }
    s:stop("seen")
  end)
  s:after(0, function() send(s, "\0\1\255\254\127\255\128\0" .. ("\0\5"):rep(20)) end)
  s:run{ seconds = 0.001 }
  assert(table.concat(got, " ") == "124 104 1 -2 32767 -32768 5 5", table.concat(got, " "))
end

-- With a format its header stays, as long as it is in each packet.
do
  local s = open()
  local spead = daqiri.format("spead-64-48", { items = { timestamp = 0x1600 } })
  s:pipe(s:rx_queue("port"), s:convert{ name = "floats", memory_region = "floats", format = spead, policy = "wait", data_types = types }, s:count{ name = "behind" })
  s:after(0, function()
    send(s, "\83\4\2\6\0\0\0\1\150\0\0\0\0\0\0\9" .. ("\0\5"):rep(20))
    send(s, "\83\4\2\6\0\0\0\2\150\0\0\0\0\0\0\9\128\1\0\0\0\0\0\1" .. ("\0\5"):rep(20))
    send(s, ("x"):rep(40)) -- none
  end)
  local l = s:run{ seconds = 0.001 }
  assert(l.floats.dropped_by.bad_place == 1 and l.behind.out == 2 and l.behind.bytes == 42 + 16 + 80 + 42 + 24 + 80, l.behind.bytes)
end

-- Types of samples, with scale, offset and levels: payloads of vectors computed elsewhere.
local function samples(types, payload)
  local s = open()
  local got
  s:pipe(s:rx_queue("port"), s:convert{ memory_region = "floats", at = "payload", data_types = types }, s:tx_queue("port"))
  local seen = 0
  s:rx_queue("port"):on_burst(function(b)
    seen = seen + 1
    if seen ~= 2 then return end -- 1: before the conversion
    got = b:packet(1):bytes(42)
    s:stop("seen")
  end)
  s:after(0, function() send(s, payload) end)
  s:run{ seconds = 0.001 }
  return got
end
local function int16s(bytes)
  local list = {}
  for i = 1, #bytes, 2 do
    local v = bytes:byte(i) + 256 * bytes:byte(i + 1)
    list[#list + 1] = v < 32768 and v or v - 65536
  end
  return table.concat(list, " ")
end
local D = "\18\52\86\120\154\188\222\240\15\30\45\60"
for input, want in pairs{ i12 = "291 1110 1929 -1348 -529 15 482 -708", ["u12.lsb"] = "1042 1379 2680 3017 222 255 3358 962",
  ["u12.gev"] = "292 1379 1930 3017 3552 255 493 962", ["ci12.w32le"] = "1925 1588 303 222 -1079 -1476 721 -497",
  o8 = "-110 -76 -42 -8 26 60 94 112 -113 -98 -83 -68", o16be = "-28108 -10632 6844 24304 -28898 -21188",
  ["i12/16hbe"] = "291 1383 -1621 -529 241 723", ci16_le = "13330 30806 -17254 -3874 7695 15405" } do
  local got = int16s(samples({ input_type = input, output_type = input:find("^c") and "ci16" or "i16" }, D))
  assert(got == want, input .. ": " .. got)
end
assert(int16s(samples({ input_type = "qi8", output_type = "ci16" }, "\1\2\3\4")) == "2 1 4 3")
assert(int16s(samples({ input_type = "o2.lsb", output_type = "int16", levels = { -30, -10, 10, 30 } }, "\165\27")) == "-10 -10 10 10 30 10 -10 -30")
assert(int16s(samples({ input_type = "o2.lsb", output_type = "int16", levels = "vlbi", scale = 1000 }, "\27")) == "3317 1000 -1000 -3317")
assert(int16s(samples({ input_type = "i8", output_type = "int16", scale = 2, offset = 0.5 }, "\127\128")) == "255 -255")
assert(int16s(samples({ input_type = "f32be", output_type = "i16", scale = 1000 }, "\64\73\15\219\127\192\0\0\255\128\0\0")) == "3142 0 -32768") -- pi, NaN, -infinity
assert(int16s(samples({ input_type = "cf64le", output_type = "ci16" }, "\0\0\0\0\0\0\4\192\0\0\0\0\0\0\12\64")) == "-2 4") -- -2.5 and 3.5: ties to even
assert(samples({ input_type = "u8", output_type = "f32", scale = "full" }, "\128\64") == "\0\0\0\63\0\0\128\62") -- 0.5, 0.25

-- What is refused.
local s = open()
local function with(more)
  local o = { memory_region = "floats", at = "payload", data_types = types }
  for k, v in pairs(more) do o[k] = v or nil end
  return o
end
has(try(s.convert, s, {}), "'memory_region' is missing")
has(try(s.convert, s, { memory_region = "floats" }), "'data_types' is missing")
has(try(s.convert, s, with{ memory_region = "float" }), 'did you mean "floats"')
has(try(s.convert, s, with{ type = "fp32" }), "type")
local function typed(more)
  local t = { input_type = "i12", output_type = "fp32" }
  for k, v in pairs(more) do t[k] = v end
  return with{ data_types = t }
end
has(try(s.convert, s, typed{ input_type = "i12le" }), "12 bits have no byte order")
has(try(s.convert, s, typed{ input_type = "u12.gve" }), "the nearest one is u12.gev")
has(try(s.convert, s, typed{ endianness = "network" }), "includes the byte order")
has(try(s.convert, s, typed{ output_type = "cf32" }), '"i12" is real')
has(try(s.convert, s, typed{ output_type = "f23" }), "is not a valid output type")
has(try(s.convert, s, typed{ scale = 0 }), "not a valid scale")
has(try(s.convert, s, typed{ scale = "half" }), "scale")
has(try(s.convert, s, typed{ scale = 1 / 0 }), "finite")
has(try(s.convert, s, typed{ levels = { 1, 2 } }), "levels are for types of up to 8 bits")
has(try(s.convert, s, typed{ levels = "mulaw" }), '"vlbi"')
has(try(s.convert, s, typed{ levels = { "one" } }), "a number expected")
has(try(s.convert, s, typed{ input_type = "o2.lsb", levels = { 1, 2 } }), "o2.lsb has 4 codes, not 2")
has(try(s.convert, s, typed{ input_type = "u32be", output_type = "int32" }), "u32 a float")
has(try(s.pipe, s, s:rx_queue("port"), s:convert(with{ at = false }), s:count{}), "headers are not elements")
has(try(s.pipe, s, s:rx_queue("port"), s:convert(with{ memory_region = "few" }), s:count{}), "num_bufs must be at least that")
local blocks = s:reorder{ name = "blocks", memory_region = "packets", packets_per_batch = 2, sequence_number = { bit_offset = 112, bit_width = 16 } }
has(try(s.pipe, s, s:rx_queue("port"), blocks, s:convert(with{}), s:count{}), "give data_types to that reorder stage")
