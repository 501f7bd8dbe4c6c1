-- wire.lua: messages between both devices, for a test that checks the packets: the MTU, the traffic class, IPv6.
local daqiri = require "daqiri"
local args = daqiri.args{ at = "10.9.0.1", from = "10.9.0.2", mtu = 0, class = -1, transport = "RC", bytes = 5000, hand = false }
local function url(a) return "roce://" .. (a:find(":", 1, true) and "[" .. a .. "]" or a) end
local function side(name, address, config)
  local function queue(q) return { { name = q, id = 0, poll_mode = "direct", batch_size = 16, memory_regions = { "packets" } } } end
  local roce = { transport_mode = args.transport, mtu = args.mtu, traffic_class = args.class >= 0 and args.class or nil }
  return { name = name, address = address, socket_config = config, roce_config = roce, rx = { queues = queue(name .. "_rx") }, tx = { queues = queue(name .. "_tx") } }
end
local at = url(args.at) .. ":4793"
local s = daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "socket", master_core = 0,
  memory_regions = { { name = "packets", kind = "host", affinity = 0, num_bufs = 256, buf_size = 8192 } },
  interfaces = { side("server", args.at, { mode = "server", local_addr = at }),
    side("client", args.from, { mode = "client", local_addr = url(args.from), remote_addr = not args.hand and at or nil }) } } } }
local c, n, bytes = nil, 0, 0
s:rx_queue("server"):on_burst(function(b) n, bytes = n + b.n, bytes + b.bytes end)
s:interface("client"):on_connection(function(made)
  c = made
  c:on_disconnect(function(why) print("lost", why) end)
end)
s:start()
if args.hand then
  local x, y = assert(s:interface("server"):connect{ qp = {} }), assert(s:interface("client"):connect{ qp = {} })
  assert(x:join(y.qp) and y:join(x.qp))
end
local began = daqiri.now()
while not c do
  assert(daqiri.now() - began < 30, "no connection")
  daqiri.sleep(1e-3)
end
print("connected", c.local_addr, c.peer)
local b = assert(c:alloc(4))
b:set_lengths(args.bytes)
assert(c:send(b))
while n < 4 do
  assert(daqiri.now() - began < 60, "no message")
  daqiri.sleep(1e-3)
end
print("came", n, bytes)
s:stop "done"
