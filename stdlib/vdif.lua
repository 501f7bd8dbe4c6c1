-- vdif: frames of a VLBI station in order of time and thread, with a filler frame, whose invalid bit is set, for each missing one.
--
--   local vdif = require "daqiri.vdif"
--   local st = vdif.stream({ frames = 1000 }, function(frame) file:write(frame) end)     -- frames per second
--   st:packet(frame)              -- one frame, as a string
--   st:finish()                   -- at the end: passes held frames on
--
-- Frames are held until those before them come, or until window frame numbers are held. The first window is always held, as it shows which threads
-- there are; a thread that appears later begins there. Without frames in the options, the number of frames in a second is learned at the end of the
-- first one. Gaps of more than fill seconds, and times that go back as far, are jumps, without fillers.

local M = {}

local Stream = {}
Stream.__index = Stream

-- stream returns the stream of one station. options: frames, per second of each thread (nil: learned); window (16); fill, in seconds (10). on_frame
-- is called with each frame and whether it is a filler. st.counts has packets by outcome: placed, late, duplicate, malformed; of placed ones invalid,
-- as the sender marked them; fillers, jumps, and corrected, how often a higher frame number showed that the number of frames was too low.
function M.stream(options, on_frame)
  return setmetatable({ frames = options.frames, window = options.window or 16, fill = options.fill or 10,
    on_frame = on_frame, counts = setmetatable({}, { __index = function() return 0 end }), held = {}, n_held = 0, threads = {}, last = {} }, Stream)
end

function Stream:count(name) self.counts[name] = self.counts[name] + 1 end

-- little returns the little-endian number of n bytes from an offset on.
local function little(s, at, n)
  local v = 0
  for i = at + n, at + 1, -1 do v = 256 * v + s:byte(i) end
  return v
end

-- header returns seconds, frame number, thread, station and length in bytes of a frame, and whether it is marked invalid; nil if it is not whole.
function M.header(s)
  if #s < 16 then return nil end
  local first, length = little(s, 0, 4), little(s, 8, 3) * 8
  if length > #s or length < (first % 2 ^ 31 >= 2 ^ 30 and 16 or 32) then return nil end
  return first % 2 ^ 30, little(s, 4, 3), math.floor(little(s, 14, 2) % 2 ^ 10), little(s, 12, 2), length, first >= 2 ^ 31
end

