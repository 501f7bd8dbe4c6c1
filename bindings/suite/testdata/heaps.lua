-- Heaps: pieces of any length at their byte offsets, against a model that writes bytes into a table.
local daqiri, t = require "daqiri", require "check"

local function open(buf)
  return daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "raw", master_core = 0,
    loopback = { mode = "sw", clock = "virtual", seed = 1 },
    memory_regions = { { name = "packets", kind = "host", affinity = 0, num_bufs = 1024, buf_size = 2048 },
      { name = "heaps", kind = "host", affinity = 0, num_bufs = 32, buf_size = buf or 4096 } },
    interfaces = { { name = "port", address = "loop0",
      tx = { queues = { { name = "tx", id = 0, cpu_core = -1, batch_size = 64, memory_regions = { "packets" } } } },
      rx = { queues = { { name = "rx", id = 0, cpu_core = -1, batch_size = 64, timeout_us = 10, memory_regions = { "packets" } } } } } } } } }
end

local function send(s, f, list)
  local tx = s:tx_queue "port"
  for _, p in ipairs(list) do
    p.udp_dst, p.format = 9100, f
    local b = tx:alloc(1)
    assert(tx:send(b:fill(tx:template(p))))
  end
end

-- Random heaps of both flavours, in pieces of random length, interleaved and in any order, some lost.
for _, name in ipairs{ "spead-64-48", "spead-64-40" } do
  math.randomseed(7)
  local s, f = open(), daqiri.format(name, { items = { time = 0x1600 } })
  local hs = s:heaps{ name = "heaps", format = f, memory_region = "heaps", window = 3, timeout_us = 2000, fill = 0x55 }
  s:pipe(s:rx_queue "port", hs)
  local model, sent, came = {}, {}, {}
  for id = 1, 30 do
    local size, at, heap = math.random(1, 3000), 0, { bytes = {}, lost = 0 }
    local pieces = {}
    while at < size do
      local n = math.min(size - at, math.random(1, 1400))
      local bytes = {}
      for i = 1, n do bytes[i] = string.char(math.random(0, 255)) end
      local lost = math.random(8) == 1 and at > 0
      for i = 1, n do heap.bytes[at + i] = lost and "\85" or bytes[i] end
      if lost then heap.lost = heap.lost + n
      else pieces[#pieces + 1] = { heap_cnt = id, heap_len = size, payload_offset = at, heap_payload_len = n, time = id * 100, payload = table.concat(bytes) } end
      at = at + n
    end
    model[id] = heap
    for i = #pieces, 2, -1 do local k = math.random(i) pieces[i], pieces[k] = pieces[k], pieces[i] end
    for _, p in ipairs(pieces) do sent[#sent + 1] = p end
  end
  hs:on_burst(function(h)
    local m = model[h.batch_id]
    t.equal(h.data:bytes(), table.concat(m.bytes))
    t.equal({ h.missing, h.expected, h.items[1].id, h.items[1].value, #h.items }, { m.lost, #m.bytes, 0x1600, h.batch_id * 100, 1 })
    came[#came + 1] = h.batch_id
  end)
  s:after(0, function()
    for i = 1, #sent, 20 do
      send(s, f, { unpack(sent, i, math.min(i + 19, #sent)) })
      daqiri.sleep(1e-4)
    end
  end)
  local l = s:run{ seconds = 0.1 }
  local lost = 0
  for _, m in ipairs(model) do lost = lost + m.lost end
  t.equal({ #came, l.heaps.missing + l.heaps.cut, l.heaps.batches + l.heaps.partial, l.heaps.dropped }, { 30, lost, 30, 0 })
  assert(l.heaps.missing > 0 and l.heaps.cut <= model[28].lost + model[29].lost + model[30].lost and l.heaps.partial > 0)
end

-- What can't be placed is counted by its reason, and places nothing.
do
  local s, f = open(), daqiri.format "spead-64-40"
  local hs = s:heaps{ name = "heaps", format = f, memory_region = "heaps", window = 2, timeout_us = 500 }
  s:pipe(s:rx_queue "port", hs)
  local function piece(id, size, at, text) return { heap_cnt = id, heap_len = size, payload_offset = at, heap_payload_len = #text, payload = text } end
  local lies = { piece(1, 20, 4, "bbbb"), piece(1, 20, 4, "cccc"), piece(1, 20, 2, "dddd"), piece(1, 20, 17, "eeee"), piece(1, 21, 10, "ff"),
    piece(2, 5000, 0, "gggg"), piece(3, 2 ^ 40 - 1, 0, "hh"), piece(1, 20, 2 ^ 39, "i"), { heap_cnt = 4, payload = "no size" },
    { payload = "no heap" }, piece(5, 0, 0, ""), piece(1, 20, 0, "aaaa"), piece(6, 4, 0, "late"), piece(7, 4, 0, "done"), piece(7, 4, 0, "done") }
  lies[4].heap_payload_len = 4
  local got = {}
  hs:on_burst(function(h) got[h.batch_id] = h.data.length > 0 and h.data:bytes() or "" end)
  s:after(0, function()
    send(s, f, lies)
    local tx = s:tx_queue "port"
    send(s, daqiri.format "spead-64-48", { piece(8, 4, 0, "else") })
    daqiri.sleep(1e-2)
    send(s, f, { piece(1, 20, 12, "late") })
  end)
  local d = s:run{ seconds = 0.05 }.heaps.dropped_by
  t.equal({ d.duplicate, d.overlap, d.past_end, d.size_changed, d.too_long, d.bad_place, d.bad_format, d.late }, { 2, 1, 2, 1, 2, 2, 1, 1 })
  t.equal({ got[1], got[5], got[6], got[7] }, { "aaaabbbb" .. ("\0"):rep(12), "", "late", "done" })
end

-- A format of one's own, heaps of a size that is known.
do
  local s = open()
  local hs = s:heaps{ name = "frames", format = daqiri.format{ { "frame", 32 }, { "at", 32 } }, id = "frame", offset = "at * 2", heap_bytes = 8,
    memory_region = "heaps" }
  s:pipe(s:rx_queue "port", hs)
  local got
  hs:on_burst(function(h) got = h.data:bytes() assert(#h.items == 0) end)
  s:after(0, function() send(s, daqiri.format{ { "frame", 32 }, { "at", 32 } }, { { frame = 9, at = 2, payload = "efgh" }, { frame = 9, at = 0, payload = "abcd" } }) end)
  s:run{ seconds = 0.01 }
  t.equal(got, "abcdefgh")
end

local s = open()
local function refused(want, o)
  o.memory_region = o.memory_region or "heaps"
  t.raises(want, s.heaps, s, o)
end
refused("option 'id' is missing", {})
refused("option 'offset' is missing", { id = "len" })
refused("option 'size' (a number", { id = "len", offset = "0" })
refused("keep one of them", { id = "len", offset = "0", size = "8", heap_bytes = 8 })
refused("does not fit the buffers", { id = "len", offset = "0", heap_bytes = 5000 })
refused("unknown name 'lne'", { id = "lne", offset = "0", heap_bytes = 5 })
refused("needs more buffers", { id = "len", offset = "0", heap_bytes = 5, window = 32 })
