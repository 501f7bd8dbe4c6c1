-- tcp_echo.lua: a TCP server that returns what it receives, and a client that measures the round trip.
--   daqiri-run tcp_echo --count 1000 --port 7149
-- The configuration frames the stream with a length before each message, so that a burst contains whole messages.
local daqiri = require "daqiri"
local args = daqiri.args{
  config = { "tcp.yaml", help = "has the interfaces server and client" },
  port = { 7149, help = "at which the server listens" },
  count = { 1000, unit = "messages", help = "to send, one after the other" },
  text = { "ping", help = "the message" },
}

local address = ("tcp://127.0.0.1:%d"):format(args.port)
local s = daqiri.open(args.config, { set = { ["interfaces.server.socket_config.local_addr"] = address,
  ["interfaces.client.socket_config.remote_addr"] = address } })

s:interface("server"):on_connection(function() print("server: connected") end)
s:rx_queue("server"):on_burst(function(b)
  local answer = b.connection:alloc(b.n)
  answer:set_lengths(b:lengths())
  for i = 1, b.n do answer:packet(i):set_bytes(0, b:packet(i):bytes()) end
  b.connection:send(answer)
end)

local done, sent_at, total, slowest = 0, 0, 0, 0
local function ask(c)
  local b = c:alloc(1)
  b:set_lengths(#args.text)
  b:packet(1):set_bytes(0, args.text)
  sent_at = s:clock()
  c:send(b)
end
s:interface("client"):on_connection(ask)
s:rx_queue("client"):on_burst(function(b)
  local ns = s:clock() - sent_at
  done, total, slowest = done + b.n, total + ns, math.max(slowest, ns)
  if done < args.count then ask(b.connection) else s:stop("all messages came back") end
end)

s:run{ seconds = 60 }
print(("%d of %d messages came back"):format(done, args.count))
s:log("info", "round trip", { mean_us = total / done / 1e3, slowest_us = slowest / 1e3 })
