-- Rewrite stages: what becomes of fields and checksums, in loops of a capture too; which packets may be changed; what is refused.
local daqiri, t = require "daqiri", require "check"
local args = daqiri.args{ dir = "." }

local function queue(name, extra)
  local q = { name = name, id = 0, cpu_core = -1, batch_size = 32, memory_regions = { "packets" } }
  for k, v in pairs(extra or {}) do q[k] = v end
  return q
end

local function open(capture, loops)
  local interfaces = { { name = "port", address = "loop0", tx = { queues = { queue "tx" } }, rx = { queues = { queue("rx", { timeout_us = 10 }) } } } }
  if capture then
    interfaces[2] = { name = "src", address = "pcap:" .. capture, replay = { speed = "max", loops = loops }, rx = { queues = { queue "file" } } }
  end
  return daqiri.open{ version = 1, stream_type = "raw", master_core = 0, loopback = "sw", interfaces = interfaces, memory_regions = {
    { name = "packets", kind = "host", affinity = 0, num_bufs = 2048, buf_size = 256 },
    { name = "others", kind = "host", affinity = 0, num_bufs = 512, buf_size = 256 } } }
end

-- Sends n packets, seq 1 to n, to 10.1.K.9 and UDP port 7148, and gives the ledger once `behind` has counted them.
local function send(s, n, payload)
  local tx = s:tx_queue "port"
  s:start()
  for k = 1, n do
    local b = tx:alloc(1)
    b:fill(tx:template{ format = "simple", seq = k, udp_dst = 7148, ipv4_dst = ("10.1.%d.9"):format(k), payload = payload or "data" })
    while not tx:send(b) do daqiri.sleep(1e-4) end
  end
  for _ = 1, 1000 do
    if s:stats().port.rx.packets == n then break end
    s:measure{ seconds = 1e-3 }
  end
  return s:stop "sent"
end

