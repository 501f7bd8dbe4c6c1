-- The reference's example of dynamic flows: an isolated port receives no packets until a flow is added, then those that match, on one
-- queue, on the other, and distributed over both.
local daqiri, api, t, rig = require "daqiri", require "daqiri.api", require "check", require "rig"
local ok = rig.ok
local args = daqiri.args{ clock = "real" }
local PORT, BURSTS, BATCH = 4096, 32, 16

ok(api.daqiri_init(rig.config("raw", {
  rig.port("tx_port", "loop0", 1, 1),
  rig.port("rx_port", "loop1", 2, 1, { rx = { flow_isolation = true, dynamic_flow_capacity = 16 } }),
}, { loopback = { mode = "sw", clock = args.clock } })))
local tx, rx = api.get_port_id("tx_port"), api.get_port_id("rx_port")
local sources = 0

-- send sends BURSTS of BATCH packets, all with different source ports.
local function send()
  for _ = 1, BURSTS do
    local burst = rig.alloc(tx, 0, BATCH)
    for i = 0, BATCH - 1 do
      ok(api.set_eth_header(burst, i, "02:00:00:00:00:09"))
      ok(api.set_ipv4_header(burst, i, 28, api.IPPROTO_UDP, "1.2.3.4", "5.6.7.8"))
      ok(api.set_udp_header(burst, i, 20, 1024 + sources, PORT))
      sources = sources + 1
    end
    ok(api.set_all_packet_lengths(burst, { 62 }))
    ok(api.send_tx_burst(burst))
  end
end

-- phase sends packets and counts those on each queue, with their flow ids, until all are accounted for.
local sent = 0
local function phase(flow)
  send()
  sent = sent + BURSTS * BATCH
  local count, quiet = { [0] = 0, 0 }, 0
  while quiet < 50 do
    quiet = api.session():stats().tx_port.wire.packets == sent and quiet + 1 or 0
    daqiri.sleep(2e-4) -- longer than the queues' timeout_us
    for q = 0, 1 do
      local _, burst = api.get_rx_burst(rx, q)
      while burst do
        quiet, count[q] = 0, count[q] + api.get_num_packets(burst)
        for i = 0, api.get_num_packets(burst) - 1 do t.equal(api.get_packet_flow_id(burst, i), flow) end
        api.free_all_packets_and_burst_rx(burst)
        _, burst = api.get_rx_burst(rx, q)
      end
    end
  end
  return count[0], count[1]
end

-- outcome checks and returns the result of an operation.
local function outcome(op, kind)
  local result = ok(api.poll_flow_op())
  t.equal({ result.op_id, result.type, result.status }, { op, kind, "SUCCESS" })
  t.equal(api.poll_flow_op(), api.Status.NOT_READY)
  return result.flow_id
end

local function with(action)
  action.type = api.FlowType.QUEUE
  local op = ok(api.add_rx_flow_async(rx, { name = "dynamic", action = action, match = { udp_dst = PORT } }))
  local flow = outcome(op, api.FlowOpType.ADD_RX)
  assert(flow > 0)
  local first, second = phase(flow)
  t.equal(outcome(ok(api.delete_flow_async(flow)), api.FlowOpType.DELETE), flow)
  return first, second
end

local all = BURSTS * BATCH
t.equal({ phase(0) }, { 0, 0 })
t.equal({ with{ id = 0 } }, { all, 0 })
t.equal({ with{ id = 1 } }, { 0, all })
local first, second = with{ ids = { 0, 1 } }
t.equal(first + second, all)
assert(math.abs(first - second) <= 0.35 * math.max(first, second), first .. " and " .. second)
t.equal({ phase(0) }, { 0, 0 })
t.equal(api.session():stats().tx_port.wire.dropped, 2 * all)
api.shutdown()
