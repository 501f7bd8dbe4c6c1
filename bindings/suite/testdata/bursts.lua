-- alloc, fill, send, get_burst, columns, selections, sets, packet views, lengths, times, ownership.
local daqiri, t = require "daqiri", require "check"
local s = daqiri.open()
local rx, tx = s:rx_queue("loop0"), s:tx_queue("loop0")
s:start()

-- a template with fields that vary, sent by hand
local tpl = tx:template{ payload_bytes = 100, udp_src = 9, udp_dst = 7000, ipv4_src = "10.0.0.1", ipv4_dst = "10.0.0.2",
  eth_src = "02:00:00:00:00:0a", vary = { udp_dst = 1, ipv4_src = { step = 256 },
    { at = "payload", bit_offset = 0, bit_width = 32, start = 5, step = 2 } } }
t.equal(tpl.length, 142)
t.equal(tostring(tpl), "template of 142 bytes")
local b = assert(tx:alloc(8))
t.equal(b.n, 8)
t.equal(#b, 8)
b:fill(tpl)
t.equal(b.bytes, 8 * 142)
t.equal(tostring(b), "burst of 8 packets, 1136 bytes")
assert(tx:send(b))
t.raises("burst already sent at bursts.lua:", function() return b.n end)
t.raises("bad argument #1 to 'send' (burst already sent at bursts.lua:", function() tx:send(b) end)

local r = t.receive(rx, 8)[1]
t.equal(r.n, 8)
t.equal(r.segments, 1)
t.equal(r.queue, "rx0")
t.equal(r.interface, "loop0")
t.equal(r.connection, nil)
assert(r.flags >= 0 and r.rx_time >= 0 and (r.clock == "realtime" or r.clock == "virtual"))

-- columns
local port = r:column("udp_dst")
t.equal(#port, 8)
t.equal(port.name, "udp_dst")
t.equal(port[1], 7000)
t.equal(port[8], 7007)
t.equal(port[9], nil)
t.equal(port:sum(), 7000 * 8 + 28)
t.equal(port:min(), 7000)
t.equal(port:max(), 7007)
t.equal(port:mean(), 7003.5)
t.equal(#port:unique(), 8)
t.equal(port:text(1), "7000")
t.equal(tostring(port:u64(2)), "7001")
local h = port:histogram{ bins = 2, min = 7000, max = 7008 }
t.equal(h.counts, { 4, 4 })
t.equal(h.width, 4)
t.equal(r:column("ipv4_src"):text(2), "10.0.1.1")
t.equal(r:column("eth_src"):text(1), "02:00:00:00:00:0a")
t.equal(r:column("tcp_dst")[1], nil)
t.equal(r:column("tcp_dst"):min(), nil)
t.equal(r:column{ at = "payload", bit_offset = 0, bit_width = 32 }[3], 9)
t.equal(daqiri.json(r:column("udp_src")), "[9,9,9,9,9,9,9,9]")
assert(r:column("rx_time")[1] == r.rx_time)
t.equal(r:column("rx_time + 0")[1], r.rx_time)
t.equal(r:select("rx_time <= " .. r:rx_timestamps()[8]).n, 8)
t.raises("unknown field 'udp_dest' (did you mean 'udp_dst'?)", function() r:column("udp_dest") end)
t.raises("above 2^53", function() return r:column{ bit_offset = 0, bit_width = 64 }[1] end)
t.raises("unknown option 'bit_widht' (did you mean 'bit_width'?)", function() r:column{ bit_offset = 0, bit_widht = 8 } end)

-- lists
t.equal(r:lengths()[1], 142)
t.equal(#r:flow_ids(), 8)
t.equal(r:rx_timestamps()[1], r.rx_time)
local absolute = r:rx_timestamps("epoch")
t.equal((absolute[8].ns - absolute[1].ns):number(), r:rx_timestamps()[8] - r.rx_time)
assert(absolute[8] <= daqiri.now())
t.raises('"start" is not a valid origin of times (expected session or epoch)', function() r:rx_timestamps("start") end)
t.equal(r:peer(1), nil)

-- packet views: packets count from 1, offsets from 0
local p = r:packet(1)
t.equal(#p, 142)
t.equal(p.length, 142)
t.equal(p.peer, nil)
t.equal(p:u16(36), 7000)
t.equal(p:u8(12), 8)
t.equal(p:u32(42), 5)
t.equal(tostring(p:u64(42)), "21474836480")
t.equal(p:u16_le(36), 0x581b)
t.equal(p:u32_le(42), 0x05000000)
t.equal(tostring(p:u64_le(42)), "83886080")
t.equal(p:hex(0, 6), "ffffffffffff")
t.equal(p:bytes(42, 4), "\0\0\0\5")
t.equal(tostring(p), "packet of 142 bytes")
t.raises("is outside 0..140", function() p:u16(141) end)
t.raises("is outside 1..8", function() r:packet(9) end)
t.raises("unknown field or method 'u17'", function() p:u17(0) end)
p:set_u8(42, 1)
p:set_u16(43, 0x0203)
p:set_u32(45, 0x04050607)
p:set_u64(50, daqiri.u64("0x0102030405060708"))
t.equal(p:hex(42, 7), "01020304050607")
p:set_u16_le(42, 0x0102)
p:set_u32_le(44, 1)
p:set_u64_le(50, 1)
t.equal(p:hex(42, 2), "0201")
p:set_bytes(42, "abc")
t.equal(p:bytes(42, 3), "abc")
t.raises("does not fit into 8 bits", function() p:set_u8(0, daqiri.u64(256)) end)
t.raises("is outside 0..255", function() p:set_u8(0, 256) end)

-- set: values, steps, places; checksums follow
t.equal(r:set{ udp_dst = { 100, 10 }, ipv4_dst = "192.0.2.9", eth_dst = "02:00:00:00:00:01" }, 8)
t.equal(r:column("udp_dst")[3], 120)
t.equal(r:column("ipv4_dst"):text(8), "192.0.2.9")
t.equal(r:set{ { at = "payload", bit_offset = 32, bit_width = 16, value = 7 }, checksums = false }, 8)
t.equal(r:packet(2):u16(46), 7)
t.raises("did you mean 'udp_dst'?", function() r:set{ udp_dest = 1 } end)
t.raises("is outside 0..65535", function() r:set{ udp_dst = 65536 } end)

-- checksums of headers that were written by hand
local sums = r:column{ bit_offset = 80 + 112, bit_width = 16 }
for i = 1, 2 do r:packet(i):set_u16(24, 0) end
r:checksums(1)
t.equal({ r:packet(1):u16(24), r:packet(2):u16(24) }, { sums[1], 0 })
r:checksums()
t.equal(r:packet(2):u16(24), sums[2])
t.raises("is outside 1..8", function() r:checksums(9) end)

-- select
local some = r:select("udp_dst >= 140")
t.equal(some.n, 4)
t.equal(some:column("udp_dst")[1], 140)
t.raises("where", function() r:select("udp_dst >>= 4") end)
some:free()

-- count; numbers over fields
t.equal(r:count("udp_dst >= 140"), 4)
t.equal(r:count("tcp_dst >= 0"), 0)
t.raises("where", function() r:count("udp_dst >>= 4") end)
local tens = r:column("udp_dst // 10 - 12")
t.equal(tens[1], -2)
t.equal(tens[8], 5)
t.equal(tens.name, "udp_dst // 10 - 12")
t.equal(r:column("tcp_dst + 1")[1], nil)
t.raises("is a condition", function() r:column("udp_dst == 4") end)
t.raises("did you mean 'udp_dst'?", function() r:column("udp_dts // 2") end)

-- checksums: a wrong one stays wrong until it is computed
local sum = r:packet(1):u16(24)
r:packet(1):set_u16(24, sum == 5 and 6 or 5)
r:set{ ip_ttl = 9 }
r:set{ ip_ttl = 64 }
t.equal(r:packet(1):u16(24) == sum, false)
r:checksums(1)
t.equal(r:packet(1):u16(24), sum)

t.raises("burst already freed at bursts.lua:", function() return some.n end)

-- partial frees, truncate
r:free{ packet = 8 }
t.equal(r:lengths()[8], 0)
r:free{ packet = 7, segment = 1 }
t.equal({ r:lengths()[6] > 0, r:lengths()[7] }, { true, 0 })
r:truncate(3)
t.equal(r.n, 3)
r:free()
t.raises("burst already freed at bursts.lua:", function() return p:u8(0) end)
t.raises("already freed", function() r:free() end)

-- headers before payloads
local head = tx:template{ eth_dst = "02:00:00:00:00:02", ipv4_src = "10.0.0.1", ipv4_dst = "10.0.0.2", udp_src = 1, udp_dst = 2, payload_bytes = 0 }
local b3 = tx:alloc(2)
b3:set_lengths({ 4, 100 })
b3:packet(1):set_bytes(0, "data")
t.equal(b3:prepend(head):lengths(), { 46, 142 })
t.equal({ b3:packet(1):bytes(42, 4), b3:packet(1):u16(16), b3:packet(2):u16(38), b3:count("ipv4_dst == 10.0.0.2 and udp_dst == 2") }, { "data", 32, 108, 2 })
b3:prepend(head):prepend(head)
t.raises("42 bytes do not fit before packet 1", function() b3:prepend(head) end)
t.raises("its fields vary", function() b3:prepend(tx:template{ bytes = ("x"):rep(8), vary = { { bit_offset = 0, bit_width = 8 } } }) end)
b3:free()

-- lengths and times of a burst to send; a whole packet as bytes
local b2 = tx:alloc(2)
b2:fill(tx:template{ bytes = ("x"):rep(64) })
b2:set_lengths(60)
t.equal(b2:lengths(), { 60, 60 })
b2:set_lengths({ 60, 64 })
t.equal(b2:lengths(1), { 60, 64 })
local now = s:clock()
b2:tx_times(now, 1000)
b2:tx_times({ now, now + 2000 })
b2:tx_times({ daqiri.time(daqiri.now().ns), 0 })
b2:tx_times(daqiri.time("now"), 1000)
b2:tx_times(daqiri.time("2000-01-01"))                       -- long past: at once, and late
t.raises("is not a time of this session", function() b2:tx_times({ 0, daqiri.u64("0xffffffffffffffff") }) end)
b2:tx_times({ 0, 1 })                                        -- the first at once, the second too, but late
t.raises("1 times for 2 packets", function() b2:tx_times({ 1 }) end)
assert(tx:send(b2))
for _, x in ipairs(t.receive(rx, 2)) do x:free() end
local timed = s:stats().loop0.tx
t.equal(timed.timed, 1)
t.equal(timed.late, 1)
assert(timed.time_error.max >= timed.time_error.p50 and timed.gap_error.p99 == 0)

-- buffers run out: an expected failure
local held = {}
while true do
  local x, status, text = tx:alloc()
  if not x then
    assert(status == "NO_FREE_BURST_BUFFERS" or status == "NO_FREE_PACKET_BUFFERS", status)
    assert(#text > 0)
    break
  end
  held[#held + 1] = x
end
for _, x in ipairs(held) do x:free() end
t.raises("is outside 1..", function() tx:alloc(1e6) end)

-- a handler that is no Lua function; a burst of an earlier call
local kept
local seen = rx:on_burst(function(b) kept = b end)
rx:on_burst(type)
t.send(tx, 1, { payload_bytes = 1 })
while not kept do daqiri.sleep(0.001) end
t.receive(rx, 1)[1]:free()
t.raises("burst already returned when its on_burst handler ended (b:keep() keeps a burst) at bursts.lua:", function() return kept.n end)
t.raises("burst already returned", function() kept:packet(1) end)
t.equal(seen, rx)

-- what was handed to earlier calls stays what it was: gone, or kept, while later bursts are at work
local past, view, pick = {}, nil, nil
local function ends_each_way(b)
  past[#past + 1] = b
  if #past == 1 then b:free() elseif #past == 2 then view = b:packet(1) elseif #past == 3 then b:keep() end
  if #past == 4 then
    pick = b:select("udp_dst >= 0"):keep()
    t.raises("burst already freed at bursts.lua:", function() return past[1].n end)
    t.raises("burst already returned when its on_burst handler ended", function() past[2]:free() end)
    t.raises("burst already returned when its on_burst handler ended", function() return view:u8(0) end)
    t.equal(past[3].n, 1)
    t.equal(past[3].bytes, b.bytes - 2)
    past[5] = true
  end
end
local every = s:rx_queue("loop0")
every:on_burst(function(b) if #past < 5 then ends_each_way(b) end end, { policy = "drop" })
for i = 1, 4 do
  t.send(tx, 1, { payload_bytes = 100 + 2 * i })
  t.receive(rx, 1)[1]:free()
  while #past < i do daqiri.sleep(0.001) end
end
t.equal(past[5], true)
t.raises("burst already returned", function() return past[4].n end)
assert(past[3].n == 1 and pick.n == 1 and pick.bytes == past[3].bytes + 2)
past[3]:free()
pick:free()
t.raises("burst already freed at bursts.lua:", function() return past[3].n end)

-- an empty poll, flush, direction
local none, status = rx:get_burst{ timeout_us = 0 }
t.equal(none, nil)
t.equal(status, "NOT_READY")
t.equal(rx:flush(), 0)
t.raises("'send' is for transmit queues, and rx0 of loop0 is a receive queue", function() rx:send(b) end)
s:stop()

-- what a packet says of itself when its burst is gone; lengths and checksums that can't be
local last = tx:alloc(1)
last:set_lengths(60)
t.raises("bad argument #1 to 'set_lengths' (1000000000 bytes do not fit into a buffer)", function() last:set_lengths(1e9) end)
t.raises("bad argument #1 to 'set_lengths' (4096 bytes do not fit into a buffer)", function() last:set_lengths{ 4096 } end)
t.raises("option 'checksums': true or false expected, got the number 5", function() last:set{ checksums = 5 } end)
local view = last:packet(1)
last:free()
assert(tostring(view):find("^packet %(burst already freed at bursts.lua:%d+%)$"), tostring(view))
