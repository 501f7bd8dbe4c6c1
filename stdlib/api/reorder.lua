-- reorder: aggregates of the configuration's reorder_configs.

local daqiri = require "daqiri"
local core = require "daqiri.api.core"

local M = {}

-- set_reorder_cuda_stream only checks the names: an aggregate is delivered after the GPU, or the CPU, has finished it, so kernels of any
-- stream may read it. stream is one of daqiri.stream; nil and 0 are the default stream.
function M.set_reorder_cuda_stream(interface_name, reorder_name, stream)
  local status, text = core.not_ready()
  if status then return status, text end
  if stream ~= nil and stream ~= 0 and getmetatable(stream) ~= "stream" then
    return "INVALID_PARAMETER", "the stream is neither nil, 0 nor of daqiri.stream"
  end
  local port = core.port_named(interface_name)
  if not port then return "INVALID_PARAMETER", ("there is no interface %s"):format(tostring(interface_name)) end
  if port.reorders[reorder_name] then return "SUCCESS" end
  return "INVALID_PARAMETER", ("%s has no reorder config %s"):format(interface_name, tostring(reorder_name))
end

local function aggregate(burst)
  local state = core.state(burst)
  if state.b and state.b.batch_id ~= nil then return state.b end
end

-- get_reorder_burst_info describes an aggregate. It is complete: the GPU has finished it before delivery.
function M.get_reorder_burst_info(burst)
  if burst == nil then return "NULL_PTR", nil, "the burst is nil" end
  local b = aggregate(burst)
  if not b then return "INVALID_PARAMETER", nil, "the burst is not a reordered one" end
  return "SUCCESS", { batch_id = b.batch_id, source_packet_count = b.source_packets, packets_per_batch = b.expected,
    payload_len = b.slot_bytes, aggregate_len = b.bytes, burst_flags = b.flags - b.flags % 2 ^ 28 } -- without internal flags
end

-- bitmap returns n bits in words of 64, as u64s: a bit is 1 if its number is in the list.
local function bitmap(n, numbers)
  local words = {}
  for i = 1, math.ceil(n / 64) do words[i] = daqiri.u64(0) end
  for _, bit in ipairs(numbers) do
    local i = math.floor(bit / 64) + 1
    words[i] = words[i] + daqiri.u64(2 ^ (bit % 32)) * 2 ^ (bit % 64 - bit % 32)
  end
  return words
end

-- get_reorder_missing_info returns the missing slots of an aggregate, numbered from 0: their count, a bitmap of bitmap_word_count u64s with
-- bit i % 64 of word i / 64 for slot i (bitmap[1] is the first word), and a list.
function M.get_reorder_missing_info(burst)
  if burst == nil then return "NULL_PTR", nil, "the burst is nil" end
  local b = aggregate(burst)
  if not b then return "INVALID_PARAMETER", nil, "the burst is not a reordered one" end
  local missing = b.present:missing()
  for i, n in ipairs(missing) do missing[i] = n - 1 end
  local words = bitmap(b.expected, missing)
  return "SUCCESS", { missing_packet_count = #missing, bitmap_word_count = #words, bitmap = words, missing_indices = missing,
    packets_per_batch = b.expected }
end

return M
