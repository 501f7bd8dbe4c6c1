-- ring: records in slots of memory lent by one end of an RDMA connection and written by the other; a slot is not overwritten before it was
-- read.
--
--   local ring = require "daqiri.ring"
--   local reader = ring.reader(c, { region = "ring", slots = 64, slot_bytes = 16384, on_record = function(r) print(r.number, r:get()) end })
--   local writer = ring.writer(c, "ring")            -- at the other end, when c.remotes.ring exists
--   local op, status, why = writer:write(b)          -- a burst as one record; nil, "NO_SPACE_AVAILABLE", text: all slots are unread
--   print(writer.free, writer.written, reader.read)  -- slots, records
--
-- A record is a WRITE whose immediate is its length in bytes; WRITEs arrive in the order of the slots. The reader returns credits in
-- messages without bytes, whose immediate is the number of records read, modulo 2^31, whenever a quarter of the slots is free again. A
-- connection can have one ring, both ends need receive queues, and scripts must not send other immediates on it. Requires RC.

local M = {}

local WRAP = 2 ^ 31

local function immediates(b, fn)
  local imm = b.imm
  if not imm then return end
  for k = 1, #imm do
    if imm[k] then fn(imm[k]) end
  end
end

-- ---- reader --------------------------------------------------------------------------------------------------

local Record = {}
Record.__index = Record

-- Returns the record's bytes, or len of them from an offset on.
function Record:get(offset, len)
  offset = offset or 0
  return self.lease:get(self.at + offset, len or self.bytes - offset)
end

local Reader = {}
Reader.__index = Reader

-- Sends the number of records read; if sending fails, the next message includes them.
function Reader:credit()
  local b = self.connection:alloc(1)
  if not b then return false end
  b:set_lengths(0)
  if not self.connection:message(b, { imm = self.read % WRAP }) then
    b:free()
    return false
  end
  self.credited = self.read
  return true
end

function Reader:take(bytes)
  local slot = self.read % self.slots
  self.on_record(setmetatable({ number = self.read, bytes = bytes, at = slot * self.slot_bytes, lease = self.lease }, Record))
  self.read = self.read + 1
  if self.read - self.credited >= self.batch then self:credit() end
end

-- reader lends a region to c's peer as a ring of slots, and calls on_record with each record: 'number', from 0, 'bytes', 'at' in the
-- region, 'get(offset, len)'. The slot is free for the writer when on_record returns.
function M.reader(c, o)
  for _, key in ipairs{ "region", "slots", "slot_bytes", "on_record" } do
    if o[key] == nil then error("ring.reader: '" .. key .. "' is missing", 2) end
  end
  local r = setmetatable({ connection = c, slots = o.slots, slot_bytes = o.slot_bytes, on_record = o.on_record, read = 0, credited = 0,
    batch = math.max(1, math.floor(o.slots / 4)) }, Reader)
  c:on_burst(function(b) immediates(b, function(bytes) r:take(bytes) end) end)
  local lease, status, why = c:lend(o.region, { name = o.name or o.region, access = "rdma_write", slots = o.slots, slot_bytes = o.slot_bytes })
  if not lease then return nil, status, why end
  r.lease = lease
  return r
end

-- ---- writer --------------------------------------------------------------------------------------------------

local Writer = {}
Writer.__index = Writer

-- Writes a burst's packets back to back as the next record. Returns an op, or nil, status, text if it cannot; then the caller still owns
-- the burst.
function Writer:write(b, options)
  if self.free == 0 then return nil, "NO_SPACE_AVAILABLE", ("ring %s: its %d slots are unread"):format(self.name, self.slots) end
  if b.bytes > self.slot_bytes then
    error(("ring %s: a record of %d bytes, its slots have %d"):format(self.name, b.bytes, self.slot_bytes), 2)
  end
  local op, status, why = self.connection:write(b, self.name, self.written % self.slots * self.slot_bytes, { imm = b.bytes, wr_id = options and options.wr_id })
  if not op then return nil, status, why end
  self.written, self.free = self.written + 1, self.free - 1
  return op
end

-- writer returns a writer of the ring that c's peer lends under that name.
function M.writer(c, name)
  local lent = c.remotes[name]
  if not lent or lent.slots == 0 then error("ring.writer: its peer lends no ring '" .. tostring(name) .. "' yet", 2) end
  local w = setmetatable({ connection = c, name = name, slots = lent.slots, slot_bytes = lent.slot_bytes, free = lent.slots, written = 0, read = 0 }, Writer)
  c:on_burst(function(b)
    immediates(b, function(read)
      w.read = w.read + (read - w.read) % WRAP
      w.free = w.slots - (w.written - w.read)
    end)
  end)
  return w
end

-- ---- selftest ------------------------------------------------------------------------------------------------

-- Two ends of a connection in memory: messages of one end reach the other's function when `deliver` is called.
local function pair(slots, bytes)
  local memory, queue, ends = {}, {}, {}
  for k = 1, 2 do
    local e = { remotes = {} }
    ends[k] = e
    function e:on_burst(fn) self.fn = fn end
    function e:alloc() return { bytes = 0, set_lengths = function() end, free = function() end } end
    function e:message(_, o)
      queue[#queue + 1] = { ends[3 - k], o.imm }
      return true
    end
    function e:lend(name, o)
      ends[3 - k].remotes[name] = { slots = o.slots, slot_bytes = o.slot_bytes }
      return { get = function(_, at, len) return memory[at]:sub(1, len) end }
    end
    function e:write(b, _, at, o)
      assert(at % bytes == 0 and at < slots * bytes)
      memory[at] = b.text
      queue[#queue + 1] = { ends[3 - k], o.imm }
      return {}
    end
  end
  return ends[1], ends[2], function()
    local list = queue
    queue = {}
    for _, m in ipairs(list) do m[1].fn{ imm = { m[2] } } end
    return #list
  end
end

function M.selftest()
  local a, b, deliver = pair(5, 8)
  local got = {}
  local reader = assert(M.reader(a, { region = "ring", slots = 5, slot_bytes = 8, on_record = function(r) got[#got + 1] = r:get() end }))
  local w = M.writer(b, "ring")
  local n = 0
  local function fill() while w:write{ bytes = 3 + n % 5, text = ("%08d"):format(n) } do n = n + 1 end end
  fill()
  assert(n == 5 and w.free == 0, "all slots, and no more")
  for _ = 1, 100 do
    deliver()
    fill()
  end
  while deliver() > 0 do end
  assert(n > 100 and #got == n and reader.read == n and w.written == n, "records " .. n)
  for k, text in ipairs(got) do assert(text == ("%08d"):format(k - 1):sub(1, 3 + (k - 1) % 5), text) end
  assert(not pcall(w.write, w, { bytes = 9 }), "longer than a slot")
  assert(not pcall(M.writer, b, "rings"))
end

return M
