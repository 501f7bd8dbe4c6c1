-- control.lua: what the rig passes to a script in mid-run, line by line in a file, and what the script reports to the rig.
local daqiri = require "daqiri"
local M = {}

-- The lines that the file at path has behind the place at, as {word, number}, and the place behind them.
local function orders(path, at)
  local f = io.open(path)
  if not f then return {}, at end
  f:seek("set", at)
  local text = f:read("*a")
  f:close()
  local list = {}
  for word, n in text:gmatch("(%S+) (%S+)\n") do list[#list + 1] = { word, tonumber(n) } end
  return list, at + #text
end

local function tell(path, text)
  local f = io.open(path .. ".done", "a")
  f:write(text, "\n")
  f:close()
end

-- Serves handlers, and does[word](number) ten times a second as the file at path requests, until that has "stop". What an
-- order returns is appended to path .. ".done".
local function obey(path, does)
  local at, list = 0, nil
  while true do
    daqiri.sleep(0.1)
    list, at = orders(path, at)
    for _, order in ipairs(list) do
      if order[1] == "stop" then return end
      tell(path, order[1] .. " " .. (does[order[1]](order[2]) or "done"))
    end
  end
end

-- The handler's troubles: slow(ms) makes each of its calls take so long for a second; hold(n) keeps n bursts for a
-- second; error ends the run. Returns what the handler is to call.
function M.troubles(s, does)
  local slow_ms, slow_until, hold, held, fail = 0, 0, 0, {}, false -- numbers of bursts; ns of the session's clock
  does.slow = function(ms) slow_ms, slow_until = ms, s:clock() + 1e9 end
  does.hold = function(n)
    hold = n
    s:after(1, function()
      hold = 0
      for _, b in ipairs(held) do b:free() end
      held = {}
    end)
  end
  does.error = function() fail = true end
  return function(b)
    if fail then
      fail = false
      error("the rig wants an error in the handler")
    end
    if slow_until > s:clock() then
      local till = s:clock() + slow_ms * 1e6
      while s:clock() < till do end
    end
    if #held < hold then
      b:keep()
      held[#held + 1] = b
    end
  end
end

-- Starts the session, obeys until the end, and writes what the rig wants to know: what report returns, the error if
-- there was one, and how full the pools are once all has stopped.
function M.run(s, path, result, does, report)
  s:start()
  tell(path, "ready")
  local ok, why = pcall(obey, path, does)
  s:stop("the rig said so")
  local t = report()
  t.error = not ok and tostring(why) or nil
  local r = s:region("packets")
  t.free, t.of = r.free_bufs, r.num_bufs
  local f = io.open(result, "w")
  f:write(daqiri.json(t))
  f:close()
end

-- A session of one memory region, "packets", and these interfaces.
function M.open(stream_type, region, interfaces)
  region.name, region.kind, region.affinity = "packets", "host", 0
  local s = daqiri.open({ daqiri = { cfg = { version = 1, stream_type = stream_type, master_core = 0,
    loopback = stream_type == "raw" and "sw" or nil, memory_regions = { region }, interfaces = interfaces } } })
  s:threshold("errors >= 0") -- sockets are closed on purpose
  return s
end

-- One queue of an interface's receive or transmit side.
function M.queue(name)
  return { queues = { { name = name, id = 0, cpu_core = -1, batch_size = 64, timeout_us = name == "rx" and 1000 or nil,
    memory_regions = { "packets" } } } }
end

return M
