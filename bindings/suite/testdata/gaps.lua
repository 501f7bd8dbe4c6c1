-- Gaps stages: the account of each stream, defaults of formats, and what is refused.
local daqiri, t = require "daqiri", require "check"
local s = daqiri.open{
  version = 1, stream_type = "raw", master_core = 0, loopback = "sw",
  memory_regions = { { name = "m", kind = "host", affinity = 0, num_bufs = 512, buf_size = 256 } },
  interfaces = { { name = "a", address = "loop0",
    rx = { queues = { { name = "r0", id = 0, poll_mode = "direct", batch_size = 8, memory_regions = { "m" } } } },
    tx = { queues = { { name = "t0", id = 0, poll_mode = "direct", batch_size = 8, memory_regions = { "m" } } } } } },
}
local tx, rx = s:tx_queue("a"), s:rx_queue("a")

t.raises("option 'counter' is missing", function() s:gaps{ name = "none" } end)
t.raises("a counter of 3 bits wraps too soon", function() s:gaps{ counter = { at = "payload", bit_offset = 0, bit_width = 3 } } end)
t.raises("window 300 is not a valid number of numbers", function() s:gaps{ counter = { at = "payload", bit_offset = 0, bit_width = 8 }, window = 300 } end)
t.raises("jump 5 is not a valid distance", function() s:gaps{ format = "simple", jump = 5 } end)
t.raises("give one number for them as option 'by'", function() s:gaps{ format = "vdif" } end)
t.raises("by \"udp_dts\"", function() s:gaps{ format = "simple", by = "udp_dts" } end)
t.equal(s:gaps{ format = "vrt" }.kind, "gaps")

local place = { at = "payload", bit_offset = 56, bit_width = 8 }
s:pipe(rx, s:gaps{ name = "one", counter = place }, s:gaps{ name = "each", format = "simple", by = "ipv4_dst", window = 16, jump = 100 })
local seen = 0
rx:on_burst(function(b) seen = seen + b.n end, { policy = "wait" })
s:start()
local sent = 0
local function send(seq, dst)
  t.send(tx, 1, { format = "simple", seq = seq, ipv4_dst = dst, payload = "data" })
  sent = sent + 1
  for _ = 1, 10000 do
    if seen == sent then return end
    daqiri.sleep(1e-4)
  end
end
for n = 1, 40 do
  if n % 10 ~= 0 then send(n, "10.0.0.1") end      -- 10, 20 and 30 are missing; nothing came behind 40
  send(n, "10.0.0.2")
end
send(39, "10.0.0.2")                               -- again
send(38, "10.0.0.3")
send(37, "10.0.0.3")                               -- out of order
t.equal(s:stats().each.missing, 2)                 -- 30 may still come
s:stop()
local l = s:stats()
local each = l.each
t.equal({ each.expected, each.unique, each.missing, each.duplicate, each.reordered, each.late }, { 81, 78, 3, 1, 1, 0 })
t.equal(each.source["10_0_0_1"].missing, 3)
t.equal(each.source["10_0_0_2"].duplicate, 1)
t.equal(each.source["10_0_0_3"].reordered, 1)
t.equal(each.source["10_0_0_3"].restarts, 0)
t.equal({ l.one.missing, l.one.unique, l.one.duplicate }, { 0, 40, each["in"] - 40 })
