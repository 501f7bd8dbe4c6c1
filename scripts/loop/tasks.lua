-- tasks.lua: a task on its own thread serves a queue, and exchanges messages with the main script.
--   daqiri-run tasks
-- A task is a Lua state on its own thread. It shares nothing: the queue moves to it, everything else is copied.
local daqiri = require "daqiri"
local args = daqiri.args{ config = { "virtual.yaml", help = "has tx_port and rx_port" }, count = 1000 }

local s = daqiri.open(args.config)
local counter = daqiri.task(function(rx, every)             -- may not capture locals: pass values as arguments
  local daqiri = require "daqiri"
  local packets, next_report = 0, every
  rx:on_burst(function(b)
    packets = packets + b.n
    while packets >= next_report do
      daqiri.send{ packets = next_report, burst = b.n }
      next_report = next_report + every
    end
  end)
end, s:rx_queue("rx_port"), args.count / 4)

counter:on_message(function(m)
  print(("task: %d packets"):format(m.packets))
  if m.packets == args.count then s:stop("the task has counted all") end
end)

local tx = s:tx_queue("tx_port")
tx:pace{ pps = 1e6 }
tx:transmit{ count = args.count, template = tx:template{ payload_bytes = 64 } }
s:run{}
