-- Errors that help a newcomer: names that are nearly right, calls of what is not a function, print of what came back.
local daqiri, t = require "daqiri", require "check"
local args = daqiri.args{ dir = "." }

local function config(more)
  local c = { version = 1, stream_type = "raw", master_core = 0, loopback = { mode = "sw", clock = "virtual", seed = 1 },
    memory_regions = { { name = "packets", kind = "host", affinity = 0, num_bufs = 4096, buf_size = 1024 },
      { name = "batches", kind = "host", affinity = 0, num_bufs = 16, buf_size = 4096 },
      { name = "spare", kind = "host", affinity = 0, num_bufs = 16, buf_size = 4096 } },
    interfaces = { { name = "port", address = "loop0",
      tx = { queues = { { name = "tx", id = 0, cpu_core = -1, batch_size = 64, memory_regions = { "packets" } } } } } } }
  for k, v in pairs(more) do c.interfaces[1][k] = v end
  return { daqiri = { cfg = c } }
end
local receiving = { rx = { queues = { { name = "rx", id = 0, cpu_core = -1, batch_size = 64, timeout_us = 10, memory_regions = { "packets" } } } } }
local s = daqiri.open(config(receiving))
local rx, tx = s:rx_queue("port"), s:tx_queue("port")
local blocks = s:reorder{ name = "blocks", memory_region = "batches", payload_byte_offset = 17, slot_bytes = 43,
  sequence_number = { bit_offset = 112, bit_width = 16 }, packets_per_batch = 2 }
s:pipe(rx, blocks, s:count{ name = "behind" })

-- Fields that are called, with a colon and with a point, and other values.
local calls = 0
blocks:on_burst(function(b)
  calls = calls + 1
  t.raises("mistakes.lua:27: 'count' of a presence is the number 2, not a function: write .count without (); a presence has count, hex, text, missing()",
    function() return 1 + b.present:count() end)
  t.raises("'n' of a burst is the number 1, not a function: write .n without (); a burst has batch_id, bytes,", function() return b:n() end)
  t.raises("'present' of a burst is a presence, not a function: write .present without ()", function() b:present() end)
  t.raises("attempt to call 'n', which is the number 1 and no function", function() b.n() end)
  t.raises("'interface' of a burst is the string \"blocks\", not a function", function() b:interface() end)
  t.raises("'timed_out' of a burst is a boolean, not a function", function() b:timed_out() end)
  t.raises("'extra' of a burst is nil, not a function", function() b:extra() end)
end)
t.raises("'name' of a session is the string", function() s:name() end)
t.raises("attempt to call 'nothing', which is nil and no function", function() local nothing; nothing() end)
t.raises("attempt to call the number 5, which is not a function", function() (5)() end)
t.raises("attempt to call 's', which is a session and no function", function() s() end)

-- Fields of what has none, by the name of what the line indexes.
local cfg, key = {}, "z"
t.raises("attempt to read 'count' of cfg.present, which is nil", function() return cfg.present:count() end)
t.raises("attempt to read 'b' of cfg.a, which is nil", function() cfg.a.b.c = 1 end)
t.raises("attempt to set 'c' of cfg.a, which is nil", function() cfg.a.c = 1 end)
t.raises("attempt to read 'y' of x, which is the number 5", function() local x = 5 return x.y end)
t.raises("attempt to set '1' of x, which is a boolean", function() local x = true x[1] = 2 end)
t.raises("attempt to read 'floor' of math.pie, which is nil", function() return math.pie.floor end)
t.raises("attempt to read 'y' of nil", function() return cfg.q.y, cfg.r.y end) -- twice on a line: which one isn't told
t.raises("attempt to read 'z' of nil", function() return cfg.q[key] end)
t.raises("attempt to read 'y' of the number 2", function() return math.floor(2.5).y end)

assert(getmetatable(5) == nil and getmetatable(nil) == nil and getmetatable("").__index == string)
t.equal(select(2, pcall(7)), "attempt to call a number value")
t.equal(select(2, pcall(rx)), "attempt to call a userdata value")
t.equal(("x"):rep(3), "xxx")

