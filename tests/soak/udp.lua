-- udp.lua: receives what an independent program sends over UDP.
local daqiri = require "daqiri"
local check, control = require "check", require "control"
local args = daqiri.args{ ctl = "ctl", result = "result", listen = "127.0.0.1:7148" }

local s = control.open("socket", { num_bufs = 16384, buf_size = 2048 },
  { { name = "port", address = "127.0.0.1", socket_config = { mode = "server", local_addr = "udp://" .. args.listen }, rx = control.queue("rx") } })
local state, does = check.new(), {}
local in_time = check.times(s)
local trouble = control.troubles(s, does)
s:rx_queue("port"):on_burst(function(b)
  check.burst(state, b)
  in_time(b)
  trouble(b)
end)
control.run(s, args.ctl, args.result, does, function() return { lives = check.lives{ state } } end)
