-- Two ports with a cable between them: sending, receiving, reading, freeing, flows, dropping of traffic.
local daqiri, api, t, rig = require "daqiri", require "daqiri.api", require "check", require "rig"
local ok, fails, poll, send = rig.ok, rig.fails, rig.poll, rig.send
local clock = daqiri.args{ clock = "real" }.clock
local flow = { name = "seven", id = 7, match = { udp_dst = 7000 }, action = { type = "queue", id = 1 } }
ok(api.daqiri_init(rig.config("raw", {
  rig.port("tx_port", "loop0", 1, 1),
  rig.port("rx_port", "loop1", 2, 1, { rx = { flows = { flow }, hardware_timestamps = true } }),
}, { loopback = { mode = "sw", clock = clock } })))

-- ports
t.equal(api.get_port_id("rx_port"), 1)
t.equal(api.get_port_id("loop0"), 0)
t.equal(api.get_num_rx_queues(1), 2)
t.raises("port 2: there are ports 0 to 1", function() api.get_num_rx_queues(2) end)
t.equal(ok(api.get_mac_addr(0)), "02:00:00:00:00:01")
fails("INVALID_PARAMETER", "port 5", api.get_mac_addr(5))
t.equal(daqiri.hex(api.format_eth_addr("02:00:00:aB:00:01")), "020000ab0001")
t.equal(daqiri.hex(api.format_eth_addr("2:0:0:a:0:1")), "000000000000")

-- an empty poll; invalid ports and queues
for _, place in ipairs{ { 1, 0 }, { 1 }, {} } do fails("NULL_PTR", "no burst", api.get_rx_burst(place[1], place[2])) end
fails("INVALID_PARAMETER", "there is no rx queue 2", api.get_rx_burst(1, 2))
fails("INVALID_PARAMETER", "port 3", api.get_rx_burst(3))

-- a burst that is not ready to be sent
local burst = api.create_tx_burst_params()
t.equal({ api.get_num_packets(api.create_burst_params()), api.get_num_packets(api.create_tx_burst_params()) }, { 0, 0 })
fails("INVALID_PARAMETER", "set_header", api.get_tx_packet_burst(burst))
fails("NULL_PTR", "nil", api.get_tx_packet_burst(nil))
api.set_header(burst, 0, 3, 4, 1)
fails("INVALID_PARAMETER", "there is no tx queue 3", api.get_tx_packet_burst(burst))
t.equal(api.is_tx_burst_available(burst), false)
api.set_header(burst, 0, 0, 17, 1)
fails("INVALID_PARAMETER", "1 to 16", api.get_tx_packet_burst(burst))
api.set_header(burst, 0, 0, 4, 2)
fails("INVALID_PARAMETER", "segments", api.get_tx_packet_burst(burst))
t.raises("1 to 4 segments", function() api.set_header(burst, 0, 0, 4, 5) end)
api.set_header(burst, 0, 0, 2, 1)
api.set_num_packets(burst, 4)
t.equal({ api.get_num_packets(burst), api.get_q_id(burst), api.get_burst_tot_byte(burst) }, { 4, 0, 0 })
t.raises("has no packets yet", function() api.get_packet_ptr(burst, 0) end)
fails("NULL_PTR", "no packets yet", api.send_tx_burst(burst))
t.equal(api.is_tx_burst_available(burst), true)
ok(api.get_tx_packet_burst(burst))
fails("INVALID_PARAMETER", "has packets already", api.get_tx_packet_burst(burst))

-- headers, payload, lengths
local mac = ok(api.get_mac_addr(1))
for i = 0, 3 do
  ok(api.set_eth_header(burst, i, i == 0 and mac or api.format_eth_addr(mac))) -- text or six bytes
  ok(api.set_ipv4_header(burst, i, 28, 17, 0x0a000001, "10.0.0.2"))
  ok(api.set_udp_header(burst, i, 20, 4096, i == 3 and 7000 or 5000 + i))
  ok(api.set_udp_payload(burst, i, ("%20d"):format(i) .. "more", 20))
