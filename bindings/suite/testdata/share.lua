-- s:share: its options, what it refuses, and a run without readers; tests/files/live_test.go has readers.
local daqiri, t = require "daqiri", require "check"
local function region(name, more)
  local r = { name = name, kind = "host", affinity = 0, num_bufs = 64, buf_size = 256 }
  for k, v in pairs(more or {}) do r[k] = v end
  return r
end
local function queue() return { queues = { { name = "q", id = 0, cpu_core = -1, batch_size = 8, memory_regions = { "packets" } } } } end
local s = daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "raw", master_core = 0, loopback = { mode = "sw", clock = "virtual" },
  memory_regions = { region "packets", region("batches", { shared = true }), region "private" },
  interfaces = { { name = "port", address = "loop0", rx = queue(), tx = queue() } } } } }
local rx, tx = s:rx_queue("port"), s:tx_queue("port")
local function blocks(name, memory)
  return s:reorder{ name = name, memory_region = memory, at = "payload", payload_byte_offset = 4, slot_bytes = 8, packets_per_batch = 4,
    sequence_number = { at = "payload", bit_offset = 0, bit_width = 32 } }
end
local path = os.tmpname()
os.remove(path)
local live = s:share{ name = "live", path = path, lend = 2, readers = 3, mode = "0640", policy = "wait", timeout = "10ms", header = { site = 3 } }
t.equal(live.kind, "share")
t.equal(live.path, path)
t.equal(live.readers, {})
t.equal(s:count().readers, nil)
t.raises("another process listens there", function() s:share{ path = path } end)
t.raises("option 'mode': three octal digits", function() s:share{ path = path, mode = "0999" } end)
t.raises("option 'name': \"a/b\" has a '/'", function() s:share{ name = "a/b" } end)
t.raises("option 'lend'", function() s:share{ path = path, lend = 0 } end)
t.raises("option 'readers'", function() s:share{ path = path, readers = 33 } end)
t.raises("it lends aggregates: put it behind a stage s:reorder or s:heaps", function() s:pipe(rx, live) end)
t.raises("cannot lend memory region private", function() s:pipe(rx, blocks("other", "private"), live) end)
local kept = blocks("kept", "batches")
s:pipe(rx, kept, live)
t.equal(select(2, s:add_region(region("later", { shared = true }))), "NOT_SUPPORTED")
tx:transmit{ count = 40, template = tx:template{ payload = ("\0"):rep(12), vary = { { at = "payload", bit_offset = 0, bit_width = 32, step = 1 } } } }
local l = s:run{}
t.equal(l.live["in"], 10)
t.equal(l.live.out, 10)
t.equal(l.live.held, 0)
t.equal(l.live.readers, 0)
t.equal(l.live.missed, 0)
t.equal(io.open(path), nil)
