-- tcp.lua: receives what independent programs send over TCP, each message behind its length in two bytes.
local daqiri = require "daqiri"
local check, control = require "check", require "control"
local args = daqiri.args{ ctl = "ctl", result = "result", listen = "127.0.0.1:7149" }

local s = control.open("socket", { num_bufs = 4096, buf_size = 4096 },
  { { name = "port", address = "127.0.0.1", rx = control.queue("rx"),
      socket_config = { mode = "server", local_addr = "tcp://" .. args.listen, framing = { length_prefix = 2 } } } })
local states, does, opened, ended = {}, {}, 0, 0                -- states by connection
local trouble = control.troubles(s, does)
s:interface("port"):on_connection(function(c)
  opened = opened + 1
  local state = check.new()
  states[opened] = state
  c:on_burst(function(b)
    check.burst(state, b)
    trouble(b)
  end)
  c:on_disconnect(function() ended = ended + 1 end)
end)
-- Answers once n streams have ended: all that they carried was handed out.
function does.ended(n)
  while ended < n do daqiri.sleep(0.02) end
  return ended .. " streams"
end
control.run(s, args.ctl, args.result, does, function()
  return { lives = check.lives(states), opened = opened, ended = ended }
end)
