-- api: the functions, constants and burst fields of the reference system under their own names.
--
--   local api = require "daqiri.api"
--   assert(api.daqiri_init("rx.yaml") == api.Status.SUCCESS)
--   local status, burst = api.get_rx_burst(0, 0)             -- NULL_PTR if no burst is available
--   if burst then print(api.get_packet_length(burst, 0)) api.free_all_packets_and_burst_rx(burst) end
--   api.shutdown()
--
-- Output pointers of the C++ functions become results after the status, followed by an error message on failure. Ports, queues, packets and
-- segments are numbered from 0. Times are ns since the epoch. stdlib/api/README.md lists all names.

local M = {}

local parts = { "constants", "text", "init", "burst", "packet", "rx", "tx", "time", "header", "endpoint", "free", "managed", "flow", "resource", "file", "port", "socket", "rdma", "reorder", "s3", "task" }

for _, part in ipairs(parts) do
  for name, value in pairs(require("daqiri.api." .. part)) do M[name] = value end
end

-- selftest sends a burst in a loop on the default session.
function M.selftest()
  local function ok(status, ...)
    if status ~= M.Status.SUCCESS then error(status .. ": " .. tostring(select(-1, nil, ...)), 2) end
    return ...
  end
  ok(M.daqiri_init(require("daqiri").parse()))
  local burst = M.create_tx_burst_params()
  M.set_header(burst, 0, 0, 1, 1)
  ok(M.get_tx_packet_burst(burst))
  ok(M.copy_buffer_to_packet(burst, 0, ("x"):rep(64)))
  ok(M.set_all_packet_lengths(burst, { 64 }))
  ok(M.send_tx_burst(burst))
  local status, got
  for _ = 1, 1e4 do
    status, got = M.get_rx_burst(0, 0)
    if got then break end
  end
  assert(ok(M.get_packet_bytes(got, 0)) == ("x"):rep(64), status)
  M.free_all_packets_and_burst_rx(got)
  M.shutdown()
end

return setmetatable(M, { __index = function(_, name) error("daqiri.api has no '" .. tostring(name) .. "'", 2) end })
