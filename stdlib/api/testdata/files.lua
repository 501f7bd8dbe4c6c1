-- Bursts as raw files and pcaps, blocking and asynchronous.
local daqiri, api, t, rig = require "daqiri", require "daqiri.api", require "check", require "rig"
local ok, fails = rig.ok, rig.fails
local args = daqiri.args{ dir = ".", clock = "real" }
local dir = args.dir

local function contents(name)
  local f = assert(io.open(dir .. "/" .. name, "rb"))
  local text = f:read("*a")
  f:close()
  return text
end
fails("NOT_READY", "daqiri_init", api.daqiri_write_raw_to_file(nil, dir, "x", 0))
ok(api.daqiri_init(rig.config("raw", { rig.port("port", "loop0", 1, 1) }, { loopback = { mode = "sw", clock = args.clock } })))
rig.send(0, 0, 3, 7000)
local burst = rig.poll(0, 0)

-- invalid writes
fails("NULL_PTR", "burst", api.daqiri_write_raw_to_file(nil, dir, "x", 0))
fails("INVALID_PARAMETER", "there is none", api.daqiri_write_raw_to_file(burst, dir .. "/nowhere", "x", 0))
fails("INVALID_PARAMETER", "absolute", api.daqiri_write_pcap_to_file(burst, "here", "x"))
for _, prefix in ipairs{ "", "a/b", "a\\b", ("x"):rep(201) } do
  fails("INVALID_PARAMETER", "prefix", api.daqiri_write_pcap_to_file_async(burst, dir, prefix))
end
fails("INVALID_PARAMETER", "packet_data_offset", api.daqiri_write_raw_to_file_async(burst, dir, "x"))
fails("NULL_PTR", "handle", api.daqiri_file_write_poll(nil))
fails("NULL_PTR", "handle", api.daqiri_file_write_wait(nil))
fails("NULL_PTR", "handle", api.daqiri_file_write_destroy(nil))

-- a file per packet, by its index in the burst; the next burst of the same name replaces them
ok(api.daqiri_write_raw_to_file(burst, dir, "raw", 42))
t.equal({ contents("raw_0"), contents("raw_2") }, { ("p"):rep(20), ("p"):rep(20) })
ok(api.daqiri_write_raw_to_file(burst, dir, "raw", 0))
t.equal(#contents("raw_0"), 62)
t.equal(io.open(dir .. "/raw_3"), nil)

-- two concurrent writes; the burst may be freed meanwhile
local a = ok(api.daqiri_write_raw_to_file_async(burst, dir, "async", 60))
local b = ok(api.daqiri_write_pcap_to_file_async(burst, dir, "capture"))
api.free_all_packets_and_burst_rx(burst)
local counts = ok(api.daqiri_file_write_wait(a))
t.equal(counts, { completed_packets = 3, failed_packets = 0, bytes_written = 6 })
local status
repeat
  status, counts = api.daqiri_file_write_poll(b)
until status ~= "NOT_READY"
t.equal({ status, counts.completed_packets, counts.bytes_written }, { "SUCCESS", 3, 186 })
t.equal(#contents("capture.pcap"), 24 + 3 * (16 + 62))
ok(api.daqiri_file_write_destroy(a))
ok(api.daqiri_file_write_destroy(b))
t.raises("the handle was destroyed", api.daqiri_file_write_poll, a)

-- a pcap grows; a burst can be sent after it is written
local out = rig.alloc(0, 0, 2)
fails("INVALID_PARAMETER", "packet 0 has no length", api.daqiri_write_pcap_to_file(out, dir, "capture"))
for i = 0, 1 do
  ok(api.copy_buffer_to_packet(out, i, ("o"):rep(60)))
  ok(api.set_packet_lengths(out, i, { 60 }))
end
ok(api.daqiri_write_pcap_to_file(out, dir, "capture"))
t.equal(#contents("capture.pcap"), 24 + 3 * (16 + 62) + 2 * (16 + 60))
ok(api.send_tx_burst(out))
api.free_all_packets_and_burst_rx(rig.poll(0, 0))

-- appending to a capture in microseconds of another program, within its snaplen
local function le32(...)
  local text = ""
  for _, v in ipairs{ ... } do
    for k = 0, 3 do text = text .. string.char(math.floor(v / 2 ^ (8 * k)) % 256) end
  end
  return text
end
local begun = le32(0xa1b2c3d4, 2 + 4 * 2 ^ 16, 0, 0, 60, 1) .. le32(1000, 999999, 60, 60) .. ("b"):rep(60)
local old = assert(io.open(dir .. "/old.pcap", "wb"))
old:write(begun)
old:close()
local small = rig.alloc(0, 0, 2)
ok(api.set_all_packet_lengths(small, { 60 }))
ok(api.daqiri_write_pcap_to_file(small, dir, "old"))
api.free_tx_burst(small)
local large = rig.alloc(0, 0, 2)
ok(api.set_packet_lengths(large, 0, { 60 }))
ok(api.set_packet_lengths(large, 1, { 61 }))
fails("INVALID_PARAMETER", "packet 1 has 61 bytes", api.daqiri_write_pcap_to_file(large, dir, "old"))
api.free_tx_burst(large)
local grown = contents("old.pcap")
t.equal({ #grown, grown:sub(1, #begun) == begun }, { #begun + 2 * (16 + 60), true })
local micros = grown:byte(#begun + 5) + 2 ^ 8 * grown:byte(#begun + 6) + 2 ^ 16 * grown:byte(#begun + 7) + 2 ^ 24 * grown:byte(#begun + 8)
assert(micros < 1e6, micros)

-- a file that cannot be created: its packet is reported as failed, and the next burst is tried again
local late = rig.alloc(0, 0, 2)
ok(api.set_all_packet_lengths(late, { 60 }))
api.session():write_raw{ name = "other", dir = dir .. "/taken_0" } -- creates a folder of that name
fails("GENERIC_FAILURE", "it is a folder", api.daqiri_write_raw_to_file(late, dir, "taken", 0))
ok(api.daqiri_write_raw_to_file(late, dir, "free", 0))
t.equal(#contents("free_1"), 60)
api.free_tx_burst(late)
api.shutdown()
