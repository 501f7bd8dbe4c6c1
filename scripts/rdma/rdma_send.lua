-- rdma_send.lua: connects to an RDMA server and sends messages, as fast as its device accepts them or at a rate.
--   daqiri-run rdma_send --from 10.9.0.2 --to 10.9.0.1:4096 --count 100000 --size 65536
-- The server may be rdma_recv.lua, or any other program that posts sufficiently long buffers.
local daqiri = require "daqiri"
local args = daqiri.args{
  from = { "10.9.0.2", help = "the address of the RDMA device here" },
  to = { "10.9.0.1:4096", help = "the server" },
  transport = { "RC", help = "RC, UC or UD" },
  count = { 1000, unit = "messages", help = "how many" },
  size = { 65536, unit = "bytes", help = "of each" },
  rate = { "", help = "a limit, 10Gbit/s for one" },
}

local host = args.from:find(":", 1, true) and "[" .. args.from .. "]" or args.from
local s = daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "socket", master_core = 0,
  memory_regions = { { name = "messages", kind = "host", affinity = 0, num_bufs = 256, buf_size = args.size } },
  interfaces = { { name = "out", address = args.from,
    socket_config = { mode = "client", local_addr = "roce://" .. host, remote_addr = "roce://" .. args.to },
    roce_config = { transport_mode = args.transport },
    tx = { queues = { { name = "tx", id = 0, cpu_core = -1, batch_size = 64, memory_regions = { "messages" } } } } } } } } }

local tx = s:tx_queue "out"
if args.rate ~= "" then tx:pace{ rate = args.rate } end
local up
s:interface("out"):on_connection(function() up = up or s:clock() end)
s:start()
while not up do daqiri.sleep(1e-3) end
tx:transmit{ template = tx:template{ payload_bytes = args.size, vary = { { at = "payload", bit_offset = 0, bit_width = 32 } } }, count = args.count }
assert(tx:drain{ timeout = 600 }) -- a message has left when it is in the peer's device
local took = (s:clock() - up) / 1e9
print(("%d messages of %d bytes, %.2f Gbit/s"):format(args.count, args.size, args.count * args.size * 8 / took / 1e9))
