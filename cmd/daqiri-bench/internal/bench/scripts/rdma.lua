-- rdma.lua: messages, writes or reads between two RDMA devices, from a worker of one to a worker of the other. Prints figures as JSON.
--   daqiri-run rdma.lua --what write --at 10.9.0.1 --from 10.9.0.2 --port 4096 --seconds 2
local daqiri = require "daqiri"
local args = daqiri.args{
  what = { "send", help = "send, write, read or latency" },
  at = { "10.9.0.1", help = "the address of the device that receives" },
  from = { "10.9.0.2", help = "and of the one that sends" },
  port = { 4096, help = "to use" },
  size = { 65536, unit = "bytes", help = "of a message" },
  seconds = { 1, help = "to measure, after a tenth of that to warm up" },
}
local pingpong, posts = args.what == "latency", args.what == "write" or args.what == "read" -- what the script posts, it posts from any core
local together = posts and 64 or 16 -- messages of a burst
local function side(name, address, config, core)
  local function queue(q) return { queues = { { name = q, id = 0, cpu_core = posts and -1 or core, batch_size = together, memory_regions = { q } } } } end
  return { name = name, address = address, socket_config = config, roce_config = { transport_mode = "RC" }, rx = queue(name .. "_in"), tx = queue(name .. "_out") }
end
local server = ("roce://%s:%d"):format(args.at, args.port)
local function region(name, n, access) return { name = name, kind = "host", affinity = 0, num_bufs = n, buf_size = math.max(args.size, 128), access = access } end
local s = daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "socket", master_core = 0,
  memory_regions = { region("there_in", 512), region("there_out", 16), region("here_in", 64), region("here_out", 512), region("ring", together, { "local", "rdma_write", "rdma_read" }) },
  interfaces = { side("there", args.at, { mode = "server", local_addr = server }, 0),
    side("here", args.from, { mode = "client", local_addr = "roce://" .. args.from, remote_addr = server }, 1) } } } }

local c
s:interface("there"):on_connection(function(lender) lender:lend("ring", { access = "rdma_read_write" }) end)
s:interface("here"):on_connection(function(made) c = made end)
local bytes = 0
local function messages(n)
  local b = c:alloc(n)
  b:set_lengths(args.size)
  return b
end

if pingpong then -- one message, which either end sends back as it comes, without a script
  s:pipe(s:rx_queue "there", s:tx_queue "there")
  s:pipe(s:rx_queue "here", s:tx_queue "here")
  s:start()
  while not c do daqiri.sleep(1e-3) end
  c:send(messages(1))
  s:measure{ seconds = args.seconds / 10 }
  local m = s:measure{ seconds = args.seconds }
  print(daqiri.json{ mean = m.seconds / (2 * m.here.rx.packets) * 1e6, n = m.here.rx.packets, cpu_seconds = m.process.cpu_seconds, seconds = m.seconds })
  return
end

if args.what == "send" then
  s:pipe(s:rx_queue "there", s:count{ name = "counted" })
  s:start()
  local tx = s:tx_queue "here"
  while not c do daqiri.sleep(1e-3) end
  tx:transmit{ template = tx:template{ payload_bytes = args.size } }
else
  s:start()
  while not (c and c.remotes.ring) do daqiri.sleep(1e-3) end
  local function go_on()
    local b = args.what == "write" and messages(together)
    local op = b and c:write(b, "ring", 0) or not b and c:read("ring", 0, together * args.size)
    if b and not op then b:free() end -- the session ends
  end
  c:on_completion(function(w)
    assert(w.status == "SUCCESS", w.status)
    for k = 1, w.n do
      bytes = bytes + w[k].bytes
      if args.what == "read" then w[k].op.burst:free() end
      go_on()
    end
  end)
  for _ = 1, 128 / together do go_on() end
end
local function measure(seconds)
  bytes = 0
  local m = s:measure{ seconds = seconds }
  return m, args.what == "send" and m.counted.bytes or bytes
end
repeat local _, came = measure(0.01) until came > 0
measure(args.seconds / 10)
local m, moved = measure(args.seconds)
print(daqiri.json{ bytes = moved, seconds = m.seconds, cpu_seconds = m.process.cpu_seconds })
