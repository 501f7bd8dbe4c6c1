-- Formats: names for an application's fields in texts, columns, changes, templates and rules of reorder stages.
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

-- What a format says, and what is none.
local chips = daqiri.format("chips")
assert(chips.name == "chips" and chips.header_bytes == 16 and #chips.fields == 8 and tostring(chips) == "format chips")
local spead = daqiri.format("spead-64-48", { items = { timestamp = 0x1600, feng = 0x4101, chan = 0x4103 } })
assert(spead.header_bytes == nil and #spead.fields == 12)
local mine = daqiri.format{ number = { at = "payload", bit_offset = 0, bit_width = 16, endianness = "little" } }
assert(mine.fields[1] == "number" and mine.header_bytes == nil)
t.raises("did you mean 'chips'", daqiri.format, "chip")
t.raises("chips has no list of items", daqiri.format, "chips", { items = { a = 1 } })
t.raises("does not fit 15 bits", daqiri.format, "spead-64-48", { items = { a = 0x8000 } })
t.raises("every packet has a field 'len'", daqiri.format, "spead-64-48", { items = { len = 0x1600 } })
t.raises("every packet has a field 'udp_dst'", daqiri.format, { udp_dst = { bit_offset = 0, bit_width = 8 } })
t.raises("a name and a table", daqiri.format, { seq = 5 })

-- Fixed places: a template counts, a filter and a selection pick, a rule places.
do
  local s = open()
  local tx, rx = s:tx_queue("port"), s:rx_queue("port")
  local st = s:reorder{ name = "blocks", format = "chips", memory_region = "batches", slot_bytes = 20, batch = "seq // 4",
    slot = "seq % 4", slots = 4, extra = "chan0" }
  s:pipe(rx, s:filter{ name = "low", where = "seq < 8 and udp_dst == 4015", format = "chips" }, st)
  s:start()
  rx:get_burst{ timeout_us = 0 }
  st:get_burst{ timeout_us = 0 }
  local b = tx:alloc(10)
  b:fill(tx:template{ format = chips, payload_bytes = 36, udp_dst = 4015, vary = { seq = 1, chan0 = 96 } })
  assert(tx:send(b))
  local got = rx:get_burst{ timeout_us = 1e6 }
  local seq = got:column("seq", chips)
  assert(got.n == 10 and seq[1] == 0 and seq[10] == 9 and got:column("chan0 // 96 + seq", chips)[4] == 6)
  assert(got:select("seq >= 3 and chan0 < 960", chips).n == 7 and got:count("seq == 3", "chips") == 1)
  t.raises("unknown field 'sq'", function() got:column("sq", chips) end)
  t.raises("unknown", function() got:select("seq > 1") end)
  local a, second = st:get_burst{ timeout_us = 1e6 }, st:get_burst{ timeout_us = 1e6 }
  assert(a.batch_id == 0 and second.batch_id == 1 and a.missing == 0 and #a.data == 80 and a.extra[4] == 288)
  assert(s:stats().low.dropped == 2)
  local out = tx:alloc(1)
  out:fill(tx:template{ payload_bytes = 36 })
  t.equal(out:set({ seq = 77 }, chips), 1)
  t.equal(out:column("seq", chips)[1], 77)
  t.raises("format", function() out:set({ seq = 77 }, 5) end)
  t.raises("for the fields of 'where'", function() s:filter{ format = chips, pcap = "udp" } end)
  t.raises("this packet has no such field", function() tx:template{ format = spead, payload_bytes = 80, vary = { timestamp = 1 } } end)
  t.raises("a format", function() s:filter{ format = 7, where = "len > 1" } end)
  s:close()
end

-- Items by their ids, wherever they are; the payload begins behind them.
do
  local s = open()
  local tx = s:tx_queue("port")
  local st = s:reorder{ name = "blocks", format = spead, memory_region = "batches", slots = 6, slot_bytes = 8, packet_bytes = 4,
    batch = "timestamp // 2^20", slot = "feng * 2 + chan // 256", offset = "payload_offset", extra = "timestamp" }
  s:pipe(s:rx_queue("port"), st)
  local function item(id, value) return { 0x8000 + id, value } end
  local function packet(items, payload)
    local text = { "\83\4\2\6\0\0\0", string.char(#items) }
    for _, i in ipairs(items) do
      local bytes = {}
      for k = 5, 0, -1 do bytes[#bytes + 1] = string.char(math.floor(i[2] / 256 ^ k) % 256) end
      text[#text + 1] = string.char(math.floor(i[1] / 256), i[1] % 256) .. table.concat(bytes)
    end
    return table.concat(text) .. payload
  end
  local all = {
    packet({ item(0x1600, 5 * 2 ^ 20), item(0x4101, 2), item(0x4103, 256), item(3, 0) }, "AAAA"),
    packet({ item(3, 4), item(0x4103, 300), item(1, 9), item(2, 8), item(0x4101, 2), item(0x1600, 5 * 2 ^ 20) }, "BBBB"),
    packet({ item(0x4101, 0), item(0x4103, 0), item(0x1600, 5 * 2 ^ 20), item(3, 0), item(0x1601, 1) }, "CCCC"),
    packet({ item(0x4101, 0), item(0x4103, 0), item(3, 0) }, "no timestamp"),
    "something else",
  }
  s:after(0, function()
    for _, text in ipairs(all) do
      local b = tx:alloc(1)
      b:fill(tx:template{ payload = text })
      assert(tx:send(b))
    end
  end)
  local got
  st:on_burst(function(b)
    got = { b.batch_id, b.present.text, b.data:bytes(0, 48), b.extra[6] }
  end)
  local l = s:run{ seconds = 0.01 }
  t.equal(got, { 5, "100000000011", "CCCC" .. ("\0"):rep(36) .. "AAAABBBB", 5 * 2 ^ 20 })
  t.equal(l.blocks.dropped_by.bad_place, 2)
end
