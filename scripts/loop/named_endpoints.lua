-- named_endpoints.lua: bursts of payloads to named receivers, one for each transmit queue, with the reference's functions (daqiri.api).
--   daqiri-run named_endpoints --seconds 1 --target-gbps 2
-- An endpoint has the addresses and ports; the program writes payloads, and the headers are put in front when a burst is sent.
local daqiri, api = require "daqiri", require "daqiri.api"
local args = daqiri.args{
  config = { "named_endpoints.yaml", help = "has the interfaces tx_port, with a queue for each receiver, and rx_port" },
  seconds = { 0.1, unit = "s", help = "how long it sends" },
  target_gbps = { 1, help = "rate of all frames, Gbit/s" },
  payload = { 1000, unit = "bytes", help = "of each packet" },
}
local HEADERS, BATCH = 42, 256

-- check returns the results of a function without its status, and ends the program on an error.
local function check(status, ...)
  if status ~= api.Status.SUCCESS then error(status .. ": " .. tostring(select(-1, nil, ...)), 2) end
  return ...
end

check(api.daqiri_init(args.config))
local tx_port, rx_port = api.get_port_id("tx_port"), api.get_port_id("rx_port")
local receivers = {}
for q = 0, 1 do
  local name = "receiver " .. q
  check(api.add_endpoint{ name = name, interface = "tx_port", dst_mac = check(api.get_mac_addr(rx_port)), src_ipv4 = "10.0.0.1",
    dst_ipv4 = "10.0.0.2", src_port = 4096 + q, dst_port = 5000 + q, mtu = HEADERS + args.payload })
  receivers[q] = { name = name, id = check(api.get_endpoint_id(name)), sent = 0, received = 0, bytes = 0 }
end
local payload = ("x"):rep(args.payload)

-- send sends one burst to a receiver through its queue; without buffers it sends none.
local function send(q, to)
  local burst = api.create_tx_burst_params()
  api.set_header(burst, tx_port, q, BATCH, 1)
  if not api.is_tx_burst_available(burst) then return end
  check(api.get_tx_packet_burst(burst))
  for i = 0, BATCH - 1 do check(api.copy_buffer_to_packet(burst, i, payload)) end
  check(api.set_all_packet_lengths(burst, { #payload }))
  if api.send_tx_burst(to.id, q, burst) == api.Status.SUCCESS then to.sent = to.sent + BATCH end
end

-- receive takes what waits in the receive queues.
local function receive()
  for q, from in pairs(receivers) do
    local _, burst = api.get_rx_burst(rx_port, q)
    while burst do
      from.received, from.bytes = from.received + api.get_num_packets(burst), from.bytes + api.get_burst_tot_byte(burst)
      api.free_all_packets_and_burst_rx(burst)
      _, burst = api.get_rx_burst(rx_port, q)
    end
  end
end

local gap = 2 * BATCH * (HEADERS + args.payload) * 8 / (args.target_gbps * 1e9) -- between two rounds of bursts, s
local began, rounds = daqiri.now(), 0
while daqiri.now() - began < args.seconds do
  if daqiri.now() - began >= rounds * gap then
    for q, to in pairs(receivers) do send(q, to) end
    rounds = rounds + 1
  end
  receive()
  daqiri.sleep(10e-6)
end
check(api.wait_for_tx_idle(1000))
local last = daqiri.now()
while daqiri.now() - last < 0.01 do receive() end         -- packets on their way

for q = 0, 1 do
  local r = receivers[q]
  print(("%s: sent %d, received %d of %d bytes, headers included"):format(r.name, r.sent, r.received, r.bytes))
  check(api.delete_endpoint(r.id))
end
local status, _, text = api.get_endpoint_id("receiver 0")
print(("after they were deleted: %s, %s"):format(status, text))
api.shutdown()
