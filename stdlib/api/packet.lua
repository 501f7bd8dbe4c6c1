-- packet: reading and writing the packets of a burst. Packets, segments and bytes are numbered from 0.

local core = require "daqiri.api.core"

local M = {}

-- get_segment_packet_ptr returns a bounds-checked view of the packet; for a packet to send, of its whole buffer.
function M.get_segment_packet_ptr(burst, seg, idx)
  return core.packet(burst, seg, idx).b:packet(idx + 1, seg + 1)
end

function M.get_packet_ptr(burst, idx) return M.get_segment_packet_ptr(burst, 0, idx) end

-- column caches a column of a burst.
local function column(state, key, get)
  state.columns = state.columns or {}
  local values = state.columns[key]
  if not values then
    values = get(state.b)
    state.columns[key] = values
  end
  return values
end

local function length(state, seg, idx)
  if state.same then return state.same[seg + 1] end
  if state.lens then return state.lens[seg + 1][idx + 1] or 0 end
  return column(state, seg, function(b) return b:lengths(seg + 1) end)[idx + 1]
end

function M.get_segment_packet_length(burst, seg, idx) return length(core.packet(burst, seg, idx), seg, idx) end

-- get_packet_length returns the length of all segments of a packet.
function M.get_packet_length(burst, idx)
  local state = core.packet(burst, 0, idx)
  local total = 0
  for seg = 0, state.segs - 1 do total = total + length(state, seg, idx) end
  return total
end

-- get_packet_flow_id returns the id of the matching flow, or 0.
function M.get_packet_flow_id(burst, idx)
  return column(core.packet(burst, 0, idx), "flow", function(b) return b:flow_ids() end)[idx + 1]
end

-- get_segment_packet_bytes returns nbytes (default: all) from src_offset on.
function M.get_segment_packet_bytes(burst, seg, idx, nbytes, src_offset)
  local state, status, text = core.sound(burst, seg, idx)
  if not state then return status, nil, text end
  local from, size = src_offset or 0, length(state, seg, idx)
  local n = nbytes or size - from
  if not core.whole(from, 0, size) or not core.whole(n, 0, size - from) then
    return "INVALID_PARAMETER", nil, ("%s bytes from %s: the packet has %d"):format(tostring(n), tostring(from), size)
  end
  return "SUCCESS", state.b:packet(idx + 1, seg + 1):bytes(from, n)
end

function M.get_packet_bytes(burst, idx, nbytes, src_offset)
  return M.get_segment_packet_bytes(burst, 0, idx, nbytes, src_offset)
end

-- copy_buffer_to_segment_packet copies nbytes (default: all) of data from src_offset on to dst_offset.
function M.copy_buffer_to_segment_packet(burst, seg, idx, data, nbytes, src_offset, dst_offset)
  local state, status, text = core.sound(burst, seg, idx)
  if not state then return status, text end
  if data == nil then return "NULL_PTR", "the data is nil" end
  local from, to = src_offset or 0, dst_offset or 0
  local n = nbytes or #data - from
  if not core.whole(from, 0, #data) or not core.whole(n, 0, #data - from) or not core.whole(to, 0, 2 ^ 31) then
    return "INVALID_PARAMETER", ("%s bytes from %s to %s: there are %d"):format(tostring(n), tostring(from), tostring(to), #data)
  end
  return core.write(state, seg, idx, to, data:sub(from + 1, from + n))
end

function M.copy_buffer_to_packet(burst, idx, data, nbytes, src_offset, dst_offset)
  return M.copy_buffer_to_segment_packet(burst, 0, idx, data, nbytes, src_offset, dst_offset)
end

return M
