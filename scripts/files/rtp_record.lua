-- rtp_record.lua: writes PCM audio of RTP streams (ST 2110-30, AES67: L24 or L16), from a capture or live, as WAV files.
--   daqiri-run rtp_record --source studio.pcapng --where 'udp_dst == 5004' --write studio
--   daqiri-run rtp_record --source udp://239.69.1.1:5004 --write mic --channels 8 --seconds 60
-- Source 1a2b3c4d (SSRC) becomes studio_1a2b3c4d.wav. Channels, rate and bits are in the session description (SDP) of the sender: give those of the
-- stream. Missing samples, by the timestamps, are silence; a jump of the timestamps begins another file, studio_1a2b3c4d_2.wav. Without --source the
-- script shows this with a stream in memory that loses packets.
local daqiri, source, rtp, wav = require "daqiri", require "daqiri.source", require "daqiri.rtp", require "daqiri.wav"
local args = daqiri.args{
  source = { "", help = "a capture, a Linux interface, [HOST]:PORT or udp://HOST:PORT" },
  write = { "audio", help = "the files are WRITE_SSRC.wav, which must not exist" },
  where = { type = "string", help = "which packets to take, a condition (help conditions)" },
  seconds = { type = "number", unit = "s", help = "ends after so long" },
  channels = { 2, help = "of each stream, 1 to 64" },
  rate = { 48000, unit = "Hz", help = "sample rate" },
  bits = { 24, help = "of a sample: 24 or 16" },
  payload_type = { type = "number", help = "takes packets of this RTP payload type only" },
  fill = { 10, unit = "s", help = "longest gap that is filled with silence" },
  streams = { 64, help = "most streams to record" },
}
if args.bits ~= 24 and args.bits ~= 16 then error("--bits " .. args.bits .. " is not valid (expected 24 or 16)", 0) end
for name, most in pairs{ channels = 64, rate = 384000, streams = 4096 } do
  local v = args[name]
  if v < 1 or v > most or v % 1 ~= 0 then error(("--%s %s is not valid (expected a whole number from 1 to %d)"):format(name, v, most), 0) end
end

-- example returns the packets of 40 ms of a ramp, 1 ms each, without packets 10 and 11.
local function example()
  local format, list = daqiri.format "st2110-30", {}
  for k = 0, 39 do
    local samples = {}
    for i = 0, 47 do
      local v = 48 * k + i
      samples[i + 1] = string.char(0, math.floor(v / 256) % 256, v % 256, 255, math.floor(v / 256) % 256, v % 256)
    end
    list[#list + 1] = k ~= 10 and k ~= 11 and format:encode{ payload_type = 97, ssrc = 0x1a2b3c4d, sequence_number = (65520 + k) % 65536,
      timestamp = 48 * k, payload = table.concat(samples) } or nil
  end
  return list
end

local options = { name = "rtp_record", where = args.where }
local src = args.source ~= "" and source.open(args.source, options) or source.memory(example(), options)
local files, parts, streams, unrecorded, lines = {}, {}, 0, 0, {}

local function close(st)
  local file = files[st]
  if file then lines[#lines + 1] = ("%s: %d frames from %s"):format(file.path, file:close(), tostring(src:time(file.ns) or "an unknown time")) end
  files[st] = nil
end

-- open begins a file of a stream, unless there are too many streams.
local function open(st)
  close(st)
  if not parts[st] then streams = streams + 1 end
  if streams > args.streams and not parts[st] then return end
  parts[st] = (parts[st] or 0) + 1
  files[st] = wav.open(("%s_%08x%s.wav"):format(args.write, st.ssrc, parts[st] > 1 and "_" .. parts[st] or ""), args)
  files[st].ns = st.ns
end

-- put has the stream's file write, or another file if that has no room.
local function put(st, method, value)
  if not files[st] then return end
  if not files[st][method](files[st], value) then
    open(st)
    files[st][method](files[st], value)
  end
end

local receiver = rtp.receiver({ frame_bytes = args.channels * args.bits / 8, payload_type = args.payload_type, longest = args.fill * args.rate }, {
  on_start = open,
  on_gap = function(st, frames) put(st, "silence", frames) end,
  on_data = function(st, bytes)
    if not files[st] then unrecorded = unrecorded + 1 end
    put(st, "write_be", bytes)
  end })
src:each(function(payload, ns) receiver:packet(payload, ns) end)
src.session:run{ seconds = args.seconds }
receiver:finish()
for st in pairs(parts) do close(st) end

table.sort(lines)
for _, line in ipairs(lines) do print(line) end
local c = receiver.counts
print(("of %d packets %d are delivered, %d late, %d twice, %d strays, %d of other types, %d malformed; %d others"):format(c.packets, c.delivered, c.late,
  c.duplicate, c.stray, c.other_type, c.malformed, src.other))
print(("%d frames are missing in %d gaps; %d jumps, %d restarts"):format(c.missing, c.gaps, c.jumps, c.restarts))
if unrecorded > 0 then
  print(unrecorded .. " packets of further streams are not recorded (see --streams)")
  os.exit(1)
end
