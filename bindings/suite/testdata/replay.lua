-- captures as receive queues: order, times, loops, paces, flows, little memory, damage; and a sender that keeps their gaps.
local daqiri, t = require "daqiri", require "check"
local args = daqiri.args{ dir = "." }
local START, GAP, N = 1700000000, 10000, 300 -- s, ns, packets

local function le(v, bytes)
  local out = {}
  for k = 1, bytes do out[k] = string.char(v % 256); v = math.floor(v / 256) end
  return table.concat(out)
end

-- Frame k: UDP to port 7000 + k % 2, its number in the payload, 60 to 159 bytes.
local function frame(k)
  local payload = le(k, 4) .. string.rep(string.char(k % 251), 14 + k % 100)
  local function be(v) return string.char(math.floor(v / 256), v % 256) end
  local ip = "\69\0" .. be(28 + #payload) .. "\0\0\0\0\64\17\0\0\10\0\0\1\10\0\0\2"
  return "\2\0\0\0\0\2\2\0\0\0\0\1\8\0" .. ip .. be(4000) .. be(7000 + k % 2) .. be(8 + #payload) .. "\0\0" .. payload
end

local function write(name, text)
  local path = args.dir .. "/" .. name
  local f = assert(io.open(path, "wb"))
  f:write(text)
  f:close()
  return path
end

-- A nanosecond capture; edit(k, record) may change a record.
local function capture(name, n, edit)
  local out = { "\77\60\178\161" .. le(2, 2) .. le(4, 2) .. le(0, 8) .. le(262144, 4) .. le(1, 4) }
  for k = 0, n - 1 do
    local p = frame(k)
    local record = le(START, 4) .. le(k * GAP, 4) .. le(#p, 4) .. le(#p, 4) .. p
    out[#out + 1] = edit and edit(k, record) or record
  end
  return write(name, table.concat(out))
end

local function open(path, replay, o)
  o = o or {}
  local queues = { { name = "q0", id = 0, cpu_core = -1, batch_size = 32, memory_regions = { "m" } } }
  if o.flows then queues[2] = { name = "q1", id = 1, cpu_core = -1, batch_size = 32, memory_regions = { "m" } } end
  return daqiri.open({ version = 1, stream_type = "raw", master_core = 0, loopback = "sw",
    memory_regions = { { name = "m", kind = "host", affinity = 0, num_bufs = o.bufs or 2048, buf_size = o.buf_size or 2048 } },
    interfaces = {
      { name = "src", address = "pcap:" .. path, replay = replay, rx = { queues = queues, flows = o.flows } },
      { name = "port", address = "loop0",
        tx = { queues = { { name = "tx", id = 0, cpu_core = -1, batch_size = 32, memory_regions = { "m" } } } },
        rx = { queues = { { name = "rx", id = 0, cpu_core = -1, batch_size = 32, timeout_us = 1, memory_regions = { "m" } } } } } } })
end

-- What a queue gets: numbers of packets and their times.
local function gather(q)
  local got = { times = {}, seqs = {} }
  q:on_burst(function(b)
    local seqs, times = b:column{ bit_offset = 336, bit_width = 32, endianness = "little" }, b:rx_timestamps()
    for i = 1, b.n do
      got.seqs[#got.seqs + 1] = seqs[i]
      got.times[#got.times + 1] = times[i]
      t.equal(b:column("rx_time + 0")[i], times[i])
    end
    got.clock = b.clock
  end)
  return got
end

local good = capture("good.pcap", N)
local virtual = select(2, open(good):clock()) == "virtual"

-- in order, as fast as it goes, and over and over: each loop a mean gap after the one before
for _, loops in ipairs{ 1, 3 } do
  local s = open(good, { speed = "max", loops = loops })
  local got = gather(s:rx_queue("src"))
  local sum = s:run{}
  t.equal(sum.reason, "source exhausted")
  t.equal(#got.seqs, N * loops)
  for k = 1, #got.seqs do
    assert(got.seqs[k] == (k - 1) % N, k)
    assert(got.times[k] == (k - 1) * GAP, k)
  end
  t.equal(got.clock, "file")
  t.equal(s:rx_queue("src").timestamps, "file")
  t.equal(sum.src.wire.loops, loops)
  s:close()
end

-- what is put together of a capture keeps the capture's time
do
  local s = open(good, { speed = "max" })
  local batches = s:reorder{ name = "batches", memory_region = "m", payload_byte_offset = 42, slot_bytes = 32, packets_per_batch = 4, missing_action = "drop",
    sequence_number = { bit_offset = 336, bit_width = 32, endianness = "little" } }
  s:pipe(s:rx_queue("src"), batches)
  local n = 0
  batches:on_burst(function(a)
    n = n + 1
    t.equal(a.clock, "file")
    t.equal(a.rx_time, a.batch_id * 4 * GAP)
    t.equal(a.last_time, (a.batch_id * 4 + 3) * GAP)
    t.equal(a:column("rx_time")[1], a.rx_time)
  end)
  s:run{}
  assert(n > 0)
  s:close()
end

-- the time that it takes on the virtual clock: its own gaps, faster, packets and bits a second
local function took(replay)
  local s = open(good, replay)
  gather(s:rx_queue("src"))
  local first, last, n = nil, nil, 0
  s:pipe(s:rx_queue("src"), s:count{ name = "n" })
  local sum = s:run{}
  t.equal(sum.src.rx.out, N)
  s:close()
  return sum.seconds
end
local bits = 0
for k = 0, N - 1 do bits = bits + 8 * #frame(k) end
local whole = (N - 1) * GAP / 1e9
for _, case in ipairs{ { { speed = 1 }, whole }, { { speed = 0.5 }, 2 * whole }, { { pps = 1e4 }, (N - 1) / 1e4 },
  { { rate = "1Mbit/s" }, (bits - 8 * #frame(N - 1)) / 1e6 } } do
  local s = took(case[1])
  assert(not virtual or (s >= case[2] and s < case[2] + 0.03), s) -- the run looks every 10 ms
end

-- a sender that keeps the gaps, though the source is faster
for _, speed in ipairs{ 1, 4 } do
  local s = open(good, { speed = "max" })
  local tx, got = s:tx_queue("port"), gather(s:rx_queue("port"))
  s:pipe(s:rx_queue("src"), tx)
  tx:pace{ follow = "rx_timestamp", speed = speed }
  local sum = s:run{}
  t.equal(#got.seqs, N)
  for k = 2, N do
    assert(got.seqs[k] == k - 1)
    if virtual then assert(math.abs(got.times[k] - got.times[1] - (k - 1) * GAP / speed) < 15) end -- the wire takes 5 to 13 ns
  end
  assert(got.clock ~= "file")
  assert(sum.port.tx.gap_error.max < (virtual and 2 or 1e9))
  s:close()
end
do
  local s = open(good)
  local tx = s:tx_queue("port")
  t.raises("option 'follow' is missing", function() tx:pace{ speed = 2 } end)
  t.raises("only rx_timestamp can be followed", function() tx:pace{ follow = "sequence" } end)
  t.raises("option 'rate': excludes follow", function() tx:pace{ follow = "rx_timestamp", rate = "1Gbit/s" } end)
  t.raises("option 'speed': 0 is not a valid speed", function() tx:pace{ follow = "rx_timestamp", speed = 0 } end)
  s:close()
end

-- flows spread it over queues; each keeps its order
do
  local s = open(good, { speed = "max", loops = 2 }, { flows = {
    { name = "even", id = 5, action = { type = "queue", id = 0 }, match = { udp_dst = 7000 } },
    { name = "odd", id = 6, action = { type = "queue", id = 1 }, match = { udp_dst = 7001 } } } })
  local even, odd = gather(s:rx_queue("src", 0)), gather(s:rx_queue("src", 1))
  local sum = s:run{}
  t.equal(#even.seqs, N)
  t.equal(#odd.seqs, N)
  for k = 1, N do
    assert(even.seqs[k] == (2 * k - 2) % N and odd.seqs[k] == (2 * k - 1) % N, k)
  end
  t.equal(sum.src.wire.dropped, 0)
  s:close()
end

-- buffers for fewer packets than are under way: the file waits, nothing is lost
do
  local s = open(good, { speed = "max", loops = 4 }, { bufs = 48 })
  local kept, seen = {}, 0
  s:rx_queue("src"):on_burst(function(b)
    seen = seen + b.n
    b:keep()
    kept[#kept + 1] = b
  end)
  s:every(1e-3, function()
    for _, b in ipairs(kept) do b:free() end
    kept = {}
  end)
  local sum = s:run{}
  t.equal(seen, 4 * N)
  t.equal(sum.src.rx.dropped, 0)
  s:close()
end

-- what a queue was told to send is sent, though the captures end before it
do
  local s = open(good, { speed = "max" })
  local tx = s:tx_queue("port")
  gather(s:rx_queue("src"))
  gather(s:rx_queue("port"))
  tx:pace{ pps = 1000 }
  tx:transmit{ template = tx:template{ payload_bytes = 20 }, count = 100 }
  local sum = s:run{}
  t.equal(sum.reason, "source exhausted")
  t.equal(sum.port.tx.packets, 100)
  s:close()
end

-- packets that no buffer holds are counted
do
  local s = open(good, nil, { buf_size = 100 })
  local got = gather(s:rx_queue("src"))
  local sum, long = s:run{}, 0
  for k = 0, N - 1 do long = long + (#frame(k) > 100 and 1 or 0) end
  assert(long > 0)
  t.equal(sum.src.rx.dropped_by.too_long, long)
  t.equal(#got.seqs, N - long)
  s:close()
end

-- damage: what comes before it is replayed, and the run says where it is
local function damaged(path)
  local s = open(path)
  local got = gather(s:rx_queue("src"))
  local sum = s:run{}
  t.equal(sum.reason, "source exhausted")
  s:close()
  return #got.seqs, sum
end
local n, sum = damaged(capture("cut.pcap", 10, function(k, r) return k == 9 and r:sub(1, -2) or nil end))
t.equal(n, 9)
t.equal(sum.src.wire.bad_records, 1)
assert(sum.error:find("cut.pcap: it is cut off in the record at byte %d+, of which %d+ bytes are there"), sum.error)
n, sum = damaged(capture("bad.pcap", 10, function(k, r) return k == 4 and r:sub(1, 8) .. "\255\255\255\255" .. r:sub(13) or nil end))
t.equal(n, 4)
t.equal(sum.src.wire.bad_records, 1)
local at = 24
for k = 0, 3 do at = at + 16 + #frame(k) end
assert(sum.error:find(("bad.pcap: at byte %d: a packet of 4294967295 bytes"):format(at), 1, true), sum.error)
n, sum = damaged(capture("snap.pcap", 10, function(k, r) return k % 2 == 0 and r:sub(1, 12) .. le(1500, 4) .. r:sub(17) or nil end))
t.equal(n, 10)
t.equal(sum.src.wire.truncated, 5)
n, sum = damaged(capture("none.pcap", 0))
t.equal(n, 0)

-- files that are no captures
t.raises("interface src: /nowhere/x.pcap: No such file", function() open("/nowhere/x.pcap") end)
t.raises("is neither a file nor a pipe", function() open(args.dir) end)
t.raises("is empty", function() open(write("empty", "")) end)
t.raises("is not a valid capture: too short", function() open(write("short", "\77\60")) end)
t.raises("neither pcap nor pcapng: it begins with 6c 6f 63 61", function() open(write("lua", "local x = 1")) end)
t.raises("it is compressed: unpack it first (gunzip)", function() open(write("gz", "\31\139\8\0....")) end)
t.raises("a packet of 802.11 (105), which is not Ethernet", function()
  local f = assert(io.open(good, "rb"))
  local text = f:read("*a")
  f:close()
  open(write("wifi.pcap", text:sub(1, 20) .. le(105, 4) .. text:sub(25)))
end)
if virtual then
  t.raises("cannot replay an endless capture", function() open(good, { speed = "max", loops = "forever" }) end)
end