-- Constants, running numbers, prefixes and single values; the longest prefix wins, other values stay.
do
  local s = open()
  local edit = s:rewrite{ name = "edit", format = "simple", udp_src = 4000, seq = { 100, 3 }, udp_dst = { ["7148"] = 7149, ["1"] = 2 },
    ipv4_dst = { ["10.1.0.0/16"] = "239.9.0.0/16", ["10.1.2.0/24"] = "10.8.0.0/24", ["10.1.3.9"] = "1.2.3.4" }, { at = "payload", bit_offset = 64, bit_width = 8, value = 68 } }
  assert(edit.kind == "rewrite" and tostring(edit) == "rewrite edit")
  local seen = {}
  s:pipe(s:rx_queue "port", edit, s:filter{ where = "udp_dst == 7149" }, s:write_pcap{ name = "disk", dir = args.dir, prefix = "edited" })
  local l = send(s, 4)
  t.equal(l.edit.rewritten, 4)
  t.equal(l.disk.written, 4)
  s:close()

  -- The file replayed: what was written is what was meant, and checksums are right.
  s = open(args.dir .. "/edited.pcap", 1)
  local want = { "239.9.1.9", "10.8.0.9", "1.2.3.4", "239.9.4.9" }
  s:rx_queue "src":on_burst(function(b)
    local dst, seq, src = b:column "ipv4_dst", b:column("seq", "simple"), b:column "udp_src"
    for i = 1, b.n do
      seen[#seen + 1] = dst:text(i)
      t.equal(seq[i], 100 + 3 * (#seen - 1))
      t.equal(src[i], 4000)
      local p = b:packet(i)
      t.equal(p:bytes(50, 4), "Data")
      local before = p:u16(24) * 65536 + p:u16(40)
      b:checksums(i)
      t.equal(p:u16(24) * 65536 + p:u16(40), before)
    end
  end)
  s:run{}
  for k, text in ipairs(want) do t.equal(seen[k], text) end
  s:close()
end

-- What a capture brings, loop after loop; a second stage in the pipe sees what the first one made.
do
  local s = open(args.dir .. "/edited.pcap", 5)
  local edit = s:rewrite{ name = "edit", format = "simple", per_loop = { seq = 1000, udp_dst = -1 }, checksums = "compute" }
  local again = s:rewrite{ name = "again", format = "simple", per_loop = { seq = 10 }, checksums = false }
  local seqs, ports = {}, {}
  s:pipe(s:rx_queue "src", s:filter{ where = "len > 0" }, edit, again, s:tx_queue "port")
  s:rx_queue "port":on_burst(function(b)
    local seq, port = b:column("seq", "simple"), b:column "udp_dst"
    for i = 1, b.n do seqs[#seqs + 1], ports[#ports + 1] = seq[i], port[i] end
  end)
  local l = s:run{}
  t.equal(l.edit.rewritten, 20)
  t.equal(#seqs, 20)
  for k = 0, 19 do
    local loop = math.floor(k / 4)
    t.equal(seqs[k + 1], 100 + 3 * (k % 4) + 1010 * loop)
    t.equal(ports[k + 1], 7149 - loop)
  end
  s:close()
end

-- Fields that packets lack: the others change, and the ledger tells how many had all.
do
  local s = open()
  s:pipe(s:rx_queue "port", s:rewrite{ name = "edit", format = "simple", vlan_id = 7, udp_dst = 9 }, s:filter{ name = "nine", where = "udp_dst == 9" })
  local l = send(s, 8)
  t.equal(l.edit.rewritten, 0)
  t.equal(l.nine.out, 8)
  s:close()
end

-- Addresses of 128 bits, in headers and in formats, also behind an optional part; the Ethernet address of the interface that sends on.
do
  local s = open()
  local tx, mac = s:tx_queue "port", s:interface("port").mac
  local f = daqiri.format{ { "more", 8 }, { "extra", 16, when = "more == 1" }, { "hop", "ipv6" }, { "last", 8 } }
  t.raises("hop: it is an address of 128 bits: declare its lower half", function() tx:template{ format = f, vary = { hop = 1 } } end)
  t.raises("ipv6_dst: it is an address of 128 bits: ipv6_dst_lo", function() tx:template{ ipv6_dst = "fd00::1", payload_bytes = 9, vary = { ipv6_dst = 1 } } end)
  local edit = s:rewrite{ name = "edit", format = f, tx_queue = tx, eth_src = "auto", ipv6_src = { ["fd00::/96"] = "fd01:2:3:4:5:6::/96", ["fd00::2"] = "::2" },
    ipv6_dst = { "2001:db8::ffff", 1 }, hop = { ["fd00::/16"] = "fd55::/16", ["::9"] = "::1:0:0:0:9" } }
  s:pipe(s:rx_queue "port", edit, s:write_pcap{ name = "disk", dir = args.dir, prefix = "wide" })
  s:start()
  for k, hop in ipairs{ "fd00::9", "::9", "::8" } do
    local b = tx:alloc(1)
    b:fill(tx:template{ eth_src = "02:00:00:00:00:77", ipv6_dst = "fd00::7", format = f, more = k % 2, extra = k % 2 == 1 and 5 or nil, hop = "::", last = k })
    t.equal(b:set({ ipv6_src = "fd00::" .. k, hop = hop }, f), 1)
    while not tx:send(b) do daqiri.sleep(1e-4) end
  end
  for _ = 1, 1000 do
    if s:stats().port.rx.packets == 3 then break end
    s:measure{ seconds = 1e-3 }
  end
  t.equal(s:stop("sent").edit.rewritten, 2) -- the last one's hop is in no map
  s:close()
  s = open(args.dir .. "/wide.pcap", 1)
  local n = 0
  s:rx_queue "src":on_burst(function(b)
    for i = 1, b.n do
      n = n + 1
      local p = b:packet(i)
      t.equal(b:column("eth_src"):text(i), mac)
      t.equal(daqiri.hex(p:bytes(22, 16)), ({ "fd010002000300040005000600000001", ("0"):rep(31) .. "2", "fd010002000300040005000600000003" })[n])
      t.equal(daqiri.hex(p:bytes(38, 16)), "20010db8" .. ("0"):rep(18) .. ("%06x"):format(0xfffe + n))
      local d = f:decode(p)
      t.equal({ d.hop, d.last, d.extra }, { ({ "fd55::9", "::1:0:0:0:9", "::8" })[n], n, ({ 5, nil, 5 })[n] })
      local before = p:u16(60)
      b:checksums(i)
      t.equal(p:u16(60), before)
    end
  end)
  s:run{}
  t.equal(n, 3)
  s:close()
end

-- Who may have the packets. Copies may have other readers.
do
  local s = open(args.dir .. "/edited.pcap", 1)
  local rx = s:rx_queue "port"
  local edit, disk = s:rewrite{ name = "edit", udp_dst = 1 }, s:write_raw{ name = "disk", dir = args.dir, prefix = "who", per = "file" }
  t.raises("stage edit rewrites the packets of queue rx where they lie, and disk would see it: hint: rewrite copies: s:copy", function() s:pipe(rx, disk, edit) end)
  s:pipe(rx, s:count{ name = "before" }, edit)
  t.raises("another pipe or handler of the queue would see it", function() s:pipe(rx, disk) end)
  t.raises("another pipe or handler of the queue would see it", function() rx:on_burst(function() end) end)
  s:close()

  s = open(args.dir .. "/edited.pcap", 1)
  rx = s:rx_queue "port"
  local copies, old, new = s:copy{ name = "copies", memory_region = "others" }, 0, 0
  s:pipe(rx, copies, s:rewrite{ name = "edit", udp_dst = 1 }, s:filter{ name = "new", where = "udp_dst == 1" }, s:write_raw{ name = "disk", dir = args.dir, prefix = "who", per = "file" })
  rx:on_burst(function(b) old = old + b:count "udp_dst == 7148" end)
  local l = send(s, 8)
  t.equal(old, 8)
  t.equal(l.new.out, 8)
  s:close()

  s = open(args.dir .. "/edited.pcap", 1)
  local loops = s:rewrite{ name = "loops", per_loop = { udp_dst = 1 } }
  t.raises("queue rx's packets have no loops", function() s:pipe(s:rx_queue "port", loops) end)
  t.raises("stage floats makes packets of its own, which have no loops", function()
    s:pipe(s:rx_queue "src", s:convert{ name = "floats", memory_region = "others", at = "payload", data_types = { input_type = "int16", output_type = "fp32" } }, loops)
  end)

  -- A tee that went over the wire by reference has another reader: it is not changed under that one's eyes.
  local tx = s:tx_queue "port"
  s:pipe(s:rx_queue "src", tx)
  s:pipe(s:rx_queue "src", s:write_raw{ name = "tee", dir = args.dir, prefix = "tee", per = "file" })
  s:pipe(s:rx_queue "port", s:rewrite{ name = "edit", udp_dst = 1 }, s:count{ name = "behind" })
  local l2 = s:run{}
  t.equal(l2.edit["in"], 4)
  t.equal(l2.edit.out + (l2.edit.dropped_by.shared or 0), 4)
  s:close()
end

-- Refused.
do
  local s = open()
  local function refused(text, o) t.raises(text, function() s:rewrite(o) end) end
  refused("no field to rewrite: give some, or per_loop", {})
  refused("unknown option 'udp_dts' (did you mean 'udp_dst'?)", { udp_dts = 1 })
  refused("field 'udp_dst': 70000 is outside 0..65535", { udp_dst = 70000 })
  refused("field 'eth_dst': \"auto\" is of the interface that sends on: give its transmit queue as tx_queue", { eth_dst = "auto" })
  refused("\"auto\" is of the interface that sends on", { eth_src = "auto", tx_queue = s:rx_queue "port" })
  refused("\"auto\" is the one that has the ipv4_dst or ipv6_dst beside it", { eth_dst = "auto", tx_queue = s:tx_queue "port", ipv4_dst = { ["10.0.0.1"] = "10.0.0.2" } })
  refused("field 'ipv6_dst': an IPv6 address expected, got the number 7", { ipv6_dst = 7 })
  refused("field 'ipv6_dst': \"10.0.0.1\" is not an IPv6 address", { ipv6_dst = "10.0.0.1" })
  refused("\"10.0.0.0/8\" is not an IPv6 prefix", { ipv6_dst = { ["10.0.0.0/8"] = "10.0.0.0/8" } })
  refused("\"2001:db8::1/32\" has bits behind its prefix: 2001:db8::/32 is meant", { ipv6_src = { ["2001:db8::1/32"] = "fd00::/32" } })
  refused("field 'ipv6_src': it is an address of 128 bits: ipv6_src_lo is its lower half", { per_loop = { ipv6_src = 1 } })
  refused("field 'ipv4_dst': \"10.1.0.0/16\" and \"10.2.0.0/24\" are of different length", { ipv4_dst = { ["10.1.0.0/16"] = "10.2.0.0/24" } })
  refused("\"10.1.2.0/16\" has bits behind its prefix: 10.1.0.0/16 is meant", { ipv4_dst = { ["10.1.2.0/16"] = "10.2.0.0/16" } })
  refused("\"1/8\": prefixes are for IPv4 and IPv6 addresses", { udp_dst = { ["1/8"] = "2/8" } })
  refused("\"x/8\" is not an IPv4 prefix", { ipv4_dst = { ["x/8"] = "10.0.0.0/8" } })
  refused("field 'ipv4_dst': \"ten\" is not an IPv4 address", { ipv4_dst = { ten = "10.0.0.1" } })
  refused("got an empty table", { udp_dst = {} })
  refused("is not part of the packet", { len = 5 })
  refused("option 'per_loop': a table of fields expected, got the number 5", { per_loop = 5 })
  refused("option 'per_loop': field 'udp_dst': 0.5 is not a whole number", { per_loop = { udp_dst = 0.5 } })
  refused("option 'checksums': true, false or \"compute\" expected", { udp_dst = 1, checksums = "fast" })
  refused("field 'udp_dst': a value or {start, step} expected", { udp_dst = { 1, 2, 3 } })
  refused("unknown field 'nothing'", { per_loop = { nothing = 1 } })
  s:close()
end
