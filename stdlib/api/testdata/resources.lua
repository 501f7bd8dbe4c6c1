-- The reference's example of runtime resources: two regions and a queue of each direction come while another queue receives, a flow leads
-- a packet to them, and all go. Then the status of each call, one by one.
local daqiri, api, t, rig = require "daqiri", require "daqiri.api", require "check", require "rig"
local ok, fails = rig.ok, rig.fails
local args = daqiri.args{ clock = "real" }
local PORT, KEPT = 65500, 4096

local function region(name, bufs)
  return { name = name, kind = "host", affinity = 0, num_bufs = bufs or 256, buf_size = 2048 }
end

local function queue(name, id, more)
  local q = { name = name, id = id, cpu_core = -1, batch_size = 16, memory_regions = { "late_rx" } }
  for key, value in pairs(more or {}) do q[key] = value end
  return q
end

-- outcome waits for the next operation to end, and checks its result.
local function outcome(op, kind, state, status, fields)
  local result, last
  for _ = 1, 1e4 do
    last, result = api.poll_resource_op()
    if result then break end
    daqiri.sleep(1e-3)
  end
  assert(result, last)
  t.equal({ result.op_id, result.type, result.state, result.status }, { op, kind, state, status or "SUCCESS" })
  for key, value in pairs(fields or {}) do t.equal(result[key], value) end
  t.equal(api.poll_resource_op(), api.Status.NOT_READY)
  return result
end

t.equal({ api.add_memory_region_async(region("early")) }, { "NOT_READY", 0, "daqiri_init has not been called" })
t.equal((api.delete_memory_region_async("early")), "INVALID_PARAMETER")
t.equal((api.add_rx_queue_async(0, queue("early", 1))), "INVALID_PARAMETER")
t.equal((api.delete_tx_queue_async(0, 0)), "INVALID_PARAMETER")
t.equal((api.poll_resource_op()), "NOT_READY")

ok(api.daqiri_init(rig.config("raw", {
  rig.port("tx_port", "loop0", 1, 1),
  rig.port("rx_port", "loop1", 1, 1, { rx = { flow_isolation = true, dynamic_flow_capacity = 16 } }),
}, { loopback = { mode = "sw", clock = args.clock } })))
local tx, rx = api.get_port_id("tx_port"), api.get_port_id("rx_port")

-- flow adds a rule, and returns the function that deletes it.
local function flow(udp_dst, id)
  ok(api.add_rx_flow_async(rx, { name = "to" .. id, action = { type = "queue", id = id }, match = { udp_dst = udp_dst } }))
  local added = ok(api.poll_flow_op())
  t.equal(added.status, "SUCCESS")
  return function()
    ok(api.delete_flow_async(added.flow_id))
    t.equal(ok(api.poll_flow_op()).status, "SUCCESS")
  end
end

-- The lifecycle.
flow(KEPT, 0)
t.equal(api.get_num_rx_queues(rx), 1)
local op = ok(api.add_memory_region_async(region("late_rx")))
t.equal(op, 1)
outcome(op, "ADD_MEMORY_REGION", "ACTIVE", "SUCCESS", { memory_region = "late_rx", port_id = -1, queue_id = -1 })
local late_tx, own = region("late_tx"), daqiri.array{ kind = "host", type = "uint8", shape = 2 ^ 21 }
late_tx.owned = false
outcome(ok(api.add_memory_region_async(late_tx, api.ExternalMemoryRegion(own, 2 ^ 21))), "ADD_MEMORY_REGION", "ACTIVE")
outcome(ok(api.add_rx_queue_async(rx, queue("late", 5))), "ADD_RX_QUEUE", "ACTIVE", "SUCCESS", { port_id = rx, queue_id = 5 })
outcome(ok(api.add_tx_queue_async(tx, queue("late", 6, { memory_regions = { "late_tx" } }))), "ADD_TX_QUEUE", "ACTIVE")
t.equal(api.get_num_rx_queues(rx), 2)
local gone = flow(PORT, 5)
t.equal((api.get_rx_burst(rx, 5)), "NULL_PTR")
t.equal((api.get_rx_burst(rx, 0)), "NULL_PTR")
rig.send(tx, 6, 1, PORT)
rig.send(tx, 0, 3, KEPT)
local burst = rig.poll(rx, 5)
t.equal(api.get_num_packets(burst), 1)
t.equal(api.get_segment_packet_length(burst, 0, 0), 62)
api.free_all_packets_and_burst_rx(burst)
burst = rig.poll(rx) -- of any queue
t.equal(api.get_q_id(burst), 0)
api.free_all_packets_and_burst_rx(burst)

-- What is in use is not deleted.
fails("RESOURCE_IN_USE", "flow to5 leads to it", api.delete_rx_queue_async(rx, 5))
fails("RESOURCE_IN_USE", "queue late uses it", api.delete_memory_region_async("late_rx"))
gone()

