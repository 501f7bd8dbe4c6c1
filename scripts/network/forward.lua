-- forward.lua: a filter that forwards: packets that arrive at a port and match are sent out of the same port, natively.
--   daqiri-run forward --where "udp_dst == 7000"
-- The port outside sends packets to four ports and receives what the port inside returns.
local daqiri = require "daqiri"
local args = daqiri.args{
  config = { "forward.yaml", help = "has the interfaces outside and inside" },
  where = { "udp_dst >= 7002 and len < 1000", help = "what to forward" },
  count = { 1000, unit = "packets", help = "to send" },
}

local s = daqiri.open(args.config)
local to, from = s:tx_queue("outside"), s:rx_queue("outside")

local keep = s:filter{ name = "keep", where = args.where }
s:pipe(s:rx_queue("inside"), keep, s:tx_queue("inside"))    -- a pipe may end in a transmit queue

local back = {}
from:on_burst(function(b)
  local ports = b:column("udp_dst")
  for i = 1, #ports do back[ports[i]] = (back[ports[i]] or 0) + 1 end
end)

to:pace{ pps = 1e6 }
to:transmit{ count = args.count, template = to:template{ payload_bytes = 200,
  vary = { udp_dst = { start = 7000, max = 7003 } } } }
s:run{ seconds = 2 * args.count / 1e6 }

for port = 7000, 7003 do
  print(("port %d: %d of %d came back"):format(port, back[port] or 0, args.count / 4))
end
