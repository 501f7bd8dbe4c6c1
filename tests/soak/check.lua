-- check.lua: checks the numbers in the packets: first to last, none twice, none out of order. A packet carries 48
-- bits: the sender's life (8 bits: one that was killed and came back has the next) and the packet's number in it.
local M = {}

local LIFE = 2 ^ 40
local PLACE = { at = "payload", bit_offset = 0, bit_width = 48 }
M.numbers = { at = "payload", bit_offset = 0, bit_width = 48, step = 1 } -- for a template

-- What a stream has shown so far; lives[i] = {life, received, missing, late, last}.
function M.new() return { lives = {}, at = nil } end

local function life(state, n)
  local l = state.lives[n + 1]
  if not l then
    l = { life = n, received = 0, missing = 0, late = 0, last = -1 }
    state.lives[n + 1] = l
  end
  state.at = l
  return l
end

-- One number: a gap is missing, a number that was passed already is late: a duplicate or out of order.
local function one(state, v)
  local l = life(state, math.floor(v / LIFE))
  local seq = v % LIFE
  if seq > l.last then
    l.missing, l.last = l.missing + seq - l.last - 1, seq
  else
    l.late = l.late + 1
  end
  l.received = l.received + 1
end

-- A burst. The column's least, greatest and sum are taken natively; where they are those of an unbroken run, and its
-- first, middle and last number stand where they belong, that is what it is. Otherwise number by number.
function M.burst(state, b)
  local col, n, l = b:column(PLACE), b.n, state.at
  local first = l and l.life * LIFE + l.last + 1
  local mid = math.floor((n + 1) / 2)
  if first and col[1] == first and col[n] == first + n - 1 and col[mid] == first + mid - 1 and
     col:min() == first and col:max() == first + n - 1 and col:mean() == first + (n - 1) / 2 then
    l.last, l.received = l.last + n, l.received + n
    return
  end
  for i = 1, n do one(state, col[i]) end
end

-- Checks the times of one burst in a hundred: error unless they continue from those before and are past.
function M.times(s)
  local turn, last = 0, -math.huge
  return function(b)
    turn = turn + 1
    if turn % 100 ~= 1 then return end
    local times, now = b:rx_timestamps(), s:clock()
    for i = 1, #times do
      if times[i] < last or times[i] > now then
        error(("packet %d of a burst has the time %.0f, after %.0f, at %.0f"):format(i, times[i], last, now))
      end
      last = times[i]
    end
  end
end

-- The states of several streams as a list of lives.
function M.lives(states)
  local all = {}
  for _, state in pairs(states) do
    for _, l in pairs(state.lives) do all[#all + 1] = l end
  end
  return all
end

return M
