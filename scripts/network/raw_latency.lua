-- raw_latency.lua: measures single raw packets of 64 to 8192 bytes, one under way at a time: send call, receive time, handling.
--   daqiri-run raw_latency --samples 10000 --csv latency.csv
--   daqiri-run raw_latency --set 'loopback=""' --set engine=packet --set interfaces[0].address=veth0 --set interfaces[1].address=veth1
-- It polls both queues itself (poll_mode: direct). All times are readings of the session's clock, or converted to it; the receive time is
-- that of the device, the kernel or the engine, as a printed line reports. The engine converts times of the device's clock. With --ptp-device
-- that clock is read before and after each size: its offset from the system's clock is interpolated for each sample.
local daqiri = require "daqiri"
local args = daqiri.args{
  config = { "raw_latency.yaml", help = "has the interfaces tx_port and rx_port, which are connected" },
  samples = { 1000, help = "packets measured of each size" },
  warmup = { 100, help = "packets of each size before them, not measured" },
  csv = { "", help = "the file for the samples" },
  realtime_priority = { 0, help = "SCHED_FIFO with this priority, and locked memory; 0: neither" },
  ptp_device = { -1, help = "number of the network card's clock, /dev/ptpN, whose offset is recorded; -1: none" },
  patience = { 1, unit = "s", help = "how long to wait for a packet before it counts as lost" },
}
local COLUMNS = { "tx_call_to_return_ns", "tx_call_to_rx_hw_ns", "rx_hw_to_app_ns", "tx_call_to_app_ns" }

local s = daqiri.open(args.config)
local tx, rx = s:tx_queue("tx_port"), s:rx_queue("rx_port")
local at_once = { timeout_us = 0 }
local mac = s:interfaces()[2].mac
s:start()
if args.realtime_priority > 0 then daqiri.realtime(args.realtime_priority) end
for _, line in ipairs(s:report()) do
  local clock = line:match("^interface rx_port: receive timestamps: (.+)$")
  if clock then print("receive times: " .. clock) end
end

-- room returns the bytes of a packet's buffers in a queue of the configuration.
local function room(q)
  local bytes = 0
  for i = 1, #q.memory_regions do
    for k = 1, #s.config.memory_regions do
      local region = s.config.memory_regions[k]
      if region.name == q.memory_regions[i] then bytes = bytes + region.buf_size end
    end
  end
  return bytes
end
local most = math.min(8192, room(s.config.interfaces[1].tx.queues[1]), room(s.config.interfaces[2].rx.queues[1]))

-- measure sends one packet of size bytes and waits for it. It returns a row for COLUMNS, or nil if the packet was lost.
local function measure(template, size)
  local b = tx:alloc(1)
  while not b do b = tx:alloc(1) end                       -- sent packets free their buffers
  b:fill(template)
  local called = s:clock()
  assert(tx:send(b))
  local returned = s:clock()
  local ends = returned + args.patience * 1e9
  repeat
    local got = rx:get_burst(at_once)
    if got then
      local app, came = s:clock(), got:rx_timestamps()[1]
      local ours = got.n == 1 and got.bytes == size       -- a network has other packets
      got:free()
      if ours then return { returned - called, came - called, app - came, app - called, at = called } end
    end
  until s:clock() > ends
end

-- phc reads the card's clock: its offset and the session's time, or nil without --ptp-device.
local function phc()
  if args.ptp_device < 0 then return nil end
  local clock = daqiri.ptp_clock(args.ptp_device)
  clock.at = s:clock()
  return clock
end

-- interpolated returns the offset at a time between two readings, rounded to ns.
local function interpolated(before, after, at)
  local share = (at - before.at) / math.max(1, after.at - before.at)
  return math.floor(before.offset + share * (after.offset - before.offset) + 0.5)
end

-- middle returns the median of a column.
local function middle(rows, column)
  local values = {}
  for i, row in ipairs(rows) do values[i] = row[column] end
  table.sort(values)
  return values[math.ceil(#values / 2)]
end

local clocked = args.ptp_device >= 0
local file = args.csv ~= "" and assert(io.open(args.csv, "w"))
if file then file:write("packet_bytes,sample,", table.concat(COLUMNS, ","), clocked and ",phc_offset_ns,phc_uncertainty_ns" or "", "\n") end

-- save writes the samples of a size, with the offset of the card's clock between two readings if there are any.
local function save(size, rows, before, after)
  for k, row in ipairs(rows) do
    file:write(("%d,%d,%d,%d,%d,%d"):format(size, k, unpack(row)))
    if before then file:write((",%d,%d"):format(interpolated(before, after, row.at), math.max(before.uncertainty, after.uncertainty))) end
    file:write("\n")
  end
end

print("packet_bytes,samples,lost," .. table.concat(COLUMNS, ",") .. " (medians)")
local size, complete = 64, true
while size <= most do
  local template = tx:template{ eth_dst = mac, udp_dst = 7148, payload_bytes = size - 42 }
  local rows, lost, before = {}, 0, phc()
  for k = 1, args.warmup + args.samples do
    local row = measure(template, size)
    if not row then
      lost = lost + 1
      break                                               -- longer than the MTU, or nothing is connected
    end
    if k > args.warmup then rows[#rows + 1] = row end
  end
  local after = phc()
  if file then save(size, rows, before, after) end
  local medians = {}
  for c = 1, #COLUMNS do medians[c] = tostring(middle(rows, c) or "-") end
  print(("%d,%d,%d,%s"):format(size, #rows, lost, table.concat(medians, ",")))
  if before then
    print(("  clock %s: %d ns ahead of the system's, then %d, within %d ns"):format(before.name, before.offset, after.offset,
      math.max(before.uncertainty, after.uncertainty)))
  end
  complete = complete and lost == 0
  size = size * 2
end
if file then file:close() end
if most < 8192 then print(("larger packets do not fit into buffers of %d bytes"):format(most)) end
s:close()
os.exit(complete and 0 or 1)
