-- disk.lua: writes numbered packets to a small disk while a handler checks all of them.
local daqiri = require "daqiri"
local check, control = require "check", require "control"
local args = daqiri.args{ ctl = "ctl", result = "result", dir = ".", pps = 3000 }

local s = control.open("raw", { num_bufs = 8192, buf_size = 2048 },
  { { name = "port", address = "loop0", rx = control.queue("rx"), tx = control.queue("tx") } })
local tx, rx = s:tx_queue("port"), s:rx_queue("port")
local disk = s:write_pcap{ name = "disk", dirs = { args.dir }, prefix = "soak" }
s:pipe(rx, disk)
local state, does = check.new(), {}
local trouble = control.troubles(s, does)
rx:on_burst(function(b)
  check.burst(state, b)
  trouble(b)
end)
tx:pace{ pps = args.pps }
tx:transmit{ template = tx:template{ payload_bytes = 1000, udp_dst = 7148, vary = { check.numbers } } }
control.run(s, args.ctl, args.result, does, function()
  return { lives = check.lives{ state }, disk = disk.error or "" }
end)
