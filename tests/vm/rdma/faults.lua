-- faults.lua: what goes wrong on RDMA connections, one thing after the other: each is reported, and the ledger closes.
local daqiri = require "daqiri"
local args = daqiri.args{ recv = "" } -- a command that receives at 10.9.0.1:4801, in a process of its own, and prints its id
local function queue(q, region) return { { name = q, id = 0, cpu_core = -1, batch_size = 16, memory_regions = { region } } } end
local function side(name, address, config, small)
  return { name = name, address = address, socket_config = config, roce_config = { transport_mode = "RC" }, rx = { queues = queue(name .. "_rx", small and "small" or "packets") },
    tx = { queues = queue(name .. "_tx", "packets") } }
end
local s = daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "socket", master_core = 0,
  memory_regions = { { name = "packets", kind = "host", affinity = 0, num_bufs = 512, buf_size = 8192 }, { name = "small", kind = "host", affinity = 0, num_bufs = 64, buf_size = 1024 } },
  interfaces = { side("deaf", "10.9.0.1", { mode = "server", local_addr = "roce://10.9.0.1:4800" }),
    side("narrow", "10.9.0.1", { mode = "server", local_addr = "roce://10.9.0.1:4802" }, true),
    side("me", "10.9.0.2", { mode = "client", local_addr = "roce://10.9.0.2" }) } } } }
local me = s:interface "me"
s:rx_queue("narrow", 0):on_burst(function() end)
s:threshold("errors >= 0") -- connections are broken on purpose
s:start()
local function open(address)
  local x = { began = daqiri.now() }
  x.c = assert(me:connect{ address = address })
  x.c:on_disconnect(function(why) x.why, x.took = why, daqiri.now() - x.began end)
  while not x.c.open and not x.why do daqiri.sleep(1e-3) end
  return x
end
local function ends(what, x, within)
  while not x.why do
    assert(daqiri.now() - x.began < within, what .. ": no end")
    daqiri.sleep(1e-3)
  end
  print(what, x.why)
end
local function send(c, n, len)
  local b, status = c:alloc(n)
  if not b then return status end
  b:set_lengths(len)
  local sent, why = c:send(b)
  if not sent then b:free() end
  return sent and "SUCCESS" or why
end
-- A message whose end is reported: how it went is in the operation.
local function message(c, len)
  local b = assert(c:alloc(1))
  b:set_lengths(len)
  return assert(c:message(b))
end
local function failed(op)
  assert(op:wait{ timeout = 20 }, "an operation has no end")
  return op.error or "no error"
end
-- Nothing listens there; nothing is there.
ends("refused", open "10.9.0.1:4899", 10)
ends("unreachable", open "10.9.0.77:4800", 10)
-- Nothing reads: the sender is refused, and the connection ends all the same.
local deaf = open "10.9.0.1:4800"
local sent, refused, kept = 0, nil, nil
for _ = 1, 64 do kept = message(deaf.c, 100) end -- its first buffers are few
for _ = 1, 200 do
  refused = send(deaf.c, 8, 100)
  if refused ~= "SUCCESS" then break end
  sent = sent + 8
  daqiri.sleep(1e-3)
end
print("deaf", refused, sent > 0)
local closed = daqiri.now()
deaf.c:close()
ends("closed", deaf, 60)
print("kept", failed(kept))
assert(daqiri.now() - closed < 12, "it took too long")
-- Connections that come one after the other, each with a message at once: those that were first leave buffers to the others.
local crowd = {}
for k = 1, 24 do
  crowd[k] = open "10.9.0.1:4802"
  assert(failed(message(crowd[k].c, 100)) == "no error")
end
for _, x in ipairs(crowd) do assert(failed(message(x.c, 100)) == "no error") end
print("crowd", #crowd)
for _, x in ipairs(crowd) do x.c:close() end
-- A message that is longer than the buffers there.
local narrow = open "10.9.0.1:4802"
local long = message(narrow.c, 4000)
ends("too long", narrow, 20)
print("long", failed(long))
-- A peer that is killed while it receives.
os.execute(args.recv .. " >/dev/shm/fault-recv 2>&1 & echo $! >/dev/shm/fault-pid")
local killed, last
for _ = 1, 100 do
  daqiri.sleep(0.1)
  killed = open "10.9.0.1:4801"
  if not killed.why then break end
end
assert(send(killed.c, 4, 8192) == "SUCCESS")
os.execute "kill -STOP $(cat /dev/shm/fault-pid)"
local stuck = daqiri.now() -- as it takes no more than it has buffers for, at most 256, the last of these messages doesn't go
for _ = 1, 320 do
  local b = killed.c:alloc(1)
  if b then
    b:set_lengths(100)
    local op = killed.c:message(b)
    if op then last, stuck = op, daqiri.now() else b:free() end
  end
  if daqiri.now() - stuck > 2 then break end
  daqiri.sleep(1e-3)
end
os.execute "kill -9 $(cat /dev/shm/fault-pid)"
ends("killed", killed, 60)
print("last", failed(last))
s:stop "done"
