-- free: freeing the buffers of whole bursts or parts of them.
--
-- A burst ends once, together with its remaining packets: functions of the reference that free only a burst's metadata do the same here, so
-- that packets cannot leak.

local core = require "daqiri.api.core"

local M = {}

-- ends returns a function that ends a burst.
local function ends(name)
  return function(burst)
    local state = core.state(burst)
    if state.b then state.b:free() end
    core.consume(state, "freed by " .. name)
  end
end

for _, name in ipairs{ "free_all_packets_and_burst_rx", "free_all_packets_and_burst_tx", "free_rx_burst", "free_tx_burst",
  "free_rx_metadata", "free_tx_metadata" } do
  M[name] = ends(name)
end

local free_rest = ends("free_segment_packets_and_burst")

function M.free_segment_packets_and_burst(burst, seg)
  core.packet(burst, seg, 0)
  free_rest(burst)
end

-- freed invalidates cached lengths, which are now 0.
local function freed(state) state.columns = nil end

function M.free_packet(burst, idx)
  local state = core.packet(burst, 0, idx)
  state.b:free{ packet = idx + 1 }
  freed(state)
end

function M.free_packet_segment(burst, seg, idx)
  local state = core.packet(burst, seg, idx)
  state.b:free{ packet = idx + 1, segment = seg + 1 }
  freed(state)
end

function M.free_all_segment_packets(burst, seg)
  local state = core.packet(burst, seg, 0)
  state.b:free{ segment = seg + 1 }
  freed(state)
end

return M
