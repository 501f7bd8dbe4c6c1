-- rtp: the payloads of RTP streams in order, with gaps by their timestamps, for media whose timestamps count samples, such as PCM audio.
--
--   local rtp = require "daqiri.rtp"
--   local r = rtp.receiver({ frame_bytes = 6 }, {                  -- two channels of 24 bits
--     on_start = function(st) print(("%08x"):format(st.ssrc), st.payload_type, st.ns) end,   -- a new source, or a jump of its timestamps
--     on_gap = function(st, frames) print(frames, "frames are missing") end,
--     on_data = function(st, bytes, frames) print(#bytes) end })
--   r:packet(payload, ns)          -- the UDP payload of one packet, as a string, and its receive time in ns
--   r:finish()                     -- at the end: passes held packets on
--
-- A frame has one sample of each channel. A packet behind a missing one is held until that comes, or until window packets are held. Two packets in a
-- row with sequence numbers far from the expected one are a restart of their source (RFC 3550, appendix A.1); a single one is a stray.

local M = {}

local FAR = 3000 -- sequence numbers

local Receiver = {}
Receiver.__index = Receiver

-- receiver returns a receiver of the streams of one source of packets, which are separated by their SSRC. options: frame_bytes; payload_type (nil: any);
-- window (8); longest, the most frames of a gap (480000): a longer one, or an earlier timestamp, is a jump. r.counts has packets by outcome: delivered,
-- late, duplicate, stray, malformed, other_type; and gaps, missing (frames), jumps and restarts.
function M.receiver(options, handlers)
  local counts = setmetatable({}, { __index = function() return 0 end })
  return setmetatable({ options = options, handlers = handlers, counts = counts, streams = {}, window = options.window or 8,
    longest = options.longest or 480000 }, Receiver)
end

function Receiver:count(name, n) self.counts[name] = self.counts[name] + (n or 1) end

-- number returns the big-endian number of n bytes from an offset on.
local function number(s, at, n)
  local v = 0
  for i = at + 1, at + n do v = 256 * v + s:byte(i) end
  return v
end

-- signed returns v modulo 2 * half, between -half and half - 1.
local function signed(v, half) return (v + half) % (2 * half) - half end

-- parse returns sequence number, timestamp, SSRC, payload type, payload and marker of a packet; nil if it is not one of RTP version 2.
function M.parse(s)
  if #s < 12 or math.floor(s:byte(1) / 64) ~= 2 then return nil end
  local b1, b2 = s:byte(1, 2)
  local from, to = 12 + b1 % 16 * 4, #s
  if b1 % 32 >= 16 then from = #s >= from + 4 and from + 4 + 4 * number(s, from + 2, 2) or #s + 1 end
  if b1 % 64 >= 32 then to = to - math.max(s:byte(-1), 1) end
  if from > to then return nil end
  return number(s, 2, 2), number(s, 4, 4), number(s, 8, 4), b2 % 128, s:sub(from + 1, to), b2 >= 128
end

-- deliver passes a packet on, after the gap before it.
function Receiver:deliver(st, p)
  local gap = st.timestamp and signed(p.timestamp - st.timestamp, 2 ^ 31)
  if gap and (gap < 0 or gap > self.longest) then
    self:count("jumps")
    gap = nil
  end
  st.ns, st.next, st.timestamp = p.ns, p.number + 1, (p.timestamp + p.frames) % 2 ^ 32
  if not gap then self.handlers.on_start(st) end
  if gap and gap > 0 then
    self:count("gaps")
    self:count("missing", gap)
    self.handlers.on_gap(st, gap)
  end
  self:count("delivered")
  self.handlers.on_data(st, p.bytes, p.frames)
end

-- release passes on what is next; with all, also what is behind missing packets.
function Receiver:release(st, all)
  while st.n_held > 0 do
    local p = st.held[st.next]
    if not p and (all or st.n_held > self.window) then
      for _, other in pairs(st.held) do p = p and p.number < other.number and p or other end
    end
    if not p then return end
    st.held[p.number], st.n_held = nil, st.n_held - 1
    self:deliver(st, p)
  end
end

-- place returns the number of a packet, which continues beyond 65535; nil if it is a stray.
function Receiver:place(st, sequence)
  if not st.next then return sequence end
  local step = signed(sequence - st.next, 2 ^ 15)
  if math.abs(step) < FAR then
    st.probe = nil
    return st.next + step
  end
  local again = st.probe == sequence
  st.probe = (sequence + 1) % 65536
  if not again then return nil end
  self:release(st, true)
  self:count("restarts")
  st.next, st.timestamp, st.probe = sequence, nil, nil
  return sequence
end

-- packet takes the UDP payload of one packet.
function Receiver:packet(s, ns)
  self:count("packets")
  local sequence, timestamp, ssrc, payload_type, bytes = M.parse(s)
  if not sequence then return self:count("malformed") end
  if self.options.payload_type and payload_type ~= self.options.payload_type then return self:count("other_type") end
  local frames = #bytes / self.options.frame_bytes
  if frames == 0 or frames % 1 ~= 0 then return self:count("malformed") end
  local st = self.streams[ssrc]
  if not st then
    st = { ssrc = ssrc, payload_type = payload_type, held = {}, n_held = 0 }
    self.streams[ssrc] = st
  end
  local k = self:place(st, sequence)
  if not k then return self:count("stray") end
  if st.next and k < st.next then return self:count("late") end
  if st.held[k] then return self:count("duplicate") end
  st.next = st.next or k
  st.held[k], st.n_held = { number = k, timestamp = timestamp, bytes = bytes, frames = frames, ns = ns }, st.n_held + 1
  self:release(st)
end

function Receiver:finish()
  for _, st in pairs(self.streams) do self:release(st, true) end
end

-- ---- self-test ------------------------------------------------------------------------------------------------

-- selftest receives packets with losses, in another order and twice, across the end of the sequence numbers and timestamps, and a restart.
function M.selftest()
  local format, got = require("daqiri").format "rtp", {}
  local r = M.receiver({ frame_bytes = 2, window = 2 }, { on_start = function(st) got[#got + 1] = "start " .. st.ssrc end,
    on_gap = function(_, n) got[#got + 1] = "gap " .. n end, on_data = function(_, bytes) got[#got + 1] = bytes end })
  local function send(k, far)
    r:packet(format:encode{ ssrc = 5, sequence_number = (65533 + k + (far or 0)) % 65536, timestamp = (2 ^ 32 - 17 + 4 * k) % 2 ^ 32, payload = ("%08d"):format(k) }, k)
  end
  for _, k in ipairs{ 0, 2, 1, 1, 5, 6, 7 } do send(k) end
  send(8, 20000)
  send(8)
  send(9, 30000)
  send(10, 30000)
  r:packet("short", 0)
  r:finish()
  local want = "start 5,00000000,00000001,00000002,gap 8,00000005,00000006,00000007,00000008,start 5,00000010"
  assert(table.concat(got, ",") == want, table.concat(got, ","))
  local c = r.counts
  assert(c.packets == 12 and c.late == 1 and c.stray == 2 and c.malformed == 1 and c.restarts == 1 and c.missing == 8 and c.delivered == 8)
  assert(select(5, M.parse("\176\97\0\1\0\0\0\2\0\0\0\3\190\222\0\1\0\0\0\0ab\0\2")) == "ab" and not M.parse("\144\97\0\1\0\0\0\2\0\0\0\3\190\222\0\9"))
end

return M
