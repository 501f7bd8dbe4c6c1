-- A kernel on the host counts the packets of each burst. Prints "ready" when the session is closed, and the count.
local daqiri = require "daqiri"
local function queue(name, region) return { name = name, id = 0, cpu_core = -1, batch_size = 64, memory_regions = { region } } end
local function region(name) return { name = name, kind = "host", affinity = 0, num_bufs = 512, buf_size = 2048 } end
local into = queue("rx", "in")
into.timeout_us = 1000
local s = daqiri.open{ version = 1, stream_type = "raw", master_core = 0, loopback = { mode = "sw", clock = "real" },
  memory_regions = { region("out"), region("in") },
  interfaces = { { name = "source", address = "c", tx = { queues = { queue("tx", "out") } } },
    { name = "sink", address = "b", rx = { queues = { into } } } } }
local k = daqiri.kernel{ name = "counts", memory = "host", grid = 1, block = 1, src = [[
__global__ void counts(const daqiri_burst *b, int *n) { for (unsigned i = 0; i < b->packets; i++) n[0] += b->at[i * b->segments].bytes > 200; }
]] }
local n = daqiri.array{ kind = "host", type = "int32", shape = 1 }
s:rx_queue("sink"):on_burst(function(b) k:launch(b, n) end)
local tx = s:tx_queue("source")
tx:transmit{ template = tx:template{ payload_bytes = 200 }, count = 100 }
s:run{ packets = 100, seconds = 60 }
s:close()
print("ready")
print(n:get(1))
io.flush()
daqiri.sleep(60)
