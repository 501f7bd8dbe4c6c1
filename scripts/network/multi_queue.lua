-- multi_queue.lua: distributes flows over receive queues, each served by a task on its own thread.
--   daqiri-run multi_queue --packets 20000
-- Each task counts the packets of its queue and sends the count to the main script: Lua states share nothing.
local daqiri = require "daqiri"
local args = daqiri.args{
  config = { "flows.yaml", help = "has tx_port, and rx_port with several queues" },
  packets = { 4000, help = "to send, to as many ports" },
}

local s = daqiri.open(args.config)
local tx = s:tx_queue("tx_port")
local queues, ids = s:rx_queues("rx_port"), {}
for i, q in ipairs(queues) do ids[i] = q.id end
s:interface("rx_port"):add_flows("all", { { name = "all", match = { udp_dst = "7000-7999" }, action = { type = "queue", ids = ids } } })

local done, total = 0, 0
for i, q in ipairs(queues) do
  local t = daqiri.task(function(queue)
    local module = require "daqiri"
    local n = 0
    queue:on_burst(function(b) n = n + b.n end)
    module.on_message(function() module.send(n) end)         -- requested at the end
  end, q)
  t:on_message(function(n)
    print(("queue %d: %s"):format(i - 1, n > 0 and "got its share" or "got nothing"))
    done, total = done + 1, total + n
  end)
  s:after(0.5, function() t:send("how many?") end)
end

tx:transmit{ count = args.packets, template = tx:template{ payload_bytes = 100, vary = { udp_dst = { start = 7000, max = 7999 } } } }
s:start()
repeat daqiri.sleep(0.05) until done == #queues
s:stop("all have answered")
print(("%d of %d packets counted by %d tasks"):format(total, args.packets, #queues))