end
fails("INVALID_PARAMETER", "02:00:00:00:00:0g is not an Ethernet address", api.set_eth_header(burst, 0, "02:00:00:00:00:0g"))
fails("INVALID_PARAMETER", "packets 0 to 3", api.set_eth_header(burst, 4, mac))
fails("INVALID_PARAMETER", "not an IPv4 address", api.set_ipv4_header(burst, 0, 28, 17, "10.0.0.256", "10.0.0.2"))
fails("INVALID_PARAMETER", "0 to 65507", api.set_udp_header(burst, 0, 65508, 1, 2))
fails("INVALID_PARAMETER", "the data has 2", api.set_udp_payload(burst, 0, "ab", 3))
fails("INVALID_PARAMETER", "do not fit", api.set_udp_payload(burst, 0, ("x"):rep(2048)))
fails("INVALID_PARAMETER", "packet 0 has no length", api.send_tx_burst(burst))
fails("INVALID_PARAMETER", "do not fit", api.set_packet_lengths(burst, 0, { 2049 }))
fails("INVALID_PARAMETER", "one for each of 1 segments", api.set_packet_lengths(burst, 0, 62))
for i = 0, 2 do ok(api.set_packet_lengths(burst, i, { 62 })) end
t.equal({ api.get_burst_tot_byte(burst), api.get_packet_length(burst, 3) }, { 186, 0 })
ok(api.set_all_packet_lengths(burst, { 60 }))
ok(api.set_packet_lengths(burst, 2, { 61 }))
t.equal({ api.get_packet_length(burst, 1), api.get_packet_length(burst, 2), api.get_burst_tot_byte(burst) }, { 60, 61, 241 })
ok(api.set_all_packet_lengths(burst, { 62 }))
t.equal({ api.get_packet_length(burst, 3), api.get_burst_tot_byte(burst) }, { 62, 248 })
ok(api.copy_buffer_to_packet(burst, 1, "..text..", 4, 2, 42))
ok(api.copy_buffer_to_segment_packet(burst, 0, 1, "!", nil, nil, 46))
fails("INVALID_PARAMETER", "there are 8", api.copy_buffer_to_packet(burst, 1, "..text..", 7, 2))
fails("NULL_PTR", "nil", api.copy_buffer_to_packet(burst, 1))
local virtual = select(2, api.session():clock()) == "virtual"
local function wall(later) return daqiri.time(("@%d"):format(os.time() + later)).ns end -- CLOCK_REALTIME
local before = virtual and daqiri.u64(0) or wall(0)
ok(api.set_packet_tx_time(burst, 0, daqiri.now().ns))
ok(api.set_packet_tx_time(burst, 1, daqiri.now().seconds * 1e9)) -- a number, to 256 ns
ok(api.set_packet_tx_time(burst, 1, 0))
for _, bad in ipairs{ -1, 0.5, 0 / 0, 2 ^ 64, "now", daqiri.u64 "0xffffffffffffffff" } do
  fails("INVALID_PARAMETER", "not a valid time", api.set_packet_tx_time(burst, 0, bad))
end
ok(api.send_tx_burst(burst))
t.raises("the burst was sent at loop.lua:", function() api.get_num_packets(burst) end)
t.raises("the burst was sent", api.send_tx_burst, burst)
assert(tostring(burst):find("sent"))

