-- time: times of packets in ns since the epoch, in both directions.

local daqiri = require "daqiri"
local core = require "daqiri.api.core"

local M = {}

-- get_packet_rx_timestamp returns ns since the epoch (CLOCK_REALTIME; on the virtual clock the session's epoch) as a u64, since a number
-- would round to 256 ns.
function M.get_packet_rx_timestamp(burst, idx)
  local state, status, text = core.sound(burst, 0, idx)
  if not state then return status, nil, text end
  local port = core.ports[state.port]
  if not port or not port.timestamps then
    return "NOT_SUPPORTED", nil, "the port's rx.hardware_timestamps is not set in the configuration"
  end
  state.columns = state.columns or {}
  state.columns.time = state.columns.time or state.b:rx_timestamps("epoch")
  local at = state.columns.time[idx + 1]
  if not at then return "NOT_SUPPORTED", nil, ("packet %d was not received, or was captured without a time"):format(idx) end
  return "SUCCESS", at.ns
end

-- absolute converts a time in ns since the epoch, a u64 or a number, to a daqiri.time; 0 is 0, and other values are nil.
local function absolute(ns)
  if ns == 0 then return 0 end
  if core.whole(ns, 1, 2 ^ 63 - 1) then -- above 2^53, where numbers are multiples of 2 or more, in two parts
    ns = daqiri.u64(math.floor(ns / 2 ^ 32)) * 2 ^ 32 + ns % 2 ^ 32
  end
  if getmetatable(ns) ~= "u64" then return nil end
  local ok, at = pcall(daqiri.time, ns)
  return ok and at or nil
end

-- set_packet_tx_time sets the send time in ns since the epoch, like the times of get_packet_rx_timestamp; 0 sends at once.
function M.set_packet_tx_time(burst, idx, time)
  local state, status, text = core.sound(burst, 0, idx)
  if not state then return status, text end
  local at = absolute(time)
  if not at then return "INVALID_PARAMETER", ("%s is not a valid time (expected ns since the epoch)"):format(tostring(time)) end
  state.times, state.finished = state.times or {}, nil
  state.times[idx + 1] = at
  return "SUCCESS"
end

return M
