-- gvsp_sender: packets of the frames of a GigE Vision camera, for tests of a receiver (daqiri.gvsp).
--
--   local sender = require "daqiri.gvsp_sender"
--   for _, payload in ipairs(sender.packets(data, { block_id = 1, width = 640, height = 480, drop = 3 })) do
--     print(#payload)            -- a UDP payload
--   end

local M = {}

local LEADER, TRAILER, DATA = 1, 2, 3 -- packet_format
local IMAGE = 1                       -- payload_type

-- bytes returns v as n big-endian bytes.
local function bytes(v, n)
  local list = {}
  for i = n, 1, -1 do
    list[i] = string.char(v % 256)
    v = math.floor(v / 256)
  end
  return table.concat(list)
end

-- packets returns the UDP payloads of a frame in the order to send: leader, data, trailer. options: block_id, width, height, timestamp (0),
-- pixel_format_code (Mono8), data_payload_bytes (1440), extended (ids of 64 bits). drop and duplicate are ids of a data packet; shuffle,
-- a function such as math.random, mixes the data packets.
function M.packets(data, options)
  local each = options.data_payload_bytes or 1440
  local function head(kind, id)
    if options.extended then return bytes(0, 4) .. string.char(128 + kind) .. bytes(0, 3) .. bytes(options.block_id, 8) .. bytes(id, 4) end
    return bytes(0, 2) .. bytes(options.block_id, 2) .. string.char(kind) .. bytes(id, 3)
  end
  local list, n = {}, math.ceil(#data / each)
  for k = 1, n do
    local packet = head(DATA, k) .. data:sub((k - 1) * each + 1, k * each)
    if k ~= options.drop then list[#list + 1] = packet end
    if k == options.duplicate then list[#list + 1] = packet end
  end
  for k = options.shuffle and #list or 0, 2, -1 do
    local other = options.shuffle(k)
    list[k], list[other] = list[other], list[k]
  end
  table.insert(list, 1, head(LEADER, 0) .. bytes(0, 2) .. bytes(IMAGE, 2) .. bytes(options.timestamp or 0, 8) ..
    bytes(options.pixel_format_code or 0x01080001, 4) .. bytes(options.width, 4) .. bytes(options.height, 4) .. bytes(0, 12))
  list[#list + 1] = head(TRAILER, n + 1) .. bytes(0, 2) .. bytes(IMAGE, 2) .. bytes(options.height, 4)
  return list
end

function M.selftest()
  local list = M.packets("abcde", { block_id = 0x102, width = 5, height = 1, data_payload_bytes = 2, drop = 2, duplicate = 3 })
  assert(#list == 5 and list[2] == "\0\0\1\2\3\0\0\1ab" and list[3] == "\0\0\1\2\3\0\0\3e" and list[4] == list[3])
  assert(#list[1] == 44 and #list[5] == 16 and list[5]:sub(1, 8) == "\0\0\1\2\2\0\0\4")
  local long = M.packets("ab", { block_id = 2 ^ 32 + 2, width = 2, height = 1, extended = true })
  assert(long[2] == "\0\0\0\0\131\0\0\0\0\0\0\1\0\0\0\2\0\0\0\1ab")
end

return M
