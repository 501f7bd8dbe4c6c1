-- What only connections of RDMA can, on one of TCP: each says that it can't, and takes nothing. tests/vm has those that can.
local daqiri, t = require "daqiri", require "check"
local port = daqiri.args{ port = 0 }.port
local function endpoint(name, config)
  return { name = name, address = "127.0.0.1", socket_config = config,
    rx = { queues = { { name = "rx", id = 0, cpu_core = -1, batch_size = 16, timeout_us = 100, memory_regions = { "m" } } } },
    tx = { queues = { { name = "tx", id = 0, cpu_core = -1, batch_size = 16, memory_regions = { "m" } } } } }
end
local s = daqiri.open{ version = 1, stream_type = "socket", master_core = 0,
  memory_regions = { { name = "m", kind = "host", affinity = 0, num_bufs = 512, buf_size = 2048 }, { name = "ring", kind = "host", affinity = 0, num_bufs = 4, buf_size = 2048 } },
  interfaces = { endpoint("server", { mode = "server", local_addr = "tcp://127.0.0.1:" .. port }), endpoint("client", { mode = "client", remote_addr = "tcp://127.0.0.1:" .. port }) } }
local c
s:interface("client"):on_connection(function(made) c = made end)
s:start()
while not c do daqiri.sleep(1e-3) end
local function lacks(value, status, text)
  t.equal({ value, status }, { nil, "NOT_SUPPORTED" })
  assert(text:find("engine socket", 1, true) or text:find("region ring", 1, true), text)
end
local function nothing(value, status, text)
  t.equal({ value, status }, { nil, "INVALID_PARAMETER" })
  assert(text:find("lends nothing", 1, true), text)
end
t.equal(next(c.remotes), nil)
local b = c:alloc(2)
b:set_lengths(8)
nothing(c:write(b, "ring", 0, { imm = 1 }))
nothing(c:read("ring", 0, 8))
nothing(c:fetch_add("ring", 0, daqiri.u64(1)))
nothing(c:compare_swap("ring", 0, 0, 1))
lacks(c:message(b, { imm = 7 }))
lacks(c:receive(b))
lacks(c:alloc(1, "ring"))
lacks(c:join{ qpn = 1, psn = 2, addr = "10.0.0.2" })
lacks(s:interface("client"):connect{ qp = { qpn = 1, psn = 2, gid = "::ffff:10.0.0.2" } })
t.equal(c.qp, nil)
lacks(s:interface("client"):connect{ address = "127.0.0.1:" .. port, private_data = "a key" })
t.equal(c.private_data, "")
t.raises("one of both is enough", function() c:join{ qpn = 1, psn = 2, addr = "10.0.0.2", gid = "::1" } end)
t.raises("outside 0..16777215", function() c:join{ qpn = 2 ^ 24, psn = 2, lid = 1 } end)
t.raises("is not an address", function() s:interface("client"):connect{ qp = { qpn = 1, psn = 2, gid = "10.0.0.2" } } end)
t.raises("qpm", function() s:interface("client"):connect{ qp = { qpm = 1 } } end)
t.raises("no address to connect to", function() s:interface("client"):connect{ qp = {}, address = "10.0.0.2:1" } end)
lacks(c:tell("ring", { addr = daqiri.u64(4096), rkey = 1, bytes = 8 }))
local lease, status, text = c:lend("ring", { name = "r", access = "rdma_read", slots = 2, slot_bytes = 8 })
if lease then print(lease.addr, lease.rkey, lease:get(0, 8), lease:put(0, "x"), lease:revoke()) end -- not here
lacks(lease, status, text)
c:on_completion(function(w) error("nothing ends: " .. w.n) end)
t.equal(b.imm, nil)
t.raises("rdma_read, rdma_write or rdma_read_write expected", function() c:lend("ring", { access = "all" }) end)
t.raises("0..2^64-1", function() c:fetch_add("ring", 0, "x") end)
t.raises("imm", function() c:message(b, { imm = 2 ^ 32 }) end)
local op = c:write(b, "ring", 0)
t.equal(op and { op.burst, op.value }, nil)
b:free() -- nothing has taken it
s:stop "done"
