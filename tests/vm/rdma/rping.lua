-- rping.lua: the client of `rping -s`, which is a stranger's: each ping is read from memory that is lent to it, and written back
-- into other memory. rping reports what it has read, this what it got back.
local daqiri = require "daqiri"
local args = daqiri.args{ pings = 3, bytes = 3000, port = 7174 }
local function queue(q) return { { name = q, id = 0, poll_mode = "direct", batch_size = 16, memory_regions = { "packets" } } } end
local s = daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "socket", master_core = 0,
  memory_regions = { { name = "packets", kind = "host", affinity = 0, num_bufs = 64, buf_size = 128 },
    { name = "source", kind = "host", affinity = 0, num_bufs = 1, buf_size = 4096, access = { "local", "rdma_read" } },
    { name = "sink", kind = "host", affinity = 0, num_bufs = 1, buf_size = 4096, access = { "local", "rdma_write" } } },
  interfaces = { { name = "me", address = "10.9.0.2", socket_config = { mode = "client", local_addr = "roce://10.9.0.2" }, roce_config = { transport_mode = "RC" },
    rx = { queues = queue "rx" }, tx = { queues = queue "tx" } } } } } }
local reported = 0
s:rx_queue("me"):on_burst(function(b) reported = reported + b.n end)
local c, why = assert(s:interface("me"):connect{ address = "10.9.0.1:" .. args.port }), nil
c:on_disconnect(function(text) why = text end)
s:start()
while not c.open do
  assert(not why, why)
  daqiri.sleep(1e-3)
end
local source, sink = assert(c:lend("source", { access = "rdma_read" })), assert(c:lend "sink")
local function network_order(n, width)
  local t = {}
  for k = width, 1, -1 do t[k], n = string.char(n % 256), math.floor(n / 256) end
  return table.concat(t)
end
local function offer(lease)
  local b = assert(c:alloc(1))
  b:set_lengths(16)
  b:packet(1):set_bytes(0, network_order(tonumber(tostring(lease.addr)), 8) .. network_order(lease.rkey, 4) .. network_order(args.bytes, 4))
  assert(c:send(b))
end
local function wait_for(n)
  local began = daqiri.now()
  while reported < n do
    assert(not why and daqiri.now() - began < 30, why or "no answer")
    daqiri.sleep(1e-3)
  end
end
local same = 0
for k = 1, args.pings do
  local text = ("ping %d of daqiri-run "):format(k)
  text = text .. string.char(64 + k):rep(args.bytes - #text - 1) .. "\0"
  source:put(0, text)
  offer(source)
  wait_for(2 * k - 1)
  offer(sink)
  wait_for(2 * k)
  if sink:get(0, args.bytes) == text then same = same + 1 end
end
print("back", same)
c:close()
while not why do daqiri.sleep(1e-3) end
s:stop "done"
