-- worker.lua: the module that tasks.lua runs as a task.
local daqiri = require "daqiri"
local a, b = ...
daqiri.send(a * b)
