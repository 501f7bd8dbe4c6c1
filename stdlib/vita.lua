-- vita: streams of VITA 49 and DIFI: data packets in order, with their gaps, and the values of context packets.
--
--   local vita = require "daqiri.vita"
--   local r = vita.receiver({ type = "ci8", rate = 1e6 }, {        -- both are optional: values until a context packet has others
--     on_change = function(st) print(st.id, st.type, st.rate, st.frequency, st.reference_level) end,   -- before the first data, and after changes
--     on_gap = function(st, samples) print(samples, "samples are missing") end,
--     on_data = function(st, bytes, samples) print(#bytes) end })
--   r:packet(payload, ns)         -- the UDP payload of one packet, as a string, and its receive time in ns
--   r:finish()                    -- at the end of the stream: passes held packets on
--
-- A packet behind a missing one is held until that comes, or until window packets are held. Packet counts have 4 bits, so longer gaps need
-- packets with times, and the rate. Rates and frequencies are in Hz, the reference level in dBm. A context packet applies to the data after it.

local M = {}
local context = require("daqiri").format "vrt-context"
local types = require("daqiri.formats.vrt-context").samples.type

local Receiver = {}
Receiver.__index = Receiver
local VALUES = { sample_rate = { "rate", 2 ^ -20 }, rf_frequency = { "frequency", 2 ^ -20 }, bandwidth = { "bandwidth", 2 ^ -20 },
  reference_level = { "reference_level", 1 / 128 } } -- field of the format: name in a stream, unit

-- receiver returns a receiver of the streams of one source. options: type, rate, frequency, of streams without context; window (4). Streams have id
-- (false without one), type (nil if no type of samples has that format), rate, frequency, bandwidth, reference_level (nil: unknown), and time and
-- ns, the packet's own UTC time, as seconds and picoseconds, or nil, and the receive time of the packet that is passed on. r.counts has packets,
-- data, context, other; of data packets delivered, late, duplicate, untyped, malformed; gaps, missing (samples) and restarts of the sender.
function M.receiver(options, handlers)
  local counts = setmetatable({}, { __index = function() return 0 end })
  return setmetatable({ options = options, handlers = handlers, counts = counts, streams = {}, window = options.window or 4 }, Receiver)
end

function Receiver:count(name, n) self.counts[name] = self.counts[name] + (n or 1) end
-- number returns the big-endian number of n bytes from an offset on.
local function number(s, at, n)
  local v = 0
  for i = at + 1, at + n do v = 256 * v + s:byte(i) end
  return v
end

-- header returns the fields of a packet's header and where its data are; nil if it is too short for them.
local function header(s)
  if #s < 4 then return nil end
  local b1, b2 = s:byte(1, 2)
  local h = { kind = math.floor(b1 / 16), count = b2 % 16, tsi = math.floor(b2 / 64), tsf = math.floor(b2 / 16) % 4 }
  local has_id, has_class = h.kind % 2 == 1 or h.kind == 4, b1 % 16 >= 8
  local last = number(s, 2, 2) * 4 - (b1 % 8 >= 4 and h.kind < 4 and 4 or 0) -- in front of the trailer
  local head = 4 + (has_id and 4 or 0) + (has_class and 8 or 0) + (h.tsi > 0 and 4 or 0) + (h.tsf > 0 and 8 or 0)
  if head > last or last > #s then return nil end
  h.id = has_id and number(s, 4, 4)
  h.seconds = h.tsi > 0 and number(s, head - (h.tsf > 0 and 12 or 4), 4) or 0
  h.fraction = h.tsf > 0 and number(s, head - 8, 8)
  h.from, h.to = head + 1, last - (has_class and math.floor(s:byte(has_id and 9 or 5) / 64) or 0) -- 5 bits of the class id count pad bits
  return h
end

-- type_of returns the type of samples that a context packet describes; nil if there is none.
function M.type_of(c)
  if c.event_tag_size + c.channel_tag_size + c.repeat_count > 0 or c.packing_field_size ~= c.item_size or c.real_complex > 1 then return nil end
  local name = types[c.packing_method * 2048 + c.data_item_format * 64 + c.item_size]
  return name and (c.real_complex == 1 and "c" or "") .. name
end

-- samples_in returns how many samples so many bytes have; a fraction if they are not whole.
local function samples_in(name, bytes)
  local bits = tonumber(name:match "%d+")
  local elements = name:match "%.pad32$" and bytes / 4 * math.floor(32 / bits) or bytes * 8 / bits
  return name:match "^c" and elements / 2 or elements
end

function Receiver:stream(id)
  local o = self.options
  self.streams[id] = self.streams[id] or { id = id, type = o.type, rate = o.rate, frequency = o.frequency, held = {}, n_held = 0, changed = true }
  return self.streams[id]
end

-- since returns how many samples after the expected one packet h begins, from times; nil if they do not tell.
local function since(st, h)
  local last = st.last
  if not (st.rate and last and h.fraction and last.fraction and h.tsf == last.tsf and h.tsi == last.tsi) or h.tsf == 3 then return nil end
  return (h.seconds - last.seconds) * st.rate + (h.fraction - last.fraction) * (h.tsf == 2 and st.rate * 1e-12 or 1) - last.samples
end

-- deliver passes a packet on, after the gap before it.
function Receiver:deliver(st, h)
  local ahead = st.last and h.number - st.next or 0
  local gap = ahead > 0 and math.floor((since(st, h) or ahead * st.last.samples) + 0.5) or 0
  st.next, st.last, st.ns = h.number + 1, h, h.ns
  st.time = h.tsi == 1 and { h.seconds, h.tsf == 2 and h.fraction or h.tsf == 1 and st.rate and h.fraction / st.rate * 1e12 or 0 } or nil
  self:count("delivered")
  if gap > 0 then
    self:count("gaps")
    self:count("missing", gap)
    self.handlers.on_gap(st, gap)
  end
  if st.changed then self.handlers.on_change(st) end
  st.changed = false
  self.handlers.on_data(st, h.bytes, h.samples)
end

-- release passes on what is next; with all, also what is behind missing packets.
function Receiver:release(st, all)
  while st.n_held > 0 do
    local h = st.held[st.next]
    if not h and (all or st.n_held > self.window) then
      for _, other in pairs(st.held) do h = h and h.number < other.number and h or other end
    end
    if not h then return end
    st.held[h.number], st.n_held = nil, st.n_held - 1
    self:deliver(st, h)
  end
end

-- place returns the number of a packet in its stream; nil if its time contradicts its count: the sender has restarted.
local function place(st, h)
  if not st.next then return h.count end
  local step, d = (h.count - st.next + 8) % 16 - 8, since(st, h)
  if not d then return st.next + step end
  local far = math.floor(d / h.samples + 0.5)
  local k = step + 16 * math.floor((far - step) / 16 + 0.5)
  return k == far and st.next + k or nil
end

function Receiver:data(st, h, s)
  if not st.type then return self:count("untyped") end
  h.bytes = s:sub(h.from, h.to)
  h.samples = samples_in(st.type, #h.bytes)
  if h.samples == 0 or h.samples % 1 ~= 0 then return self:count "malformed" end
  h.number = place(st, h)
  if not h.number then
    self:release(st, true)
    self:count("restarts")
    h.number, st.next, st.last, st.changed = h.count, h.count, nil, true
  end
  if st.next and h.number < st.next then return self:count("late") end
  if st.held[h.number] then return self:count("duplicate") end
  st.next = st.next or h.number
  st.held[h.number], st.n_held = h, st.n_held + 1
  self:release(st)
end

-- context applies the values of a context packet, if they differ from those of its stream.
function Receiver:context(st, s)
  local c = context:decode(s)
  if not c then return self:count("malformed") end
  local new = {}
  for field, v in pairs(VALUES) do
    if c[field] then new[v[1]] = tonumber(tostring(c[field])) * v[2] end
  end
  local described = c.item_size ~= nil
  if described then new.type = M.type_of(c) end
  local changed = described and new.type ~= st.type
  for name, v in pairs(new) do changed = changed or st[name] ~= v end
  if not changed then return end
  self:release(st, true)
  if new.rate and st.rate and st.last then st.last.samples = st.last.samples * new.rate / st.rate end -- the time to the next packet stays
  if described then st.type = new.type end
  for name, v in pairs(new) do st[name] = v end
  st.changed = true
end

-- packet takes the UDP payload of one packet.
function Receiver:packet(s, ns)
  self:count("packets")
  local h = header(s)
  if not h then return self:count("malformed") end
  h.ns = ns
  local kind = h.kind < 2 and "data" or h.kind == 4 and "context" or "other"
  self:count(kind)
  if kind ~= "other" then self[kind](self, self:stream(h.id), kind == "data" and h or s, s) end
end

function Receiver:finish()
  for _, st in pairs(self.streams) do self:release(st, true) end
end

-- selftest receives packets with losses, in another order and twice, around a change of the frequency.
function M.selftest()
  local vrt, got = require("daqiri").format "vrt", {}
  local function note(...) got[#got + 1] = table.concat({ ... }, " ") end
  local r = M.receiver({ rate = 1000 }, { on_gap = function(_, n) note("gap", n) end, on_data = function(_, bytes) note(bytes) end,
    on_change = function(st) note(st.type, st.rate, st.frequency, st.reference_level) end })
  local function data(k) -- packet k of 4 samples, 4 ms apart
    r:packet(vrt:encode{ packet_type = "data_with_stream_id", stream_id = 7, packet_count = k % 16, tsi = "utc", tsf = "picoseconds", integer_time = 5,
      fractional_time = k * 4e9, payload = ("%08d"):format(k) }, k)
  end
  local function tune(mhz) r:packet(context:encode{ stream_id = 7, indicators = 0x9008000, rf_frequency = mhz * 1e6 * 2 ^ 20, reference_level = -128,
    packing_method = 1, real_complex = "cartesian", packing_field_size = 7, item_size = 7 }, 0) end
  data(0)
  tune(10)
  for _, k in ipairs{ 1, 2, 4, 3, 3, 20 } do data(k) end
  tune(11)
  data(21)
  r:packet("short", 0) r:finish()
  assert(table.concat(got, ",") == "ci8 1000 10000000 -1,00000001,00000002,00000003,00000004,gap 60,00000020,ci8 1000 11000000 -1,00000021", table.concat(got, ","))
  local c = r.counts
  assert(c.untyped == 1 and c.late == 1 and c.malformed == 1 and c.missing == 60 and c.delivered == 6 and c.context == 2)
end

return M
