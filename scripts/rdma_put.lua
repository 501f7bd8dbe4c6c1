-- rdma_put.lua: one side lends memory in slots, the other writes into them and tells which: no message carries data.
--   daqiri-run scripts/rdma_put.lua --at 10.9.0.1 --from 10.9.0.2 --count 1000
-- Both sides are here, in one session; each part is what a program of its own would have.
local daqiri = require "daqiri"
local args = daqiri.args{
  at = { "10.9.0.1", help = "the address of the RDMA device of who lends" },
  from = { "10.9.0.2", help = "and of who writes" },
  port = { 4096, help = "to use" },
  count = { 1000, unit = "slots", help = "to fill" },
}
local SLOTS, BYTES = 64, 16384

local function side(name, address, config, rights)
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

-- Who lends: a slot is free again when the lender says so, in a message whose immediate is how many it has read in all.
local lease, read, wrong = nil, 0, 0
s:interface("lender"):on_connection(function(c) lease = assert(c:lend("ring", { slots = SLOTS, slot_bytes = BYTES })) end)
s:rx_queue("lender"):on_burst(function(b)
  for k = 1, b.n do
    local slot = b.imm[k] % SLOTS
    if lease:get(slot * BYTES, 8) ~= ("%08d"):format(b.imm[k]) then wrong = wrong + 1 end
    read = read + 1
  end
  local credit = b.connection:alloc(1)
  credit:set_lengths(0)
  b.connection:message(credit, { imm = read })
end)

-- Who writes: at most as many slots ahead as there are.
local free, next_slot, c = SLOTS, 0, nil
s:interface("writer"):on_connection(function(made) c = made end)
s:rx_queue("writer"):on_burst(function(b) free = SLOTS + b.imm[b.n] end)
s:start()
while not (c and c.remotes.ring) do daqiri.sleep(1e-3) end
local began = s:clock()
while read < args.count do
  while next_slot < args.count and next_slot < free do
    local b = c:alloc(1)
    if not b then break end
    b:set_lengths(BYTES)
    b:packet(1):set_bytes(0, ("%08d"):format(next_slot))
    if not c:write(b, "ring", next_slot % SLOTS * BYTES, { imm = next_slot }) then
      b:free()
      break
    end
    next_slot = next_slot + 1
  end
  daqiri.sleep(0)
end
local took = (s:clock() - began) / 1e9
print(("%d slots of %d bytes, %d wrong, %.2f Gbit/s"):format(read, BYTES, wrong, read * BYTES * 8 / took / 1e9))
