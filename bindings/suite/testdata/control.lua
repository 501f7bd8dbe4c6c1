-- A control channel, as far as a script alone sees it; control_test.go talks to one.
local daqiri, t = require "daqiri", require "check"
local ctl = daqiri.control{ tcp = "127.0.0.1:0", token = "open sesame" }
assert(ctl.address:match "^127%.0%.0%.1:%d+$", ctl.address)
ctl:on("status", function() return {} end)
ctl:on("status")
t.raises("address already in use", function() daqiri.control{ tcp = ctl.address, token = "x" } end)
ctl:close()
daqiri.control{ tcp = ctl.address, token = "x" }:close()
for _, tcp in ipairs{ "127.0.0.1:0", "[::1]:0", "0.0.0.0:0" } do
  t.raises("a web page in a browser too: give a token, or use a unix socket", function() daqiri.control{ tcp = tcp } end)
end
