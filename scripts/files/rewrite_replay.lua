-- rewrite_replay.lua: sends a capture in loops, to other addresses, with numbers that continue from loop to loop.
--   daqiri-run rewrite_replay --file day1.pcapng --to eth1 --eth 02:00:00:00:00:07 --loops 100 --rate 5Gbit/s
-- A native stage rewrites the packets (s:rewrite), so the script keeps up with any rate. Without --to it
-- stays in memory, on a virtual clock, and prints what would have been sent.
local daqiri = require "daqiri"
local args = daqiri.args{
  config = { "replay.yaml", help = "has the interfaces src and tx_port" },
  file = { "", help = "the capture, pcap or pcapng; else the one in the configuration" },
  to = { "", help = "the Linux interface to send on; needs root" },
  eth = { "02:00:00:00:00:07", help = "Ethernet address that the packets get" },
  net = { "192.0.2.0/24=10.1.7.0/24", help = "IPv4 addresses that change, FROM=TO; the bits behind the prefix stay" },
  step = { 200, help = "how much the number at the payload's start grows in each loop" },
  rate = { "", help = "at which to send; else with the capture's gaps" },
  loops = { 3, help = "how often" },
}
local from, to = args.net:match("^(.-)=(.*)$")
if not from then error("--net " .. args.net .. ": FROM=TO is expected, such as 10.1.0.0/16=239.9.0.0/16", 0) end

local set = { ["interfaces.src.replay.loops"] = args.loops }
if args.file ~= "" then set["interfaces.src.address"] = "pcap:" .. args.file end
if args.to ~= "" then set.loopback, set["interfaces.tx_port.address"] = "", args.to end
local s = daqiri.open(args.config, { set = set })
local numbered = daqiri.format{ number = { at = "payload", bit_offset = 0, bit_width = 32 } }

local edit = s:rewrite{ name = "edit", format = numbered, eth_dst = args.eth, ipv4_src = { [from] = to }, ipv4_dst = { [from] = to },
  per_loop = { number = args.step } }                       -- updates the checksums
local tx = s:tx_queue("tx_port")
s:pipe(s:rx_queue("src"), edit, tx)
tx:pace(args.rate ~= "" and { rate = args.rate } or { follow = "rx_timestamp" })

local first, last, count, addresses = nil, nil, 0, {}
if args.to == "" then
  s:rx_queue("tx_port"):on_burst(function(b)
    local number, dst = b:column("number", numbered), b:column("ipv4_dst")
    first, last, count = first or number[1], number[b.n], count + b.n
    addresses[dst:text(1)] = true
  end)
end

s:threshold("edit.rewritten == edit.in")                    -- every packet had the fields, and an address of the network
local sum = s:run{}
print(("%d packets sent in %d loops, %d rewritten: %s"):format(sum.tx_port.tx.packets, sum.src.wire.loops, sum.edit.rewritten, sum.reason))
for address in pairs(addresses) do print(("to %s: %d packets, numbers %d to %d"):format(address, count, first, last)) end
