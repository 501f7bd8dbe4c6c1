-- broken_formats.lua: what is reported about formats that can't be, of values that don't fit and of packets that are none: each with
-- the field and, of a declaration, its line.
--   daqiri-run broken_formats.lua
local daqiri = require "daqiri"

local function broken(declare)
  local ok, why = pcall(declare)
  print(ok and "it was taken" or (tostring(why):match "[^\n]+":gsub("/%S*/", "")))
end

broken(function() return daqiri.format{ name = "overlap",
  { "a", 16 },
  { "b", 8, at = 8 } } end)
broken(function() return daqiri.format{ name = "gap",
  { "a", 16 },
  { "b", 8, at = 24 } } end)
broken(function() return daqiri.format{ name = "wide",
  { "a", 65 } } end)
broken(function() return daqiri.format{ name = "within-a-byte",
  { "a", 12 } } end)
broken(function() return daqiri.format{ name = "unit",
  { "a", 16 },
  { "b", "mac", unit = "Hz" } } end)
broken(function() return daqiri.format{ name = "cycle",
  { "a", 8, when = "b == 1" },
  { "b", 8, when = "a == 1" } } end)
broken(function() return daqiri.format{ name = "twice",
  { "a", 8 },
  { "a", 8 } } end)
broken(function() return daqiri.format{ name = "misspelt",
  { "flag", 8 },
  { "a", 8, when = "falg == 1" } } end)
broken(function() return daqiri.format{ name = "constant",
  { "a", 8, const = 256 } } end)
broken(function() return daqiri.format{ name = "value",
  { "a", 8 },
  { "b", 2, values = { [4] = "four" } }, { reserved = 6 } } end)
broken(function() return daqiri.format{ name = "key",
  { "a", 8, unti = "Hz" } } end)
broken(function() return daqiri.format{ name = "type",
  { "a", 8 },
  { "b", "u16x" } } end)
broken(function() return daqiri.format{ name = "part",
  { "flag", 8 },
  { when = "flag == 1",
    { "a", 4 } } } end)
broken(function() return daqiri.format{ name = "list", { "n", 8 },
  { list = "l", count = "n", key = "k", items = { x = 1 }, { "k", 64 }, { "v", 64 } } } end)
broken(function() return daqiri.format{ name = "everybody",
  { "udp_dst", 16 } } end)
broken(function() return daqiri.format{ name = "vector", { "seq", 8 },
  vectors = { { hex = "01", seq = 2 } } } end)
broken(function() return daqiri.format{ name = "sequence", sequence = "sq",
  { "seq", 8 } } end)
broken(function() return daqiri.format{ name = "chips", { "a", 8 } } end)

local f = daqiri.format{ name = "mine", { "magic", 16, const = 0xabcd }, { "seq", 8 }, { "x", 8, when = "seq > 3" } }
broken(function() return daqiri.format{ name = "mine", { "a", 8 } } end)
for _, values in ipairs{ { seq = 256 }, { seq = -1 }, { seq = 1.5 }, { sq = 1 }, { magic = 1 }, { seq = 1, x = 2 } } do
  broken(function() return f:encode(values) end)
end
local spead = daqiri.format "spead-64-40"
broken(function() return spead:encode{ heap_cnt = 2 ^ 40 } end)
broken(function() return spead:encode{ heap_cnt = 1, items = { { mode = 1, id = 1, value = 2 } } } end)
broken(function() return daqiri.format "ipv4":encode{ ihl = 7 } end)
for _, bytes in ipairs{ "", "\171", "\171\206\1", "\171\205", "\171\205\9" } do
  local packet, _, why = f:decode(bytes)
  print(why or ("seq %s, x %s"):format(packet.seq, packet.x))
end
broken(function() return daqiri.format{ { "a", "bytes0", signed = true, const = 105 } } end)
broken(function() return daqiri.format{ { "a", "i0", const = 1 } } end)
