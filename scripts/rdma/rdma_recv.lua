-- rdma_recv.lua: waits for RDMA connections, counts their messages and prints the receive rate.
--   daqiri-run rdma_recv --address 10.9.0.1 --port 4096 --seconds 60
-- Needs an RDMA device with this address (`rdma link`), such as soft-RoCE, and `ulimit -l unlimited`.
local daqiri = require "daqiri"
local args = daqiri.args{
  address = { "10.9.0.1", help = "of the RDMA device's network interface" },
  port = { 4096, help = "at which it listens" },
  transport = { "RC", help = "RC, UC or UD" },
  size = { 65536, unit = "bytes", help = "of the longest message" },
  seconds = { 10, help = "how long" },
}

local host = args.address:find(":", 1, true) and "[" .. args.address .. "]" or args.address
local s = daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "socket", master_core = 0,
  memory_regions = { { name = "messages", kind = "host", affinity = 0, num_bufs = 512, buf_size = args.size } },
  interfaces = { { name = "in", address = args.address,
    socket_config = { mode = "server", local_addr = ("roce://%s:%d"):format(host, args.port) },
    roce_config = { transport_mode = args.transport },
    rx = { queues = { { name = "rx", id = 0, cpu_core = -1, batch_size = 64, memory_regions = { "messages" } } } } } } } } }

local i = s:interface "in"
i:on_connection(function(c)
  print(("connected: %s"):format(c.peer))
  c:on_disconnect(function(why) print(("%s: %s"):format(c.peer, why)) end)
end)
local messages, bytes, first, last = 0, 0
s:rx_queue("in"):on_burst(function(b)
  last = s:clock()
  first = first or last
  messages, bytes = messages + b.n, bytes + b.bytes
end)
s:run{ seconds = args.seconds }
local took = last and last > first and (last - first) / 1e9
print(("%d messages, %d bytes"):format(messages, bytes) .. (took and (", %.2f Gbit/s"):format(bytes * 8 / took / 1e9) or ""))
