-- Formats that tables declare: fields of every kind, parts that are there or not, lists, places that move, templates, changes.
local daqiri, t = require "daqiri", require "check"

local function open()
  return daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "raw", master_core = 0,
    loopback = { mode = "sw", clock = "virtual", seed = 1 },
    memory_regions = { { name = "packets", kind = "host", affinity = 0, num_bufs = 512, buf_size = 1024 },
      { name = "batches", kind = "host", affinity = 0, num_bufs = 16, buf_size = 4096 } },
    interfaces = { { name = "port", address = "loop0",
      tx = { queues = { { name = "tx", id = 0, cpu_core = -1, batch_size = 64, memory_regions = { "packets" } } } },
      rx = { queues = { { name = "rx", id = 0, cpu_core = -1, batch_size = 64, timeout_us = 10, memory_regions = { "packets" } } } } } } } } }
end

local mine = daqiri.format{
  name = "mine", title = "Packets of a test", sequence = "seq", payload = "size", lsb0 = false,
  { "magic", 16, const = 0xabcd },
  { "kind", 4, values = { [1] = "data", [2] = "status" } },
  { "extra", 1 }, { "wide", 1 }, { reserved = 2 },
  { "size", 8, unit = "B", is = "payload_bytes" },
  { when = "extra == 1", { "gain", "i16", scale = 0.5, unit = "dB" }, { "level", "i8" }, { "n", 8 } },
  { list = "parts", count = "n", when = "extra == 1", key = "what", items = { first = 1, second = 2 }, { "what", 8 }, { "value", 24 } },
  { "long", 64, when = "wide == 1" },
  { "seq", 32 },
  { "word", "u32le" },
  { "real", "f32" }, { "name", "bytes4" }, { "who", "ipv4" }, { "mac", "mac" },
  { "tail", 16, at = "header_bytes * 8 + size * 8", when = "kind == kind.data" },
}
assert(mine.name == "mine" and mine.title == "Packets of a test" and mine.sequence == "seq" and mine.header_bytes == nil)
t.raises("the name is taken by the format that", daqiri.format, { name = "mine", { "a", 8 } })
t.raises("the name is taken by a format of the library", daqiri.format, { name = "chips", { "a", 8 } })
assert(daqiri.format("mine").title == mine.title)

-- One packet: encoded and decoded, and put together by hand.
local values = { kind = "data", extra = 1, gain = -3, level = -128, first = 7, second = 0xffffff, seq = 9, word = 0x01020304, real = 1.5,
  name = "abcd", who = "10.0.0.7", mac = "02:00:00:00:00:07", payload = "xyz", tail = 0x1234 }
local bytes = mine:encode(values)
t.equal(daqiri.hex(bytes), "abcd1803" .. "fffd8002" .. "0100000702ffffff" .. "00000009" .. "04030201" .. "3fc00000" .. "61626364" .. "0a000007" ..
  "020000000007" .. "78797a" .. "1234")
local got = mine:decode(bytes)
t.equal({ got.kind, got.gain, got.level, got.n, got.first, got.second, got.seq, got.word, got.real, got.name, got.who, got.mac, got.tail, got.long },
  { 1, -3, -128, 2, 7, 0xffffff, 9, 0x01020304, 1.5, "abcd", "10.0.0.7", "02:00:00:00:00:07", 0x1234 })
