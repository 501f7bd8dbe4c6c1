-- archive.lua: keeps the newest part of a stream, up to a total size, as pcapng files with a manifest.
--   daqiri-run archive --config loopback.yaml --dirs /data0,/data1 --size 1GiB --keep 100GiB
-- Files end between packets. archive.manifest.json, next to them, contains their times, checksums and origin.
local daqiri = require "daqiri"
local args = daqiri.args{
  config = { "virtual.yaml", help = "has tx_port and rx_port on the loop engine" },
  dirs = { { "captures" }, help = "folders, each on a disk of its own" },
  size = { "200KB", help = "of a file, at most" },
  keep = { "1MB", help = "of all files; then the oldest goes" },
  packets = { 5000, help = "to send and record" },
}

local s = daqiri.open(args.config)
local rx, tx = s:rx_queue("rx_port"), s:tx_queue("tx_port")
local disk = s:write_pcap{ name = "disk", prefix = "archive", dirs = args.dirs, format = "pcapng",
  comment = "recorded by archive.lua", rotate = { size = args.size, seconds = 3600 }, quota = args.keep, when_full = "delete_oldest" }
s:pipe(rx, disk)
tx:transmit{ template = tx:template{ payload_bytes = 1000, udp_dst = 7148 }, count = args.packets }
tx:pace{ pps = 50000 }
s:threshold("disk.dropped == 0")
local sum = s:run{ packets = args.packets, seconds = 10 + args.packets / 50000 }
print(("%d packets into %d files, of which %d are deleted again; the last is %s"):format(
  sum.disk.written, sum.disk.files, sum.disk.deleted_files, disk.path))
