-- handlers.lua: functions of handlers that take each other's place, and handlers that are removed.
local daqiri = require "daqiri"
local t = require "check"

local s = daqiri.open()
local tx, rx = s:tx_queue("loop0"), s:rx_queue("loop0")
local tpl = tx:template{ udp_dst = 7148, payload_bytes = 100 }
local first, second, other = 0, 0, 0
rx:on_burst(function(b) first = first + b.n end, { name = "count" })
rx:on_burst(function(b) other = other + b.n end)
s:start()
local function send(n)
  for _ = 1, n do assert(tx:send(assert(tx:alloc(4)):fill(tpl))) end
  daqiri.sleep(0.02)
end

send(5)
rx:on_burst(function(b) second = second + b.n end, { name = "count" })        -- with the next burst, and none is lost
send(5)
t.equal(first, 20)
t.equal(second, 20)
t.equal(other, 40)
t.raises("has another sample or policy", function() rx:on_burst(print, { name = "count", sample = 2 }) end)
t.raises("no handler named gone", function() rx:on_burst(false, { name = "gone" }) end)

rx:on_burst(false, { name = "count" })
send(5)
t.equal(second, 20)
t.equal(other, 60)
rx:on_burst(false)                                                             -- all of them
send(5)
t.equal(other, 60)
rx:on_burst(function(b) first = first + b.n end, { name = "count" })           -- the name is free again
send(1)
t.equal(first, 44)                                                             -- what came meanwhile waited in the queue
s:stop()
