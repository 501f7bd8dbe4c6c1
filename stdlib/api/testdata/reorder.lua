-- Aggregates: a poll of a queue returns the aggregates of reorder_configs and the packets of other flows.
local daqiri, api, t, rig = require "daqiri", require "daqiri.api", require "check", require "rig"
local ok, fails = rig.ok, rig.fails
local function reordered(offset, segment) return { rx = {
  flows = { { name = "numbered", id = 5, match = { udp_dst = 5000 }, action = { type = "queue", id = 0 } },
    { name = "others", id = 6, match = { udp_dst = 6000 }, action = { type = "queue", id = 0 } } },
  reorder_configs = { { name = "blocks", reorder_type = "cpu", memory_region = "batches", payload_byte_offset = offset,
    payload_segment = segment, flow_ids = { 5 },
    method = { seq_packets_per_batch = { sequence_number = { bit_offset = 336, bit_width = 16 }, packets_per_batch = 3 } } } } } } end
local i = rig.port("port", "loop0", 1, 1, reordered(44))
fails("NOT_READY", "daqiri_init", api.set_reorder_cuda_stream("port", "blocks", nil))
local regions = { loopback = "sw", memory_regions = {
  { name = "m", kind = "host", affinity = 0, num_bufs = 512, buf_size = 2048 },
  { name = "heads", kind = "host", affinity = 0, num_bufs = 512, buf_size = 44 },
  { name = "batches", kind = "host", affinity = 0, num_bufs = 8, buf_size = 6144 } } }
ok(api.daqiri_init(rig.config("raw", { i }, regions)))

-- The CPU reorders, so no stream is set; the names are checked nevertheless.
ok(api.set_reorder_cuda_stream("port", "blocks", nil))
ok(api.set_reorder_cuda_stream("port", "blocks", 0))
ok(api.set_reorder_cuda_stream("port", "blocks", require("daqiri").stream{ memory = "host" }))
fails("INVALID_PARAMETER", "neither nil, 0 nor of daqiri.stream", api.set_reorder_cuda_stream("port", "blocks", 5))
fails("INVALID_PARAMETER", "port has no reorder config bricks", api.set_reorder_cuda_stream("port", "bricks", nil))
fails("INVALID_PARAMETER", "no interface other", api.set_reorder_cuda_stream("other", "blocks", nil))

-- send sends packets with these numbers, and a payload derived from each.
local function send(numbers, udp_dst)
  local burst = rig.alloc(0, 0, #numbers)
  for k, n in ipairs(numbers) do
    ok(api.set_eth_header(burst, k - 1, ("\2"):rep(6)))
    ok(api.set_ipv4_header(burst, k - 1, 28, api.IPPROTO_UDP, "10.0.0.1", "10.0.0.2"))
    ok(api.set_udp_header(burst, k - 1, 20, 4096, udp_dst))
    ok(api.set_udp_payload(burst, k - 1, string.char(0, n) .. string.char(65 + n):rep(18), 20))
  end
  ok(api.set_all_packet_lengths(burst, { 62 }))
  ok(api.send_tx_burst(burst))
end

send({ 32, 30, 31 }, 5000)
local got = rig.poll(0, 0)
local info = ok(api.get_reorder_burst_info(got))
t.equal({ info.batch_id, info.source_packet_count, info.packets_per_batch, info.payload_len, info.aggregate_len },
  { 10, 3, 3, 18, 54 })
t.equal({ info.burst_flags, got.hdr.hdr.burst_flags }, { api.DAQIRI_BURST_FLAG_REORDERED, api.DAQIRI_BURST_FLAG_REORDERED })
t.equal({ api.get_num_packets(got), api.get_q_id(got), api.get_packet_length(got, 0) }, { 1, 0, 54 })
t.equal({ got.hdr.hdr.num_pkts, got.hdr.hdr.max_pkt }, { 1, 3 }) -- an aggregate of three source packets
t.equal(ok(api.get_packet_bytes(got, 0, 54, 0)), string.char(95):rep(18) .. string.char(96):rep(18) .. string.char(97):rep(18))
api.free_all_packets_and_burst_rx(got)

-- An incomplete batch is delivered on timeout, with zeros for missing packets.
send({ 35 }, 5000)
got = rig.poll(0, 0)
info = ok(api.get_reorder_burst_info(got))
t.equal({ info.batch_id, info.source_packet_count, info.aggregate_len, got.hdr.hdr.max_pkt }, { 11, 1, 54, 1 })
t.equal(ok(api.get_reorder_missing_info(got)), { missing_packet_count = 2, missing_indices = { 0, 1 }, packets_per_batch = 3,
  bitmap_word_count = 1, bitmap = { daqiri.u64(3) } })
t.equal(info.burst_flags, api.DAQIRI_BURST_FLAG_REORDERED + api.DAQIRI_BURST_FLAG_REORDER_TIMEOUT)
t.equal(ok(api.get_packet_bytes(got, 0, 19, 35)), "\0" .. string.char(100):rep(18))
api.free_all_packets_and_burst_rx(got)

send({ 1, 2 }, 6000)
got = rig.poll(0, 0)
t.equal({ api.get_num_packets(got), got.hdr.hdr.max_pkt }, { 2, 2 })
fails("INVALID_PARAMETER", "not a reordered one", api.get_reorder_burst_info(got))
fails("INVALID_PARAMETER", "not a reordered one", api.get_reorder_missing_info(got))
fails("NULL_PTR", "burst", api.get_reorder_burst_info(nil))
fails("NULL_PTR", "burst", api.get_reorder_missing_info(nil))
api.free_all_packets_and_burst_rx(got)
api.shutdown()

-- Headers and payloads in separate regions: the number is in the first segment, the payload in the second.
local split = rig.port("port", "loop0", 1, 1, reordered(0, 1))
split.rx.queues[1].memory_regions = { "heads", "m" }
ok(api.daqiri_init(rig.config("raw", { split }, regions)))
send({ 8, 6 }, 5000)
got = rig.poll(0, 0)
info = ok(api.get_reorder_burst_info(got))
t.equal({ info.batch_id, info.source_packet_count, info.payload_len, info.aggregate_len }, { 2, 2, 18, 54 })
t.equal(ok(api.get_reorder_missing_info(got)).missing_indices, { 1 })
t.equal(ok(api.get_packet_bytes(got, 0, 54, 0)), string.char(71):rep(18) .. ("\0"):rep(18) .. string.char(73):rep(18))
api.free_all_packets_and_burst_rx(got)
api.shutdown()
