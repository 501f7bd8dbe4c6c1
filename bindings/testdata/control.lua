-- A control channel, as far as a script alone sees it; control_test.go talks to one.
local daqiri, t = require "daqiri", require "check"
local ctl = daqiri.control{ tcp = "127.0.0.1:0" }
assert(ctl.address:match "^127%.0%.0%.1:%d+$", ctl.address)
ctl:on("status", function() return {} end)
ctl:on("status")
t.raises("address already in use", function() daqiri.control{ tcp = ctl.address } end)
ctl:close()
daqiri.control{ tcp = ctl.address }:close()
