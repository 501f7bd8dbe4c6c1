-- os.exit ends the script in order, through pcall and a handler; the exit code is 7.
local daqiri = require "daqiri"
local s = daqiri.open()
s:after(0.001, function()
  pcall(os.exit, 7)
  error("not reached")
end)
s:run{ seconds = 10 }
error("not reached")
