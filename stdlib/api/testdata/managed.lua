-- Managed bursts: objects that own a burst, the statuses of their functions, their statistics.
local daqiri, api, t, rig = require "daqiri", require "daqiri.api", require "check", require "rig"
local ok, fails = rig.ok, rig.fails
local clock = daqiri.args{ clock = "real" }.clock
local function open() ok(api.daqiri_init(rig.config("raw", { rig.port("tx_port", "loop0", 1, 1), rig.port("rx_port", "loop1", 1, 1) },
  { loopback = { mode = "sw", clock = clock } }))) end
local function expect(want)
  local all = api.get_managed_burst_stats()
  for key, value in pairs(want) do t.equal(all[key], value, key) end
end
local function fill(b)
  ok(api.copy_buffer_to_packet(b, 0, ("x"):rep(60)))
  ok(api.set_all_packet_lengths(b, { 60 }))
end

-- empty objects
local tx, rx = api.TxBurst(), assert(api.RxBurst())
assert(api.TxBurst() ~= tx and tx:get() == nil and rx:get() == nil and rx:release() == nil and not tx:has_packet_buffers())
rx:reset() -- without effect
fails("NULL_PTR", "no burst", tx:send())
fails("NULL_PTR", "no burst", rx:release_on_stream())
fails("NULL_PTR", "no burst", api.get_tx_packet_burst(tx))
fails("NULL_PTR", "nil", api.create_tx_burst(nil))
t.raises("expects a TxBurst", function() api.create_tx_burst(rx) end)
fails("NOT_READY", "daqiri_init", api.get_rx_burst(rx, 1, 0))
open()
fails("NULL_PTR", "no burst is there", api.get_rx_burst(rx, 1, 0))
fails("INVALID_PARAMETER", "no rx queue 7", api.get_rx_burst(rx, 1, 7))
expect{ outstanding = 0, total_outstanding = 0 }

-- sending: the object is empty once the engine has the burst, and keeps it after a refusal
ok(api.create_tx_burst(tx))
fails("INVALID_PARAMETER", "a burst already", api.create_tx_burst(tx))
fails("INVALID_PARAMETER", "no packets yet", tx:send())
api.set_header(tx:get(), 0, 0, 1, 1)
assert(not tx:has_packet_buffers())
ok(api.get_tx_packet_burst(tx))
assert(tx:has_packet_buffers())
fails("INVALID_PARAMETER", "packets already", api.get_tx_packet_burst(tx))
fails("INVALID_PARAMETER", "packet 0 has no length", tx:send())
assert(tx:has_packet_buffers())
fill(tx:get())
ok(tx:send())
assert(tx:get() == nil and not tx:has_packet_buffers())
fails("NULL_PTR", "no burst", tx:send())

-- receiving: by queue, by port, from any; a full object stays as it is
local function receive(...)
  local ends = daqiri.now() + 5
  repeat
    local status, text = api.get_rx_burst(rx, ...)
    if status == "SUCCESS" then return rx:get() end
    assert(status == "NULL_PTR", text)
  until daqiri.now() > ends
  error("nothing came")
end
local got = receive(1, 0)
t.equal(api.get_packet_length(got, 0), 60)
fails("INVALID_PARAMETER", "a burst already", api.get_rx_burst(rx, 1, 0))
assert(rx:get() == got)
expect{ outstanding = 1, peak_outstanding = 1, total_outstanding = 2 }
rx:reset()
assert(rx:get() == nil)
t.raises("was freed", function() api.get_num_packets(got) end)
for _, place in ipairs{ { 1 }, {} } do
  rig.send(0, 0, 1, 5000)
  got = receive(unpack(place))
  assert(rx:release() == got and rx:get() == nil)
  t.equal(api.get_num_packets(got), 1) -- it is the caller's
  api.free_rx_burst(got)
end

-- release_on_stream: SUCCESS empties the object, a failure keeps the burst
rig.send(0, 0, 1, 5000)
receive(1, 0)
fails("INVALID_PARAMETER", "daqiri.stream", rx:release_on_stream("stream"))
expect{ outstanding = 1, deferred = 0, total_deferred = 1 }
assert(rx:get())
ok(rx:release_on_stream())
assert(rx:get() == nil)
rig.send(0, 0, 1, 5000)
receive(1, 0)
ok(rx:release_on_stream(0))
expect{ outstanding = 0, deferred = 0, peak_deferred = 1, total_deferred = 3, lifecycle_errors = 0 }
local all = api.get_managed_burst_stats()
assert(api.get_managed_burst_stats() ~= all and all.deferred_wait_ns_sum >= all.deferred_wait_ns_max and all.deferred_wait_ns_max >= 0)

-- a burst freed by hand; one held over the end of its session
rig.send(0, 0, 1, 5000)
api.free_rx_burst(receive(1, 0))
rx:reset()
rig.send(0, 0, 1, 5000)
receive(1, 0)
ok(api.create_tx_burst(tx))
api.shutdown()
assert(rx:get() == nil and not tx:has_packet_buffers())
open()
rx:reset()
fails("NULL_PTR", "no burst", tx:send())
expect{ outstanding = 0, lifecycle_errors = 2 }
ok(api.create_tx_burst(tx)) -- usable again
tx:reset()
api.shutdown()
