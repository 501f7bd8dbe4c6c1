-- shared_memory.lua: receives UDP into shared memory of another process and reports where the packets are. docs/memory.md has the Python side.
--   daqiri-run shared_memory                                (prints the size that the memory must have, as JSON)
--   daqiri-run shared_memory --shm NAME --unix /tmp/rx.sock
-- A client of the socket sends 'take' for the places of new packets, and 'free' when it has read them.
local daqiri = require "daqiri"
local args = daqiri.args{
  shm = { "", help = "name of the POSIX shared memory; without it the script prints the requirement" },
  unix = { "rx.sock", help = "path of the control socket" },
  address = { "127.0.0.1:7148", help = "where packets are received" },
  seconds = { 3600, unit = "s" },
}

local queue = { name = "rx", id = 0, cpu_core = -1, batch_size = 64, timeout_us = 1000, memory_regions = { "packets" } }
local config = { version = 1, stream_type = "socket", master_core = 0,
  memory_regions = { { name = "packets", kind = "host", affinity = 0, num_bufs = 1024, buf_size = 9000, owned = false } },
  interfaces = { { name = "rx_port", address = "127.0.0.1", socket_config = { mode = "server", local_addr = "udp://" .. args.address },
    rx = { queues = { queue } } } } }

local need = assert(daqiri.memory_requirements(config)).packets
if args.shm == "" then return print(daqiri.json(need)) end

local s = daqiri.open(config, { bindings = { packets = { shm = args.shm } } })
local new, lent = {}, {}
s:rx_queue("rx_port"):on_burst(function(b) new[#new + 1] = b:keep() end)

local ctl = daqiri.control{ unix = args.unix }
ctl:on("take", function()                                   -- buffers stay the client's until it sends free
  local places = {}
  for _, b in ipairs(new) do
    local offsets, lengths = b:offsets(), b:lengths()
    for i = 1, b.n do places[#places + 1] = { offsets[i], lengths[i] } end
    lent[#lent + 1] = b
  end
  new = {}
  return places
end)
ctl:on("free", function()
  for _, b in ipairs(lent) do b:free() end
  lent = {}
end)
ctl:on("stop", function() s:stop("asked to") end)
s:run{ seconds = args.seconds }