-- Names of figures: as they are read, so they are in thresholds, and what is like none is found at the start.
s:threshold("blocks.dropped_by.duplicate == 0")
s:threshold("blocks.dropped.duplicate == 0") -- as it was called once
t.raises('port.rx.drops has no value; did you mean "port.rx.dropped"?', function() s:threshold("port.rx.drops == 0") end)
t.raises('did you mean "port.rx.dropped_by.no_flow"?', function() s:threshold("port.rx.dropped_by.no_flwo == 0") end)
t.raises("unknown figure 'drops' (did you mean 'dropped'?)", function() return s:stats().port.rx.drops end)
s:threshold("late_comers == 0") -- a metric, which gets its value later
s:threshold("made.up.by_me < 5")
s:every(0.001, function() s:metric("late_comers", 0) s:metric("made.up.by_me", 1) end)

s:after(0, function()
  local b = tx:alloc(2)
  for i = 1, 2 do
    b:set_lengths(60)
    b:packet(i):set_u16(14, i + 1)
  end
  assert(tx:send(b))
end)
local sum = s:run{ seconds = 0.01 }
t.equal(calls, 1)
t.equal(#sum.failed, 0, sum.failed[1])

-- What print shows.
local text = tostring(sum.blocks)
assert(text:find("^aggregates.bps = ") and text:find("\nbatches = 1\n") and text:find("\npackets = 2\n"), text)
assert(not text:find("late") and text:find("\ndropped = 0\n"), text)
assert(tostring(sum.port):find("rx.burst_size.p50 = 2\n"), tostring(sum.port))
text = tostring(s:report())
assert(#s:report() > 1 and text == table.concat(s:report(), "\n"), text)

t.equal(tostring(s:interfaces()), "interface port")
t.equal(tostring(s:rx_queues("port")), "queue port/rx")
t.equal(tostring(s:tx_queues("port")), "queue port/tx")

local i = s:interface("port")
t.equal(tostring(i:flows()), "")
assert(tostring(i:tx_flows()) == "")

-- Names that are at home elsewhere.
t.raises("unknown global 'sleep': it is a function of the module (daqiri.sleep)", loadstring "sleep(1)")
t.raises("unknown global 'quit': os.exit() ends the program, and Ctrl-D a prompt", loadstring "quit()")

-- Regions: one that a stage uses is used.
assert(text:find('region "spare" is used by no queue and no reorder config, and by no stage of the script', 1, true), text)
assert(not text:find('"batches" is used by no', 1, true), text)

-- A threshold on what is not there.
local other = daqiri.open(config(receiving))
other:threshold("prot.rx.dropped == 0")
t.raises('threshold "prot.rx.dropped == 0": prot.rx.dropped has no value; did you mean "port.rx.dropped"?', other.run, other, { seconds = 1 })
other:close()

other = daqiri.open(config(receiving))
other:start()
t.raises('did you mean "port.rx.dropped"?', function() other:threshold("prot.rx.dropped == 0") end)
other:close()

-- A session that only transmits has received nothing.
local sender = daqiri.open(config{})
sender:tx_queue("port"):transmit{ template = sender:tx_queue("port"):template{ payload_bytes = 58 } }
text = sender:run{ packets = 100 }.reason
t.equal(text, "100 packets were sent")

-- Two writers with one prefix have a manifest each.
local pair = daqiri.open(config(receiving))
local pcap, raw = pair:write_pcap{ name = "capture", dir = args.dir, prefix = "both" }, pair:write_raw{ name = "bytes", dir = args.dir, prefix = "both", per = "file" }
pair:write_pcap{ name = "apart", dir = args.dir }
pair:pipe(pair:rx_queue("port"), pcap, raw)
pair:tx_queue("port"):transmit{ template = pair:tx_queue("port"):template{ payload_bytes = 58 }, count = 5 }
pair:run{ seconds = 0.01 }
for file, writer in pairs{ both = "capture", ["both.bytes"] = "bytes", apart = "apart" } do
  local f = assert(io.open(args.dir .. "/" .. file .. ".manifest.json"))
  local m = daqiri.from_json(f:read("*a"))
  f:close()
  t.equal(m.writer.name, writer)
  t.equal(m.state, "finished")
  t.equal(#m.files, 1)
  t.equal(m.files[1].packets, writer == "apart" and 0 or 5)
end
