-- memory.lua: connections come and go, so many at a time: what is kept of descriptors, pinned memory and memory, and what one takes.
--   memory.lua --connects 1000 --together 50
local daqiri = require "daqiri"
local args = daqiri.args{ connects = 200, together = 25 }
local function queue(q) return { queues = { { name = q, id = 0, cpu_core = -1, batch_size = 16, memory_regions = { "packets" } } } } end
local s = daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "socket", master_core = 0,
  memory_regions = { { name = "packets", kind = "host", affinity = 0, num_bufs = math.max(4096, 4 * args.together), buf_size = 1024 } },
  interfaces = { { name = "server", address = "10.9.0.1", socket_config = { mode = "server", local_addr = "roce://10.9.0.1:4803" }, roce_config = { transport_mode = "RC" }, rx = queue "rx" },
    { name = "me", address = "10.9.0.2", socket_config = { mode = "client", local_addr = "roce://10.9.0.2" }, roce_config = { transport_mode = "RC" }, tx = queue "tx" } } } } }
local me, came, here = s:interface "me", 0, 0 -- connections of the server
s:interface("server"):on_connection(function(c)
  here = here + 1
  c:on_disconnect(function() here = here - 1 end)
end)
s:rx_queue("server"):on_burst(function(b) came = came + b.n end)
s:start()
-- Descriptors, KiB pinned and KiB resident, once what the script has released is collected.
local function kept()
  collectgarbage()
  collectgarbage()
  local n, pinned, rss = 0, nil, nil
  local list = io.popen "ls /proc/$PPID/fd"
  for _ in list:lines() do n = n + 1 end
  list:close()
  for line in io.lines "/proc/self/status" do
    pinned, rss = line:match "^VmPin:%s*(%d+)" or pinned, line:match "^VmRSS:%s*(%d+)" or rss
  end
  return n, tonumber(pinned), tonumber(rss)
end
-- KiB of the program's own, and of its maps of devices: the rings of queue pairs and completion queues. Of Go's heap, which has its
-- place in the address space, what is alive: it takes pieces of megabytes ahead.
local function maps()
  collectgarbage()
  local own, rings, device, other = collectgarbage("count"), 0, false, false
  for line in io.lines "/proc/self/smaps" do
    local from, file = line:match "^(%x+)%-%x+ %S+ %S+ %S+ %d+%s*(.*)$"
    if from then device, other = file:match "/dev/infiniband" ~= nil, file ~= "" and file ~= "[heap]" or from:match "^c0%x%x%x%x%x%x%x%x$" ~= nil end
    local size, rss = line:match "^Size:%s*(%d+)", line:match "^Rss:%s*(%d+)"
    if size and device then rings = rings + size end
    if rss and not device and not other then own = own + rss end
  end
  return own, rings
end
local function wait(what, fn)
  local began = daqiri.now()
  while not fn() do
    assert(daqiri.now() - began < 60, what)
    daqiri.sleep(1e-3)
  end
end
-- So many connections, each with a message; what they take while they are there, in KiB: the program's, the devices'.
local function round(n)
  local list, before = {}, came
  local own, rings = maps()
  for k = 1, n do
    local x = { c = assert(me:connect{ address = "10.9.0.1:4803" }) }
    x.c:on_disconnect(function(why) x.why = why end)
    list[k] = x
  end
  for _, x in ipairs(list) do
    wait("a connection does not open", function() return x.c.open or x.why end)
    assert(not x.why, x.why)
    local b
    wait("there is no buffer", function() b = x.c:alloc(1) return b end)
    b:set_lengths(100)
    assert(x.c:send(b))
  end
  wait("messages don't come", function() return came == before + n end)
  local own2, rings2 = maps()
  for _, x in ipairs(list) do x.c:close() end
  for _, x in ipairs(list) do wait("a connection does not end", function() return x.why end) end
  wait("the server's ends stay", function() return here == 0 end)
  return own2 - own, rings2 - rings
end
-- The first round grows the completion queues to their size and brings in the code's pages; what the next two add is their
-- connections'. The lesser of both counts: what the program takes ahead is in one of them.
local own, rings, had = math.huge, 0, 0
for k = 1, 3 do
  local n, more = math.floor(args.together * k / 3), nil
  more, rings = round(n)
  if k > 1 then own = math.min(own, more / (n - had) / 2) end
  had = n
end
local fds, pinned, rss = kept()
local made = 0
while made < args.connects do
  round(args.together)
  made = made + args.together
end
local fds2, pinned2, rss2 = kept()
print(("after %d connects: %d descriptors more, %d KiB pinned more of %d, %d KiB more"):format(made, fds2 - fds, pinned2 - pinned, pinned, rss2 - rss))
print(("one end of a connection: %d KiB, and %d KiB of the device's"):format(own, rings / args.together / 2))
s:stop "done"
