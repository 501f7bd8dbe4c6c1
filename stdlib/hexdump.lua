-- hexdump: packets and strings as lines of offset, bytes and text, for display.
--
--   local hexdump = require "hexdump"
--   print(hexdump(b:packet(1)))                        -- a packet view or a string
--   print(hexdump(p, { width = 8, first = 42 }))       -- bytes per line; offset of the first byte
--
-- Offsets are bytes, in hexadecimal. Non-printable bytes are shown as dots.

local M = {}

local function line(offset, bytes, width)
  local hex = {}
  for i = 1, #bytes do hex[i] = ("%02x"):format(bytes:byte(i)) end
  local text = bytes:gsub("[^\32-\126]", ".")
  return ("%04x  %-" .. 3 * width .. "s %s"):format(offset, table.concat(hex, " "), text)
end

-- dump returns the text, without a final newline.
function M.dump(data, options)
  options = options or {}
  for key in pairs(options) do
    if key ~= "width" and key ~= "first" then error("hexdump: unknown option '" .. tostring(key) .. "'", 2) end
  end
  local width, first = options.width or 16, options.first or 0
  local bytes = type(data) == "string" and data or data:bytes()
  local lines = {}
  for at = first, #bytes - 1, width do
    lines[#lines + 1] = line(at, bytes:sub(at + 1, math.min(at + width, #bytes)), width)
  end
  return table.concat(lines, "\n")
end

function M.selftest()
  assert(M.dump("") == "")
  assert(M.dump("AB\0z", { width = 2 }) == "0000  41 42  AB\n0002  00 7a  .z")
  assert(M.dump("abcd", { first = 3 }) == "0003  64                                               d")
  assert(not pcall(M.dump, "", { widht = 1 }))
end

return setmetatable(M, { __call = function(_, ...) return M.dump(...) end })
