-- NAME.lua: receives WHAT, of the format FORMAT: records them, and writes their payloads as blocks, in order.
--   daqiri-run NAME.lua --seconds 60 --dir captures
--   python3 NAME-reader.py captures/*.dqb      the blocks as arrays of numpy
--   tshark -X lua_script:NAME-dissector.luaAS_PORT -r FILE      the capture with the fields of the format, also in wireshark
local daqiri = require "daqiri"
local args = daqiri.args{
  config = { "NAME.yaml", help = "has the interface rx_port and the regions packets and blocks" },
  dir = { "captures", help = "folder for the capture and the blocks" },
  where = { "", help = "a condition that packets have to meet, such as 'udp_dst == 7148' (daqiri-run help conditions)" },
  seconds = { 10, unit = "s", help = "how long" },
}

local s = daqiri.open(args.config)
local rx = s:rx_queue("rx_port")
local prefix = os.date("NAME-%Y%m%d-%H%M%S")

-- Native stages: packets do not pass through Lua. Change the places: 'daqiri-run doc reordering' describes them.
local blocks = s:reorder{ name = "blocks", memory_region = "blocks", timeout_us = 100000, format = DECLARED,
  PLACE }
local capture = s:write_pcap{ name = "capture", dir = args.dir, prefix = prefix, format = "pcapng" }
local disk = s:write_blocks{ name = "disk", dir = args.dir, prefix = prefix }
if args.where == "" then
  s:pipe(rx, capture)
  s:pipe(rx, blocks, disk)
else
  s:pipe(rx, s:filter{ name = "recorded", where = args.where }, capture)
  s:pipe(rx, s:filter{ name = "ordered", where = args.where }, blocks, disk)
end

s:every(1, function()
  local l = s:stats()
  print(("%d packets, %d blocks, missing packets: %d"):format(l.rx_port.rx.packets, l.blocks.batches + l.blocks.partial, l.blocks.missing))
end)

s:threshold("rx_port.rx.dropped == 0")                      -- determines the exit code
s:threshold("capture.dropped == 0")
s:threshold("disk.dropped == 0")
s:threshold("disk.written > 0")                             -- fails a run without a block
local l = s:run{ seconds = args.seconds }
print(("%d blocks, missing packets: %d of %d, without a place: %d"):format(l.disk.written, l.blocks.missing, l.blocks.expected,
  l.blocks.dropped_by.bad_place))
os.exit(0)                                                  -- an end by Ctrl-C is not a failure
