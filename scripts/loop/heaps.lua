-- heaps.lua: receives and prints SPEAD heaps, as spead2_send sends them, in pieces of any length.
--   daqiri-run --source capture.pcap heaps --heaps 0 --largest 4194304
-- Without a sender of your own it sends some heaps here, over a wire that loses and displaces packets. Properties of a heap that are
-- still unknown, such as its length, may arrive in a later packet. A heap is handed over when it is complete, or at its timeout.
local daqiri = require "daqiri"
local args = daqiri.args{
  config = { "virtual.yaml", help = "has rx_port, and to send here tx_port" },
  flavour = { "spead-64-40", choices = { "spead-64-40", "spead-64-48" }, help = "spead2_send sends 64-40 by default" },
  largest = { 8192, unit = "bytes", help = "of a heap, at most" },
  heaps = { 8, help = "to send; 0: none" },
  seconds = { 0.1, unit = "s" },
}

-- A heap occupies one buffer of the region. Here it is the packets' own region, with buffers large enough for both.
local size = math.max(args.largest, 2048)
local s = daqiri.open(args.config, { set = { ["memory_regions.packets.buf_size"] = size,
  ["memory_regions.packets.num_bufs"] = math.max(256, math.min(16384, math.floor(2 ^ 29 / size))),
  ["loopback.loss"] = 0.02, ["loopback.reorder"] = 0.05 } })

local spead = daqiri.format(args.flavour, { items = { time = 0x1600 } })
local heaps = s:heaps{ name = "heaps", format = spead, memory_region = "packets", window = 4, timeout_us = 5000, fill = 0 }
s:pipe(s:rx_queue("rx_port"), heaps)
heaps:on_burst(function(h)
  local items = {}
  for i, item in ipairs(h.items) do items[i] = ("0x%x = %s"):format(item.id, item.value) end
  local data = h.data:bytes()
  print(("heap %s: %d bytes, %d missing; items %s; begins with %s"):format(h.batch_id, #data, h.missing, table.concat(items, ", "), daqiri.hex(data:sub(1, 8))))
end)

-- Sends heaps of every length, in pieces of 500 bytes, as a sender does.
local function send()
  local tx = s:tx_queue("tx_port")
  for id = 1, args.heaps do
    local data = ("%08d"):format(id):rep(100 * id)
    for at = 0, #data - 1, 500 do
      local piece = data:sub(at + 1, at + 500)
      local b = tx:alloc(1)
      assert(tx:send(b:fill(tx:template{ format = spead, udp_dst = 7148, heap_cnt = id, heap_len = #data, payload_offset = at,
        heap_payload_len = #piece, time = 1000 + id, payload = piece })))
    end
    daqiri.sleep(1e-4)
  end
end
if args.heaps > 0 then s:after(0, send) end
local l = s:run{ seconds = args.seconds }.heaps
print(("%d heaps whole, %d not; %d of %d bytes missing, %d cut off at the end"):format(l.batches, l.partial, l.missing, l.expected, l.cut))
