-- Aggregates of reorder_engine: hw, which software emulates: a ring of buffers, flags, missing slots, buffers that are held.
local api, t, rig = require "daqiri.api", require "check", require "rig"
local ok, fails = rig.ok, rig.fails
local BUFFERS, PACKETS = 4, 2
local i = rig.port("port", "0000:3b:00.0", 1, 1, { rx = {
  flow_isolation = true,
  flows = { { name = "numbered", id = 5, match = { udp_dst = 5000 }, action = { type = "queue", id = 0 } } },
  reorder_configs = { { name = "blocks", reorder_type = "cpu", reorder_engine = "hw", cyclic_sequence = true, packet_size = 16,
    memory_region = "batches", payload_byte_offset = 46, flow_ids = { 5 },
    method = { seq_packets_per_batch = { sequence_number = { bit_offset = 336, bit_width = 32 }, packets_per_batch = PACKETS } } } } } })
ok(api.daqiri_init(rig.config("raw", { i }, { engine = "ibverbs", memory_regions = {
  { name = "m", kind = "host", affinity = 0, num_bufs = 512, buf_size = 2048 },
  { name = "batches", kind = "host", affinity = 0, num_bufs = BUFFERS, buf_size = PACKETS * 16 } } })))
ok(api.set_reorder_cuda_stream("port", "blocks", nil))

-- send sends packets with these numbers, each with 16 bytes of a letter.
local function send(numbers, letter)
  local burst = rig.alloc(0, 0, #numbers)
  for k, n in ipairs(numbers) do
    ok(api.set_eth_header(burst, k - 1, ("\2"):rep(6)))
    ok(api.set_ipv4_header(burst, k - 1, 28, api.IPPROTO_UDP, "10.0.0.1", "10.0.0.2"))
    ok(api.set_udp_header(burst, k - 1, 20, 4096, 5000))
    ok(api.set_udp_payload(burst, k - 1, string.char(0, 0, 0, n) .. letter:rep(16), 20))
  end
  ok(api.set_all_packet_lengths(burst, { 62 }))
  ok(api.send_tx_burst(burst))
end

local function received(batch, bytes, missing)
  local burst = rig.poll(0, 0)
  local info, lost = ok(api.get_reorder_burst_info(burst)), ok(api.get_reorder_missing_info(burst))
  t.equal({ info.batch_id, info.payload_len, info.aggregate_len }, { batch, 16, 32 })
  t.equal({ lost.missing_packet_count, lost.bitmap_word_count, lost.missing_indices }, { #missing, 1, missing })
  local timeout = #missing > 0 and api.DAQIRI_BURST_FLAG_REORDER_TIMEOUT or 0
  local flags = api.DAQIRI_BURST_FLAG_REORDERED + api.DAQIRI_BURST_FLAG_DIRECT_PLACED + timeout
  t.equal({ info.burst_flags, burst.hdr.hdr.burst_flags }, { flags, flags })
  t.equal(ok(api.get_packet_bytes(burst, 0, 32, 0)), bytes)
  return burst
end

local function dropped(reason) return api.session():stats().blocks.dropped_by[reason] or 0 end

-- The first cycle; a number past the ring has no place.
send({ 1, 0, 8, 2, 3 }, "a")
local held = received(0, ("a"):rep(32), {})
api.free_all_packets_and_burst_rx(received(1, ("a"):rep(32), {}))
t.equal(dropped("bad_place"), 1)
send({ 5 }, "b")
api.free_all_packets_and_burst_rx(received(2, ("\0"):rep(16) .. ("b"):rep(16), { 0 }))
send({ 6, 7 }, "c")
api.free_all_packets_and_burst_rx(received(3, ("c"):rep(32), {}))

-- The second cycle: the buffer of batch 0 is held, so its packets are lost; the others are placed.
send({ 0, 1, 2, 3 }, "d")
api.free_all_packets_and_burst_rx(received(1, ("d"):rep(32), {}))
t.equal(dropped("no_packet_buffer"), 2)
t.equal(ok(api.get_packet_bytes(held, 0, 32, 0)), ("a"):rep(32))
api.free_all_packets_and_burst_rx(held)
send({ 4, 5, 6, 7, 0, 1 }, "e")
for _, batch in ipairs{ 2, 3, 0 } do api.free_all_packets_and_burst_rx(received(batch, ("e"):rep(32), {})) end
fails("INVALID_PARAMETER", "no reorder config bricks", api.set_reorder_cuda_stream("port", "bricks", nil))
local noted = table.concat(api.session():report(), "\n")
t.equal(noted:find("reorder blocks: reorder_engine hw: emulated in software", 1, true) ~= nil, true)
api.shutdown()
