-- both_ways.lua: the reference's bench of RDMA through its own calls: messages of 8 MB both ways.
--   both_ways.lua --config daqiri_bench_rdma_tx_rx.yaml
local daqiri, api = require "daqiri", require "daqiri.api"
local args = daqiri.args{ config = "daqiri_bench_rdma_tx_rx.yaml", rounds = 2, bytes = 8000000 }
assert(api.daqiri_init(args.config) == "SUCCESS")
local status, client, text = api.rdma_connect_to_server("10.100.3.1", 4096, "10.100.1.1")
assert(status == "SUCCESS", text)
local server
repeat status, server = api.rdma_get_server_conn_id("10.100.3.1", 4096) until status == "SUCCESS"
local ends = { { client, false, "DATA_TX_GPU_CLIENT", "DATA_RX_GPU_CLIENT" }, { server, true, "DATA_TX_GPU_SERVER", "DATA_RX_GPU_SERVER" } }

local function begin(e, opcode, wr_id, mr)
  local burst = api.create_tx_burst_params()
  assert(api.rdma_set_header(burst, opcode, e[1], e[2], 1, wr_id, mr) == "SUCCESS")
  while not api.is_tx_burst_available(burst) do end
  assert(api.get_tx_packet_burst(burst) == "SUCCESS")
  if opcode == "SEND" then api.copy_buffer_to_packet(burst, 0, ("%d from %d"):format(wr_id, e[1])) end
  assert(api.set_packet_lengths(burst, 0, { args.bytes + (opcode == "SEND" and wr_id or 1000) }) == "SUCCESS")
  local sent, why = api.send_tx_burst(burst)
  assert(sent == "SUCCESS", why)
end

for round = 1, args.rounds do
  for _, e in ipairs(ends) do begin(e, "RECEIVE", round, e[4]) end
  for _, e in ipairs(ends) do begin(e, "SEND", round, e[3]) end
  for _, e in ipairs(ends) do
    for _ = 1, 2 do
      local burst
      repeat status, burst, text = api.get_rx_burst(e[1], e[2]) until status ~= "NULL_PTR"
      assert(status == "SUCCESS", text)
      local opcode = api.rdma_get_opcode(burst)
      assert(burst.transport_hdr.status == "SUCCESS" and burst.rdma_wr_id == round)
      if opcode == "RECEIVE" then
        print(e[2] and "server" or "client", round, api.get_packet_length(burst, 0), select(2, api.get_packet_bytes(burst, 0, 6)))
      end
      api.free_tx_burst(burst)
    end
  end
end
api.shutdown()
