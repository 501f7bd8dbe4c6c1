-- Convert stages that choose the type or the scale of each packet: what becomes of packets, what passes unchanged, what is refused.
local daqiri, t = require "daqiri", require "check"

local function open()
  return daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "raw", master_core = 0, loopback = { mode = "sw", clock = "virtual", seed = 1 },
    memory_regions = { { name = "packets", kind = "host", affinity = 0, num_bufs = 1024, buf_size = 256 },
      { name = "numbers", kind = "host", affinity = 0, num_bufs = 128, buf_size = 256 } },
    interfaces = { { name = "port", address = "loop0",
      tx = { queues = { { name = "tx", id = 0, cpu_core = -1, batch_size = 64, memory_regions = { "packets" } } } },
      rx = { queues = { { name = "rx", id = 0, cpu_core = -1, batch_size = 64, timeout_us = 10, memory_regions = { "packets" } } } } } } } } }
end

local function try(fn, ...) local ok, err = pcall(fn, ...) assert(not ok) return tostring(err) end
local function has(text, part) assert(text:find(part, 1, true), text) end

local function hex(s) return (s:gsub(".", function(c) return ("%02x"):format(c:byte()) end)) end

-- converted sends UDP payloads, and returns what a stage makes of each, without the first `head` bytes, and how many passed unchanged. Packets that went
-- through the stage come back to another port.
local function converted(format, types, head, payloads)
  local s, out = open(), {}
  s:pipe(s:rx_queue "port", s:filter{ where = "udp_dst == 7148" }, s:convert{ name = "numbers", memory_region = "numbers", format = format, data_types = types },
    s:rewrite{ udp_dst = 7149 }, s:tx_queue "port")
  s:rx_queue("port"):on_burst(function(b)
    for i = 1, b.n do
      local p = b:packet(i)
      if p:u16(36) == 7149 then out[#out + 1] = hex(p:bytes(42 + head)) end
    end
    if #out == #payloads then s:stop("seen") end
  end)
  s:after(0, function()
    for _, payload in ipairs(payloads) do
      local b = s:tx_queue("port"):alloc(1)
      b:fill(s:tx_queue("port"):template{ udp_dst = 7148, payload = payload })
      assert(s:tx_queue("port"):send(b))
    end
  end)
  local l = s:run{ seconds = 0.01 }
  assert(l.numbers.out == #payloads, l.numbers)
  return table.concat(out, " "), l.numbers.raw
end

-- A field chooses the type.
local mine = daqiri.format{ name = "mine", { "kind", 8 }, { "gain", 8, signed = true } }
local by_kind = { of = "kind", [1] = "i8", [2] = "u12.lsb", [300] = "o4" }
local out, raw = converted(mine, { input_type = by_kind, output_type = "i8" }, 2, { "\1\0\255\1\2", "\2\0\16\32\0", "\3\0\1\2\3", "\1\0\5" })
t.equal({ out, raw }, { "ff0102 1002 010203 05", 1 })

-- A field is the scale, also with a constant, or as an exponent.
out = converted(mine, { input_type = "i8", output_type = "i8", scale = "gain" }, 2, { "\0\1\3", "\0\254\3", "\0\100\3" })
assert(out == "03 fa 7f", out)
out = converted(mine, { input_type = "i8", output_type = "i8", scale = "gain * 10 / 4", offset = 1 }, 2, { "\0\2\3", "\0\1\1" })
assert(out == "14 05", out) -- (3 + 1) * 5, (1 + 1) * 2.5
out = converted(mine, { input_type = by_kind, output_type = "i8", scale = "2 ^ -gain" }, 2, { "\1\1\8", "\1\254\8", "\2\3\16\128\0", "\9\0\1" })
assert(out == "04 20 0201 01", out)

-- A format that declares its samples so needs neither.
local declared = daqiri.format{ name = "declared", { "bits", 7 }, { "cplx", 1 }, { "shift", 8 },
  samples = { type = { of = "bits", [8] = "i8", [2] = "o2.lsb" }, complex = "cplx", levels = { -3, -1, 1, 3 }, scale = "2 ^ shift" } }
out, raw = converted(declared, { output_type = "i8" }, 2, { "\16\0\7\9", "\4\1\27", "\17\0\7\9", "\17\1\7\9", "\2\0\7" })
t.equal({ out, raw }, { "0709 0602fefa 0709 0e12 07", 1 })
local vdif = daqiri.format "vdif"
out, raw = converted(vdif, { output_type = "i8" }, 32, { vdif:encode{ bits_minus_1 = 7, payload = "\129\127\128\0\1\2\3\4" }, vdif:encode{ bits_minus_1 = 6, payload = "12345678" } })
t.equal({ out, raw }, { "01ff008081828384 3132333435363738", 1 })

-- What is refused.
local s = open()
local function with(types) return { memory_region = "numbers", format = mine, data_types = types } end
has(try(s.convert, s, with{ input_type = {}, output_type = "i8" }), "a type's name or { of = FIELD, [NUMBER] = TYPE")
has(try(s.convert, s, with{ input_type = { of = "kind", [1] = 8 }, output_type = "i8" }), "[1] = ")
has(try(s.convert, s, with{ input_type = { of = "kind", [1] = "i9le" }, output_type = "i8" }), "9 bits have no byte order")
has(try(s.convert, s, with{ input_type = { of = "knd", [1] = "i8" }, output_type = "i8" }), "knd")
has(try(s.convert, s, with{ input_type = "i8", output_type = "i8", scale = "gain + 0.5" }), "gain + 0.5")
has(try(s.convert, s, with{ input_type = "i8", output_type = "i8", scale = "0 * gain" }), "its constant factor is 0")
has(try(s.convert, s, with{ input_type = "i8", output_type = "i8", scale = "0.5" }), "a number over fields expected")
has(try(s.convert, s, with{ input_type = by_kind, output_type = "i8", endianness = "network" }), "includes the byte order")
has(try(s.copy, s, { memory_region = "numbers", at = "payload", data_types = { input_type = by_kind, output_type = "i8" } }), "only s:convert follows")
has(try(s.copy, s, { memory_region = "numbers", at = "payload", data_types = { input_type = "i8", output_type = "i8", scale = "gain" } }), "only s:convert follows")
has(try(s.convert, s, { memory_region = "numbers", format = "vrt", data_types = { output_type = "i8" } }), "vrt-context")
