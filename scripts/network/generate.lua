-- generate.lua: sends UDP packets at a steady rate and checks whether it achieved that rate.
--   daqiri-run generate --to 192.0.2.7:7148 --rate 1Gbit/s --seconds 10
-- The queue's own thread sends; the script could change the pace at any time. The rate counts the bytes in the queue:
-- UDP payloads here, whole frames without checksum on a raw port.
local daqiri = require "daqiri"
local args = daqiri.args{
  config = { "udp_send.yaml", help = "has the interface tx_port" },
  to = { type = "string", help = "send to this HOST:PORT instead of the configuration's" },
  rate = { "100Mbit/s", help = "at which to send" },
  payload = { 1400, unit = "bytes", help = "of each packet" },
  seconds = { 3, help = "how long to send" },
}

local set = args.to and { ["interfaces.tx_port.socket_config.remote_addr"] = "udp://" .. args.to } or {}
local s = daqiri.open(args.config, { set = set })
local tx = s:tx_queue("tx_port")
tx:pace{ rate = args.rate }
tx:transmit{ template = tx:template{ payload_bytes = args.payload } }

s:threshold("tx_port.tx.rate_error < 0.01")                 -- achieved within 1 % of the requested rate
s:threshold("tx_port.tx.dropped == 0")
s:start()
for second = 1, math.ceil(args.seconds) do
  local m = s:measure{ seconds = math.min(1, args.seconds - second + 1) }      -- the ledger of this second only
  print(("%d s: %.1f Mbit/s, %d packets/s"):format(second, m.tx_port.tx.bps / 1e6, m.tx_port.tx.pps))
end
s:stop("sent for " .. args.seconds .. " s")
