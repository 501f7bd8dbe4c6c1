-- One session, polled from several threads: the queues of each, errors for queues of others, and functions that remain with the task that
-- called daqiri_init.
local daqiri, api, t, rig = require "daqiri", require "daqiri.api", require "check", require "rig"
local ok, fails, poll, send = rig.ok, rig.fails, rig.poll, rig.send
local clock = daqiri.args{ clock = "real" }.clock
local N = 50

t.raises("daqiri_init has not been called", function() api.task(function() end, {}) end)
ok(api.daqiri_init(rig.config("raw", {
  rig.port("tx_port", "loop0", 1, 2),
  rig.port("rx_port", "loop1", 2, 1, { rx = { flows = { { name = "seven", id = 7, match = { udp_dst = 7000 }, action = { type = "queue", id = 1 } } } } }),
}, { loopback = { mode = "sw", clock = clock } })))

-- misuse
t.raises("a function, got a string", function() api.task("work", {}) end)
t.raises("a list of queues, got a nil", function() api.task(function() end) end)
t.raises("queue 2 of the list", function() api.task(function() end, { { 1, 0, "rx" }, { 1, 1 } }) end)
t.raises("there is no rx queue 5", function() api.task(function() end, { { 1, 5, "rx" } }) end)
t.raises("captures the local 't'", function() api.task(function() return t end, { { 1, 0, "rx" } }) end)
t.raises("can't go to another task", function() api.task(function() end, {}, io.stdout) end)

-- both queues are polled here before one is passed on
for _, to in ipairs{ 6000, 7000 } do send(0, 0, 3, to) end
for q = 0, 1 do api.free_all_packets_and_burst_rx((poll(1, q))) end

local counter = api.task(function(n)
  local daqiri, api, t, rig = require "daqiri", require "daqiri.api", require "check", require "rig"
  local got, burst = 0, nil
  -- functions and queues that this task lacks
  rig.fails("INVALID_PARAMETER", "rx queue 0 belongs to the task that called daqiri_init", api.get_rx_burst(1, 0))
  rig.fails("INVALID_PARAMETER", "there is no rx queue 2", api.get_rx_burst(1, 2))
  rig.fails("INTERNAL_ERROR", "before", api.daqiri_init("x.yaml"))
  for _, name in ipairs{ "shutdown", "print_stats" } do t.raises("belongs to the task that called daqiri_init", api[name]) end
  t.raises("belongs to the task that called daqiri_init", function() return api.session().config end)
  t.raises("belongs to the task that called daqiri_init", function() api.drop_all_traffic(1) end)
  t.raises("belongs to the task that called daqiri_init", function() api.add_rx_flow_async(1, { name = "x", match = { udp_dst = 1 }, action = { type = "queue", id = 0 } }) end)
  t.equal({ api.get_num_rx_queues(0), api.get_num_rx_queues(1), api.get_port_id("rx_port") }, { 1, 2, 1 })
  t.equal(rig.ok(api.get_mac_addr(0)), "02:00:00:00:00:01")
  daqiri.send "ready"
  -- three ways to poll its queues, and answers on its transmit queue
  for k = 1, n do
    burst = k % 3 == 0 and rig.poll(1, 1) or k % 3 == 1 and rig.poll(1) or rig.poll()
    t.equal(api.get_q_id(burst), 1)
    got = got + api.get_num_packets(burst)
    api.free_all_packets_and_burst_rx(burst)
    if got >= n then break end
  end
  rig.send(1, 0, got % 16, 1)
  daqiri.send(got)
end, { { 1, 1, "rx" }, { 1, 0, "tx" } }, N)

local news = {}
counter:on_message(function(v) news[#news + 1] = v end)
local function wait_for(n)
  local deadline = daqiri.now() + 10
  while #news < n and daqiri.now() < deadline do daqiri.sleep(1e-3) end
  t.equal(#news, n)
end
wait_for(1)

-- queues that this task lacks now
fails("INVALID_PARAMETER", "rx queue 1 belongs to task tasks.lua:", api.get_rx_burst(1, 1))
t.raises("belongs to task tasks.lua:", function() api.task(function() end, { { 1, 0, "tx" } }) end)
t.equal(api.get_num_rx_queues(1), 2)
for _ = 1, N / 10 do send(0, 0, 10, 7000) end
wait_for(2)
t.equal(news, { "ready", N })
local answer = poll(0, 0)
t.equal(api.get_num_packets(answer), N % 16)
api.free_all_packets_and_burst_rx(answer)

-- the remaining queue still works
send(0, 1, 4, 6000)
local burst = poll(1)
t.equal({ api.get_q_id(burst), api.get_num_packets(burst) }, { 0, 4 })
api.free_all_packets_and_burst_rx(burst)
t.equal(api.session():stats().rx_port.rx.dropped, 0)
api.shutdown()
