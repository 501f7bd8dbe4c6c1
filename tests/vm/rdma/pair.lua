-- pair.lua: a connection without connection manager with pair.c, and one between two interfaces here.
local daqiri = require "daqiri"
local args = daqiri.args{ transport = "RC" }
local function side(name, address)
  local function queue(q) return { { name = q, id = 0, poll_mode = "direct", batch_size = 16, memory_regions = { "packets" } } } end
  return { name = name, address = address, socket_config = { mode = "client", local_addr = "roce://" .. address }, roce_config = { transport_mode = args.transport },
    rx = { queues = queue(name .. "_rx") }, tx = { queues = queue(name .. "_tx") } }
end
local s = daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "socket", master_core = 0,
  memory_regions = { { name = "packets", kind = "host", affinity = 0, num_bufs = 512, buf_size = 8192 },
    { name = "ring", kind = "host", affinity = 0, num_bufs = 2, buf_size = 8192, access = { "local", "rdma_write" } } },
  interfaces = { side("me", "10.9.0.1"), side("other", "10.9.0.2") } } } }
local me = s:interface "me"
local function sum(text)
  local n = 0
  for k = 1, #text do n = (n * 31 + text:byte(k)) % 2 ^ 32 end
  return ("%d"):format(n)
end
local came
s:rx_queue("me"):on_burst(function(b) came = b:packet(1):bytes() end)
s:start()
local function try(f, ...)
  local ok, status, text = f(...)
  print("refused", ok, status, text)
end
-- Bad ends.
local c = assert(me:connect{ qp = {} })
print("made", c.open, c.qp.qpn > 0, c.qp.gid, c.qp.mtu)
try(c.join, c, { qpn = 5, psn = 6 })
try(c.join, c, { qpn = 5, psn = 6, lid = 7 })
try(me.connect, me, { qp = { qpn = 5, psn = 6, addr = "10.9.0.77" } })
c:close()
-- The peer is a stranger's.
local file
repeat file = io.open "/dev/shm/pair-theirs" daqiri.sleep(0.05) until file
local qpn, psn, addr, rkey, bytes = file:read("*a"):match "(%d+) (%d+) (%d+) (%d+) (%d+)"
file:close()
c = assert(me:connect{ qp = { qpn = tonumber(qpn), psn = tonumber(psn), addr = "10.9.0.2", mtu = 1024 }, remote = { ring = { addr = addr, rkey = rkey, bytes = bytes } } })
local out = assert(io.open("/dev/shm/pair-ours", "w"))
out:write(("%d %d %s .\n"):format(c.qp.qpn, c.qp.psn, c.qp.gid))
out:close()
repeat file = io.open "/dev/shm/pair-ready" daqiri.sleep(0.05) until file
print("open", c.open, c.peer)
local lease = assert(c:lend "ring")
local b = c:alloc(1)
local text = ("%s %s"):format(lease.addr, lease.rkey)
b:set_lengths(#text)
b:packet(1):set_bytes(0, text)
assert(c:send(b))
b = c:alloc(3)
b:set_lengths(3001)
local all = ""
for k = 1, 3 do
  local part = (("%05d "):format(k)):rep(500) .. "x"
  b:packet(k):set_bytes(0, part)
  all = all .. part
end
local op = assert(c:write(b, "ring", 0, { imm = 77 }))
assert(op:wait{ timeout = 20 })
print("written", sum(all .. ("\0"):rep(bytes - #all)))
local why
c:on_disconnect(function(text) why = text end)
while not came do daqiri.sleep(1e-3) end
print("came", #came, sum(came), sum(lease:get(3, 5001)), lease:get(0, 3) == "\0\0\0")
-- Its last write has a wrong key, which puts our queue pair in error. Nothing else shows it.
local began = daqiri.now()
while args.transport == "RC" and not why and daqiri.now() - began < 30 do daqiri.sleep(1e-3) end
print("in error", why)
c:close()
-- And both ends here.
came = nil
local x, y = assert(me:connect{ qp = {} }), assert(s:interface("other"):connect{ qp = {} })
assert(x:join(y.qp) and y:join(x.qp))
while not (x.open and y.open) do daqiri.sleep(1e-3) end
b = y:alloc(1)
b:set_lengths(5)
b:packet(1):set_bytes(0, "hello")
assert(y:send(b))
while not came do daqiri.sleep(1e-3) end
print("here", came)
try(x.join, x, y.qp)
s:stop "done"