t.equal(got.parts[2].value, 0xffffff)
local long = mine:encode{ wide = 1, long = daqiri.u64 "0xfedcba9876543210" }
assert(mine:decode(long).long == daqiri.u64 "0xfedcba9876543210" and mine:decode(long).tail == nil and mine:decode(long).gain == nil)
local cut = mine:decode(bytes:sub(1, 9))
assert(cut.level == -128 and cut.first == nil and cut.seq == nil)
local none, status, why = mine:decode("\1\2\3\4")
assert(none == nil and status == "INVALID_PARAMETER" and why:find "magic is 258, and of mine it is 43981", why)
t.raises("seq: 4294967296 is outside 0..4294967295", mine.encode, mine, { seq = 2 ^ 32 })
t.raises("only where extra == 1", mine.encode, mine, { gain = 1 })
t.raises("unknown field 'sq'", mine.encode, mine, { sq = 1 })
t.raises("did you mean 'data'", mine.encode, mine, { kind = "dat" })
t.raises("always 43981", mine.encode, mine, { magic = 5 })
for _, v in ipairs(mine:vectors{ n = 200 }) do
  v.fields.magic = nil
  local n = v.fields.size
  v.fields.payload = v.bytes:sub(#mine:encode(v.fields) - n - (v.fields.kind == 1 and 2 or 0) + 1)
  assert(mine:decode(v.bytes).seq == v.fields.seq)
end
assert(mine:page():find "| `gain` | 16 |" and mine:dissector():find "daqiri_mine")

-- Single bits: by their numbers in a field, and from the least significant one of a byte.
do
  local f = daqiri.format{ { "flags", 8, bits = { cal = 0, overflow = 1, top = 7 } }, { "wide", "u16le", bits = { ninth = 8 } }, { "word", 16, bits = { low = 0 } } }
  t.equal(daqiri.hex(f:encode{ cal = 1, top = 1, ninth = 1, low = 1 }), "81" .. "0001" .. "0001")
  t.equal(daqiri.hex(f:encode{ flags = 0x41, cal = 0, overflow = 1 }), "42" .. "0000" .. "0000")
  local got = f:decode("\2\0\1\128\0")
  t.equal({ got.flags, got.cal, got.overflow, got.top, got.wide, got.ninth, got.word, got.low }, { 2, 0, 1, 0, 256, 1, 0x8000, 0 })
  t.equal(f:decode(f:encode(got)).flags, 2)
  assert(f:page():find("bit 1 of `flags`", 1, true))
  local low = daqiri.format{ lsb0 = true, { "seq", "u32le" }, { "cal", 1 }, { "overflow", 1 }, { "gain", 6 } }
  t.equal(daqiri.hex(low:encode{ overflow = 1, gain = 3, seq = 1 }), "01000000" .. "0e")
  local high = daqiri.format{ lsb0 = false, { "seq", "u32le" }, { "cal", 1 }, { "overflow", 1 }, { "gain", 6 } }
  t.equal(daqiri.hex(high:encode{ overflow = 1, gain = 3 }), "00000000" .. "43")
  -- One bit in a condition of the engine.
  local s, n = open(), 0
  local rx, tx = s:rx_queue("port"), s:tx_queue("port")
  local flags = daqiri.format{ name = "bits-of-flags", { "flags", 8, bits = { cal = 0, overflow = 1 } } }
  rx:on_burst(function(b) n = n + b:select("overflow == 1", flags).n end)
  s:after(0, function()
    for _, payload in ipairs{ "\2", "\1", "\3", "\64" } do
      local b = tx:alloc(1)
      b:fill(tx:template{ udp_dst = 7148, payload = payload })
      assert(tx:send(b))
    end
  end)
  s:run{ seconds = 0.001 }
  assert(n == 2, n)
  t.raises("say lsb0 = true, or lsb0 = false", daqiri.format, { { "seq", "u32le" }, { "cal", 1 }, { reserved = 7 } })
  t.raises("8, bits = { cal = 0 } }", daqiri.format, { { "cal", 1 }, { reserved = 7 }, { when = "cal == 1", { "seq", "u16le" } } })
  t.raises("lsb0: true or false expected", daqiri.format, { lsb0 = 1, { "a", 8 } })
  t.raises("'c' is bit 8, and the field has bits 0 to 7", daqiri.format, { { "a", 8, bits = { c = 8 } } })
  t.raises("bit 1 has the names 'b' and 'c'", daqiri.format, { { "a", 8, bits = { b = 1, c = 1 } } })
  t.raises("there are two fields of this name", daqiri.format, { { "a", 8, bits = { a = 1 } } })
  t.raises("bits: a table of numbers by name expected", daqiri.format, { { "a", 8, bits = 3 } })
  t.raises("unsigned numbers without const", daqiri.format, { { "a", "i8", bits = { b = 1 } } })
end

-- A sequence that begins again, as it is declared, and refused where a stage would take it for the stream's.
do
  local function message(fn, ...) return select(2, pcall(fn, ...)) end
  local function with(sequence) return { sequence = sequence, { "image", 16 }, { "n", 16 } } end
  for _, wrong in ipairs{ { "n" }, { "n", per = {} }, { "n", per = { 1 } }, { "n", per = { "image" }, plaec = "" }, true, { per = { "image" } } } do
    assert(message(daqiri.format, with(wrong)):find "format: sequence: ")
  end
  local f = daqiri.format(with{ "n", per = { "image" } })
  assert(f.sequence == "n")
  local s = open()
  local why = message(s.reorder, s, { format = f, memory_region = "batches", packets_per_batch = 4 })
  assert(why:find("'n' begins again for each 'image'", 1, true) and why:find("give, with your numbers, texts, batch, slot and slots", 1, true), why)
  s:reorder{ format = f, memory_region = "batches", batch = "image", slot = "n", slots = 4 }
end

-- In texts, columns, templates, changes and rules, wherever the fields are.
do
  local s = open()
  local tx, rx = s:tx_queue "port", s:rx_queue "port"
  local st = s:reorder{ name = "blocks", format = mine, memory_region = "batches", packets_per_batch = 4, slot_bytes = 3 }
  s:pipe(rx, s:filter{ name = "known", where = "magic == 0xabcd and kind == kind.data", format = mine }, st)
  s:start()
  rx:get_burst{ timeout_us = 0 }
  st:get_burst{ timeout_us = 0 }
  local b = tx:alloc(8)
  b:fill(tx:template{ format = "mine", kind = "data", extra = 1, first = 5, payload = "xyz", tail = 1, vary = { seq = 1, first = { step = 2, every = 4 },
    level = { toggle = 3 }, wide = 0 } })
  local other = tx:alloc(2)
  other:fill(tx:template{ format = mine, kind = "data", wide = 1, long = 77, payload = "abc", tail = 2, vary = { seq = { start = 8 } } })
  assert(tx:send(b))
  assert(tx:send(other))
  local a = rx:get_burst{ timeout_us = 1e6 }
  if a.n < 10 then a = a:keep() end
  local function list(text)
    local col, out = a:column(text, mine), {}
    for i = 1, #col do out[i] = col[i] or "-" end
    return table.concat(out, " ")
  end
  local n = a.n
  t.equal(list "seq", n == 10 and "0 1 2 3 4 5 6 7 8 9" or "0 1 2 3 4 5 6 7")
  t.equal(list "first":sub(1, 15), "5 5 5 5 7 7 7 7")
  t.equal(list "level":sub(1, 15), "0 3 0 3 0 3 0 3")
  t.equal(list "tail + 1":sub(1, 15), "2 2 2 2 2 2 2 2")
  t.equal(list "header_bytes":sub(1, 5), "38 38")
  t.equal(a:count("first == 7", mine), 4)
  t.equal(a:select("extra == 1 and level > 0", "mine").n, 4)
  local block = st:get_burst{ timeout_us = 1e6 }
  t.equal(block.data:bytes(), ("xyz"):rep(4))
  -- Several parts by bits of one number, which some packets lack, so that none of them is there.
  local flags = daqiri.format{ { "has", 8 }, { "bits", 32, when = "has == 1" }, { "a", 24, when = "bits & 0x80000000 ~= 0" }, { "b", 24, when = "bits & 2 ~= 0" },
    { "c", 16, when = "bits & 4 ~= 0" }, { "d", 16, when = "bits & 8 ~= 0" }, { "e", 24, when = "bits & 16 ~= 0" }, { "last", 16 } }
  for n, set in ipairs{ 0, 0x80000000, 2, 0x80000002, 4, 8, 12, 0x8000001e, 18 } do
    for has = 0, 1 do
      local some = tx:alloc(64)
      local given = { format = flags, has = has, last = 0x100 + n }
      for name, bit in pairs{ a = 0x80000000, b = 2, c = 4, d = 8, e = 16 } do
        if has == 1 and set % (2 * bit) >= bit then given[name] = bit % 251 end
      end
      if has == 1 then given.bits = set end
      some:fill(tx:template(given))
      t.equal({ some:column("last", flags)[1], some:column("last", flags)[64], some:count("last == " .. 0x100 + n, flags) }, { 0x100 + n, 0x100 + n, 64 })
      t.equal(some:column("e", flags)[1] == 16, given.e ~= nil)
      some:free()
    end
  end

  -- Changes: of a field that moves, in the packets that have it.
  local mixed = tx:alloc(2)
  mixed:fill(tx:template{ format = mine, extra = 1, gain = 1 })
  t.equal(mixed:set({ gain = -5, seq = { 100, 1 } }, mine), 2)
  t.equal({ mixed:column("gain", mine)[2], mixed:column("seq", mine)[2] }, { -5, 101 })
  local plain = tx:alloc(1)
  plain:fill(tx:template{ format = mine })
  t.equal(plain:set({ gain = 1 }, mine), 0)
  t.raises("items of a list can't be changed", function() plain:set({ first = 1 }, mine) end)
  t.raises("is bytes, not a whole number", function() plain:column("name", mine) end)
  t.raises("this packet has no such field", function() tx:template{ format = mine, vary = { gain = 1 } } end)
  t.raises("unknown option 'gian'", function() tx:template{ format = mine, gian = 1 } end)
  t.equal(mine:decode(mixed:packet(1)).gain, -5)
  mixed:show{ format = mine, fields = { "seq", "gain", "kind", "len" }, n = 1 }
  mixed:show{ format = "mine", csv = true, n = 1, fields = { "gain", "name", "long" } }
  s:close()
end

-- Packets that end within their header: the fields behind their end are absent, whatever lies in the buffer there.
do
  local s = open()
  local tx, rx = s:tx_queue "port", s:rx_queue "port"
  local f = daqiri.format{ { "a", 16 }, { "n", 16 }, { when = "n > 0", { "x", 32 } }, { "last", 32 } }
  s:start()
  local full = "\1\2\0\1\0\0\0\5\0\0\0\7", 0
  for round = 1, 2 do                                -- the second time what came before is still in the buffers
    for len = round == 1 and #full or 0, #full do
      local b = tx:alloc(1)
      assert(tx:send(b:fill(tx:template{ payload = full:sub(1, len) })))
      local got = rx:get_burst{ timeout_us = 1e6 }
      t.equal({ got:column("a", f)[1], got:column("x", f)[1], got:column("last", f)[1], got:count("last == 7", f), got:count("x ~= 1", f) },
        { len >= 2 and 0x102 or nil, len >= 8 and 5 or nil, len >= 12 and 7 or nil, len >= 12 and 1 or 0, len >= 8 and 1 or 0 })
      t.equal(f:decode(full:sub(1, len)).last, len >= 12 and 7 or nil)
      got:free()
    end
  end
  s:close()
end

-- A packet of another format lacks all fields, those with a constant among them.
do
  local s = open()
  local tx, rx = s:tx_queue "port", s:rx_queue "port"
  local f = daqiri.format{ { "magic", 8, const = 0x53 }, { "version", 4, const = 4 }, { "n", 4 } }
  s:start()
  for _, c in ipairs{ { "\83\69", 0x53, 4, 5, 1 }, { "\83\53" }, { "\0\69" } } do
    local b = tx:alloc(1)
    assert(tx:send(b:fill(tx:template{ payload = c[1] })))
    local got = rx:get_burst{ timeout_us = 1e6 }
    t.equal({ got:column("magic", f)[1], got:column("version", f)[1], got:column("n", f)[1], got:count("magic == 0x53", f), got:count("magic ~= 0x53 or version ~= 4", f) },
      { c[2], c[3], c[4], c[5] or 0, 0 })
    got:free()
  end
  s:close()
end

-- A struct text, and bits of little-endian words.
local text = daqiri.format{ struct = "<IHbx?", "seq", { "chan", unit = "MHz" }, "level", "flag" }
t.equal(daqiri.hex(text:encode{ seq = 1, chan = 2, level = -1, flag = 1 }), "010000000200ff0001")
local vdif = daqiri.format "vdif"
t.equal(vdif:decode("\16\39\0\128" .. ("\0"):rep(28)).seconds, 10000)

-- Faults, each with its field and line.
local function fault(want, declaration)
  local ok, why = pcall(daqiri.format, declaration)
  assert(not ok and why:find(want, 1, true), tostring(why))
end
fault("field 'b': it overlaps what is before it, which ends at bit 16", { { "a", 16 }, { "b", 8, at = 8 } })
fault("field 'b': a gap of 8 bits is in front of it: say { reserved = 8 }", { { "a", 16 }, { "b", 8, at = 24 } })
fault("field 'a': a width of 65 bits is outside 1 to 64", { { "a", 65 } })
fault("field 'a': it is an Ethernet address and has no unit or scale", { { "a", "mac", unit = "Hz" } })
fault("where it is depends on itself", { { "a", 8, when = "b == 1" }, { "b", 8, when = "a == 1" } })
fault("the header ends within a byte, at bit 12: say { reserved = 4 }", { { "a", 12 } })
fault("field 'a': there are two fields of this name", { { "a", 8 }, { "a", 8 } })
fault("when: unknown field 'falg' (did you mean 'flag'?)", { { "flag", 8 }, { "a", 8, when = "falg == 1" } })
fault("const: 256 is outside 0..255", { { "a", 8, const = 256 } })
fault("every packet has a field 'udp_dst'", { { "udp_dst", 16 } })
fault("unknown key 'unti' (did you mean 'unit'?)", { { "a", 8, unti = "Hz" } })
fault("width 'u16x'", { { "a", "u16x" } })
fault("struct has more fields than there are names", { struct = ">BB", "a" })
fault("scale: it is 0", { { "a", 8, scale = 0 } })
fault("only items of at most 64 bits", { { "n", 8 }, { list = "l", count = "n", key = "k", items = { x = 1 }, { "k", 64 }, { "v", 64 } } })
fault("'payload' is an option of q:template", { { "payload", 8 } })
fault("vectors[1]: seq is 1, not 2", { { "seq", 8 }, vectors = { { hex = "01", seq = 2 } } })
