-- Operations: their end is reported once, whichever call asks first: in the main chunk, in handlers, before and after it, and with several
-- that wait for the same one.
local daqiri, t = require "daqiri", require "check"
local args = daqiri.args{ dir = "." }

local s = daqiri.open()
local tx = s:tx_queue("loop0")
local disk = s:write_pcap{ name = "ops", dirs = { args.dir }, manifest = false }
s:start()

local function begin(n)
  local b = assert(tx:alloc(n))
  b:fill(tx:template{ payload_bytes = 100 })
  local op = assert(disk:write(b))
  b:free()
  return op
end

-- wait, and what it leaves
local op = begin(4)
t.equal(op:wait(), true)
t.equal(op:wait(), true)
t.equal(op:wait{ timeout = 0 }, true)
t.equal(op:poll(), true)
t.equal(op.completed_packets, 4)
t.equal(op.failed_packets, 0)
t.equal(op.error, nil)
t.equal(tostring(op), "op of writer ops: 4 packets completed")

-- on_done: each once and in order, before the end and at once after it
local reported = {}
op = begin(2)
op:on_done(function(o) reported[#reported + 1] = "first" t.equal(o, op) t.equal(o:poll(), true) end)
op:on_done(function() reported[#reported + 1] = "second" end)
op:wait()
daqiri.sleep(1e-3)
t.equal(table.concat(reported, " "), "first second")
op:on_done(function(o) reported[#reported + 1] = "at once" t.equal(o, op) end)
t.equal(reported[3], "at once")
daqiri.sleep(1e-3)
t.equal(#reported, 3)

-- a handler waits for what the main chunk waits for, too
op = begin(3)
local inside
s:after(1e-6, function() inside = op:wait{ timeout = 10 } end)
t.equal(op:wait{ timeout = 10 }, true)
daqiri.sleep(1e-3)
t.equal(inside, true)

-- on_done waits for another one
local other = begin(1)
op = begin(1)
op:on_done(function() inside = other:wait{ timeout = 10 } and "both" end)
op:wait()
daqiri.sleep(1e-3)
t.equal(inside, "both")

-- many at a time; half of them are never asked for
local open, ended = {}, 0
for k = 1, 40 do
  local o = begin(1)
  if k % 2 == 0 then o:on_done(function() ended = ended + 1 end) end
  open[k] = o
end
for k = 1, 40 do t.equal(open[k]:wait{ timeout = 10 }, true) end
daqiri.sleep(1e-3)
t.equal(ended, 20)

-- misuse
t.raises("function(op)", function() op:on_done("x") end)
t.raises("what", function() op:on_done(function() error("what") end) end)

-- an end after the last reader: the session goes first
op = begin(5)
op:on_done(function() ended = "late" end)
s:close()
t.equal(op:wait{ timeout = 10 }, true)
t.equal(op.completed_packets, 5)

-- drain: what was given to a queue has left; what has no end needs a timeout
do
  local s = daqiri.open(nil, { set = { ["interfaces.loop0.tx.queues.0.pacing_mbps"] = 10 } })
  local tx, rx = s:tx_queue("loop0"), s:rx_queue("loop0")
  rx:on_burst(function() end)
  local tpl = tx:template{ payload_bytes = 83 } -- 125 bytes of frame: 100 us each
  s:start()
  tx:transmit{ template = tpl, count = 10000 } -- 1 s: a busy machine may come back late
  local nothing, status = tx:drain{ timeout = 1e-4 }
  t.equal(nothing, nil)
  t.equal(status, "NOT_READY")
  t.equal(tx:drain(), true)
  t.equal(s:stats().loop0.tx.packets, 10000)
  t.equal(tx:drain{ timeout = 0 }, true)
  tx:transmit{ template = tpl }
  t.raises("queue tx0 sends without end", function() tx:drain() end)
  t.equal(select(2, tx:drain{ timeout = 1e-3 }), "NOT_READY")
  t.raises("transmit", function() rx:drain() end)
  s:close()
end

-- the end goes on sending for as long as the configuration says, and counts what is left
for _, end_of in ipairs{ { drain = "5ms", all = false }, { drain = "20s", all = true } } do
  local s = daqiri.open(nil, { set = { drain = end_of.drain, ["interfaces.loop0.tx.queues.0.pacing_mbps"] = 1 } })
  local tx, rx = s:tx_queue("loop0"), s:rx_queue("loop0")
  rx:on_burst(function() end)
  local b = assert(tx:alloc(100)) -- 0.8 s
  b:fill(tx:template{ payload_bytes = 958 })
  s:start()
  assert(tx:send(b))
  s:after(1e-6, function() s:stop("enough") end)
  s:run{}
  local tx = s:stats().loop0.tx
  t.equal(tx.packets + tx.dropped, 100)
  t.equal(tx.dropped == 0, end_of.all)
  s:close()
end
