-- gvsp_images: images of a GigE Vision camera, whose size and pixel format are those of its leaders (daqiri.gvsp expects them in its options).
--
--   local images = require "daqiri.gvsp_images"
--   local r = images.receiver({ frame_timeout_ms = 100 }, function(f) print(f.block_id, f.width, f.height, f.type, #f.missing) end)
--   r:packet(payload, time)      -- the UDP payload of one packet, as a string, and its receive time in seconds
--   r:finish()                   -- at the end of the stream: ends the last image
--
-- Packets before the first leader are counted in early. The length of data packets is that of the longer one of the first two of an image. A leader
-- with another size or format begins another series of images. Images are passed on if incomplete too: missing has the ids of the data packets
-- that are missing, and their bytes are zeros.

local M = {}
local gvsp = require "daqiri.gvsp"
local LARGEST = 2 ^ 30 -- bytes of an image
local types = require("daqiri.formats.gvsp").samples.type

local Receiver = {}
Receiver.__index = Receiver

-- receiver returns a receiver of one stream. options: frame_timeout_ms, the longest time between the first and the last packet of an image. on_image
-- is called with each image: the fields of frames of daqiri.gvsp, and type, the type of its samples, or nil if the format gvsp does not list it.
-- r.counts has the packets and images by their outcome, early included.
function M.receiver(options, on_image)
  return setmetatable({ timeout = options.frame_timeout_ms, on_image = on_image, counts = { packets = 0, early = 0 }, held = {} }, Receiver)
end

-- bytes_of returns how many bytes an image has: lines of whole bytes if they are padded, otherwise one stream of bits.
function M.bytes_of(leader)
  local bits = math.floor(leader.pixel_format / 0x10000) % 256 -- of a pixel on the wire, in bits 16 to 23 of a PFNC number
  if leader.padding_x == 0 then return math.ceil(leader.width * leader.height * bits / 8) + leader.padding_y end
  return (math.ceil(leader.width * bits / 8) + leader.padding_x) * leader.height + leader.padding_y
end

-- close adds the counts of the current series to those of earlier ones.
function Receiver:close()
  if not self.series then return end
  self.series:expire()
  for name, n in pairs(self.series.counts) do
    if name ~= "packets" then self.counts[name] = (self.counts[name] or 0) + n end
  end
  self.series = nil
end

-- begin begins a series of images like the leader's, and returns false if such an image would have no bytes or more than LARGEST.
function Receiver:begin(leader)
  self:close()
  self.leader, self.held, self.longest, self.ids = leader, {}, 0, {}
  self.bytes = M.bytes_of(leader)
  if self.bytes == 0 or self.bytes > LARGEST then self.leader = nil end
  return self.leader ~= nil
end

-- measure notes a data packet of a new series, and starts the series if the length of its data packets is known.
function Receiver:measure(id, length)
  self.longest = math.max(self.longest, length)
  self.ids[#self.ids + 1] = id ~= self.ids[1] and id or nil
  if #self.ids < 2 and length < self.bytes then return end
  local l = self.leader
  self.series = gvsp.receiver({ width = l.width, height = l.height, pixel_format_code = l.pixel_format, frame_bytes = self.bytes,
    data_payload_bytes = math.min(self.longest, self.bytes), frame_timeout_ms = self.timeout, incomplete_frame_policy = "log" }, function(f)
    f.width, f.height, f.pixel_format, f.type = l.width, l.height, l.pixel_format, types[l.pixel_format]
    self.on_image(f)
  end)
  for _, packet in ipairs(self.held) do self.series:packet(packet[1], packet[2]) end
  self.held = {}
end

-- packet takes the UDP payload of one packet, received at a time in seconds.
function Receiver:packet(s, time)
  self.counts.packets = self.counts.packets + 1
  local kind, _, id, at, status = gvsp.header(s)
  local leader = kind == 1 and status < 0x8000 and gvsp.leader(s, at)
  local l = self.leader
  if leader and not (l and l.width == leader.width and l.height == leader.height and l.pixel_format == leader.pixel_format) then
    self.counts.early = self.counts.early + #self.held
    if not self:begin(leader) then self.counts.early = self.counts.early + 1 return end
  end
  if not self.leader then self.counts.early = self.counts.early + 1 return end
  if self.series then
    self.series:expire(time)
    return self.series:packet(s, time)
  end
  if #self.held == 4096 then self.counts.early, self.held = self.counts.early + 4096, {} end
  self.held[#self.held + 1] = { s, time }
  if kind == 3 and status < 0x8000 and #s > at then self:measure(id, #s - at) end
end

-- finish ends the last image, and counts held packets of a series whose packet length is unknown as early.
function Receiver:finish()
  self:close()
  self.counts.early, self.held = self.counts.early + #self.held, {}
end

-- ---- self-test ------------------------------------------------------------------------------------------------

-- selftest receives images of two sizes, with a lost packet, and packets before the first leader.
function M.selftest()
  local packets, got = require("daqiri.gvsp_sender").packets, {}
  local r = M.receiver({ frame_timeout_ms = 1 }, function(f) got[#got + 1] = f end)
  local large, small = ("0123456789"):rep(10), ("ab"):rep(9)
  local function send(data, block, width, height, code, drop)
    local o = { block_id = block, width = width, height = height, pixel_format_code = code, data_payload_bytes = 32, drop = drop }
    for i, packet in ipairs(packets(data, o)) do
      if block > 1 or i > 1 then r:packet(packet, block) end -- the first leader is lost
    end
  end
  send(large, 1, 10, 10, 0x01080001)
  send(large, 2, 10, 10, 0x01080001)
  send(large, 3, 10, 10, 0x01080001, 2)
  send(small, 4, 4, 3, 0x010c0047)
  r:finish()
  assert(#got == 3 and got[1].data == large and got[1].type == "Mono8" and got[1].complete)
  assert(got[2].missing[1] == 2 and #got[2].data == 100 and got[3].data == small and got[3].type == "Mono12p" and got[3].width == 4)
  local c = r.counts
  assert(c.packets == 19 and c.early == 5 and c.placed == 14 and c.frames == 3 and c.incomplete == 1)
  assert(M.bytes_of{ width = 3, height = 2, pixel_format = 0x010c0047, padding_x = 1, padding_y = 4 } == 16)
  assert(not r:begin{ width = 2 ^ 31, height = 2 ^ 31, pixel_format = 0x01080001, padding_x = 0, padding_y = 0 })
end

return M
