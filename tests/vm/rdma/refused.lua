-- refused.lua: what is refused before anything is posted, by name; private data; and datagrams between queue pairs that are connected by hand, by the
-- GID that the configuration names.
local daqiri = require "daqiri"
local function queue(q) return { queues = { { name = q, id = 0, poll_mode = "direct", batch_size = 16, memory_regions = { "packets" } } } } end
local function side(name, address, port, transport, gid_index)
  return { name = name, address = address, socket_config = { mode = port and "server" or "client", local_addr = "roce://" .. address .. (port and ":" .. port or "") },
    roce_config = { transport_mode = transport, gid_index = gid_index }, rx = queue(name .. "_rx"), tx = queue(name .. "_tx") }
end
local function open(...)
  return daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "socket", master_core = 0,
    memory_regions = { { name = "packets", kind = "host", affinity = 0, num_bufs = 256, buf_size = 8192 } }, interfaces = { ... } } } }
end
local function refused(what, ok, status, text) print("refused", what, ok, status, text) end
local function wait(what, fn)
  local began = daqiri.now()
  while not fn() do
    assert(daqiri.now() - began < 30, what)
    daqiri.sleep(1e-3)
  end
end
-- Two interfaces on one address.
refused("twice", pcall(open, side("one", "10.9.0.1", 4810, "RC"), side("two", "10.9.0.1", 4810, "RC")))
-- The place of an address in a port's table.
local function place(device, gid)
  for k = 0, 15 do
    local f = io.open(("/sys/class/infiniband/%s/ports/1/gids/%d"):format(device, k))
    local text = f and f:read "*l"
    if f then f:close() end
    if text == gid then return k end
  end
  error("no " .. gid)
end
local here, there = place("rxe0", "fd09:0000:0000:0000:0000:0000:0000:0001"), place("rxe1", "fd09:0000:0000:0000:0000:0000:0000:0002")
local s = open(side("ud", "10.9.0.1", nil, "UD", here), side("peer", "10.9.0.2", nil, "UD", there), side("none", "10.9.0.1", nil, "RC", 200),
  side("rc", "10.9.0.1", nil, "RC"), side("rcpeer", "10.9.0.2", nil, "RC"), side("server", "10.9.0.1", 4811, "RC"), side("udserver", "10.9.0.1", 4812, "UD"))
local given = {}
for _, name in ipairs{ "server", "udserver" } do
  s:interface(name):on_connection(function(c) given[#given + 1] = c.private_data end)
end
local came, kept = {}, {}
s:rx_queue("ud"):on_burst(function(b) came[#came + 1] = b:packet(1):bytes() end)
for k = 1, 2 do s:rx_queue("rc"):on_burst(function(b) kept[k] = b:keep() end, { policy = "wait" }) end
s:start()
refused("gid", s:interface("none"):connect{ qp = {} })
local function pair(a, b)
  local x, y = assert(s:interface(a):connect{ qp = {} }), assert(s:interface(b):connect{ qp = {} })
  assert(x:join(y.qp) and y:join(x.qp))
  wait("no connection by hand", function() return x.open and y.open end)
  return x, y
end
local function filled(c, text)
  local b = assert(c:alloc(1))
  b:set_lengths(#text)
  b:packet(1):set_bytes(0, text)
  return b
end
local x, y = pair("ud", "peer")
print("datagrams", x.qp.gid, y.qp.gid, x.peer)
assert(y:send(filled(y, "datagram")))
wait("no datagram", function() return came[1] end)
print("came", came[1])
refused("above the MTU", y:message(filled(y, ("x"):rep(4097))))
assert(y:tell("ring", { addr = 4096, rkey = 1, bytes = 4096 }))
refused("datagrams are messages", y:write(filled(y, "x"), "ring", 0))
assert(y:send(filled(y, ("y"):rep(4097)))) -- what is sent is found too long when it is its turn
assert(y:send(filled(y, ("z"):rep(4096))))
wait("no long datagram", function() return came[2] end)
print("came", #came[2], #came)
-- What others have may not be written to.
x, y = pair("rc", "rcpeer")
assert(y:send(filled(y, "shared")))
wait("no message", function() return kept[1] and kept[2] end)
assert(x:tell("ring", { addr = 4096, rkey = 1, bytes = 4096 }))
refused("shared", x:read("ring", 0, kept[1]))
kept[1]:free()
kept[2]:free()
-- What a client gives with its request is what the server gets, byte by byte, and nothing else.
refused("private", s:interface("rcpeer"):connect{ address = "10.9.0.1:4811", private_data = ("p"):rep(49) })
for k, how in ipairs{ { "rcpeer", 4811, ("p"):rep(48) }, { "rcpeer", 4811, "key\0=17\0" }, { "rcpeer", 4811, "" }, { "peer", 4812, "who\0" }, { "peer", 4812 } } do
  local c = assert(s:interface(how[1]):connect{ address = "10.9.0.1:" .. how[2], private_data = how[3] })
  wait("no connection with private data", function() return c.open and given[k] end)
  assert(given[k] == (how[3] or "") and c.private_data == "", ("%d: %q"):format(k, given[k]))
end
print("given", #given)
s:stop "done"
