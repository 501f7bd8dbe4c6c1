-- lend.lua: a server lends a region to each client, which writes with slots' numbers as immediates, reads, counts; then the server
-- takes it back, and a write after that fails.
local daqiri = require "daqiri"
local function side(name, conf, address)
  local function queue(q)
    local worker = q == "clientrx"
    return { { name = q, id = 0, cpu_core = worker and -1 or nil, poll_mode = not worker and "direct" or nil, batch_size = 16, memory_regions = { "packets" } } }
  end
  return { name = name, address = address, socket_config = conf, roce_config = { transport_mode = "RC" }, tx = { queues = queue(name .. "tx") }, rx = { queues = queue(name .. "rx") } }
end
local s = daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "socket", master_core = 0,
  memory_regions = { { name = "packets", kind = "host", affinity = 0, num_bufs = 512, buf_size = 4096 },
    { name = "slots", kind = "host", affinity = 0, num_bufs = 16, buf_size = 4096, access = { "local", "rdma_write", "rdma_read" } },
    { name = "mine", kind = "host", affinity = 0, num_bufs = 1, buf_size = 4096 } },
  interfaces = { side("server", { mode = "server", local_addr = "roce://10.9.0.1:4792" }, "10.9.0.1"),
    side("client", { mode = "client", local_addr = "roce://10.9.0.2", remote_addr = "roce://10.9.0.1:4792" }, "10.9.0.2") } } } }
local there, here
s:interface("server"):on_connection(function(c)
  there = c
  c:on_disconnect(function(why) print("server's end", why) end)
end)
s:interface("client"):on_connection(function(c)
  here = c
  c:on_disconnect(function(why) print("client's end", why) here = nil end)
end)
local reported = {}
s:rx_queue("server", 0):on_burst(function(b)
  for k = 1, b.n do reported[#reported + 1] = ("%d bytes, imm %s"):format(b:lengths()[k], tostring(b.imm and b.imm[k])) end
end)
s:threshold("errors >= 0") -- connections are broken on purpose
s:start()
while not there or not here do daqiri.sleep(0.01) end
local function refused(...) local ok, status, text = ... print("refused", ok, status, text) end
refused(there:lend("mine", { name = "ring" }))
refused(there:lend("slots", { name = ("n"):rep(48) }))
refused(there:lend("slots", { slots = 17, slot_bytes = 4096 }))
local lease = assert(there:lend("slots", { name = "ring", access = "rdma_read_write", slots = 16, slot_bytes = 4096 }))
while not here.remotes.ring do daqiri.sleep(0.01) end
local r = here.remotes.ring
print("remote", r.bytes, r.slots, r.slot_bytes, r.readable, r.writable, r.rkey == lease.rkey, r.addr == lease.addr)
for k = 0, 15 do
  local b = assert(here:alloc(1))
  b:set_lengths(100)
  b:packet(1):set_bytes(0, ("%04d"):format(k):rep(25))
  assert(assert(here:write(b, "ring", k * 4096, { imm = k })):wait{ timeout = 10 })
end
while #reported < 16 do daqiri.sleep(0.01) end
print("reported", reported[1], reported[16])
for k = 0, 15 do assert(lease:get(k * 4096, 100) == ("%04d"):format(k):rep(25), "slot " .. k) end
lease:put(8, "ABCDEFGH")
local read = assert(here:read("ring", 0, 65536))
assert(read:wait{ timeout = 10 } and not read.error, read.error)
print("read", read.burst.n, read.burst.bytes, read.burst:packet(1):bytes(0, 20), read.burst:packet(16):bytes(0, 4))
read.burst:free()
assert(lease:revoke())
while here.remotes.ring do daqiri.sleep(0.01) end
refused(here:read("ring", 0, 8))
-- Who keeps the key all the same is stopped by the device.
assert(here:tell("ring", { addr = r.addr, rkey = r.rkey, bytes = r.bytes }))
-- That ends the connection, and the client connects again by itself, maybe before the operation's end is received here.
local lent, mine = there, here
local b = assert(here:alloc(1))
b:set_lengths(4)
b:packet(1):set_bytes(0, "late")
local late = assert(here:write(b, "ring", 0))
-- The client's worker sees that its receives are flushed before the script, which checks completions of writes, sees why.
local busy = daqiri.time "now" + 0.1
while daqiri.time "now" < busy do end
assert(late:wait{ timeout = 10 })
print("late", late.error)
print("untouched", lease:get(0, 4))
while not (here and here ~= mine and there ~= lent) do daqiri.sleep(0.01) end
print("again", here.open, there.open)
-- A peer that takes what it is lent for longer than it is.
lease = assert(there:lend("slots", { name = "ring", access = "rdma_write" }))
while not here.remotes.ring do daqiri.sleep(0.01) end
assert(here:tell("ring", { addr = lease.addr, rkey = lease.rkey, bytes = lease.bytes + 4096 }))
mine = here
b = assert(here:alloc(1))
b:set_lengths(4)
local beyond = assert(here:write(b, "ring", lease.bytes - 2))
assert(beyond:wait{ timeout = 10 })
print("beyond", beyond.error)
while here == mine do daqiri.sleep(0.01) end
s:stop "done"
