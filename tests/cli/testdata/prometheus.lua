-- Traffic with losses on two sessions, until there is a file "stop"; says so when nothing moves any more.
local daqiri = require "daqiri"
local port = daqiri.args{ port = 0 }.port
local function config(kind, interface)
  return { version = 1, stream_type = kind, master_core = 0,
    loopback = kind == "raw" and { mode = "sw", loss = 0.01, dup = 0.01, reorder = 0.05, seed = 3 } or nil,
    memory_regions = { { name = "packets", kind = "host", affinity = 0, num_bufs = 4096, buf_size = 512 },
      kind == "raw" and { name = "batches", kind = "host", affinity = 0, num_bufs = 64, buf_size = 4096 } or nil },
    interfaces = { interface } }
end
local function queues(timeout)
  return { { name = "q", id = 0, cpu_core = -1, batch_size = 32, timeout_us = timeout, memory_regions = { "packets" } } }
end
local s = daqiri.open{ daqiri = { cfg = config("raw", { name = "port", address = "loop0", tx = { queues = queues() },
  rx = { queues = queues(100), flows = { { name = "north", id = 11, match = { udp_dst = 7148 }, action = { type = "queue", id = 0 } } } } }) } }
local sockets = daqiri.open{ daqiri = { cfg = config("socket", { name = "server", address = "127.0.0.1",
  socket_config = { mode = "server", local_addr = "udp://127.0.0.1:" .. port }, rx = { queues = queues(100) }, tx = { queues = queues() } }) } }

local rx, tx = s:rx_queue("port"), s:tx_queue("port")
local received = 0
sockets:rx_queue("server"):on_burst(function(b) received = received + b.n end)
local blocks = s:reorder{ name = "blocks", memory_region = "batches", at = "payload", payload_byte_offset = 8, window = 1, timeout_us = 500, slots = 8,
  slot_bytes = 92, batch = "number // 9", slot = "number % 9", source = "number % 3",
  fields = { number = { at = "payload", bit_offset = 0, bit_width = 64 } } }
local seen = 0
s:pipe(rx, blocks)
blocks:on_burst(function(b) seen = seen + 1 end)
s:pipe(rx, s:filter{ name = "half", where = "ipv4_id ~= 0 or len < 0" }, s:write_pcap{ name = "none", dirs = { "." } })
s:pipe(rx, s:write_pcap{ name = "disk", dirs = { "." } })
s:after(0, function()
  tx:pace{ rate = "8Mbit/s", pps = 4000 }
  tx:transmit{ template = tx:template{ udp_dst = 7148, payload_bytes = 100,
    vary = { { at = "payload", bit_offset = 0, bit_width = 64, step = 1 } } } }
end)
local ended, last, reply
s:every(0.1, function()
  s:metric("seen", seen)
  if not ended then
    local stop = io.open("stop")
    if stop then
      stop:close()
      tx:transmit{ template = false }
      ended = true
    end
    return
  end
  local now = s:stats()
  local sum = now.port.rx.packets + now.disk.written + now.blocks.out + received
  if sum == last and now.disk.held == 0 and not reply then
    print("quiet")
    reply = true
  end
  last = sum
end)
sockets:start()
s:start()
print("ready")
s:run{}
