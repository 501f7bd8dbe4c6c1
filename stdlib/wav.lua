-- wav: WAV files of PCM audio that a script writes itself.
--
--   local wav = require "daqiri.wav"
--   local f = wav.open("mic.wav", { channels = 2, rate = 48000, bits = 24 })
--   f:write_be(bytes)            -- whole frames of big-endian samples, as RTP has them; returns false if the file has no room for them
--   f:silence(480)               -- frames of zeros
--   print(f:close())             -- frames of the file
--
-- A frame has one sample of each channel. A WAV file has less than 4 GiB. Its header is updated every MiB, so it can be read after a kill.

local M = {}
local newfile = require "daqiri.newfile"
local LARGEST = 2 ^ 32 - 64 -- bytes

local Wav = {}
Wav.__index = Wav

-- little returns v as n little-endian bytes.
local function little(v, n)
  local list = {}
  for i = 1, n do
    list[i] = string.char(v % 256)
    v = math.floor(v / 256)
  end
  return table.concat(list)
end

-- open creates a file. options: channels, rate in Hz, bits (16 or 24). Raises if the file exists or can't be created.
function M.open(path, options)
  local file, frame = newfile.open(path), options.channels * options.bits / 8
  file:write("RIFF", little(36, 4), "WAVEfmt ", little(16, 4), little(1, 2), little(options.channels, 2), little(options.rate, 4),
    little(options.rate * frame, 4), little(frame, 2), little(options.bits, 2), "data", little(0, 4))
  return setmetatable({ file = file, path = path, frame = frame, swap = options.bits == 24 and { "(.)(.)(.)", "%3%2%1" } or { "(.)(.)", "%2%1" },
    bytes = 0, noted = 0 }, Wav)
end

-- note writes the lengths into the header.
function Wav:note()
  self.noted = self.bytes
  self.file:write_at(4, little(36 + self.bytes + self.bytes % 2, 4)):write_at(40, little(self.bytes, 4))
end

function Wav:append(bytes)
  if self.bytes + #bytes > LARGEST then return false end
  self.file:write(bytes)
  self.bytes = self.bytes + #bytes
  if self.bytes - self.noted >= 2 ^ 20 then self:note() end
  return true
end

-- write_be appends frames of big-endian samples. Returns false if the file has no room for them.
function Wav:write_be(bytes) return self:append((bytes:gsub(self.swap[1], self.swap[2]))) end

-- silence appends n frames of zeros. Returns false if the file has no room for them.
function Wav:silence(n) return self:append(("\0"):rep(n * self.frame)) end

-- close completes the file, and returns how many frames it has.
function Wav:close()
  self:note()
  if self.bytes % 2 == 1 then self.file:write("\0") end
  self.file:close()
  return self.bytes / self.frame
end

function M.selftest()
  local path = os.tmpname()
  os.remove(path)
  local f = M.open(path, { channels = 1, rate = 8000, bits = 24 })
  assert(f:write_be("abc\0\n\255") and f:silence(1) and f:close() == 3)
  local back = assert(io.open(path, "rb"))
  local text = back:read "*a"
  back:close()
  os.remove(path)
  assert(text == "RIFF\46\0\0\0WAVEfmt \16\0\0\0\1\0\1\0\64\31\0\0\192\93\0\0\3\0\24\0data\9\0\0\0cba\255\n\0\0\0\0\0")
end

return M
