-- sigmf: SigMF recordings that a script writes itself, from samples whose type or gaps it learns during the run. s:write_sigmf records bursts natively.
--
--   local sigmf = require "daqiri.sigmf"
--   local rec = sigmf.open("radio", { type = "ci16be", rate = 1e6, header = { ["core:description"] = "test" } })
--   rec:capture{ time = at, frequency = 1.4e9 }      -- the samples from here on; time is a daqiri.time
--   rec:write(bytes)                                 -- whole samples
--   rec:gap(100)                                     -- 100 samples of zeros, and an annotation with the label gap
--   rec:skip(5000)                                   -- the stream continues 5000 samples later: a capture has to follow
--   rec:close()
--
-- radio.sigmf-data and radio.sigmf-meta must not exist. The metadata are written at the start, with each capture, and at the end.

local M = {}
local daqiri, newfile = require "daqiri", require "daqiri.newfile"
local LISTED = 100000 -- gaps that are listed one by one, as by s:write_sigmf

local Recording = {}
Recording.__index = Recording

-- datatype returns SigMF's name of a type of samples, and the bytes of a sample; or nil and a text if SigMF has no such type.
function M.datatype(name)
  local complex, kind, bits, order = name:match "^(c?)([iuf])(%d+)([lb]?e?)$"
  bits = tonumber(bits)
  local whole = bits == 8 and kind ~= "f" and order == "" or (bits == 16 and kind ~= "f" or bits == 32 or bits == 64 and kind == "f") and #order == 2
  if not whole then return nil, name .. " is not a type of SigMF recordings (expected elements of 8, 16, 32 or 64 bits)" end
  return ("%s%s%d%s"):format(complex == "" and "r" or "c", kind, bits, order == "" and "" or "_" .. order), bits / 8 * (complex == "" and 1 or 2)
end

-- open creates a recording. options: type; optional: rate in samples/s, header (further keys of the global object). Raises if
-- SigMF has no such type or a file can't be created.
function M.open(path, options)
  local datatype, size = M.datatype(options.type)
  if not datatype then error("cannot record " .. path .. ": " .. size, 0) end
  newfile.absent(path .. ".sigmf-meta")
  local global = { ["core:datatype"] = datatype, ["core:version"] = "1.2.0", ["core:sample_rate"] = options.rate,
    ["core:recorder"] = "daqiri-run " .. daqiri.version }
  for key, v in pairs(options.header or {}) do global[key] = v end
  local rec = setmetatable({ path = path, size = size, samples = 0, index = 0, captures = {}, annotations = {}, global = daqiri.json(global),
    data = newfile.open(path .. ".sigmf-data") }, Recording)
  rec:write_meta()
  return rec
end

-- write_meta replaces the metadata file as a whole.
function Recording:write_meta()
  local path, list = self.path .. ".sigmf-meta", function(t) return "[" .. table.concat(t, ",\n") .. "]" end
  local f, why = io.open(path .. ".part", "wb")
  if not f then error("cannot create " .. why, 0) end
  local ok, failed = f:write(('{"global":%s,\n"captures":%s,\n"annotations":%s}\n'):format(self.global, list(self.captures), list(self.annotations)))
  f:close()
  if ok then ok, failed = os.rename(path .. ".part", path) end
  if not ok then error(("cannot write %s: %s"):format(path, failed), 0) end
end

-- capture begins a capture. c: time (a daqiri.time), frequency in Hz, more (further keys); all optional.
function Recording:capture(c)
  local at = { ["core:sample_start"] = self.samples, ["core:global_index"] = self.index, ["core:frequency"] = c.frequency,
    ["core:datetime"] = c.time and tostring(c.time) }
  for key, v in pairs(c.more or {}) do at[key] = v end
  self.captures[#self.captures + 1] = daqiri.json(at)
  self:write_meta()
end

-- write appends the bytes of whole samples.
function Recording:write(bytes)
  local n = #bytes / self.size
  assert(n % 1 == 0, "write: the bytes are not whole samples")
  self.data:write(bytes)
  self.samples, self.index = self.samples + n, self.index + n
end

-- gap writes n samples of zeros for missing ones. The last annotation covers all gaps that are not listed.
function Recording:gap(n)
  local last = #self.annotations >= LISTED
  if last then self.rest = self.rest or self.samples end
  local start = last and self.rest or self.samples
  self.annotations[last and LISTED + 1 or #self.annotations + 1] = daqiri.json{ ["core:sample_start"] = start,
    ["core:sample_count"] = self.samples + n - start, ["core:label"] = "gap", ["core:comment"] = last and "several gaps" or nil }
  local each = math.min(n, 65536)
  local zeros = ("\0"):rep(each * self.size)
  for _ = 1, math.floor(n / each) do self:write(zeros) end
  self:write(("\0"):rep(n % each * self.size))
end

-- skip counts n samples of the stream that are not in the file.
function Recording:skip(n) self.index = self.index + n end

-- close completes the metadata, and returns how many samples the file has.
function Recording:close()
  self.data:close()
  self:write_meta()
  return self.samples
end

function M.selftest()
  local path = os.tmpname()
  local rec = M.open(path, { type = "ci16be", rate = 100, header = { ["core:description"] = "x" } })
  rec:capture{ time = daqiri.time "2026-01-02T03:04:05.5Z", frequency = 5 }
  rec:write("abcdefgh")
  rec:gap(70000)
  rec:skip(10)
  rec:capture{ more = { ["a:b"] = 1 } }
  assert(rec:close() == 70002)
  local meta = assert(io.open(path .. ".sigmf-meta"))
  local m = daqiri.from_json(meta:read "*a")
  meta:close()
  assert(m.global["core:datatype"] == "ci16_be" and m.global["core:sample_rate"] == 100 and m.global["core:description"] == "x")
  assert(m.captures[1]["core:datetime"] == "2026-01-02T03:04:05.5Z" and m.captures[1]["core:frequency"] == 5)
  assert(m.captures[2]["core:sample_start"] == 70002 and m.captures[2]["core:global_index"] == 70012 and m.captures[2]["a:b"] == 1)
  assert(m.annotations[1]["core:sample_start"] == 2 and m.annotations[1]["core:sample_count"] == 70000)
  assert(not pcall(M.open, path, { type = "ci8" }))
  os.remove(path .. ".sigmf-meta")
  os.remove(path .. ".sigmf-data")
  assert(M.datatype "u8" == "ru8" and M.datatype "cf32le" == "cf32_le" and not M.datatype "ci12" and not M.datatype "f16le" and not M.datatype "i16")
end

return M
