-- Selections made in on_burst end with their handler: a queue with few burst descriptors never runs out of them.
local daqiri, t = require "daqiri", require "check"
local s = daqiri.open{
  version = 1, stream_type = "raw", master_core = 0, rx_meta_buffers = 16,
  loopback = { mode = "sw", clock = daqiri.args{ clock = "real" }.clock },
  memory_regions = { { name = "m", kind = "host", affinity = 0, num_bufs = 4096, buf_size = 256 } },
  interfaces = { { name = "a", address = "loop0",
    rx = { queues = { { name = "r0", id = 0, poll_mode = "direct", batch_size = 8, memory_regions = { "m" } } } },
    tx = { queues = { { name = "t0", id = 0, poll_mode = "direct", batch_size = 8, memory_regions = { "m" } } } } } },
}
local tx, rx = s:tx_queue("a"), s:rx_queue("a")
local bursts, even, last = 0, 0, nil
rx:on_burst(function(b)
  bursts = bursts + 1
  local some = b:select("udp_dst == 2")
  if some then even = even + some.n end
  last = some or last
end, { policy = "wait" })
s:start()
for k = 1, 600 do
  t.send(tx, 4, { payload_bytes = 18, udp_dst = k % 2 + 1 })
  daqiri.sleep(0.001)
end
for _ = 1, 1000 do
  if even == 1200 then break end
  daqiri.sleep(0.01)
end
t.equal(even, 1200)
assert(bursts > 300, "so many that descriptors would have run out")
t.raises("the burst ended with its handler", function() return last:lengths() end)
local sum = s:stop()
t.equal(sum.a.rx.dropped, 0)
