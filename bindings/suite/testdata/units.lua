-- durations, rates and sizes: as numbers in the base unit, as text with a unit; and the ends of time.
local daqiri, t = require "daqiri", require "check"

local s = daqiri.open()
local rx, tx = s:rx_queue("loop0"), s:tx_queue("loop0")
local function nothing() end

-- a number as text has no unit: refused wherever a unit exists
local function bare(text, hint, fn, ...) t.raises(('"%s" has no unit: give the number %s, or text with a unit, "%s"'):format(text, text, hint), fn, ...) end
bare("1", "1s", s.run, s, { seconds = "1" })
bare("1e6", "1e6B", s.run, s, { bytes = "1e6" })
bare("5", "5s", s.every, s, "5", nothing)
bare("5", "5s", s.after, s, "5", nothing)
bare("1", "1s", daqiri.sleep, "1")
bare("0", "0s", daqiri.sleep, "0")
bare("1", "1s", s.threshold, s, "loop0.rx.dropped == 0", { after = "1" })
bare("1000", "1000bit/s", tx.pace, tx, { rate = "1000" })
bare("1000", "1000B", s.write_pcap, s, { rotate = "1000" })
bare("1000", "1000B", s.write_pcap, s, { rotate = { size = "1000" } })
bare("60", "60s", s.write_pcap, s, { rotate = { seconds = "60" } })
bare("1000", "1000B", s.write_pcap, s, { quota = "1000" })
bare("8192", "8192B", s.reorder, s, { memory_region = "x", slot_bytes = "8192" })
t.raises('"5" has no unit: write it like "5s"', daqiri.time, "now + 5")

-- the ends of time
local last = daqiri.time("@8589934591") + 633437444
t.equal(tostring(last), "2262-04-11T23:47:15Z")
for _, fn in ipairs{
  function() return daqiri.time("now + 9223372036s") end,
  function() return last + 2 end,
  function() return 9e9 + last end,
  function() return last - -2 end,
  function() return daqiri.time("1970-01-01") - 1e-9 end,
  function() return daqiri.time("1970-01-01") + -1 end,
} do
  t.raises("outside the valid range 1970-01-01T00:00:00Z to 2262-04-11T23:47:16.854775807Z", fn)
end
t.equal(daqiri.time("@1") - last, -9223372034)
for _, n in ipairs{ 1e300, math.huge, 0 / 0, -1 } do
  t.raises("0 to 9e9 seconds expected, got the number", s.after, s, n, nothing)
  t.raises("0 to 9e9 seconds expected, got the number", s.every, s, n, nothing)
  t.raises("0 to 9e9 seconds expected, got the number", s.run, s, { seconds = n })
  if n ~= -1 then t.raises("0 to 9e9 seconds expected, got the number", function() return last + n end) end
end
t.raises("at least 1us", s.every, s, 1e-12, nothing)
t.raises("is too large", s.after, s, "9223372037s", nothing)
for _, n in ipairs{ 1e300, math.huge, 0 / 0, -1, 1.5 } do
  t.raises("option 'quota'", s.write_pcap, s, { quota = n })
end
local b = assert(tx:alloc(64))
t.raises("the last ones would have no time before 2262", b.tx_times, b, last, 1e9)
b:free()

-- what is beyond all times does not come: neither at once nor in the past
local early, ticks = 0, 0
s:after(9e9, function() early = early + 1 end)
s:every(9e9, function() early = early + 1 end)
s:at(last, function() early = early + 1 end)
s:every(0.001, function()
  ticks = ticks + 1
  if ticks == 3 then s:stop("enough") end
end)
local sum = s:run{ seconds = 9e9 }
t.equal(sum.reason, "enough")
t.equal(early, 0)
