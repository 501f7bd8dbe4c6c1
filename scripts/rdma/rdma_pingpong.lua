-- rdma_pingpong.lua: measures the round trip time of a message between two RDMA devices, as a histogram.
--   daqiri-run rdma_pingpong --at 10.9.0.1 --from 10.9.0.2 --count 10000 --size 64
local daqiri = require "daqiri"
local args = daqiri.args{
  at = { "10.9.0.1", help = "the address of the RDMA device that answers" },
  from = { "10.9.0.2", help = "and of the one that asks" },
  port = { 4096, help = "to use" },
  count = { 1000, unit = "messages", help = "to send, one after the other" },
  size = { 64, unit = "bytes", help = "of each" },
}
local function side(name, address, config)
  local function queue(q) return { { name = q, id = 0, poll_mode = "direct", batch_size = 8, memory_regions = { "packets" } } } end
  return { name = name, address = address, socket_config = config, roce_config = { transport_mode = "RC" }, rx = { queues = queue(name .. "_rx") },
    tx = { queues = queue(name .. "_tx") } }
end
local server = ("roce://%s:%d"):format(args.at, args.port)
local s = daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "socket", master_core = 0,
  memory_regions = { { name = "packets", kind = "host", affinity = 0, num_bufs = 256, buf_size = math.max(args.size, 128) } },
  interfaces = { side("there", args.at, { mode = "server", local_addr = server }),
    side("here", args.from, { mode = "client", local_addr = "roce://" .. args.from, remote_addr = server }) } } } }

s:rx_queue("there"):on_burst(function(b)
  local c = b.connection
  local answer = c:alloc(b.n)
  answer:set_lengths(args.size)
  c:send(answer)
end)
local times, sent_at, done = {}, 0, 0
local function ask(c)
  local b = c:alloc(1)
  b:set_lengths(args.size)
  sent_at = s:clock()
  c:send(b)
end
s:interface("here"):on_connection(ask)
s:rx_queue("here"):on_burst(function(b)
  done = done + 1
  times[done] = s:clock() - sent_at
  if done < args.count then ask(b.connection) else s:stop "all messages came back" end
end)
s:run{ seconds = 600 }
table.sort(times)
local function at(part) return times[math.max(1, math.ceil(part * #times))] / 1e3 end
print(("%d round trips of %d bytes: p50 %.1f us, p99 %.1f us, longest %.1f us"):format(done, args.size, at(0.5), at(0.99), at(1)))
for low = 0, 40 do -- powers of two, ns
  local n = 0
  for _, t in ipairs(times) do if t >= 2 ^ low and t < 2 ^ (low + 1) then n = n + 1 end end
  if n > 0 then print(("%12.1f us %7d %s"):format(2 ^ low / 1e3, n, ("#"):rep(math.ceil(50 * n / done)))) end
end
