-- find_limit.lua: finds the highest rate that is received and recorded without loss, by bisection; then checks that it is sustained.
--   daqiri-run find_limit --seconds 5 --high 10Gbit/s --dir /data
-- By default the sender runs here too, over the kernel's UDP sockets: the result is the limit of two cores.
local daqiri = require "daqiri"
local args = daqiri.args{
  config = { "udp.yaml", help = "has the interfaces tx_port and rx_port" },
  low = { "10Mbit/s", help = "where the search begins" },
  high = { "4Gbit/s", help = "where it ends" },
  precision = { "50Mbit/s", help = "how near the limit has to be" },
  payload = { 1400, unit = "bytes", help = "of each packet" },
  seconds = { 1, unit = "s", help = "length of a trial; RFC 2544 wants 60" },
  dir = { "", help = "folder for a pcap of all of it; empty: received only" },
}

local s = daqiri.open(args.config)
local tx, rx = s:tx_queue("tx_port"), s:rx_queue("rx_port")
local last = s:count{ name = "seen" }
if args.dir ~= "" then last = s:write_pcap{ name = "seen", dir = args.dir, manifest = false } end
s:pipe(rx, last)
tx:pace{ rate = args.low }
tx:transmit{ template = tx:template{ payload_bytes = args.payload } }
s:start()

local limit, trials = daqiri.find_limit{ low = args.low, high = args.high, precision = args.precision, trial = function(rate)
  tx:pace{ rate = rate }
  daqiri.sleep(0.2)                                         -- packets sent at the previous pace have left
  local m = s:measure{ seconds = args.seconds }
  if m.tx_port.tx.rate_error > 0.02 then return "invalid" end          -- the sender was the limit, not the receiver
  return m.rx_port.rx.dropped + m.rx_port.rx.kernel_dropped + m.seen.dropped == 0
end }
for _, t in ipairs(trials) do
  local words = { [true] = "no loss", [false] = "loss", invalid = "the sender fell short" }
  print(("%10.1f Mbit/s: %s"):format(t.rate / 1e6, words[t.verdict]))
end
s:stop("found")
if not limit then
  print("even " .. args.low .. " was not without loss")
  os.exit(5)
end
print(("without loss up to %.1f Mbit/s"):format(limit / 1e6))
