-- record.lua: records an interface, a UDP port, a multicast group or a capture into a pcap or pcapng.
--   daqiri-run record eth1 -w x.pcapng --seconds 60 'udp port 7148'       alongside the kernel, as tcpdump does
--   daqiri-run record eth1 -w x.pcapng --both                            both directions
--   daqiri-run record :7148 -w x.pcap --rotate 1GiB                      datagrams to a port of this machine
--   daqiri-run record udp://239.2.0.64:7148 -w x.pcapng                  a multicast group
--   daqiri-run record day1.pcap -w part.pcap 'len > 1000'                a part of a capture
-- Packets of an interface that the kernel joined (GRO, TSO) are recorded as such, up to 256 KiB.
-- A lost packet fails the run (exit code 5), and the summary shows where. Ctrl-C ends it cleanly.
local daqiri, source = require "daqiri", require "daqiri.source"
local args = daqiri.args{
  source = { type = "string", required = true, help = "a Linux interface, [HOST]:PORT, udp://HOST:PORT, or a capture (- is standard input)" },
  write = { type = "string", required = true, help = "the file: NAME.pcap or NAME.pcapng" },
  filter = { type = "string", help = "what to record: a condition (help conditions), or libpcap's language for frames" },
  seconds = { type = "string", unit = "s", help = "ends after so long" },
  size = { type = "string", unit = "bytes", help = "ends when the files have so much: 10GiB" },
  rotate = { type = "string", help = "begins another file after a size (1GiB) or a time (60s)" },
  both = { false, help = "of a Linux interface, records what this machine sends as well as what it receives" },
  longest = { type = "number", unit = "bytes", help = "the longest packet; by default what the interface takes, and 9216 for sockets" },
}

local function refuse(text, code)
  io.stderr:write("record: ", text, "\n")
  os.exit(code or 2)
end

if args.size and not args.size:match("^[%d.]+ *[kMGT]?i?B?$") then refuse("--size " .. args.size .. ": a number with a unit, such as 10GiB or 500MB") end
local dir, name, form = ("./" .. args.write):match("^(.*)/([^/]+)%.(pcapn?g?)$")
if form ~= "pcap" and form ~= "pcapng" then refuse(args.write .. ": name a file NAME.pcap or NAME.pcapng") end
if #name > 200 then refuse(args.write .. ": a name of more than 200 bytes, beside which its manifest has no room", 6) end
local port, longest = source.port(args.source)
if not port then refuse(longest) end
longest = args.longest or longest
port.name = "input"
if args.both and port.engine ~= "packet" then refuse("--both: " .. args.source .. " is not a Linux interface") end
local regions = { { name = "packets", kind = "host", affinity = 0, buf_size = math.max(longest, 2030),
  num_bufs = longest > 9216 and 2048 or 16384 } }
if port.engine == "packet" then regions[2] = { name = "joined", kind = "host", affinity = 0, buf_size = 262144, num_bufs = 512 } end
port.rx = { outgoing = args.both or nil, joined = regions[2] and "joined", queues = { { name = "rx", id = 0, cpu_core = -1, batch_size = 64, timeout_us = 1000, memory_regions = { "packets" } } } }
local s = daqiri.open({ daqiri = { cfg = {
  version = 1, master_core = 0, stream_type = port.socket_config and "socket" or "raw", interfaces = { port },
  memory_regions = regions,
} } }, { name = "record" })

local rotate = args.rotate
if rotate and rotate:match("s$") then rotate = { seconds = rotate } end
local file = s:write_pcap{ name = "file", dir = dir:gsub("^%./(.)", "%1"), prefix = name, format = form, rotate = rotate,
  quota = tonumber(args.size) or args.size, when_full = args.size and "stop",
  policy = port.replay and "wait" or "drop" }               -- a replay can wait

local stages = { file }
if args.filter then
  local ok, filter = pcall(s.filter, s, { name = "filter", where = args.filter })
  local why = filter
  if not ok and not port.socket_config then ok, filter = pcall(s.filter, s, { name = "filter", pcap = args.filter }) end
  if not ok then
    refuse(("filter '%s': as a condition: %s%s"):format(args.filter, why, port.socket_config and "" or "\nas one of libpcap: " .. filter))
  end
  table.insert(stages, 1, filter)
end
s:pipe(s:rx_queue("input"), unpack(stages))

s:threshold("input.rx.dropped == 0")
if not port.socket_config then s:threshold("input.wire.dropped == 0") end
if not port.replay then s:threshold((port.socket_config and "input.rx" or "input.wire") .. ".kernel_dropped == 0") end
s:threshold(args.size and "file.dropped == file.dropped_by.enough" or "file.dropped == 0")
local sum = s:run{ seconds = tonumber(args.seconds) or args.seconds }
local files = table.concat(sum.files, " "):gsub("%./", "")
if sum.file.files > 1 then files = sum.file.files .. " files, the last one " .. files end
print(("%d packets, %d bytes: %s"):format(sum.file.written, sum.file.file_bytes, files))
os.exit(0)                                                  -- a signal is not a failure
