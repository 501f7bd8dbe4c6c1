-- templates, transmit, pace, on_burst, keep, filters, count, sample, writers, pipes, run, measure, timers.
local daqiri, t = require "daqiri", require "check"
local args = daqiri.args{ dir = "." }
local s = daqiri.open()
local rx, tx = s:rx_queue("loop0"), s:tx_queue("loop0")

-- templates that make no sense
t.raises("unknown option 'udp_dest' (did you mean 'udp_dst'?)", function() tx:template{ udp_dest = 1 } end)
t.raises("the packet is empty", function() tx:template{ bytes = "" } end)
t.raises("exclude each other", function() tx:template{ udp_dst = 1, tcp_dst = 1 } end)
t.raises("has no effect beside 'bytes'", function() tx:template{ bytes = "x", udp_dst = 1 } end)
t.raises("is not an IP address", function() tx:template{ ipv4_dst = "10.0.0" } end)
t.raises("is not an Ethernet address", function() tx:template{ eth_dst = "10" } end)
t.raises("less than the 3 bytes", function() tx:template{ payload = "abc", payload_bytes = 1 } end)
t.raises("is above max", function() tx:template{ payload_bytes = 1, vary = { udp_dst = { start = 9, max = 3 } } } end)

-- stages
local keep = s:filter{ name = "keep", where = "udp_dst >= 7002" }
t.equal(keep.name, "keep")
t.equal(keep.kind, "filter")
t.equal(keep.path, nil)
t.equal(keep.error, nil)
t.equal(tostring(keep), "filter keep")
local science = s:filter{ name = "science", match = { udp_dst = 7003 } }
t.raises("bad argument #1 to 'filter' (option 'match': udp_dts: unknown key", function() s:filter{ match = { udp_dts = 1 } } end)
t.raises("exactly one of the options match, pcap, where expected, got 0", function() s:filter{ name = "none" } end)
t.raises("did you mean 'udp_dst'?", function() s:filter{ where = "udp_dts == 1" } end)
local ok, why = pcall(s.filter, s, { name = "tcpdump", pcap = "udp port 7003" })
assert(ok or why:find("libpcap"), why)                      -- libpcap may be absent
local all, some = s:count{ name = "all" }, s:sample{ name = "some", every = 2 }
t.raises("the name is taken", function() s:count{ name = "all" } end)
local pcap = s:write_pcap{ name = "disk", dir = args.dir, prefix = "t", snaplen = 64, policy = "wait" }
local raw = s:write_raw{ name = "raw", dirs = { args.dir }, per = "packet", packet_data_offset = 42 }
t.raises('policy "block"', function() s:write_pcap{ policy = "block" } end)
t.raises("a list of 1 to 16 folders expected", function() s:write_pcap{ dirs = {} } end)
t.raises("a folder's name expected, got the number 3", function() s:write_pcap{ dirs = { args.dir, 3 } } end)
t.raises('per "byte": it is', function() s:write_raw{ per = "byte" } end)
t.equal(pcap.paths, {})
s:pipe(rx, all, pcap)
s:pipe({ rx }, science, raw)
s:pipe(rx, keep, some)
t.equal(s:stage("keep").kind, "filter")
t.raises("bad argument #2 to 'pipe' (a stage, a writer or a transmit queue expected)", function() s:pipe(rx) end)
t.raises("receive queue", function() s:pipe(tx, keep) end)

-- handlers
local packets, bursts, kept, order = 0, 0, nil, {}
local handler = rx:on_burst(function(b)
  packets, bursts = packets + b.n, bursts + 1
  if not kept then kept = b:keep() end
  t.raises("'sleep' waits, which on_burst can't do", daqiri.sleep, 0.001)
end)
t.raises("function(burst) expected", function() rx:on_burst(3) end)
t.raises("unknown option 'polcy' (did you mean 'policy'?)", function() rx:on_burst(print, { polcy = "drop" }) end)

