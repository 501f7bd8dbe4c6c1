-- newfile: files that a script writes itself. An existing file is never replaced, and a failed write raises.
--
--   local newfile = require "daqiri.newfile"
--   local f = newfile.open("frames.raw")
--   f:write(bytes, more)         -- strings
--   f:write_at(4, bytes)         -- writes over earlier bytes, from offset 4 on
--   print(f.size, f.path)        -- bytes, without those written over
--   f:close()

local M = {}

local File = {}
File.__index = File

local function check(ok, why, path)
  if not ok then error(("cannot write %s: %s"):format(path, why), 0) end
  return ok
end

-- absent raises if a file exists.
function M.absent(path)
  local there = io.open(path, "rb")
  if not there then return end
  there:close()
  error(("cannot create %s: it exists; hint: name another file, or remove it"):format(path), 0)
end

-- open creates a file. Raises if it exists or can't be created.
function M.open(path)
  M.absent(path)
  local handle, why = io.open(path, "wb")
  if not handle then error("cannot create " .. tostring(why), 0) end
  return setmetatable({ handle = handle, path = path, size = 0 }, File)
end

-- write appends strings.
function File:write(...)
  for _, text in ipairs{ ... } do
    local ok, why = self.handle:write(text)
    check(ok, why, self.path)
    self.size = self.size + #text
  end
  return self
end

-- write_at writes text over the bytes from offset on, which were written before.
function File:write_at(offset, text)
  assert(offset + #text <= self.size, "write_at: the bytes were not written before")
  for _, step in ipairs{ { "seek", "set", offset }, { "write", text }, { "seek", "end" } } do
    local ok, why = self.handle[step[1]](self.handle, unpack(step, 2))
    check(ok, why, self.path)
  end
  return self
end

-- close closes the file, and returns its size in bytes.
function File:close()
  local ok, why = self.handle:close()
  check(ok, why, self.path)
  return self.size
end

function M.selftest()
  local path = os.tmpname()
  os.remove(path)
  local f = M.open(path)
  assert(f:write("abc", "def"):write_at(1, "XY").size == 6 and f:write("g"):close() == 7)
  local back = assert(io.open(path, "rb"))
  assert(back:read("*a") == "aXYdefg")
  back:close()
  local ok, why = pcall(M.open, path)
  assert(not ok and tostring(why):find("cannot create " .. path .. ": it exists", 1, true))
  os.remove(path)
  assert(not pcall(M.open, path .. "/no/such/folder"))
end

return M
