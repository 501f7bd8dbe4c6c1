-- gvsp: frames of a GigE Vision camera, assembled from the leader, data and trailer packets of one stream. gvsp_sender makes such packets.
--
--   local gvsp = require "daqiri.gvsp"
--   local r = gvsp.receiver({ width = 640, height = 480, pixel_format_code = 0x01080001, frame_bytes = 307200, data_payload_bytes = 1440,
--     frame_timeout_ms = 100, incomplete_frame_policy = "log" }, function(f) print(f.block_id, f.received, f.expected, #f.data) end)
--   r:packet(payload, time)      -- the UDP payload of one packet, as a string, and its receive time: of daqiri.now, or seconds
--   r:expire(time)               -- ends the frame if its first packet came frame_timeout_ms ago
--
-- Headers have 8 bytes, or 20 with extended ids. A frame ends with its last packet, in any order, at its timeout, or when a packet of
-- another block arrives. Data are numbered from 1. Packets of an ended block, or of one of the 16 before it, are late; an earlier block
-- is one of a camera that has restarted.

local M = {}

local LEADER, TRAILER, DATA = 1, 2, 3 -- packet_format
local IMAGE = 1                       -- payload_type, without the bit of chunks
local RESTART = 16                    -- blocks

-- number returns the big-endian number of n bytes from an offset on.
local function number(s, offset, n)
  local v = 0
  for i = offset + 1, offset + n do v = 256 * v + s:byte(i) end
  return v
end

-- header returns format, block id, packet id, length of the header and status of a packet; nil if it is none.
function M.header(s)
  if #s < 8 then return nil end
  local kind = s:byte(5)
  if kind < 128 then return kind % 16, number(s, 2, 2), number(s, 5, 3), 8, number(s, 0, 2) end
  if #s < 20 then return nil end
  return kind % 16, number(s, 8, 8), number(s, 16, 4), 20, number(s, 0, 2)
end

-- leader returns the fields of an image's leader, which begin after at bytes; nil if it is none.
function M.leader(s, at)
  if #s < at + 36 or number(s, at + 2, 2) % 0x4000 ~= IMAGE then return nil end
  return { timestamp = number(s, at + 4, 8), pixel_format = number(s, at + 12, 4), width = number(s, at + 16, 4), height = number(s, at + 20, 4),
    padding_x = number(s, at + 32, 2), padding_y = number(s, at + 34, 2) }
end

-- ---- receiver -------------------------------------------------------------------------------------------------

local Receiver = {}
Receiver.__index = Receiver

local COUNTS = { "packets", "placed", "duplicate", "late", "malformed", "camera_error", "other_image", "frames", "incomplete", "dropped_frames" }

-- receiver returns a receiver of one stream. on_frame is called with each frame: data (a string; missing parts are zeros), block_id,
-- timestamp (ticks of the camera), width, height, pixel_format, first_time and last_time, expected, received and duplicates (data
-- packets), missing (a list of their ids), complete. Incomplete frames are delivered with incomplete_frame_policy "log" only, after
-- options.log, if set, has been called with a text. r.counts has the packets and frames by what became of them.
function M.receiver(options, on_frame)
  for _, key in ipairs{ "width", "height", "pixel_format_code", "frame_bytes", "data_payload_bytes", "frame_timeout_ms" } do
    local v = options[key]
    if type(v) ~= "number" or v < 1 or v % 1 ~= 0 then error(("%s: %s is not valid (expected a whole number above 0)"):format(key, tostring(v)), 2) end
  end
  local policy = options.incomplete_frame_policy or "drop"
  if policy ~= "drop" and policy ~= "log" then error(("incomplete_frame_policy: %s is not valid (expected drop or log)"):format(tostring(policy)), 2) end
  local counts = {}
  for _, name in ipairs(COUNTS) do counts[name] = 0 end
  return setmetatable({ options = options, on_frame = on_frame, policy = policy, counts = counts, timeout = options.frame_timeout_ms / 1e3,
    expected = math.ceil(options.frame_bytes / options.data_payload_bytes) }, Receiver)
end

function Receiver:count(name) self.counts[name] = self.counts[name] + 1 end

-- length returns the bytes of data packet k.
function Receiver:length(k)
  local o = self.options
  return k < self.expected and o.data_payload_bytes or o.frame_bytes - (self.expected - 1) * o.data_payload_bytes
end

-- finish ends the open frame.
function Receiver:finish()
  local f, o = self.frame, self.options
  self.frame, self.ended = nil, f.block_id
  local missing = {}
  for k = 1, self.expected do
    if not f.parts[k] then
      missing[#missing + 1], f.parts[k] = k, ("\0"):rep(self:length(k))
    end
  end
  f.complete, f.missing, f.expected = f.leader ~= nil and f.trailer and #missing == 0, missing, self.expected
  self:count("frames")
  if not f.complete then
    self:count("incomplete")
    if self.policy == "drop" then return self:count("dropped_frames") end
    if o.log then
      o.log(("block %d is incomplete: %d of %d data packets%s%s"):format(f.block_id, f.received, f.expected,
        f.leader and "" or ", no leader", f.trailer and "" or ", no trailer"))
    end
  end
  f.data = table.concat(f.parts)
  for name, v in pairs(f.leader or {}) do f[name] = v end
  self.on_frame(f)
end

-- expire ends the open frame if its first packet is older than frame_timeout_ms, or without a time.
function Receiver:expire(time)
  if self.frame and (time == nil or time - self.frame.first_time >= self.timeout) then self:finish() end
end

-- open returns the frame of a block; nil for a block that has ended. Block ids of 16 bits go from 1 to 65535 and start again.
function Receiver:open(block_id, short, time)
  if self.frame and self.frame.block_id == block_id then return self.frame end
  local newest = self.frame and self.frame.block_id or self.ended
  local behind = newest and newest - block_id
  if behind and short then behind = behind % 65535 end
  if behind and behind >= 0 and behind <= RESTART then return nil end
  if self.frame then self:finish() end
  self.frame = { block_id = block_id, parts = {}, received = 0, duplicates = 0, trailer = false, first_time = time }
  return self.frame
end

-- place puts a packet into its frame, and returns the name of its count.
function Receiver:place(f, kind, id, s, at)
  if kind == LEADER then
    if f.leader then return "duplicate" end
    f.leader = M.leader(s, at)
    return "placed"
  elseif kind == TRAILER then
    if f.trailer then return "duplicate" end
    f.trailer = true
    return "placed"
  elseif f.parts[id] then
    f.duplicates = f.duplicates + 1
    return "duplicate"
  end
  f.parts[id], f.received = s:sub(at + 1, at + self:length(id)), f.received + 1
  return "placed"
end

-- refusal returns why a packet belongs to no frame of the stream, as the name of a count; nil if it does.
function Receiver:refusal(kind, id, s, at, status)
  if status >= 0x8000 then return "camera_error" end
  if kind == LEADER then
    local l, o = M.leader(s, at), self.options
    if not l then return "malformed" end
    local same = l.width == o.width and l.height == o.height and l.pixel_format == o.pixel_format_code
    return not same and "other_image" or nil
  end
  if kind == TRAILER then return nil end
  if kind ~= DATA or id < 1 or id > self.expected or #s - at < self:length(id) then return "malformed" end
end

-- packet takes the UDP payload of one packet, received at a time.
function Receiver:packet(s, time)
  self:count("packets")
  local kind, block_id, id, at, status = M.header(s)
  local why = not kind and "malformed" or self:refusal(kind, id, s, at, status)
  if why then return self:count(why) end
  local f = self:open(block_id, at == 8, time)
  if not f then return self:count("late") end
  f.last_time = time
  self:count(self:place(f, kind, id, s, at))
  if f.leader and f.trailer and f.received == self.expected then self:finish() end
end

-- ---- self-test ------------------------------------------------------------------------------------------------

-- selftest sends frames with losses through a receiver and compares what comes out.
function M.selftest()
  local packets, data, got = require("daqiri.gvsp_sender").packets, ("0123456789"):rep(10), {}
  local options = { width = 10, height = 10, pixel_format_code = 0x01080001, frame_bytes = 100, data_payload_bytes = 32, frame_timeout_ms = 1,
    incomplete_frame_policy = "log" }
  local r = M.receiver(options, function(f) got[#got + 1] = f end)
  local swap = function() return 1 end
  for block, more in ipairs{ {}, { duplicate = 2, shuffle = swap }, { drop = 4 }, { extended = true } } do
    local o = { block_id = block, timestamp = 7 * block, width = 10, height = 10, data_payload_bytes = 32 }
    for key, v in pairs(more) do o[key] = v end
    for _, packet in ipairs(packets(data, o)) do r:packet(packet, block) end
  end
  assert(#got == 4 and got[1].data == data and got[2].data == data and got[2].duplicates == 1 and got[2].timestamp == 14 and got[4].data == data)
  assert(got[3].received == 3 and got[3].missing[1] == 4 and got[3].data == data:sub(1, 96) .. ("\0"):rep(4) and not got[3].complete)
  local c = r.counts
  assert(c.packets == 24 and c.placed == 23 and c.duplicate == 1 and c.frames == 4 and c.incomplete == 1)
  r:packet("\0\0\0\1\3\0\0\1" .. ("x"):rep(32), 9)
  r:packet("\128\1\0\9\3\0\0\1" .. ("x"):rep(32), 9)
  r:packet("short", 9)
  assert(c.late == 1 and c.camera_error == 1 and c.malformed == 1)
  -- The timeout ends a frame, which drop counts only; another size of image is refused; block 1 after block 65535 is a new frame.
  options.incomplete_frame_policy = "drop"
  r, got = M.receiver(options, function(f) got[#got + 1] = f end), {}
  for _, block in ipairs{ 65535, 1 } do
    local list = packets(data, { block_id = block, width = 10, height = 10, data_payload_bytes = 32, drop = block == 65535 and 1 or nil })
    for _, packet in ipairs(list) do r:packet(packet, 5) end
    r:expire(5.0005)
    assert(#got == (block == 1 and 1 or 0) and (r.frame == nil) == (block == 1))
    r:expire(5.002)
  end
  r:packet(packets(data, { block_id = 2, width = 11, height = 10 })[1], 6)
  assert(#got == 1 and got[1].block_id == 1 and r.counts.dropped_frames == 1 and r.counts.other_image == 1 and r.frame == nil)
end

return M
