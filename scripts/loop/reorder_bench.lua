-- reorder_bench.lua: DAQIRI's benchmark of reordering, with its functions and the sections bench_tx and bench_rx of its configurations.
--   daqiri-run reorder_bench --batches 20
--   daqiri-run --engine loop reorder_bench --config reorder_bench_hw.yaml
-- bench_tx numbers the packets modulo sequence_number_modulus and leaves out every sequence_drop_every-th one. The missing slots of
-- each aggregate and the numbers in the others are compared with what was sent.
local daqiri, api = require "daqiri", require "daqiri.api"
local args = daqiri.args{
  config = { "reorder_bench.yaml", help = "has the sections bench_tx and bench_rx" },
  batches = { 20, help = "to send" },
  check = { true, help = "compare the missing slots, as DAQIRI_BENCH_CHECK_REORDER_INFO=1 of DAQIRI's program" },
  seconds = { 10, help = "how long to wait for aggregates" },
}
local Status, IN_FLIGHT = api.Status, 2 -- batches

-- check returns the results of a function without its status, and ends the program on an error.
local function check(status, ...)
  if status ~= Status.SUCCESS then error(status .. ": " .. tostring(select(-1, nil, ...)), 2) end
  return ...
end

check(api.daqiri_init(args.config))
local config = api.session().config
local tx, rx = config.bench_tx, config.bench_rx
if not (tx and rx) then error(args.config .. " has no sections bench_tx and bench_rx") end
local tx_port, rx_port = api.get_port_id(tx.interface_name), api.get_port_id(rx.interface_name)
local plan = config.interfaces[rx_port + 1].rx.reorder_configs[1]
local per, start = plan.packets_per_batch, tx.sequence_number_start or 0
local modulus, every = tx.sequence_number_modulus or 2 ^ 32, tx.sequence_drop_every or 0
assert(start % per == 0 and modulus % per == 0, "sequence_number_start and sequence_number_modulus must be multiples of the batch")
check(api.set_reorder_cuda_stream(rx.interface_name, plan.name, nil))

-- left_out reports whether the n-th packet, from 0, is not sent.
local function left_out(n) return every > 0 and (n + 1) % every == 0 end

-- be32 returns a number as four big-endian bytes.
local function be32(v) return string.char(math.floor(v / 2 ^ 24) % 256, math.floor(v / 2 ^ 16) % 256, math.floor(v / 256) % 256, v % 256) end

local front = ("\0"):rep(tx.header_size - 42 + (tx.sequence_number_offset or 0)) -- of the UDP payload, before the number
local rest = ("x"):rep(tx.payload_size - (tx.sequence_number_offset or 0) - 4)
local mac = api.format_eth_addr(tx.eth_dst_addr)

-- send_packets sends packets [from, to), fewer than a burst; false: no buffers are free.
local function send_packets(from, to)
  local numbers = {}
  for n = from, to - 1 do
    if not left_out(n) then numbers[#numbers + 1] = (start + n) % modulus end
  end
  local burst = api.create_tx_burst_params()
  api.set_header(burst, tx_port, 0, #numbers, 1)
  if not api.is_tx_burst_available(burst) then return false end
  check(api.get_tx_packet_burst(burst))
  for i, number in ipairs(numbers) do
    local payload = front .. be32(number) .. rest
    check(api.set_eth_header(burst, i - 1, mac))
    check(api.set_ipv4_header(burst, i - 1, 8 + #payload, api.IPPROTO_UDP, tx.ip_src_addr, tx.ip_dst_addr))
    check(api.set_udp_header(burst, i - 1, #payload, tx.udp_src_port, tx.udp_dst_port))
    check(api.set_udp_payload(burst, i - 1, payload, #payload))
  end
  check(api.set_all_packet_lengths(burst, { tx.header_size + tx.payload_size }))
  check(api.send_tx_burst(burst))
  return true
end

local sum = { reordered_batches = 0, direct_placed_batches = 0, timed_out_batches = 0, received_packets = 0, missing_packets = 0, wrong = 0 }
local function add(key, n) sum[key] = sum[key] + n end
local function has(flags, flag) return flags % (2 * flag) >= flag and 1 or 0 end
local at = tx.header_size + (tx.sequence_number_offset or 0) - plan.payload_byte_offset -- of the number, in a slot

-- compare compares an aggregate, the batch-th one from 0, with what was sent; it returns the number of wrong slots.
local function compare(burst, batch, info, missing)
  local wrong, lost, listed = 0, 0, {}
  for _, slot in ipairs(missing.missing_indices) do listed[slot] = true end
  local bytes = api.get_packet_ptr(burst, 0)
  for slot = 0, per - 1 do
    local n = batch * per + slot
    local number = not listed[slot] and at >= 0 and bytes:u32(slot * info.payload_len + at)
    if left_out(n) then lost = lost + 1 end
    if (listed[slot] or false) ~= left_out(n) or number and number ~= (start + n) % modulus then wrong = wrong + 1 end
  end
  return wrong + math.abs(lost - missing.missing_packet_count)
end

local function receive(burst)
  local info, missing = check(api.get_reorder_burst_info(burst)), check(api.get_reorder_missing_info(burst))
  if args.check then add("wrong", compare(burst, sum.reordered_batches, info, missing)) end
  add("reordered_batches", has(info.burst_flags, api.DAQIRI_BURST_FLAG_REORDERED))
  add("direct_placed_batches", has(info.burst_flags, api.DAQIRI_BURST_FLAG_DIRECT_PLACED))
  add("timed_out_batches", has(info.burst_flags, api.DAQIRI_BURST_FLAG_REORDER_TIMEOUT))
  add("received_packets", info.source_packet_count)
  add("missing_packets", missing.missing_packet_count)
  api.free_all_packets_and_burst_rx(burst)
end

local sent, until_ = 0, daqiri.now() + args.seconds -- packets
while sum.reordered_batches < args.batches and daqiri.now() < until_ do
  if sent < args.batches * per and sent < (sum.reordered_batches + IN_FLIGHT) * per then
    local to = math.min(sent + tx.batch_size, (math.floor(sent / per) + 1) * per)
    if send_packets(sent, to) then sent = to end
  end
  local status, burst = api.get_rx_burst(rx_port, 0)
  if status == Status.SUCCESS then receive(burst) end
end

for _, key in ipairs{ "reordered_batches", "direct_placed_batches", "timed_out_batches", "received_packets", "missing_packets" } do
  print(key, sum[key])
end
if args.check then print("wrong slots", sum.wrong) end
api.shutdown()
assert(sum.wrong == 0 and sum.reordered_batches == args.batches, "aggregates are wrong, or did not come")
