-- reference_api.lua: a sender and a receiver with the C++ API's functions, in the order of its C++ examples.
--   daqiri-run reference_api --packets 1000 --payload 1000
-- An output pointer of C++ is a return value after the status here. receive.lua and generate.lua do the same with objects.
local daqiri, api = require "daqiri", require "daqiri.api"
local args = daqiri.args{
  config = { "virtual.yaml", help = "has the interfaces tx_port and rx_port" },
  packets = { 640, help = "to send" },
  payload = { 64, unit = "bytes", help = "of each packet" },
}
local Status = api.Status

-- check returns the results of a function without its status, and ends the program on an error.
local function check(status, ...)
  if status ~= Status.SUCCESS then error(status .. ": " .. tostring(select(-1, nil, ...)), 2) end
  return ...
end

check(api.daqiri_init(args.config))
local tx_port, rx_port = api.get_port_id("tx_port"), api.get_port_id("rx_port")
local dst_mac = check(api.get_mac_addr(rx_port))
local payload = ("x"):rep(args.payload)
local batch, total = 64, 42 + args.payload

-- send_batch sends at most one batch and returns the number of packets, 0 while no buffers are free.
local function send_batch(left)
  local burst = api.create_tx_burst_params()
  api.set_header(burst, tx_port, 0, math.min(batch, left), 1)
  if not api.is_tx_burst_available(burst) then return 0 end
  check(api.get_tx_packet_burst(burst))
  local n = api.get_num_packets(burst)
  for i = 0, n - 1 do
    check(api.set_eth_header(burst, i, dst_mac))
    check(api.set_ipv4_header(burst, i, 8 + #payload, api.IPPROTO_UDP, "10.0.0.1", "10.0.0.2"))
    check(api.set_udp_header(burst, i, #payload, 4096, 7000))
    check(api.set_udp_payload(burst, i, payload, #payload))
  end
  check(api.set_all_packet_lengths(burst, { total }))
  check(api.send_tx_burst(burst))                        -- the engine owns the burst from here on
  return n
end

local sent, received, bytes, largest = 0, 0, 0, 0
while received < args.packets do
  if sent < args.packets then sent = sent + send_batch(args.packets - sent) end
  local status, burst = api.get_rx_burst(rx_port, 0)     -- never blocks: NULL_PTR if no burst is ready
  if status == Status.SUCCESS then
    for i = 0, api.get_num_packets(burst) - 1 do
      largest = math.max(largest, api.get_packet_length(burst, i))
    end
    received, bytes = received + api.get_num_packets(burst), bytes + api.get_burst_tot_byte(burst)
    api.free_all_packets_and_burst_rx(burst)             -- return every burst exactly once
  end
end

print(("sent %d packets, received %d of %d bytes, %d in all"):format(sent, received, largest, bytes))
api.shutdown()