-- timers
local ticks, never = 0, 0
s:every(0.002, function() ticks = ticks + 1 end)
s:after("1ms", function() order[#order + 1] = "after" end)
s:at(daqiri.now() + 0.005, function() order[#order + 1] = "at" end)
s:after(0.001, function() never = never + 1 end):cancel()
t.raises("at least 1us", function() s:every(0, print) end)

tx:pace{ pps = 1e6 }
t.raises("unknown unit", function() tx:pace{ rate = "10 potatoes" } end)
tx:transmit{ template = tx:template{ payload_bytes = 58, udp_dst = 7000, ttl = 3, tos = 8, vlan_id = 5, vlan_pcp = 2,
  vary = { udp_dst = { start = 7000, max = 7003 } } }, count = 400 }
t.raises("a template expected", function() tx:transmit{ count = 4 } end)
s:start()
local m = s:measure{ seconds = 0.05 }
t.equal(m.loop0.rx.packets, 400)
t.equal(m.loop0.tx.packets, 400)
assert(m.loop0.tx.bps > 0)
assert(m.loop0.tx.gap_error.p50 <= m.loop0.tx.gap_error.p99 and m.loop0.tx.gap_error.p99 <= m.loop0.tx[0].gap_error.max)
t.equal(m.loop0.tx.time_error.max, 0)
if select(2, s:clock()) == "virtual" then                     -- exact, whatever the run did before and after
  t.equal(m.loop0.tx.gap_error.max, 0)
  assert(m.loop0.tx.rate_error < 1e-5, m.loop0.tx.rate_error)
end
s:threshold("loop0.tx.rate_error < 0.9")
s:threshold("loop0.tx.gap_error.p50 < 10s")
t.raises("did you mean", function() s:threshold("loop0.tx.gap_eror.p50 < 2us") end)
t.equal(packets, 400)
assert(kept.n > 0)
kept:free()
assert(ticks >= 1)
t.equal(order, { "after", "at" })
t.equal(never, 0)

-- transmit without end, until a limit; nothing is lost
tx:pace{ rate = "100Mbit/s" }
tx:transmit{ template = tx:template{ payload_bytes = 58, udp_dst = 7003 } }
local sum = s:run{ packets = 300, seconds = 5 }
assert(sum.reason == "300 packets were received", sum.reason)
assert(sum.loop0.rx.packets >= 700)
t.equal(sum.loop0.rx.packets, packets)
t.equal(sum.all.packets, packets)
t.equal(sum.disk.written, packets)
t.equal(sum.science.out, sum.raw.written + sum.raw.dropped) -- a file for each packet is slow: policy "drop"
t.equal(sum.keep.out + sum.keep.dropped, packets)
t.equal(sum.keep.dropped, sum.keep.dropped_by.filtered)
t.equal(sum.disk.dropped, 0)
assert(#sum.files == 2 and pcap.path:find("t", 1, true))
local f = assert(io.open(pcap.path, "rb"))
t.equal(daqiri.hex(f:read(4)), "4d3cb2a1", "nanosecond pcap")
t.equal(f:seek("end"), 24 + packets * (16 + 64), "snaplen")
f:close()
t.raises("has stopped", function() s:run{} end)
t.raises("has stopped", function() tx:transmit{ template = tx:template{ payload_bytes = 1 } } end)
t.raises("has stopped", function() s:every(1, print) end)
t.raises("has stopped", function() s:start() end)
t.raises("option 'rate': 0 is not a valid limit: leave it out for none", function() tx:pace{ rate = 0 } end)
t.raises("option 'pps': +Inf is not a valid limit", function() tx:pace{ pps = 1 / 0 } end)

-- a template has to fit, and what it would leave out is refused
t.raises("a packet of 2092 bytes does not fit into the 2048 bytes of a buffer of queue tx0", function() tx:template{ payload_bytes = 2050 } end)
t.equal(tx:template{ payload_bytes = 2048 - 42 }.length, 2048)
t.raises("option 'udp_dst': has no effect beside 'ethertype'", function() tx:template{ ethertype = 0x88b5, udp_dst = 1, payload = "x" } end)
t.raises("option 'vlan_pcp': it stands in a VLAN tag", function() tx:template{ vlan_pcp = 3, payload = "x" } end)

-- what print shows of a ledger
local text = tostring(sum)
assert(text:find("in +out +held +dropped\nloop0.rx.0 +" .. packets), text)
assert(text:find("\ndropped keep.filtered: " .. sum.keep.dropped .. "\n", 1, true), text)
assert(text:find("\nended: 300 packets were received$"), text)
assert(sum.seconds > 0)
