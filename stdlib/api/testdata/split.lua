-- Header-data split: two segments in two regions, read and freed separately.
local api, t, rig = require "daqiri.api", require "check", require "rig"
local ok, fails = rig.ok, rig.fails
local i = rig.port("port", "loop0", 1, 1)
i.rx.queues[1].memory_regions, i.tx.queues[1].memory_regions = { "head", "m" }, { "head", "m" }
ok(api.daqiri_init(rig.config("raw", { i }, { loopback = "sw", memory_regions = {
  { name = "head", kind = "host", affinity = 0, num_bufs = 512, buf_size = 64 },
  { name = "m", kind = "host", affinity = 0, num_bufs = 512, buf_size = 2048 } } })))

local burst = rig.alloc(0, 0, 2, 2)
for k = 0, 1 do
  ok(api.set_eth_header(burst, k, ("\2"):rep(6)))
  ok(api.copy_buffer_to_segment_packet(burst, 0, k, ("h"):rep(50), nil, nil, 14))
  ok(api.copy_buffer_to_segment_packet(burst, 1, k, ("d"):rep(100 + k)))
  ok(api.set_packet_lengths(burst, k, { 64, 100 + k }))
end
fails("INVALID_PARAMETER", "do not fit into the 64", api.set_packet_lengths(burst, 0, { 65, 100 }))
t.equal(api.get_burst_tot_byte(burst), 329)
local id = ok(api.add_endpoint{ name = "e", interface = "port", dst_mac = "02:00:00:00:00:09", src_ipv4 = "10.0.0.1", dst_ipv4 = "10.0.0.2",
  src_port = 1, dst_port = 2 })
fails("INVALID_PARAMETER", "2 segments", api.send_tx_burst(id, 0, burst)) -- the burst is kept
ok(api.send_tx_burst(burst))

local got = rig.poll(0, 0)
t.equal({ api.get_num_packets(got), got.hdr.hdr.num_segs, api.get_packet_length(got, 1) }, { 2, 2, 165 })
t.equal(api.get_segment_packet_length(got, 1, 1), 101)
t.equal(api.get_segment_packet_ptr(got, 1, 1):bytes(), ("d"):rep(101))
t.equal(ok(api.get_segment_packet_bytes(got, 0, 1, 3, 14)), "hhh")
api.free_packet_segment(got, 1, 0)
t.equal({ api.get_segment_packet_length(got, 0, 0), api.get_segment_packet_length(got, 1, 0) }, { 64, 0 })
api.free_all_segment_packets(got, 0)
t.equal({ api.get_packet_length(got, 0), api.get_packet_length(got, 1) }, { 0, 101 })
api.free_segment_packets_and_burst(got, 1)
api.shutdown()
