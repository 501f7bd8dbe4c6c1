-- replay.lua: sends a capture to another address, with its original gaps.
--   daqiri-run replay --file day1.pcapng --to eth1 --address 10.1.0.7 --speed 2
-- Without --to it stays in memory, on a virtual clock, and prints what would have been sent.
local daqiri = require "daqiri"
local args = daqiri.args{
  config = { "replay.yaml", help = "has the interfaces src and tx_port" },
  file = { "", help = "the capture, pcap or pcapng; else the one in the configuration" },
  to = { "", help = "the Linux interface to send on; needs root" },
  address = { "10.9.0.1", help = "IPv4 address that the packets get" },
  speed = { 1, help = "of the capture's gaps" },
  loops = { 1, help = "how often" },
}

local set = { ["interfaces.src.replay.loops"] = args.loops }
if args.file ~= "" then set["interfaces.src.address"] = "pcap:" .. args.file end
if args.to ~= "" then set.loopback, set["interfaces.tx_port.address"] = "", args.to end
local s = daqiri.open(args.config, { set = set })
local rx, tx = s:rx_queue("src"), s:tx_queue("tx_port")

tx:pace{ follow = "rx_timestamp", speed = args.speed }
rx:on_burst(function(b)
  b:set{ ipv4_dst = args.address }              -- updates the checksums
  assert(tx:send(b))                            -- has room for all bursts of src that can be in flight
end)

local first, last
if args.to == "" then
  s:rx_queue("tx_port"):on_burst(function(b)
    local at = b:rx_timestamps()
    first, last = first or at[1], at[#at]
  end)
end

local sum = s:run{}
print(("%d packets sent, %d bytes: %s"):format(sum.tx_port.tx.packets, sum.tx_port.tx.bytes, sum.reason))
if last then print(("the last one %.3f ms after the first"):format((last - first) / 1e6)) end
