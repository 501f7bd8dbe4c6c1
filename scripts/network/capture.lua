-- capture.lua: records what arrives at rx_port into a nanosecond pcap. A native thread writes; the script only counts.
--   daqiri-run capture                        records its own traffic, through the kernel's UDP sockets
--   daqiri-run capture --listen 0.0.0.0:7148 --generate=false --seconds 60      records the traffic of other senders
-- Ctrl-C ends it cleanly, with exit code 0. A dropped packet fails the run (exit code 5), and the summary shows where it was lost.
local daqiri = require "daqiri"
local args = daqiri.args{
  config = { "udp.yaml", help = "has the interface rx_port and, to generate, tx_port" },
  listen = { type = "string", help = "receive at this HOST:PORT instead of the configuration's" },
  dir = { "captures", help = "folder for the pcap" },
  generate = { true, help = "also send packets from tx_port" },
  rate = { "100Mbit/s", help = "at which to generate" },
  seconds = { 3, help = "how long to record" },
}

local set = {}
if args.listen then
  set["interfaces.rx_port.socket_config.local_addr"] = "udp://" .. args.listen
  set["interfaces.tx_port.socket_config.remote_addr"] = "udp://" .. args.listen
end
local s = daqiri.open(args.config, { set = set })

local rx = s:rx_queue("rx_port")
s:pipe(rx, s:write_pcap{ name = "disk", dirs = { args.dir }, prefix = os.date("capture-%Y%m%d-%H%M%S") })

local packets, largest = 0, 0                               -- Lua runs once per burst
rx:on_burst(function(b)
  packets, largest = packets + b.n, math.max(largest, b.n)
end)

if args.generate then
  local tx = s:tx_queue("tx_port")
  tx:pace{ rate = args.rate }
  tx:transmit{ template = tx:template{ payload_bytes = 1200 } }
end

s:threshold("rx_port.rx.dropped == 0")
s:threshold("disk.dropped == 0")
s:run{ seconds = args.seconds }
print(("the script saw %d packets, up to %d in a burst"):format(packets, largest))
os.exit(0)                                                  -- a signal is not a failure