-- receiving by flow, by queue, and from all queues in turn
local one = poll(1, 1)
t.equal({ api.get_num_packets(one), api.get_q_id(one), api.get_packet_flow_id(one, 0) }, { 1, 1, 7 })
local three, status = poll()
t.equal({ status, api.get_num_packets(three), api.get_q_id(three), api.get_packet_flow_id(three, 2) }, { "SUCCESS", 3, 0, 0 })
t.equal(api.get_packet_length(three, 0), 62)
t.equal(api.get_segment_packet_length(three, 0, 2), 62)
t.equal(api.get_burst_tot_byte(three), 186)
t.equal(ok(api.get_packet_bytes(three, 1, 5, 42)), "text!")
t.equal(#ok(api.get_segment_packet_bytes(three, 0, 1)), 62)
fails("INVALID_PARAMETER", "the packet has 62", api.get_packet_bytes(three, 1, 1, 62))
t.equal(api.get_packet_ptr(three, 2):u16(36), 5002)
t.equal(api.get_segment_packet_ptr(three, 0, 2):bytes(6, 6), "\2\0\0\0\0\1")
t.equal(api.get_segment_packet_ptr(three, 0, 0):bytes(0, 6), api.get_segment_packet_ptr(three, 0, 2):bytes(0, 6))
t.raises("packet 3: the burst has packets 0 to 2", function() api.get_packet_ptr(three, 3) end)
t.raises("segment 1: the burst has segments 0 to 0", function() api.get_segment_packet_ptr(three, 1, 0) end)
t.raises("packet 0.5", function() api.get_packet_length(three, 0.5) end)
t.raises("a burst expected, got nil", function() api.get_packet_length(nil, 0) end)
local at = ok(api.get_packet_rx_timestamp(three, 0))
assert(before <= at and at <= daqiri.now().ns and (virtual or at < wall(1)), tostring(at))
local timed = rig.alloc(0, 0, 1) -- a received time plus a delay can be scheduled
ok(api.copy_buffer_to_packet(timed, 0, ("t"):rep(60)))
ok(api.set_all_packet_lengths(timed, { 60 }))
ok(api.set_packet_tx_time(timed, 0, at + 2000000))
fails("NOT_READY", "was not sent", api.wait_for_tx_idle(0))
ok(api.send_tx_burst(timed))
timed = poll(1, 0)
assert(at + 2000000 <= ok(api.get_packet_rx_timestamp(timed, 0)))
api.free_all_packets_and_burst_rx(timed)
ok(api.wait_for_tx_idle(1000))
fails("INVALID_PARAMETER", "not a valid timeout", api.wait_for_tx_idle(-1))
local unsent = rig.alloc(0, 0, 1)
fails("NOT_READY", "was not sent", api.wait_for_tx_idle(10))
api.free_tx_burst(unsent)
ok(api.wait_for_tx_idle(0))
fails("INVALID_PARAMETER", "packets 0 to 2", api.get_packet_rx_timestamp(three, 3))
fails("NULL_PTR", "nil", api.get_packet_rx_timestamp(nil, 0))
t.equal(api.synchronize_burst_event(three), "SUCCESS")
t.equal({ api.get_connection_id(three), api.rdma_get_opcode(three) }, { 0, api.RDMAOpCode.INVALID })

-- the written checksums equal those computed by the engine
local p = api.get_packet_ptr(three, 1)
local ip, udp = p:u16(24), p:u16(40)
assert(ip ~= 0 and udp ~= 0)
p:set_u16(24, 0)
p:set_u16(40, 0)
three[1].b:checksums()
t.equal({ p:u16(24), p:u16(40) }, { ip, udp })

-- burst fields
local h = three.hdr.hdr
t.equal({ h.num_pkts, h.port_id, h.q_id, h.num_segs, h.nbytes, h.max_pkt, h.max_pkt_size, h.burst_flags }, { 3, 1, 0, 1, 186, 3, 62, 0 })
t.equal({ three.pkt_lens[0][1], three.pkts[0][1]:u8(42), #h.first_pkt_addr }, { 62, 0x74, 62 })
t.equal({ three.transport_hdr.conn_id, three.transport_hdr.tx, three.transport_hdr.opcode }, { 0, false, "INVALID" })
t.raises("is for reading", function() three.hdr.hdr.num_pkts = 1 end)
t.raises("has no field 'num_pkt'", function() return three.hdr.hdr.num_pkt end)
t.raises("is for reading", function() three.foo = 1 end)
t.raises("has no field 'foo'", function() return three.foo end)

-- freeing in parts, and double frees
api.free_packet(three, 0)
t.equal(api.get_packet_length(three, 0), 0)
api.free_packet_segment(three, 0, 1)
t.equal({ api.get_packet_length(three, 1), api.get_packet_length(three, 2) }, { 0, 62 })
t.raises("packets 0 to 2", function() api.free_packet(three, 3) end)
t.raises("segments 0 to 0", function() api.free_packet_segment(three, 1, 2) end)
t.raises("segment 7", function() api.free_all_segment_packets(three, 7) end)
api.free_all_segment_packets(three, 0)
t.equal(api.get_burst_tot_byte(three), 0)
t.equal(api.free_rx_burst(three), nil)
t.raises("the burst was freed by free_rx_burst at loop.lua:", function() api.free_all_packets_and_burst_rx(three) end)

-- forwarding: a received burst keeps its packets
api.set_header(one, 1, 0, 1, 1)
ok(api.send_tx_burst(one))
local back = poll(0)
t.equal({ api.get_packet_length(back, 0), back.hdr.hdr.port_id }, { 62, 0 })
fails("INVALID_PARAMETER", "received", api.set_packet_lengths(back, 0, { 60 }))
t.raises("segment 1", function() api.free_segment_packets_and_burst(back, 1) end)
api.free_segment_packets_and_burst(back, 0)
t.raises("freed by free_segment_packets_and_burst", function() api.get_q_id(back) end)

-- all functions that free an unsent burst; a shortened burst keeps its lengths
for _, free in ipairs{ "free_tx_burst", "free_all_packets_and_burst_tx", "free_tx_metadata", "free_rx_metadata",
  "free_all_packets_and_burst_rx" } do
  local b = rig.alloc(0, 0, 4)
  ok(api.set_all_packet_lengths(b, { 64 }))
  api.set_num_packets(b, 2)
  t.equal({ api.get_num_packets(b), api.get_burst_tot_byte(b) }, { 2, 128 })
  t.raises("can only be made shorter", function() api.set_num_packets(b, 3) end)
  api[free](b)
  t.raises("freed by " .. free, function() api.get_num_packets(b) end)
end
api.free_tx_burst(api.create_tx_burst_params())

-- flows: one operation each, reported in order
fails("NOT_READY", "no operation", api.poll_flow_op())
local first = ok(api.add_rx_flow_async(1, { name = "dyn", match = { udp_dst = 8000 }, action = { type = api.FlowType.QUEUE, id = 1 } }))
local both = ok(api.add_rx_flows_async(1, { { match = { udp_dst = 8001 }, action = { type = "queue", id = 1 } },
  { match = { udp_dst = 8002 }, action = { type = "queue", id = 0 } } }))
local r1, r2 = ok(api.poll_flow_op()), ok(api.poll_flow_op())
t.equal({ r1.op_id, r1.type, r1.status, #r1.flow_ids }, { first, api.FlowOpType.ADD_RX, "SUCCESS", 1 })
t.equal({ r2.op_id, r2.type, r2.status, #r2.flow_ids }, { both, "ADD_RX_BATCH", "SUCCESS", 2 })
fails("INVALID_PARAMETER", "did you mean", api.add_rx_flow_async(1, { match = { udp_dts = 1 }, action = { type = "queue", id = 0 } }))
fails("INVALID_PARAMETER", "no receive queue 9", api.add_rx_flow_async(1, { match = {}, action = { type = "queue", id = 9 } }))
fails("NULL_PTR", "nil", api.add_rx_flow_async(1))
fails("INVALID_PARAMETER", "no rule", api.add_rx_flows_async(1, {}))
fails("INVALID_PARAMETER", "port 4", api.add_rx_flows_async(4, {}))
fails("INVALID_PARAMETER", "no flow of that id", api.delete_flow_async(7))
send(0, 0, 2, 8000)
local caught = poll(1)
t.equal({ api.get_packet_flow_id(caught, 1), api.get_q_id(caught) }, { r1.flow_id, 1 })
api.free_all_packets_and_burst_rx(caught)
local gone = ok(api.delete_flow_async(r1.flow_id))
t.equal(ok(api.poll_flow_op()), { op_id = gone, type = "DELETE", status = "SUCCESS", flow_id = r1.flow_id, flow_ids = { r1.flow_id } })
fails("INVALID_PARAMETER", "no flow of that id", api.delete_flow_async(r1.flow_id))
send(0, 0, 1, 8000)
caught = poll(1)
t.equal(api.get_packet_flow_id(caught, 0), 0)
api.free_all_packets_and_burst_rx(caught)

-- dropping all traffic, then allowing it again; flushing discards pending packets
fails("INVALID_PARAMETER", "drop_all_traffic was not called", api.allow_all_traffic(1))
t.equal(api.drop_all_traffic(1), "SUCCESS")
fails("INVALID_PARAMETER", "port 9", api.drop_all_traffic(9))
send(0, 0, 3, 8002)
daqiri.sleep(0.01)
fails("NULL_PTR", "no burst", api.get_rx_burst(1, 0))
t.equal(api.allow_all_traffic(1), "SUCCESS")
send(0, 0, 3, 8002)
daqiri.sleep(0.01)
api.flush_port_queue(1, 0)
fails("NULL_PTR", "no burst", api.get_rx_burst(1, 0))
t.raises("there is no rx queue 5", function() api.flush_port_queue(1, 5) end)

-- buffers are exhausted, and available again after freeing
local held = {}
repeat
  local b = api.create_tx_burst_params()
  api.set_header(b, 0, 0, 16, 1)
  local status, text = api.get_tx_packet_burst(b)
  held[#held + 1] = b
until status ~= "SUCCESS" and assert(status == "NO_FREE_BURST_BUFFERS" or status == "NO_FREE_PACKET_BUFFERS", status) and assert(text)
t.equal(api.is_tx_burst_available(held[#held]), false)
for _, b in ipairs(held) do api.free_tx_burst(b) end

api.print_stats()
t.equal({ api.session():stats().rx_port.rx.packets, api.session():stats().rx_port.wire.packets }, { 11, 1 })

-- Ethernet addresses of neighbours
for _, bad in ipairs{ "0.0.0.0", 0, "255.255.255.255", "224.0.0.1", "240.0.0.1", "10.0.0", "10.0.0.256", "host", 2 ^ 32, {} } do
  fails("INVALID_PARAMETER", "not the IPv4 address of a host", api.resolve_ipv4_mac(0, bad, 10))
end
fails("INVALID_PARAMETER", "port 5", api.resolve_ipv4_mac(5, "10.0.0.2", 10))
fails("INVALID_PARAMETER", "not a valid timeout", api.resolve_ipv4_mac(0, "10.0.0.2", 0))
fails("NOT_READY", "no answer for 10.0.0.9", api.resolve_ipv4_mac(0, "10.0.0.9", 10))
api.session():interfaces()[2]:answer{ addresses = { "10.0.0.2" } }
t.equal(ok(api.resolve_ipv4_mac(0, 0x0a000002, 5000)), ok(api.get_mac_addr(1)))

local late = rig.alloc(0, 0, 1)
t.equal(api.shutdown(), nil)
t.raises("session", function() api.free_tx_burst(late) end)
