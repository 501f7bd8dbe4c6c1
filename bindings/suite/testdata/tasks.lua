-- tasks: messages both ways, receive, handlers, queues that are handed over, and what can't go over.
local daqiri, t = require "daqiri", require "check"
local captured = 1
t.raises("the function captures the local 'captured'", daqiri.task, function() return captured end)
t.raises("function or module name expected", daqiri.task, 3)
t.raises("a function written in Lua expected", daqiri.task, function() end, print)

-- replies to each message, until it gets false
local echo = daqiri.task(function(prefix)
  local daqiri = require "daqiri"
  while true do
    local v = daqiri.receive{}
    if v == false then return end
    daqiri.send{ prefix .. tostring(v.n), u = v.u, at = v.at }
  end
end, "got ")
assert(#echo.name > 0 and echo.done == false)
t.equal(tostring(echo), "task " .. echo.name)
local answers = {}
echo:on_message(function(v) answers[#answers + 1] = v end)
for n = 1, 3 do assert(echo:send{ n = n, u = daqiri.u64("18446744073709551615"), at = daqiri.time("@5") }) end
while #answers < 3 do daqiri.sleep(0.001) end
t.equal(answers[3][1], "got 3")
t.equal(tostring(answers[1].u), "18446744073709551615")
t.equal(tostring(answers[1].at), "1970-01-01T00:00:05Z")
echo:send(false)
while not echo.done do daqiri.sleep(0.001) end
local ok, status, why = echo:send(1)
t.equal(ok, nil)
assert(status == "GENERIC_FAILURE" and why:find("ended"), why)
t.raises("a function can't go to another task", function() echo:send(print) end)

-- a task that only has handlers goes on until it is stopped
local listener = daqiri.task(function()
  local daqiri = require "daqiri"
  daqiri.on_message(function(v) daqiri.send(v * 2) end)
end)
local doubled
listener:on_message(function(v) doubled = v end)
listener:send(21)
while not doubled do daqiri.sleep(0.001) end
t.equal(doubled, 42)
listener:stop("enough")
while not listener.done do daqiri.sleep(0.001) end

-- messages that come while a task waits for something else are kept for receive
local late = daqiri.task(function()
  local daqiri = require "daqiri"
  daqiri.sleep(0.005)
  daqiri.send(daqiri.receive{} + daqiri.receive{})
end)
local total
late:on_message(function(v) total = v end)
late:send(1)
late:send(2)
while not total do daqiri.sleep(0.001) end
t.equal(total, 3)

-- a task that waits in vain
local patient = daqiri.task(function()
  local daqiri = require "daqiri"
  local v, status = daqiri.receive{ timeout = "1ms" }
  daqiri.send{ v == nil, status }
end)
local outcome
patient:on_message(function(v) outcome = v end)
while not outcome do daqiri.sleep(0.001) end
t.equal(outcome[1], true)
t.raises("has no task above it", daqiri.receive)
t.raises("has no task above it", daqiri.send, 1)
t.raises("has no task above it", daqiri.on_message, print)

-- a module as a task: its arguments are ...
local worker = daqiri.task("worker", 6, 7)
local product
worker:on_message(function(v) product = v end)
while not product do daqiri.sleep(0.001) end
t.equal(product, 42)
t.equal(worker.name, "worker")

-- a queue is handed over
local s = daqiri.open()
local rx, tx = s:rx_queue("loop0"), s:tx_queue("loop0")
local counter = daqiri.task(function(q)
  local daqiri = require "daqiri"
  local n = 0
  q:on_burst(function(b)
    n = n + b.n
    if n == 500 then daqiri.send(n) end
  end)
end, rx)
t.raises("queue rx0 was handed to task", function() rx:on_burst(print) end)
t.raises("was handed to task", function() s:rx_queue("loop0"):flush() end)
t.raises("a queue is handed over as an argument of daqiri.task only", function() counter:send(tx) end)
counter:on_message(function(n) s:stop("counted " .. n) end)
tx:transmit{ template = tx:template{ payload_bytes = 64 }, count = 500 }
local sum = s:run{ seconds = 10 }
t.equal(sum.reason, "counted 500")
t.equal(sum.loop0.rx.packets, 500)
s:close()

-- one that was read before, through several values of it: the earlier reader gets no more of it, and delays nothing
do
  local s = daqiri.open()
  local tx = s:tx_queue("loop0")
  local tpl = tx:template{ payload_bytes = 64 }
  s:start()
  local function burst() return assert(s:rx_queue("loop0"):get_burst{ timeout_us = 1e7 }) end
  for _ = 1, 200 do
    tx:transmit{ template = tpl, count = 3 }
    local n = 0
    while n < 3 do
      local b = burst()
      n = n + b.n
      b:free()
    end
  end
  tx:transmit{ template = tpl, count = 3 }
  local kept = burst()
  local got
  local reader = daqiri.task(function(rx, want, each)
    local n = 0
    while n < want do
      local b = rx:get_burst{ timeout_us = 1e7 }
      if not b then break end
      n = n + each(b)
      b:free()
    end
    require("daqiri").send(n)
  end, s:rx_queue("loop0"), 50000, function(b) return b.n end)
  t.raises("was handed to task", burst)
  reader:on_message(function(n) got = n end)
  tx:pace{ pps = 1e6 }
  for _ = 1, 500 do
    tx:transmit{ template = tpl, count = 100 }
    tx:drain()
    daqiri.sleep(1e-4)
  end
  while not got do daqiri.sleep(1e-3) end
  t.equal(got, 50000)
  t.equal(kept.n > 0 and kept.n <= 3, true)
  s:close()
end
t.raises("captures the local 't'", function() daqiri.task(function() end, function() return t end) end)

t.raises("waits, which a coroutine can't do", coroutine.wrap(function() daqiri.sleep(0.001) end))
