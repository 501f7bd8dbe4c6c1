-- flows.lua: adds, distributes over queues, replaces and deletes flows while packets move.
--   daqiri-run flows
-- rx_port has flow_isolation: packets that match no flow are dropped and counted as no_flow.
local daqiri = require "daqiri"
local args = daqiri.args{ config = { "flows.yaml", help = "has tx_port, and rx_port with four queues" } }

local s = daqiri.open(args.config)
local rx_if, tx = s:interface("rx_port"), s:tx_queue("tx_port")
local seen = {}                                             -- packets by queue
for _, q in ipairs(s:rx_queues("rx_port")) do
  q:on_burst(function(b) seen[b.queue] = (seen[b.queue] or 0) + b.n end)
end

-- Sends 256 packets to the port, from as many sources, and prints the queues that received them.
local function probe(what, port)
  seen = {}
  tx:transmit{ count = 256, template = tx:template{ payload_bytes = 64, udp_dst = port,
    vary = { ipv4_src = { start = "10.0.0.1", max = "10.0.1.0" } } } }
  daqiri.sleep(0.01)
  local where = {}
  for queue, n in pairs(seen) do where[#where + 1] = queue .. "=" .. n end
  table.sort(where)
  print(("%-28s %s"):format(what, #where > 0 and table.concat(where, " ") or "nowhere"))
end

s:start()
tx:pace{ pps = 1e6 }
probe("7000, in the file", 7000)
probe("7148, no flow yet", 7148)
rx_if:add_flows("science", { { name = "spread", match = { udp_dst = 7148 }, action = { type = "queue", ids = { 1, 2, 3 } } } })
probe("7148, RSS over three queues", 7148)
rx_if:replace_flows("science", { { name = "one", match = { udp_dst = 7148 }, action = { type = "queue", id = 2 } } })
probe("7148, replaced", 7148)
rx_if:delete_flows("science")
probe("7148, deleted", 7148)
s:stop("done")
