-- raw_latency.lua: measures single raw packets of 64 to 8192 bytes, one under way at a time: send call, receive time, handling.
--   daqiri-run raw_latency --samples 10000 --csv latency.csv
--   daqiri-run raw_latency --set 'loopback=""' --set engine=packet --set interfaces[0].address=veth0 --set interfaces[1].address=veth1
-- It polls both queues itself (poll_mode: direct). All times are readings of the session's clock, or converted to it; the receive time is
-- that of the device, the kernel or the engine, as the printed line says. The send time of the first column is read before the call.
local daqiri = require "daqiri"
local args = daqiri.args{
  config = { "raw_latency.yaml", help = "has the interfaces tx_port and rx_port, which are connected" },
  samples = { 1000, help = "packets measured of each size" },
  warmup = { 100, help = "packets of each size before them, not measured" },
  csv = { "", help = "the file for the samples" },
  patience = { 1, unit = "s", help = "how long to wait for a packet before it counts as lost" },
}
local COLUMNS = { "tx_call_to_return_ns", "tx_call_to_rx_hw_ns", "rx_hw_to_app_ns", "tx_call_to_app_ns" }

local s = daqiri.open(args.config)
local tx, rx = s:tx_queue("tx_port"), s:rx_queue("rx_port")
local at_once = { timeout_us = 0 }
local mac = s:interfaces()[2].mac
s:start()
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
      if ours then return { returned - called, came - called, app - came, app - called } end
    end
  until s:clock() > ends
end

-- middle returns the median of a column.
local function middle(rows, column)
  local values = {}
  for i, row in ipairs(rows) do values[i] = row[column] end
  table.sort(values)
  return values[math.ceil(#values / 2)]
end

local file = args.csv ~= "" and assert(io.open(args.csv, "w"))
if file then file:write("packet_bytes,sample,", table.concat(COLUMNS, ","), "\n") end
print("packet_bytes,samples,lost," .. table.concat(COLUMNS, ",") .. " (medians)")
local size, complete = 64, true
while size <= most do
  local template = tx:template{ eth_dst = mac, udp_dst = 7148, payload_bytes = size - 42 }
  local rows, lost = {}, 0
  for k = 1, args.warmup + args.samples do
    local row = measure(template, size)
    if not row then
      lost = lost + 1
      break                                               -- longer than the MTU, or nothing is connected
    elseif k > args.warmup then
      rows[#rows + 1] = row
      if file then file:write(("%d,%d,%d,%d,%d,%d\n"):format(size, #rows, unpack(row))) end
    end
  end
  local medians = {}
  for c = 1, #COLUMNS do medians[c] = tostring(middle(rows, c) or "-") end
  print(("%d,%d,%d,%s"):format(size, #rows, lost, table.concat(medians, ",")))
  complete = complete and lost == 0
  size = size * 2
end
if file then file:close() end
if most < 8192 then print(("larger packets do not fit into buffers of %d bytes"):format(most)) end
s:close()
os.exit(complete and 0 or 1)