-- A burst that the program has not sent delays the end.
local unsent = rig.alloc(tx, 6, 2)
op = ok(api.delete_tx_queue_async(tx, 6))
for _ = 1, 3 do t.equal((api.poll_resource_op()), "NOT_READY") end
fails("INVALID_PARAMETER", "no tx queue 6", api.delete_tx_queue_async(tx, 6))
fails("ALREADY_EXISTS", "being deleted", api.add_tx_queue_async(tx, queue("late", 6)))
fails("RESOURCE_IN_USE", "late_tx", api.delete_memory_region_async("late_tx"))
api.free_all_packets_and_burst_tx(unsent)
outcome(op, "DELETE_TX_QUEUE", "REMOVED", "SUCCESS", { port_id = tx, queue_id = 6 })

op = ok(api.delete_rx_queue_async(rx, 5))
fails("INVALID_PARAMETER", "no rx queue 5", api.get_rx_burst(rx, 5))
outcome(op, "DELETE_RX_QUEUE", "REMOVED", "SUCCESS", { port_id = rx, queue_id = 5 })
t.equal(api.get_num_rx_queues(rx), 1)
for _, name in ipairs{ "late_rx", "late_tx" } do
  outcome(ok(api.delete_memory_region_async(name)), "DELETE_MEMORY_REGION", "REMOVED", "SUCCESS", { memory_region = name })
end

-- The statuses of refusals, and of operations that fail.
t.equal({ api.add_memory_region_async(nil) }, { "NULL_PTR", 0, "the memory region's configuration is nil" })
fails("ALREADY_EXISTS", "region m", api.add_memory_region_async(region("m")))
fails("INVALID_PARAMETER", "not in this session", api.delete_memory_region_async("late_rx"))
fails("RESOURCE_IN_USE", "region m", api.delete_memory_region_async("m"))
for words, wrong in pairs{ ["name"] = region(""), ["num_bufs"] = region("r", 0), ["kind"] = { name = "r", kind = "paper", num_bufs = 1, buf_size = 64 },
  ["owned"] = { name = "r", kind = "host", affinity = 0, num_bufs = 1, buf_size = 64, owned = false } } do
  local failed = outcome(ok(api.add_memory_region_async(wrong)), "ADD_MEMORY_REGION", "FAILED", "INVALID_PARAMETER")
  assert(failed.text:find(words, 1, true), failed.text)
end
for words, memory in pairs{ ["its data is nil"] = api.ExternalMemoryRegion(nil, 1), ["capacity"] = api.ExternalMemoryRegion(own, 0),
  ["need"] = api.ExternalMemoryRegion(own, 4096) } do
  local failed = outcome(ok(api.add_memory_region_async(region("r"), memory)), "ADD_MEMORY_REGION", "FAILED", "INVALID_PARAMETER")
  assert(failed.text:find(words, 1, true), failed.text)
end
local vast = { name = "vast", kind = "host", affinity = 0, num_bufs = 2 ^ 22, buf_size = 65536 }
outcome(ok(api.add_memory_region_async(vast)), "ADD_MEMORY_REGION", "FAILED", "NULL_PTR")
local in_m = { memory_regions = { "m" } }
fails("INVALID_PARAMETER", "port 9", api.add_rx_queue_async(9, queue("q", 5, in_m)))
fails("NULL_PTR", "nil", api.add_rx_queue_async(rx, nil))
fails("INVALID_PARAMETER", "poll_mode", api.add_rx_queue_async(rx, queue("q", 5, { memory_regions = { "m" }, poll_mode = "often" })))
fails("INVALID_PARAMETER", "batch_size 17", api.add_rx_queue_async(rx, queue("q", 5, { memory_regions = { "m" }, batch_size = 17 })))
fails("INVALID_PARAMETER", "expected 0 to 31", api.add_rx_queue_async(rx, queue("q", 32, in_m)))
fails("INVALID_PARAMETER", "id", api.add_rx_queue_async(rx, queue("q", -1, in_m)))
fails("INVALID_PARAMETER", "memory_regions", api.add_rx_queue_async(rx, queue("q", 5, { memory_regions = {} })))
fails("INVALID_PARAMETER", "not in this session", api.add_tx_queue_async(tx, queue("q", 5)))
fails("ALREADY_EXISTS", "id 0", api.add_rx_queue_async(rx, queue("q", 0, in_m)))
fails("INVALID_PARAMETER", "deleted queue late", api.add_rx_queue_async(rx, queue("other", 5, in_m)))
fails("INVALID_PARAMETER", "no rx queue 5", api.delete_rx_queue_async(rx, 5))
for id = 1, 31 do ok(api.add_tx_queue_async(tx, queue(id == 6 and "late" or "q" .. id, id, in_m))) end
for _ = 1, 31 do t.equal(ok(api.poll_resource_op()).state, "ACTIVE") end
fails("INVALID_PARAMETER", "expected 0 to 31", api.add_tx_queue_async(tx, queue("q", 32, in_m)))

-- The ledger has the counts of the queues that went.
local figures = api.session():stats()
t.equal(figures.rx_port.rx.packets, 4)
t.equal(figures.tx_port.tx.packets, 4)
api.shutdown()
