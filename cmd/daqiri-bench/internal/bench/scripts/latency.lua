-- latency.lua: how long after the kernel stamped a datagram a handler has it. Prints its readiness and then percentiles in
-- µs, as JSON lines.
--   daqiri-run latency.lua --listen 0.0.0.0:7155 --count 2000
local daqiri = require "daqiri"
local args = daqiri.args{
  listen = { "127.0.0.1:7155", help = "HOST:PORT to receive at" },
  count = { 2000, unit = "datagrams", help = "to time" },
}

local s = daqiri.open{ daqiri = { cfg = {
  version = 1, stream_type = "socket", master_core = 0,
  memory_regions = { { name = "packets", kind = "host", affinity = 0, num_bufs = 4096, buf_size = 2048 } },
  interfaces = { { name = "port", address = "0.0.0.0", socket_config = { mode = "server", local_addr = "udp://" .. args.listen },
    rx = { queues = { { name = "rx", id = 0, poll_mode = "direct", batch_size = 64, memory_regions = { "packets" } } } } } },
} } }
local times = {}
s:rx_queue("port"):on_burst(function(b)
  local now = s:clock()
  times[#times + 1] = (now - b.rx_time) / 1e3
end)
s:start()
print(daqiri.json{ ready = 1 })

repeat s:measure{ seconds = 0.01 } until #times > 0
repeat local quiet = s:measure{ seconds = 0.1 } until #times >= args.count or quiet.port.rx.packets == 0
table.sort(times)
local function at(share) return times[math.floor(share * (#times - 1)) + 1] end
print(daqiri.json{ n = #times, p50 = at(0.5), p90 = at(0.9), p99 = at(0.99), max = at(1) })
