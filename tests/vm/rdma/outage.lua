-- outage.lua: the link goes and comes back while messages are under way, then the device goes: each is reported, and the ledger closes.
local daqiri = require "daqiri"
local function queue(q) return { { name = q, id = 0, cpu_core = -1, batch_size = 16, memory_regions = { "packets" } } } end
local function side(name, address, config)
  return { name = name, address = address, socket_config = config, roce_config = { transport_mode = "RC" }, rx = { queues = queue(name .. "_rx") }, tx = { queues = queue(name .. "_tx") } }
end
local s = daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "socket", master_core = 0,
  memory_regions = { { name = "packets", kind = "host", affinity = 0, num_bufs = 512, buf_size = 4096 } },
  interfaces = { side("server", "10.9.0.1", { mode = "server", local_addr = "roce://10.9.0.1:4794" }),
    side("deaf", "10.9.0.1", { mode = "server", local_addr = "roce://10.9.0.1:4796" }),
    side("client", "10.9.0.2", { mode = "client", local_addr = "roce://10.9.0.2", remote_addr = "roce://10.9.0.1:4794" }) } } } }
local c, lost, came = nil, nil, 0
s:interface("client"):on_connection(function(made)
  if c then return end -- the second one
  c, lost = made, nil
  c:on_disconnect(function(why) c, lost = nil, why end)
end)
s:rx_queue("server"):on_burst(function(b) came = came + b.n end)
s:start()
local function wait(what, within, fn)
  local began = daqiri.now()
  while not fn() do
    assert(daqiri.now() - began < within, what)
    daqiri.sleep(1e-3)
  end
end
local function send()
  local b = c and c:alloc(8)
  if not b then return end
  b:set_lengths(4096)
  if not c:send(b) then b:free() end
end
wait("no connection", 30, function() return c end)
send()
wait("no message", 30, function() return came >= 8 end)
-- A message whose end is reported.
local function message(on)
  local b
  repeat b = on:alloc(1) until b
  b:set_lengths(64)
  return assert(on:message(b))
end
local function failed(op)
  assert(op:wait{ timeout = 20 }, "an operation has no end")
  return op.error or "no error"
end
os.execute "ip link set v0 down"
local op = message(c)
local down = daqiri.now()
wait("the link's end is not seen", 120, function()
  send()
  return lost
end)
print("down", lost, daqiri.now() - down < 90, failed(op))
os.execute "ip link set v0 up; ip neigh flush all"
wait("no connection after the link came", 120, function() return c end)
local before = came
wait("no message after the link came", 60, function()
  send()
  return came > before
end)
print("up again", came > before)
-- Nothing reads what goes there, and there are few buffers: the last messages stay under way.
local deaf = assert(s:interface("client"):connect{ address = "10.9.0.1:4796" })
wait("no second connection", 30, function() return deaf.open end)
for _ = 1, 64 do op = message(deaf) end
os.execute "rdma link delete rxe1 >/dev/shm/gone 2>&1 &"
wait("the device's end is not seen", 60, function()
  send()
  return lost
end)
print("gone", lost, failed(op))
s:stop "done"
