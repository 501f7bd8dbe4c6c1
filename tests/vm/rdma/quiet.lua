-- quiet.lua: one operation at a time, with pauses in which workers fall asleep, as they do while a megabyte is
-- written: each end is reported, on the queue that sends alone.
local daqiri = require "daqiri"
local function queue(q) return { queues = { { name = q, id = 0, cpu_core = -1, batch_size = 16, memory_regions = { "packets" } } } } end
local function side(name, address, conf) return { name = name, address = address, socket_config = conf, roce_config = { transport_mode = "RC" }, rx = queue(name .. "_rx"), tx = queue(name .. "_tx") } end
local s = daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "socket", master_core = 0,
  memory_regions = { { name = "packets", kind = "host", affinity = 0, num_bufs = 256, buf_size = 65536 },
    { name = "ring", kind = "host", affinity = 0, num_bufs = 16, buf_size = 65536, access = { "local", "rdma_write", "rdma_read" } } },
  interfaces = { side("server", "10.9.0.1", { mode = "server", local_addr = "roce://10.9.0.1:4806" }),
    side("client", "10.9.0.2", { mode = "client", local_addr = "roce://10.9.0.2", remote_addr = "roce://10.9.0.1:4806" }) } } } }
local c
s:interface("server"):on_connection(function(from) assert(from:lend("ring", { access = "rdma_read_write" })) end)
s:interface("client"):on_connection(function(made) c = made end)
s:start()
while not (c and c.remotes.ring) do daqiri.sleep(0.01) end
local late, longest = 0, 0
for k = 1, 40 do
  daqiri.sleep(0.02)
  local b = k % 4 == 0 and assert(c:alloc(16))
  if b then b:set_lengths(65536) end
  local began = daqiri.now()
  local op = assert(b and c:write(b, "ring", 0) or k % 4 == 1 and c:read("ring", 0, 100) or k % 4 == 2 and c:fetch_add("ring", 8 * k, 1) or c:compare_swap("ring", 8 * k, 0, k))
  if not op:wait{ timeout = 2 } then late = late + 1 end
  assert(not op.error, op.error)
  longest = math.max(longest, daqiri.now() - began)
  if not b and op.burst then op.burst:free() end
end
print(("40 operations, %d not completed within 2 s; the longest took %.1f ms"):format(late, longest * 1e3))
s:stop "done"
