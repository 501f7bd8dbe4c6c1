-- TCP connections over the loopback interface: events, bursts, sending, options, ends.
local daqiri, t = require "daqiri", require "check"
local port = daqiri.args{ port = 0 }.port
local function endpoint(name, config)
  return { name = name, address = "127.0.0.1", socket_config = config,
    rx = { queues = { { name = "rx", id = 0, cpu_core = -1, batch_size = 16, timeout_us = 100, memory_regions = { "m" } } } },
    tx = { queues = { { name = "tx", id = 0, cpu_core = -1, batch_size = 16, memory_regions = { "m" } } } } }
end
local s = daqiri.open{
  version = 1, stream_type = "socket", master_core = 0,
  memory_regions = { { name = "m", kind = "host", affinity = 0, num_bufs = 2048, buf_size = 2048 } },
  interfaces = {
    endpoint("server", { mode = "server", local_addr = "tcp://127.0.0.1:" .. port }),
    endpoint("client", { mode = "client", remote_addr = "tcp://127.0.0.1:" .. port, retry_connect_s = 1 }),
  },
}
local server, client = s:interface("server"), s:interface("client")
t.equal(s:tx_queue("client").layer, "payload")
t.equal(s:rx_queue("server").timestamps, "software")
t.equal(s:tx_queue("client").timestamps, nil)
t.raises("unknown option 'udp_dst'", function() s:tx_queue("client"):template{ udp_dst = 1 } end)

local served, echoed, gone
server:on_connection(function(c)
  served = c
  c:on_burst(function(b)
    t.equal(b.connection, c)
    assert(b:peer(1) == c.peer or b:peer(1) == nil)
    echoed = (echoed or "") .. b:packet(1):bytes()
  end)
  c:on_disconnect(function(why) gone = why end)
end)
local connected
client:on_connection(function(c) connected = c end)
s:start()
local deadline = daqiri.now() + 5
while not (served and connected) do assert(daqiri.now() < deadline, "no connection"); daqiri.sleep(0.002) end
t.equal(served.open, true)
assert(served.peer:find("127.0.0.1:", 1, true) and served.local_addr == "127.0.0.1:" .. port)
assert(served.id > 0 and tostring(served):find("connection"))

-- connections by id, and the interface itself
t.equal(client:connection(connected.id), connected)
t.equal(client:connection().peer, connected.peer)
t.equal({ connected.queue, served.queue }, { 0, 0 })
assert(server:connection():setsockopt("SOL_SOCKET", "SO_KEEPALIVE", 1))
local unknown, unknown_status = client:connection(4e9)
t.equal({ unknown == nil, unknown_status }, { true, "INVALID_PARAMETER" })

-- options by name and by number
assert(connected:setsockopt("IPPROTO_TCP", "TCP_NODELAY", 1))
assert(connected:setsockopt(6, 1, "\1\0\0\0"))
local ok, status = connected:setsockopt(6, 9999, 1)
t.equal(ok, nil)
t.equal(status, "GENERIC_FAILURE")
t.raises("did you mean 'TCP_NODELAY'?", function() connected:setsockopt("IPPROTO_TCP", "TCP_NODELY", 1) end)

local b = assert(connected:alloc(1))
b:fill(s:tx_queue("client"):template{ payload = "over the wire" })
assert(connected:send(b))
while not echoed or #echoed < 13 do assert(daqiri.now() < deadline, "nothing came"); daqiri.sleep(0.002) end
t.equal(echoed, "over the wire")

-- the other way, with get_burst of a connection
local reply = assert(served:alloc(1))
reply:fill(s:tx_queue("server"):template{ payload = "reply" })
connected:get_burst{ timeout_us = 0 }
assert(served:send(reply))
local r = assert(connected:get_burst{ timeout_us = 5e6 })
t.equal(r:packet(1):bytes(), "reply")
r:free()

assert(connected:close())
while not gone do assert(daqiri.now() < deadline, "no disconnect"); daqiri.sleep(0.002) end
assert(#gone > 0)
t.raises("option 'address' is missing", function() client:connect{} end)
local c2 = assert(client:connect{ address = "127.0.0.1:" .. port })
while served.id == 0 or not c2.open do assert(daqiri.now() < deadline, "no second connection"); daqiri.sleep(0.002) end
s:stop()
