-- gvsp_receive.lua: receives the frames of a GigE Vision camera that another program has set up, with the C++ API's functions.
--   daqiri-run gvsp_receive --config camera.yaml --seconds 60 --max_frames 100 --dump_first_frame first.raw
--   daqiri-run gvsp_receive --send_frames 6 --drop_data_packet 3 --duplicate_data_packet 5 --shuffle_data
-- The second line tests it: the frames come from the script itself, every second one with losses, and are compared with what it sent.
local daqiri, api = require "daqiri", require "daqiri.api"
local gvsp, sender = require "daqiri.gvsp", require "daqiri.gvsp_sender"
local args = daqiri.args{
  config = { "gvsp.yaml", help = "has the section gvsp_receiver" },
  seconds = { 10, help = "how long to receive" },
  max_frames = { 0, help = "complete frames to receive, 0: no limit" },
  dump_first_frame = { "", help = "write the first complete frame to this file" },
  log_every_frame = { false, help = "print a line for each frame" },
  send_frames = { 0, help = "frames to send to itself, from the interface of the section gvsp_sender" },
  drop_data_packet = { 0, help = "the data packet that every second frame lacks" },
  duplicate_data_packet = { 0, help = "the data packet that these frames have twice" },
  shuffle_data = { false, help = "mix their data packets" },
  extended = { false, help = "send block ids of 64 bits" },
}

-- check returns the results of a function without its status, and ends the program on an error.
local function check(status, ...)
  if status ~= api.Status.SUCCESS then error(status .. ": " .. tostring(select(-1, nil, ...)), 2) end
  return ...
end

check(api.daqiri_init(args.config))
local conf, to = api.session().config.gvsp_receiver, api.session().config.gvsp_sender
if not conf then error(args.config .. " has no section gvsp_receiver") end
local port = api.get_port_id(conf.interface_name)
local sent, complete, different = {}, 0, 0

local function on_frame(f)
  if args.log_every_frame then
    print(("block %d: %d of %d data packets, %d twice, %s"):format(f.block_id, f.received, f.expected, f.duplicates,
      f.complete and "complete" or "incomplete"))
  end
  if not f.complete then return end
  complete = complete + 1
  if sent[f.block_id] and sent[f.block_id] ~= f.data then different = different + 1 end
  if complete == 1 and args.dump_first_frame ~= "" then
    local file = assert(io.open(args.dump_first_frame, "wb"))
    file:write(f.data)
    file:close()
  end
end

local options = { log = function(text) io.stderr:write("warning: ", text, "\n") end }
for key, v in pairs(conf) do options[key] = v end
local receiver = gvsp.receiver(options, on_frame)

-- udp_payload returns the UDP payload of an IPv4 frame with at most one VLAN tag, or nil.
local function udp_payload(p)
  local at = p.length >= 18 and p:u16(12) == 0x8100 and 18 or 14
  if p.length < at + 28 or p:u16(at - 2) ~= 0x0800 or p:u8(at + 9) ~= 17 or p:u16(at + 6) % 0x4000 ~= 0 then return nil end
  local udp = at + p:u8(at) % 16 * 4
  local length = udp + 8 <= p.length and p:u16(udp + 4) or 0
  if length < 8 or udp + length > p.length then return nil end
  return p:bytes(udp + 8, length - 8)
end

local other = 0 -- packets without a whole UDP datagram
local function receive(burst)
  for i = 0, api.get_num_packets(burst) - 1 do
    local payload = udp_payload(api.get_packet_ptr(burst, i))
    local status, ns = api.get_packet_rx_timestamp(burst, i)
    local time = status == api.Status.SUCCESS and daqiri.time(ns) or daqiri.now() -- without hardware_timestamps
    if payload then receiver:packet(payload, time) else other = other + 1 end
  end
  api.free_all_packets_and_burst_rx(burst)
end

-- ---- the sender of a test ------------------------------------------------------------------------------------

local function send(payloads)
  local tx = api.get_port_id(to.interface_name)
  local burst = api.create_tx_burst_params()
  api.set_header(burst, tx, 0, #payloads, 1)
  check(api.get_tx_packet_burst(burst))
  for i, payload in ipairs(payloads) do
    check(api.set_eth_header(burst, i - 1, ("\2"):rep(6)))
    check(api.set_ipv4_header(burst, i - 1, 8 + #payload, api.IPPROTO_UDP, "10.0.0.1", "10.0.0.2"))
    check(api.set_udp_header(burst, i - 1, #payload, 20202, to.udp_dst_port))
    check(api.set_udp_payload(burst, i - 1, payload, #payload))
    check(api.set_packet_lengths(burst, i - 1, { 42 + #payload }))
  end
  check(api.send_tx_burst(burst))
end

-- frame_of returns the bytes of a frame: byte k of block b is (7 k + k // 256 + 31 b) modulo 256.
local function frame_of(block)
  local t = {}
  for k = 0, conf.frame_bytes - 1 do t[k + 1] = string.char((7 * k + math.floor(k / 256) + 31 * block) % 256) end
  return table.concat(t)
end

local function send_frame(block)
  sent[block] = frame_of(block)
  local o = { block_id = block, width = conf.width, height = conf.height, pixel_format_code = conf.pixel_format_code, timestamp = 1000 * block,
    data_payload_bytes = conf.data_payload_bytes, extended = args.extended }
  if block % 2 == 0 then
    o.drop, o.duplicate, o.shuffle = args.drop_data_packet, args.duplicate_data_packet, args.shuffle_data and math.random or nil
  end
  send(sender.packets(sent[block], o))
end

-- ---- the loop ------------------------------------------------------------------------------------------------

math.randomseed(1)
local started, reported, block, idle = daqiri.now(), daqiri.now(), 0, 0
local function report()
  local c = receiver.counts
  print(("%d frames, %d complete, %d incomplete; %d packets: %d placed, %d twice, %d late, %d malformed, %d of other images; %d without UDP"):format(
    c.frames, complete, c.incomplete, c.packets, c.placed, c.duplicate, c.late, c.malformed + c.camera_error, c.other_image, other))
end
repeat
  if block < args.send_frames and (block == 0 or receiver.counts.frames >= block) then
    block = block + 1
    send_frame(block)
  end
  local status, burst = api.get_rx_burst(port, conf.queue_id)
  if status == api.Status.SUCCESS then receive(burst) end
  local now = daqiri.now()
  receiver:expire(now)
  if now - reported >= (conf.report_interval_seconds or 1) then
    reported = now
    report()
  end
  local all = args.send_frames > 0 and receiver.counts.frames >= args.send_frames
until now - started >= args.seconds or args.max_frames > 0 and complete >= args.max_frames or all
receiver:expire()
report()
if args.send_frames > 0 then
  print(different == 0 and "every complete frame has the bytes that were sent" or different .. " frames differ from what was sent")
end
api.shutdown()
