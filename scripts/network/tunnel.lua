-- tunnel.lua: receives the content of a VXLAN tunnel and a VLAN; flows remove both headers before the script.
--   daqiri-run tunnel
-- Frames to the tunnel's port without such a tunnel match no flow.
local daqiri = require "daqiri"
local args = daqiri.args{ config = { "tunnel.yaml", help = "has tx_port and rx_port, with flows that change frames" } }

local s = daqiri.open(args.config)
local rx, tx = s:rx_queue("rx_port"), s:tx_queue("tx_port")
local names = {}
for _, f in ipairs(s:interface("rx_port"):flows()) do names[f.id] = f.name end

local seen = {}
rx:on_burst(function(b)
  local ports, flows = b:column("udp_dst"), b:flow_ids()
  for i = 1, b.n do
    local line = ("%s: UDP port %d, %d bytes"):format(names[flows[i]], ports[i], b:packet(i).length)
    seen[line] = (seen[line] or 0) + 1
  end
end)

s:start()
for _, port in ipairs{ 7148, 7149 } do
  tx:transmit{ count = 100, template = tx:template{ udp_dst = port, payload_bytes = 1000 } }
  daqiri.sleep(0.001)
end
tx:transmit{ count = 10, template = tx:template{ udp_dst = 4789, payload = "no tunnel at all" } }
daqiri.sleep(0.001)
for line, n in pairs(seen) do seen[#seen + 1] = ("%d packets of %s"):format(n, line) end
table.sort(seen)
for _, line in ipairs(seen) do print(line) end
local l = s:stop("done")
print(("%d changed, %d of no flow"):format(l.rx_port.rx.transformed, l.tx_port.wire.dropped_by.no_flow))
