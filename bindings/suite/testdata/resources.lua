-- Queues and memory regions that come and go while other queues receive.
local daqiri, t = require "daqiri", require "check"

local s = daqiri.open()
local i, tx, kept = s:interface("loop0"), s:tx_queue("loop0"), s:rx_queue("loop0")
local small = { name = "small", kind = "host", affinity = 0, num_bufs = 256, buf_size = 1024 }
local function queue(name, id) return { name = name, id = id, cpu_core = -1, batch_size = 32, memory_regions = { "small" } } end
local function refused(want, words, v, status, text)
  t.equal({ v, status }, { nil, want })
  assert(text:find(words, 1, true), text)
end

t.raises("memory_regions", function() i:add_rx_queue{ name = "x", id = 1, cpu_core = -1, batch_size = 1 } end)
t.raises("num_bufs", function() s:add_region{ name = "x", kind = "host", affinity = 0, num_bufs = 0, buf_size = 1 } end)
refused("INVALID_PARAMETER", "small", i:add_rx_queue(queue("more", 1)))
refused("INVALID_PARAMETER", "small", s:delete_region("small"))

assert(s:add_region(small))
refused("ALREADY_EXISTS", "small", s:add_region(small))
t.equal(s:region("small").free_bufs, 256)

local counts = { kept = 0, more = 0 }
kept:on_burst(function(b) counts.kept = counts.kept + b.n end)
s:start()

-- each queue lives three times; its line in the ledger is one
local function send(q, udp_dst, n)
  q:transmit{ template = q:template{ payload_bytes = 100, udp_dst = udp_dst }, count = n }
  assert(q:drain{ timeout = 10 })
end
local function arrived(what, n)
  for _ = 1, 1e4 do
    if counts[what] >= n then break end
    daqiri.sleep("1ms")
  end
  t.equal(counts[what], n)
end
for life = 1, 3 do
  local more, out = assert(i:add_rx_queue(queue("more", 1))), assert(i:add_tx_queue(queue("out", 1)))
  t.equal({ more.name, more.id, more.direction, out.direction }, { "more", 1, "rx", "tx" })
  t.equal(s:rx_queue("loop0", "more").id, 1)
  more:on_burst(function(b) counts.more = counts.more + b.n end)
  i:add_flows("more", { { name = "late", match = { udp_dst = 9 }, action = { type = "queue", id = 1 } } })
  send(tx, 8, 100)
  send(out, 9, 50)
  arrived("kept", 100 * life)
  arrived("more", 50 * life)
  refused("RESOURCE_IN_USE", "late", more:delete())
  i:delete_flows("more")
  refused("RESOURCE_IN_USE", "more", s:delete_region("small"))
  assert(assert(more:delete()):wait{ timeout = 10 })
  t.raises("was deleted at", function() more:flush() end)
  t.raises("more", function() s:rx_queue("loop0", "more") end)
  assert(assert(out:delete()):wait{ timeout = 10 })
end
local line = s:stats().loop0
t.equal(line.rx.packets, 450)

-- what names a queue keeps it
local more, out = assert(i:add_rx_queue(queue("more", 1))), assert(i:add_tx_queue(queue("out", 1)))
s:pipe(more, s:count{ name = "counter" }, out)
refused("RESOURCE_IN_USE", "more → counter", more:delete())
refused("RESOURCE_IN_USE", "sends on it", out:delete())

-- an operation lasts until a burst of the queue is free
refused("RESOURCE_IN_USE", "more", s:delete_region("small"))
small.name = "other"
assert(s:add_region(small))
local conf = queue("last", 2)
conf.memory_regions = { "other" }
local last = assert(i:add_tx_queue(conf))
local b = assert(last:alloc(3))
local op = assert(last:delete())
t.equal(op:poll(), false)
refused("NOT_READY", "op of", op:wait{ timeout = 0.01 })
b:free()
assert(op:wait{ timeout = 10 })
t.equal({ op:poll(), op.error }, { true, nil })
op = assert(s:delete_region("other"))
assert(op:wait{ timeout = 10 })
t.raises("other", function() s:region("other") end)
s:close()
