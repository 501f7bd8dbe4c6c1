-- rdma_put.lua: one side lends memory in slots, the other writes records into them (daqiri.ring): no message carries data.
--   daqiri-run rdma_put --at 10.9.0.1 --from 10.9.0.2 --count 1000
-- Both sides are here, in one session; each part would be in a program of its own.
local daqiri, ring = require "daqiri", require "daqiri.ring"
local args = daqiri.args{
  at = { "10.9.0.1", help = "the address of the RDMA device of who lends" },
  from = { "10.9.0.2", help = "and of who writes" },
  port = { 4096, help = "to use" },
  count = { 1000, unit = "slots", help = "to fill" },
}
local SLOTS, BYTES = 64, 16384

local function side(name, address, config)
  local function queue(q) return { { name = q, id = 0, cpu_core = -1, batch_size = 16, memory_regions = { "packets" } } } end
  return { name = name, address = address, socket_config = config, roce_config = { transport_mode = "RC" }, rx = { queues = queue(name .. "_rx") },
    tx = { queues = queue(name .. "_tx") } }
end
local server = ("roce://%s:%d"):format(args.at, args.port)
local s = daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "socket", master_core = 0,
  memory_regions = { { name = "packets", kind = "host", affinity = 0, num_bufs = 512, buf_size = BYTES },
    { name = "ring", kind = "host", affinity = 0, num_bufs = SLOTS, buf_size = BYTES, access = { "local", "rdma_write" } } },
  interfaces = { side("lender", args.at, { mode = "server", local_addr = server }),
    side("writer", args.from, { mode = "client", local_addr = "roce://" .. args.from, remote_addr = server }) } } } }

-- The lender reads each record in place; the slot returns to the writer when the function returns.
local reader, wrong = nil, 0
local function check(record)
  if record.bytes ~= BYTES or record:get(0, 8) ~= ("%08d"):format(record.number) then wrong = wrong + 1 end
end
s:interface("lender"):on_connection(function(c)
  reader = assert(ring.reader(c, { region = "ring", slots = SLOTS, slot_bytes = BYTES, on_record = check }))
end)
-- The writer has receive buffers for the reader's messages.
local c
s:interface("writer"):on_connection(function(made) c = made end)
s:start()
while not (c and c.remotes.ring) do daqiri.sleep(1e-3) end
local writer = ring.writer(c, "ring")
local began = s:clock()
while reader.read < args.count do
  local b = writer.written < args.count and writer.free > 0 and c:alloc(1)
  if b then
    b:set_lengths(BYTES)
    b:packet(1):set_bytes(0, ("%08d"):format(writer.written))
    if not writer:write(b) then b:free() end
  else
    daqiri.sleep(0)
  end
end
local took = (s:clock() - began) / 1e9
print(("%d slots of %d bytes, %d wrong, %.2f Gbit/s"):format(reader.read, BYTES, wrong, reader.read * BYTES * 8 / took / 1e9))
