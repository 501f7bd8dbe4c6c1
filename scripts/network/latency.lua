-- latency.lua: measures the time of packets from the script to a receive queue, with a timestamp in each packet.
--   daqiri-run latency --pps 1000 --seconds 5
-- It uses the kernel's UDP sockets by default. Both times are readings of the session's clock: no synchronization is needed.
local daqiri = require "daqiri"
local args = daqiri.args{
  config = { "udp.yaml", help = "has the interfaces tx_port and rx_port" },
  pps = { 1000, unit = "packets/s", help = "how many are sent" },
  seconds = { 2, unit = "s", help = "how long" },
}

local s = daqiri.open(args.config)
local tx, rx = s:tx_queue("tx_port"), s:rx_queue("rx_port")
local stamp = daqiri.format{ sent = { at = "payload", bit_offset = 0, bit_width = 48 } }

local times = {}                                            -- ns
rx:on_burst(function(b)
  local sent, came = b:column("sent", stamp), b:rx_timestamps()
  for i = 1, b.n do times[#times + 1] = came[i] - sent[i] end
end)

s:every(1 / args.pps, function()
  local b = tx:alloc(1)
  if not b then return end
  local now, bytes = s:clock(), {}
  for k = 6, 1, -1 do bytes[k], now = string.char(now % 256), math.floor(now / 256) end
  assert(tx:send(b:fill(tx:template{ payload = table.concat(bytes) .. ("."):rep(58) })))
end)

s:threshold("rx_port.rx.dropped == 0")
local sum = s:run{ seconds = args.seconds }
table.sort(times)
local function at(share) return times[math.max(1, math.ceil(share * #times))] / 1e3 end
if #times == 0 then print("nothing arrived") os.exit(5) end
print(("%d packets sent, %d timed"):format(sum.tx_port.tx.packets, #times))
print(("latency: %.1f us (50 %%), %.1f us (90 %%), %.1f us (99 %%), %.1f us (all)"):format(at(0.5), at(0.9), at(0.99), at(1)))
