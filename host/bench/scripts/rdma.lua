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
local direct = args.what == "latency"
local function side(name, address, config, region)
  local function queue(q, tx)
    return { { name = q, id = 0, poll_mode = direct and "direct" or nil, cpu_core = not direct and -1 or nil, batch_size = 16, memory_regions = { region } } }
  end
  return { name = name, address = address, socket_config = config, roce_config = { transport_mode = "RC" }, rx = { queues = queue(name .. "_rx") },
    tx = { queues = queue(name .. "_tx") } }
end
local server = ("roce://%s:%d"):format(args.at, args.port)
local function region(name, n, access) return { name = name, kind = "host", affinity = 0, num_bufs = n, buf_size = math.max(args.size, 128), access = access } end
local s = daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "socket", master_core = 0,
  memory_regions = { region("there", 512), region("here", 512), region("ring", 16, { "local", "rdma_write", "rdma_read" }) },
  interfaces = { side("there", args.at, { mode = "server", local_addr = server }, "there"),
    side("here", args.from, { mode = "client", local_addr = "roce://" .. args.from, remote_addr = server }, "here") } } } }

local c
s:interface("there"):on_connection(function(lender) lender:lend("ring", { access = "rdma_read_write" }) end)
s:interface("here"):on_connection(function(made) c = made end)
local bytes, last = 0, 0
local function message()
  local b = c:alloc(1)
  b:set_lengths(args.size)
  return b
end

if args.what == "latency" then
  local times, sent = {}, 0
  s:rx_queue("there"):on_burst(function(b)
    local answer = b.connection:alloc(b.n)
    answer:set_lengths(args.size)
    b.connection:send(answer)
  end)
  s:rx_queue("here"):on_burst(function(b)
    times[#times + 1] = s:clock() - sent
    sent = s:clock()
    c:send(message())
  end)
  s:start()
  while not c do daqiri.sleep(1e-3) end
  sent = s:clock()
  c:send(message())
  s:measure{ seconds = args.seconds / 10 }
  times = {}
  s:measure{ seconds = args.seconds }
  table.sort(times)
  local function at(part) return times[math.max(1, math.ceil(part * #times))] / 2e3 end -- one way, in µs
  print(daqiri.json{ p50 = at(0.5), p99 = at(0.99), max = at(1), n = #times })
  return
end

if args.what == "send" then
  s:rx_queue("there"):on_burst(function(b) bytes = bytes + b.bytes end)
  s:start()
  local tx = s:tx_queue "here"
  while not c do daqiri.sleep(1e-3) end
  tx:transmit{ template = tx:template{ payload_bytes = args.size } }
else
  s:start()
  while not (c and c.remotes.ring) do daqiri.sleep(1e-3) end
  local room = c.remotes.ring.bytes - args.size
  local function go_on()
    local b = args.what == "write" and message()
    local op = b and c:write(b, "ring", last) or not b and c:read("ring", last, args.size)
    if b and not op then b:free() end -- the session ends
    last = (last + args.size) % (room > 0 and room or 1)
  end
  c:on_completion(function(w)
    assert(w.status == "SUCCESS", w.status)
    for k = 1, w.n do
      bytes = bytes + w[k].bytes
      if args.what == "read" then w[k].op.burst:free() end
      go_on()
    end
  end)
  for _ = 1, 64 do go_on() end
end
repeat s:measure{ seconds = 0.01 } until bytes > 0
s:measure{ seconds = args.seconds / 10 }
bytes = 0
local m = s:measure{ seconds = args.seconds }
print(daqiri.json{ bytes = bytes, seconds = m.seconds, cpu_seconds = m.process.cpu_seconds })
