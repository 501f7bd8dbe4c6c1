-- Whose packets are whose: of closed and other sessions, of selections and what they were made from, of what is written or sent.
local daqiri, t = require "daqiri", require "check"
local args = daqiri.args{ dir = "." }

-- an object of a closed session, or of another one
do
  local s, other = daqiri.open(), daqiri.open()
  local tx, rx = s:tx_queue("loop0"), s:rx_queue("loop0")
  local foreign = other:tx_queue("loop0"):template{ payload = "TTTT" }
  local b = tx:alloc(2)
  t.raises("template: it belongs to another session", function() b:fill(foreign) end)
  t.raises("the template belongs to another session", function() tx:transmit{ template = foreign } end)
  other:close()
  t.raises("template: it belongs to another session", function() b:fill(foreign) end)
  t.raises("the template belongs to another session", function() tx:transmit{ template = foreign } end)
  local kind = rx.timestamps
  assert(kind == "software" or kind == "virtual")
  s:close()
  t.raises("queue rx0: session: closed", function() return rx.timestamps end)
end

-- a template lasts as long as a queue sends it, without a reference in the script
do
  local s = daqiri.open()
  local tx, got = s:tx_queue("loop0"), 0
  s:rx_queue("loop0"):on_burst(function(b) got = got + b:count("payload_len == 300") end)
  tx:transmit{ template = tx:template{ payload_bytes = 300, vary = { udp_dst = 1 } }, count = 500 }
  for _ = 1, 20000 do tx:template{ payload_bytes = 300 } end
  s:run{ packets = 500 }
  t.equal(got, 500)
  s:close()
end

local s = daqiri.open()
local tx, rx = s:tx_queue("loop0"), s:rx_queue("loop0")
local region = s:region("packets")
local mine, theirs = tx:template{ payload = "mine" }, tx:template{ payload = "them" }
local function make(n) return (assert(tx:alloc(n or 4)):fill(mine)) end
local function tail(b, i) local p = b:packet(i) return p:bytes(#p - 4) end

-- others takes every free buffer.
local function others()
  local list = {}
  for b in function() return tx:alloc(4) end do list[#list + 1] = b:fill(theirs) end
  return list
end

-- a selection keeps its packets, whatever is freed or cut off in the burst that it was made from
for _, give in ipairs{ function(b) for i = 1, 4 do b:free{ packet = i } end end, function(b) b:free{ segment = 1 } end,
  function(b) for i = 1, 4 do b:free{ packet = i, segment = 1 } end end, function(b) b:truncate(0) end, function(b) b:free() end } do
  local b = make()
  local some, view = b:select("len > 0"), b:packet(1)
  give(b)
  local list = others()
  for i = 1, 4 do t.equal(tail(some, i), "mine") end
  some:packet(2):set_bytes(0, "hacked")
  some:set{ udp_dst = 6666 }
  for _, o in ipairs(list) do
    t.equal({ tail(o, 1), o:packet(1):u8(0), o:count("udp_dst == 6666") }, { "them", 255, 0 })
    o:free()
  end
  t.raises("", function() view:set_bytes(0, "x") end)
  some:free()
  pcall(b.free, b)
  t.equal(s:region("packets").free_bufs, region.num_bufs)
end

-- what was freed stays empty
do
  local b = make()
  b:free{ packet = 1 }
  t.equal(b:lengths(), { 0, mine.length, mine.length, mine.length })
  t.raises("do not fit", function() b:set_lengths(50) end)
  t.raises("template", function() b:fill(mine) end)
  local some = b:select("len >= 0")
  t.equal(some.n, 4)
  t.raises("do not fit", function() some:set_lengths(50) end)
  some:free()
  b:free()
end

s:start()
local file = s:write_pcap{ name = "file", dir = args.dir, policy = "wait" }
local function refused(b)
  t.raises("read-only", function() b:packet(1):set_u8(0, 1) end)
  t.raises("read-only", function() b:packet(1):set_bytes(0, "x") end)
  t.raises("read-only", function() b:set{ udp_dst = 1 } end)
  t.raises("read-only", function() b:set_lengths(20) end)
  t.raises("read-only", function() b:checksums() end)
  t.raises("read-only", function() b:fill(theirs) end)
  t.raises("read-only", function() b:truncate(1) end)
end

-- what a writer has stays as it is, by whichever burst or view it is reached
for which = 1, 3 do
  local b = make()
  local some = b:select("len > 0")
  local part = some:select("len > 0")
  local all = { b, some, part }
  local views = { b:packet(1), some:packet(1), part:packet(1) }
  local h = assert(file:write(all[which]))
  for k = 1, 3 do
    refused(all[k])
    t.raises("read-only", function() views[k]:set_u8(0, 1) end)
  end
  refused(b:select("len > 0"))
  t.raises("the burst has other readers", function() all[which]:tx_times(0) end)
  if which ~= 1 then t.raises("the burst has other readers", function() b:tx_times(0) end) end
  b:select("len > 0"):tx_times(0) -- its own
  t.equal(h:wait{ timeout = 10 }, true)
end
local f = assert(io.open(file.path, "rb"))
local _, n = f:read("*a"):gsub("mine", "")
f:close()
t.equal(n, 12)

-- a selection that was sent: the rest of the burst stays as it is
do
  local b = make()
  assert(tx:send(b:select("len > 0")))
  refused(b)
  b:free()
  local r = t.receive(rx, 4)[1]
  t.equal(tail(r, 1), "mine")
  r:packet(1):set_u8(0, 1) -- the receiver's own
  r:free()
end

-- buffers and packets of a burst that was cut short under a selection go on with it, once
do
  local before = s:region("packets").free_bufs
  local b = make(8)
  local some = b:select("len > 0")
  b:truncate(2)
  some:free()
  assert(tx:send(b))
  for _, r in ipairs(t.receive(rx, 2)) do r:free() end
  t.equal(s:region("packets").free_bufs, before)
end
s:close()

-- nothing moves before the start
do
  local e = daqiri.open()
  local q = e:tx_queue("loop0")
  e:rx_queue("loop0"):on_burst(function() end)
  q:transmit{ template = q:template{ payload = "early" }, count = 100 }
  daqiri.sleep(0.01)
  t.equal({ e:stats().loop0.tx.packets, e:stats().loop0.rx.packets }, { 0, 0 })
  e:close()
end
local w = daqiri.open{ version = 1, stream_type = "raw", master_core = 0, loopback = { mode = "sw", clock = "virtual", seed = 1, loss = 0.1, dup = 0.1, reorder = 0.1 },
  memory_regions = { { name = "m", kind = "host", affinity = 0, num_bufs = 1024, buf_size = 1024 } },
  interfaces = { { name = "a", address = "loop0", tx = { queues = { { name = "tx", id = 0, cpu_core = -1, batch_size = 64, memory_regions = { "m" } } } } },
    { name = "b", address = "loop1", rx = { queues = { { name = "rx", id = 0, cpu_core = -1, batch_size = 64, memory_regions = { "m" } } } } } } }
local q = w:tx_queue("a")
q:transmit{ template = q:template{ payload_bytes = 800 }, count = 300 }
daqiri.sleep(0.01)
t.equal({ w:stats().a.tx.packets, w:stats().b.rx.packets }, { 0, 0 })
w:close()
