-- NAME.lua: receives WHAT, prints the counts once per second, and records packets to the folder --dir.
--   daqiri-run NAME.lua --seconds 60 --dir captures
-- 'daqiri-run NAME.lua --help' lists the arguments, 'daqiri-run help NAME' explains an API name, 'daqiri-run doc cookbook' has more examples.
local daqiri = require "daqiri"
local args = daqiri.args{
  config = { "NAME.yaml", help = "has the interface rx_port" },
  dir = { "", help = "folder for a pcap; empty: nothing is recorded" },
  where = { "", help = "a condition that packets have to meet, such as 'len > 1000' (daqiri-run help conditions)" },
  seconds = { 10, unit = "s", help = "how long" },
}

local s = daqiri.open(args.config)
local rx = s:rx_queue("rx_port")

if args.dir ~= "" then                                      -- native stages: these packets do not pass through Lua
  local disk = s:write_pcap{ name = "disk", dir = args.dir, prefix = os.date("NAME-%Y%m%d-%H%M%S") }
  if args.where == "" then s:pipe(rx, disk) else s:pipe(rx, s:filter{ name = "chosen", where = args.where }, disk) end
  s:threshold("disk.dropped == 0")
end

local shortest, longest = math.huge, 0                      -- Lua runs once per burst, on its columns
rx:on_burst(function(b)
  local lengths = b:column("len")
  shortest, longest = math.min(shortest, lengths:min()), math.max(longest, lengths:max())
end, { policy = "drop" })                                   -- never blocks the recording

s:every(1, function()
  local l = s:stats().rx_port.rx
  print(("%d packets, %d bytes, %d dropped"):format(l.packets, l.bytes, l.dropped))
end)

s:threshold("rx_port.rx.dropped == 0")                      -- determines the exit code
s:threshold("rx_port.rx.packets > 0")                       -- fails a run that received nothing
s:run{ seconds = args.seconds }
if longest > 0 then print(("packets of %d to %d bytes"):format(shortest, longest)) end
os.exit(0)                                                  -- an end by Ctrl-C is not a failure
