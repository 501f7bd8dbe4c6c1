-- receive.lua: receives and prints the rates once a second; with --group it joins a multicast group.
--   daqiri-run receive --listen 0.0.0.0:7148 --seconds 60
--   daqiri-run receive --listen 0.0.0.0:7148 --group 239.2.0.64+3
-- Only every hundredth burst is inspected for senders: reading single packets in Lua is slow.
local daqiri = require "daqiri"
local args = daqiri.args{
  config = { "udp_receive.yaml", help = "has the interface rx_port" },
  listen = { type = "string", help = "receive at this HOST:PORT instead of the configuration's" },
  group = { type = "string", help = "multicast group to join, or GROUP+N for N more behind it" },
  seconds = { 10, help = "how long to receive" },
}

local set = args.listen and { ["interfaces.rx_port.socket_config.local_addr"] = "udp://" .. args.listen } or {}
local s = daqiri.open(args.config, { set = set })
if args.group then
  assert(s:interface("rx_port"):join_multicast{ groups = args.group })
end

local senders = {}
s:rx_queue("rx_port"):on_burst(function(b)
  local peer = b:peer()
  if peer then senders[peer] = true end
end, { sample = 100, policy = "drop" })

s:start()
for second = 1, math.ceil(args.seconds) do
  local m = s:measure{ seconds = math.min(1, args.seconds - second + 1) }
  local rx = m.rx_port.rx
  print(("%d s: %d packets/s, %.1f Mbit/s, %d dropped"):format(second, rx.pps, rx.bps / 1e6, rx.dropped))
end
s:stop("received for " .. args.seconds .. " s")
for peer in pairs(senders) do print("from " .. peer) end
