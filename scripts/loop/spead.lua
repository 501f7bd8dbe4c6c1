-- spead.lua: puts SPEAD-64-48 packets into blocks by timestamp, antenna and channel, located by their item ids.
--   daqiri-run --source capture.pcap spead
-- Without a capture two antennas with four channels each send here, over a wire that loses and displaces some packets.
local daqiri = require "daqiri"
local args = daqiri.args{
  config = { "virtual.yaml", help = "has rx_port, and to send here tx_port" },
  spectra = { 20, help = "to send; 0: none" },
  feng = { 2, help = "antennas" },
  chan = { 4, help = "channels of each, in one packet" },
  bytes = { 64, help = "of payload in a packet" },
  seconds = { 0.1, unit = "s" },
  dir = { "", help = "folder for block files" },
}
local STEP, FENG, CHAN, TIME = 2 ^ 20, 0x4101, 0x4103, 0x1600 -- samples between spectra; item ids

local s = daqiri.open(args.config, { set = { ["loopback.loss"] = 0.02, ["loopback.reorder"] = 0.05 } })
local spead = daqiri.format("spead-64-48", { items = { timestamp = TIME, feng = FENG, chan = CHAN } })
local blocks = s:reorder{ name = "blocks", format = spead, memory_region = "packets", slots = args.feng * args.chan, slot_bytes = args.bytes,
  batch = "timestamp // 2^20", slot = "feng * " .. args.chan .. " + chan", extra = "heap_cnt", window = 4, timeout_us = 5000 }
if args.dir == "" then
  s:pipe(s:rx_queue("rx_port"), blocks)
else
  s:pipe(s:rx_queue("rx_port"), blocks, s:write_blocks{ name = "disk", dir = args.dir, policy = "wait", manifest = false })
end
blocks:on_burst(function(b)
  local gone = {}
  for i, cell in ipairs(b.present:missing()) do
    gone[i] = ("antenna %d channel %d"):format(math.floor((cell - 1) / args.chan), (cell - 1) % args.chan)
  end
  print(("spectrum %s: %s%s"):format(b.batch_id, b.present.text, #gone > 0 and ", without " .. table.concat(gone, ", ") or ""))
end)

-- An item with an immediate value: a bit, 15 bits of id, 48 of value.
local function item(id, value)
  return string.char(0x80 + math.floor(id / 256), id % 256, 0, 0) ..
    string.char(math.floor(value / 2 ^ 24) % 256, math.floor(value / 2 ^ 16) % 256, math.floor(value / 256) % 256, value % 256)
end

local function send()
  local tx = s:tx_queue("tx_port")
  for n = 1, args.spectra do
    for slot = 0, args.feng * args.chan - 1 do
      local items = { item(1, n), item(TIME, n * STEP), item(FENG, math.floor(slot / args.chan)), item(CHAN, slot % args.chan) }
      table.insert(items, 1, table.remove(items, slot % 4 + 1)) -- senders use different orders
      local b = tx:alloc(1)
      b:fill(tx:template{ udp_dst = 7148, payload = "\83\4\2\6\0\0\0\4" .. table.concat(items) .. ("x"):rep(args.bytes) })
      assert(tx:send(b))
    end
    daqiri.sleep(1e-4)
  end
end
if args.spectra > 0 then s:after(0, send) end
local l = s:run{ seconds = args.seconds }
print(("%d blocks, %d of %d packets missing, %d belong nowhere"):format(l.blocks.batches + l.blocks.partial, l.blocks.missing, l.blocks.expected,
  l.blocks.dropped_by.bad_place))
