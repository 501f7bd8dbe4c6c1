-- TCP connections and UDP endpoints, by connection id.
local daqiri, api, t, rig = require "daqiri", require "daqiri.api", require "check", require "rig"
local ok, fails, poll = rig.ok, rig.fails, rig.poll
local args = daqiri.args{ port = 0, udp = 0 }
local tcp, udp = tonumber(args.port), tonumber(args.udp)

local function uri(scheme, port) return ("%s://127.0.0.1:%d"):format(scheme, port) end
local function socket(name, config) return rig.port(name, "127.0.0.1", 1, 1, { socket_config = config }) end
ok(api.daqiri_init(rig.config("socket", {
  socket("server", { mode = "server", local_addr = uri("tcp", tcp) }),
  socket("client", { mode = "client", remote_addr = uri("tcp", tcp) }),
  socket("sink", { mode = "server", local_addr = uri("udp", udp) }),
  socket("source", { mode = "client", remote_addr = uri("udp", udp) }),
})))
t.equal(api.get_engine_type(), api.EngineType.SOCKET)

-- send sends text on a connection.
local function send(conn, text)
  local port, q = ok(api.socket_get_port_queue(conn))
  local burst = rig.alloc(port, q, 1)
  api.set_connection_id(burst, conn)
  t.equal(api.get_connection_id(burst), conn)
  ok(api.copy_buffer_to_packet(burst, 0, text))
  ok(api.set_packet_lengths(burst, 0, { #text }))
  return burst, api.send_tx_burst(burst)
end

-- expect receives one packet of a connection and checks it.
local function expect(text, ...)
  local burst = poll(...)
  t.equal(ok(api.get_packet_bytes(burst, 0)), text)
  local conn = api.get_connection_id(burst)
  api.free_all_packets_and_burst_rx(burst)
  return conn
end

-- a server without a peer cannot send; the caller still owns the burst
local function lonely(name)
  local burst = rig.alloc(api.get_port_id(name), 0, 1)
  ok(api.set_packet_lengths(burst, 0, { 1 }))
  fails("CONNECT_FAILURE", "no peer is known yet", api.send_tx_burst(burst))
  t.equal(api.get_num_packets(burst), 1)
  api.free_tx_burst(burst)
end
lonely "sink"

-- TCP: the server function returns the oldest connection repeatedly
fails("NULL_PTR", "no socket server", api.socket_get_server_conn_id("127.0.0.1", 1))
fails("INVALID_PARAMETER", "no RDMA server", api.rdma_get_server_conn_id("127.0.0.1", 1))
fails("INVALID_PARAMETER", "is not known", api.rdma_get_port_queue(1))
fails("INVALID_PARAMETER", "no RDMA client", api.rdma_connect_to_server("127.0.0.1", 1))
local c1 = ok(api.socket_connect_to_server("127.0.0.1", tcp))
local function accept()
  for _ = 1, 5000 do
    local status, conn = api.socket_get_server_conn_id("127.0.0.1", tcp)
    if conn then return conn end
    t.equal(status, "NULL_PTR")
    daqiri.sleep(1e-3)
  end
  error("nobody connected")
end
local s1 = accept()
t.equal(accept(), s1)
local c2 = ok(api.socket_connect_to_server("127.0.0.1", tcp, "127.0.0.1"))
ok(select(2, send(c2, "who is it?")))
local s2 = expect("who is it?", api.get_port_id("server"), 0) -- further connections are identified by their data
assert(c1 ~= c2 and s1 ~= s2)
t.equal(accept(), s1)
t.equal({ api.socket_get_port_queue(c2) }, { "SUCCESS", api.get_port_id("client"), 0 })
fails("INVALID_PARAMETER", "is not known", api.socket_get_port_queue(123456))

-- data sent on one connection arrives at its other end only
fails("NULL_PTR", "no burst", api.get_rx_burst(s1, true))
fails("NULL_PTR", "no burst", api.get_rx_burst(s2, true))
ok(select(2, send(c2, "second")))
ok(select(2, send(c1, "first")))
t.equal(expect("first", s1, true), s1)
t.equal(expect("second", s2, true), s2)
ok(select(2, send(s2, "answer")))
t.equal(expect("answer", c2, false), c2)
fails("INVALID_PARAMETER", "is one of a server", api.get_rx_burst_for_connection(s1, false))
fails("INVALID_PARAMETER", "is not known", api.get_rx_burst_for_connection(123456, true))
fails("NULL_PTR", "no burst", api.get_rx_burst_for_connection(s1, true))

-- options
ok(api.socket_setsockopt(c1, "IPPROTO_TCP", "TCP_NODELAY", 1))
ok(api.socket_setsockopt(c1, 6, 1, "\1\0\0\0", 4))
fails("GENERIC_FAILURE", "", api.socket_setsockopt(c1, 6, 9999, 1))
fails("INVALID_PARAMETER", "did you mean", api.socket_setsockopt(c1, "IPPROTO_TCP", "TCP_NODELY", 1))
fails("INVALID_PARAMETER", "is not known", api.socket_setsockopt(99, 6, 1, 1))
fails("NULL_PTR", "nil", api.socket_setsockopt(c1, 6, 1))

-- sockets have no headers of frames
local burst = rig.alloc(api.get_port_id("client"), 0, 1)
fails("NOT_SUPPORTED", "socket", api.set_eth_header(burst, 0, ("\0"):rep(6)))
fails("NOT_SUPPORTED", "socket", api.set_ipv4_header(burst, 0, 28, 17, 1, 2))
fails("NOT_SUPPORTED", "socket", api.set_udp_header(burst, 0, 20, 1, 2))
fails("NOT_SUPPORTED", "socket", api.set_udp_payload(burst, 0, "x", 1))
fails("NOT_SUPPORTED", "hardware_timestamps", api.get_packet_rx_timestamp(burst, 0))
fails("NOT_SUPPORTED", "no Ethernet address", api.get_mac_addr(0))
fails("NOT_SUPPORTED", "sends no frames", api.add_endpoint{ name = "e", interface = "client", dst_mac = "02:00:00:00:00:09",
  src_ipv4 = "10.0.0.1", dst_ipv4 = "10.0.0.2", src_port = 1, dst_port = 2 })
fails("NOT_SUPPORTED", "", api.resolve_ipv4_mac(0, "10.0.0.1", 10))
ok(api.set_packet_tx_time(burst, 0, 0)) -- send times are for sockets, too
fails("NOT_SUPPORTED", "is a socket", api.add_rx_flow_async(0, { match = {}, action = { type = "queue", id = 0 } }))

-- an unknown id: the caller still owns the burst
ok(api.set_packet_lengths(burst, 0, { 3 }))
api.set_connection_id(burst, 123456)
fails("INVALID_PARAMETER", "is not known", api.send_tx_burst(burst))
t.equal(api.get_num_packets(burst), 1)
api.set_connection_id(burst, 0)
t.raises("not a connection id", function() api.set_connection_id(burst, -1) end)
api.free_tx_burst(burst)

-- after the peer has closed the connection its remaining data is delivered, then the end is reported
ok(select(2, send(s1, "last words")))
while api.session():stats().server.tx.packets < 2 do daqiri.sleep(1e-3) end
assert(api.session():interface("server"):connection(s1):close())
expect("last words", c1, false)
local status, _, text
repeat
  status, _, text = api.get_rx_burst(c1, false)
until status ~= "NULL_PTR"
fails("CONNECT_FAILURE", "connection " .. c1, status, text)
for _ = 1, 5000 do
  if accept() == s2 then break end -- after the server has noticed the end
  daqiri.sleep(1e-3)
end
t.equal(accept(), s2)
fails("INVALID_PARAMETER", "has ended", api.get_rx_burst(c1, false))

-- UDP: a port has an id of its own; a server answers the last sender; an additional connection receives its own answers only
local source = ok(api.socket_connect_to_server("127.0.0.1", udp))
local sink = ok(api.socket_get_server_conn_id("127.0.0.1", udp))
ok(api.socket_setsockopt(source, "SOL_SOCKET", "SO_PRIORITY", 1))
ok(select(2, send(source, "ping")))
expect("ping", sink, true)
ok(select(2, send(sink, "pong")))
expect("pong", source, false)
local more = ok(api.socket_connect_to_server("127.0.0.1", udp))
fails("NULL_PTR", "no burst", api.get_rx_burst(more, false))
ok(select(2, send(more, "ping")))
expect("ping", api.get_port_id("sink"), 0)
ok(select(2, send(sink, "pong")))
t.equal(expect("pong", more, false), more)
fails("INVALID_PARAMETER", "port number", api.socket_connect_to_server("127.0.0.1", 0))
api.shutdown()

ok(api.daqiri_init(rig.config("socket", { socket("server", { mode = "server", local_addr = uri("tcp", udp) }) })))
lonely "server"

-- a server can send while it has a peer, and not after the peer has left
local function answers(want)
  local status, text
  for _ = 1, 5000 do
    local burst = rig.alloc(0, 0, 1)
    ok(api.set_packet_lengths(burst, 0, { 1 }))
    status, text = api.send_tx_burst(burst)
    if status ~= "SUCCESS" then api.free_tx_burst(burst) end
    if status == want then return end
    daqiri.sleep(1e-3)
  end
  error(status .. ": " .. tostring(text))
end
local other = daqiri.open(rig.config("socket", { socket("client", { mode = "client", remote_addr = uri("tcp", udp) }) }))
other:start()
answers("SUCCESS")
other:close()
answers("CONNECT_FAILURE")
api.shutdown()