-- filler returns the filler at a time in place of a frame like another one: its header with the invalid bit, and zeros.
function M.filler(like, seconds, frame)
  local first = little(like, 0, 4)
  local legacy = first % 2 ^ 31 >= 2 ^ 30
  local word, bytes = seconds + (legacy and 2 ^ 30 or 0) + 2 ^ 31, {}
  for i = 1, 4 do bytes[i] = string.char(math.floor(word / 256 ^ (i - 1)) % 256) end
  for i = 1, 3 do bytes[i + 4] = string.char(math.floor(frame / 256 ^ (i - 1)) % 256) end
  local size = legacy and 16 or 32
  return table.concat(bytes) .. like:sub(8, size) .. ("\0"):rep(#like - size)
end

-- pass passes a frame on.
function Stream:pass(frame, is_filler)
  self:count(is_filler and "fillers" or "delivered")
  self.on_frame(frame, is_filler)
end

-- fill_position passes on a position's frames, in order of their threads; at: its frames by thread, nil if none came.
function Stream:fill_position(seconds, frame, at)
  for _, thread in ipairs(self.threads) do
    local s = at and at[thread]
    if s then
      self.last[thread] = s
      self:pass(s, false)
    elseif self.last[thread] then
      self:pass(M.filler(self.last[thread], seconds, frame), true)
    end
  end
end

-- first returns the earliest held position.
function Stream:first()
  local best
  for _, p in pairs(self.held) do
    if not best or p.seconds < best.seconds or p.seconds == best.seconds and p.frame < best.frame then best = p end
  end
  return best
end

-- distance returns how many frame numbers position p is after the next one; nil if seconds lie between and their frames are not known.
function Stream:distance(p)
  local n = self.next
  if p.seconds == n.seconds then return p.frame - n.frame end
  return self.frames and (p.seconds - n.seconds) * self.frames + p.frame - n.frame
end

-- advance passes on the earliest held position, after fillers for those before it.
function Stream:advance(p)
  local n = self.next or { seconds = p.seconds, frame = p.frame }
  self.next = n
  if p.seconds > n.seconds and not self.frames then self.frames = math.max(n.frame, 1) end
  if self.frames and p.frame >= self.frames then
    self.frames = p.frame + 1
    self:count("corrected")
  end
  if math.abs(p.seconds - n.seconds) > self.fill then
    self:count("jumps")
    n.seconds, n.frame = p.seconds, p.frame
  end
  while n.seconds < p.seconds or n.frame < p.frame do
    if self.frames and n.frame >= self.frames then
      n.seconds, n.frame = n.seconds + 1, 0
    else
      self:fill_position(n.seconds, n.frame)
      n.frame = n.frame + 1
    end
  end
  self:fill_position(p.seconds, p.frame, p.at)
  self.held[p.seconds .. "/" .. p.frame], self.n_held = nil, self.n_held - 1
  n.frame = p.frame + 1
end

-- release passes on what is complete and next; with all, everything.
function Stream:release(all)
  while self.n_held > 0 do
    local p = self:first()
    local complete = self.next and self:distance(p) == 0 and p.n == #self.threads
    if not (all or self.n_held > self.window or complete) then return end
    self:advance(p)
  end
end

-- add_thread notes a thread that appears.
function Stream:add_thread(thread)
  for _, known in ipairs(self.threads) do
    if known == thread then return end
  end
  self.threads[#self.threads + 1] = thread
  table.sort(self.threads)
end

-- packet takes one frame; bytes behind it are ignored.
function Stream:packet(s)
  self:count("packets")
  local seconds, frame, thread, _, length, invalid = M.header(s)
  if not seconds or self.length and length ~= self.length then return self:count("malformed") end
  self.length = length
  local n = self.next
  if n and (seconds < n.seconds or seconds == n.seconds and frame < n.frame) then
    if n.seconds - seconds <= self.fill then return self:count("late") end
    self:release(true)
    self:count("jumps")
    self.next = nil
  end
  self:add_thread(thread)
  local key = seconds .. "/" .. frame
  local p = self.held[key]
  if not p then
    p = { seconds = seconds, frame = frame, at = {}, n = 0 }
    self.held[key], self.n_held = p, self.n_held + 1
  end
  if p.at[thread] then return self:count("duplicate") end
  p.at[thread], p.n = s:sub(1, length), p.n + 1
  self:count("placed")
  if invalid then self:count("invalid") end
  self:release()
end

function Stream:finish() self:release(true) end

-- ---- self-test ------------------------------------------------------------------------------------------------

function M.selftest()
  local format, got = require("daqiri").format "vdif", {}
  local st = M.stream({ window = 2 }, function(f, filler)
    local seconds, frame, thread, station, length, invalid = M.header(f)
    assert(invalid == filler and station == 7 and length == 40 and f:sub(33) == (filler and "\0\0\0\0\0\0\0\0" or "some data"):sub(1, 8))
    got[#got + 1] = ("%d.%d.%d%s"):format(seconds, frame, thread, filler and "!" or "")
  end)
  local function send(seconds, frame, thread)
    st:packet(format:encode{ seconds = seconds, frame = frame, thread = thread, station = 7, bits_minus_1 = 1, payload = "some dat" })
  end
  for _, at in ipairs{ { 5, 1, 3 }, { 5, 1, 0 }, { 5, 2, 0 }, { 5, 3, 0 }, { 5, 3, 3 }, { 6, 0, 0 }, { 6, 0, 3 }, { 6, 0, 3 }, { 6, 2, 0 }, { 6, 2, 3 }, { 5, 1, 0 } } do
    send(at[1], at[2], at[3])
  end
  st:packet("short")
  st:finish()
  assert(table.concat(got, " ") == "5.1.0 5.1.3 5.2.0 5.2.3! 5.3.0 5.3.3 6.0.0 6.0.3 6.1.0! 6.1.3! 6.2.0 6.2.3", table.concat(got, " "))
  local c = st.counts
  assert(c.packets == 12 and c.placed == 9 and c.duplicate == 1 and c.late == 1 and c.malformed == 1 and c.fillers == 3 and st.frames == 4)
end

return M
