-- hw_loopback.lua: one port that receives what it sends, with two queues each way and a flow for each receive queue (daqiri.api).
--   daqiri-run hw_loopback --packets 1000
-- The reference's configuration has `loopback: hw`: the network card (mlx5) returns the frames. Where that cannot be opened the reason is
-- printed, and the same configuration runs in memory (`loopback: sw`).
local daqiri, api = require "daqiri", require "daqiri.api"
local args = daqiri.args{
  address = { "0000:03:00.0", help = "the network card" },
  packets = { 640, help = "sent by each queue" },
  payload = { 1000, unit = "bytes", help = "of each packet" },
}
local BATCH, QUEUES = 64, { 0, 1 }

local function config(loopback)
  local c = { version = 1, stream_type = "raw", master_core = 0, loopback = loopback,
    memory_regions = { { name = "packets", kind = "host", affinity = 0, num_bufs = 4096, buf_size = 2048 } },
    interfaces = { { name = "port", address = args.address, rx = { queues = {}, flows = {}, flow_isolation = true }, tx = { queues = {} } } } }
  local port = c.interfaces[1]
  for k, id in ipairs(QUEUES) do
    port.tx.queues[k] = { name = "tx_q_" .. id, id = id, cpu_core = -1, batch_size = BATCH, memory_regions = { "packets" } }
    port.rx.queues[k] = { name = "rx_q_" .. id, id = id, cpu_core = -1, batch_size = BATCH, timeout_us = 100, memory_regions = { "packets" } }
    port.rx.flows[k] = { name = "to_" .. id, id = k, match = { udp_dst = 4096 + id }, action = { type = "queue", id = id } }
  end
  return c
end

-- check returns the results of a function without its status, and ends the program on an error.
local function check(status, ...)
  if status ~= api.Status.SUCCESS then error(status .. ": " .. tostring(select(-1, nil, ...)), 2) end
  return ...
end

local status, text = api.daqiri_init(config(api.LoopbackType.LOOPBACK_TYPE_HW))
if status ~= api.Status.SUCCESS then
  print(("loopback hw: %s: %s"):format(status, text))
  check(api.daqiri_init(config{ mode = api.LoopbackType.LOOPBACK_TYPE_SW, clock = "virtual" }))
end
local mac = check(api.get_mac_addr(0))                    -- only frames to the port itself come back
local payload = ("x"):rep(args.payload)

-- send sends at most a batch to the receive queue of the same number and returns the packets, 0 while no buffers are free.
local function send(q, left)
  local burst = api.create_tx_burst_params()
  api.set_header(burst, 0, q, math.min(BATCH, left), 1)
  if not api.is_tx_burst_available(burst) then return 0 end
  check(api.get_tx_packet_burst(burst))
  local n = api.get_num_packets(burst)
  for i = 0, n - 1 do
    check(api.set_eth_header(burst, i, mac))
    check(api.set_ipv4_header(burst, i, 8 + #payload, api.IPPROTO_UDP, "10.0.0.1", "10.0.0.1"))
    check(api.set_udp_header(burst, i, #payload, 4096, 4096 + q))
    check(api.set_udp_payload(burst, i, payload, #payload))
  end
  check(api.set_all_packet_lengths(burst, { 42 + #payload }))
  check(api.send_tx_burst(burst))
  return n
end

local sent, received, misplaced = { [0] = 0, 0 }, { [0] = 0, 0 }, 0
while received[0] < args.packets or received[1] < args.packets do
  for _, q in ipairs(QUEUES) do
    if sent[q] < args.packets then sent[q] = sent[q] + send(q, args.packets - sent[q]) end
    local _, burst = api.get_rx_burst(0, q)
    for i = 0, burst and api.get_num_packets(burst) - 1 or -1 do
      received[q] = received[q] + 1
      if api.get_packet_ptr(burst, i):u16(36) ~= 4096 + q then misplaced = misplaced + 1 end
    end
    if burst then api.free_all_packets_and_burst_rx(burst) end
  end
end
for _, q in ipairs(QUEUES) do print(("queue %d: sent %d, received %d"):format(q, sent[q], received[q])) end
print(("packets in another queue than their flow's: %d"):format(misplaced))
api.shutdown()
