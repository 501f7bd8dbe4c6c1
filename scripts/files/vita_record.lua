-- vita_record.lua: writes the streams of VITA 49 or DIFI packets, from a capture or live, as SigMF recordings.
--   daqiri-run vita_record --source day1.pcapng --where 'udp_dst == 4991' --write day1
--   daqiri-run vita_record --source :4991 --write day1 --seconds 60
-- Stream 7 becomes day1_00000007.sigmf-data and day1_00000007.sigmf-meta. Context packets of the stream have the type of the samples, the rate, the
-- frequency and the reference level (vita:reference_level, in dBm); without them give --type and --rate. A change of the frequency or level begins a
-- capture, one of the type or rate another recording, day1_00000007_2. Missing samples are zeros with an annotation; gaps of more than --fill
-- begin a capture. SigMF has no packed types such as ci12: packets of such streams are counted as not recorded, and the exit code is 1. Without
-- --source the script shows this with a stream in memory that loses packets and changes its frequency.
local daqiri, source = require "daqiri", require "daqiri.source"
local vita, sigmf = require "daqiri.vita", require "daqiri.sigmf"
local args = daqiri.args{
  source = { "", help = "a capture, a Linux interface, [HOST]:PORT or udp://HOST:PORT" },
  write = { "vita", help = "the recordings are WRITE_STREAM, which must not exist" },
  where = { type = "string", help = "which packets to take, a condition (help conditions)" },
  seconds = { type = "number", unit = "s", help = "ends after so long" },
  type = { type = "string", help = "type of the samples of streams without context packets (help samples)" },
  rate = { type = "number", unit = "samples/s", help = "sample rate of such streams" },
  frequency = { type = "number", unit = "Hz", help = "center frequency of such streams" },
  fill = { 1, unit = "s", help = "longest gap that is filled with zeros; without a rate 65536 samples" },
  streams = { 64, help = "most streams to record" },
}
if args.type then assert(sigmf.datatype(args.type)) end

-- example returns the packets of a stream of 100,000 samples/s at 1.4 GHz without packet 5, which continues at 1.5 GHz after packet 9.
local function example()
  local data, context, list = daqiri.format "vrt", daqiri.format "vrt-context", {}
  local function describe(frequency)
    list[#list + 1] = context:encode{ stream_id = 7, tsi = "utc", tsf = "picoseconds", integer_time = 1700000000, indicators = 0x9208000,
      sample_rate = 1e5 * 2 ^ 20, rf_frequency = frequency * 2 ^ 20, reference_level = -10 * 128, packing_method = "link_efficient",
      real_complex = "cartesian", packing_field_size = 7, item_size = 7 }
  end
  describe(1.4e9)
  for k = 0, 15 do
    if k == 10 then describe(1.5e9) end
    list[#list + 1] = k ~= 5 and data:encode{ packet_type = "data_with_stream_id", stream_id = 7, tsi = "utc", tsf = "picoseconds",
      integer_time = 1700000000, fractional_time = k * 100e7, packet_count = k % 16, payload = string.char(k + 1):rep(200) } or nil
  end
  return list
end

local options = { name = "vita_record", where = args.where }
local src = args.source ~= "" and source.open(args.source, options) or source.memory(example(), options)
local recordings, parts, refused = {}, {}, {} -- by stream
local lines, streams, unrecorded = {}, 0, 0

local function close(st)
  local rec = recordings[st]
  if rec then lines[#lines + 1] = ("%s: %d samples, %d captures, %d gaps"):format(rec.path, rec:close(), #rec.captures, #rec.annotations) end
  recordings[st] = nil
end

-- open begins a recording of a stream, unless SigMF has no such type or there are too many streams.
local function open(st)
  close(st)
  local ok, why = sigmf.datatype(st.type)
  if not parts[st] then streams = streams + 1 end
  if streams > args.streams then ok, why = nil, "too many streams (see --streams)" end
  refused[st] = not ok
  parts[st] = (parts[st] or 0) + 1
  local name = ("%s_%s%s"):format(args.write, st.id and ("%08x"):format(st.id) or "data", parts[st] > 1 and "_" .. parts[st] or "")
  if not ok then return io.stderr:write("not recorded: ", name, ": ", why, "\n") end
  local rec = sigmf.open(name, { type = st.type, rate = st.rate, header = { ["core:description"] = "VITA 49 stream " .. tostring(st.id or "without id"),
    ["core:extensions"] = { { name = "vita", version = "1.0.0", optional = true } } } })
  rec.type, rec.rate = st.type, st.rate
  recordings[st] = rec
end

-- capture begins a capture at the packet that the stream delivers.
local function capture(st)
  local t = st.time
  local at = t and daqiri.time(("@%d.%09d"):format(t[1], math.floor(t[2] / 1000))) or src:time(st.ns)
  recordings[st]:capture{ time = at, frequency = st.frequency, more = { ["vita:reference_level"] = st.reference_level,
    ["vita:bandwidth"] = st.bandwidth } }
end

local jumped = {} -- streams whose next data begin a capture
local receiver = vita.receiver({ type = args.type, rate = args.rate, frequency = args.frequency }, {
  on_change = function(st)
    local rec = recordings[st]
    if not rec or rec.type ~= st.type or rec.rate ~= st.rate then open(st) end
    jumped[st] = true
  end,
  on_gap = function(st, samples)
    local rec = recordings[st]
    if not rec then return end
    if samples <= (st.rate and args.fill * st.rate or 65536) then return rec:gap(samples) end
    rec:skip(samples)
    jumped[st] = true
  end,
  on_data = function(st, bytes)
    if refused[st] then unrecorded = unrecorded + 1 return end
    if jumped[st] then capture(st) end
    jumped[st] = nil
    recordings[st]:write(bytes)
  end })
src:each(function(payload, ns) receiver:packet(payload, ns) end)
src.session:run{ seconds = args.seconds }
receiver:finish()
for st in pairs(recordings) do close(st) end

table.sort(lines)
for _, line in ipairs(lines) do print(line) end
local c = receiver.counts
print(("of %d packets %d have data and %d context: %d delivered, %d late, %d twice, %d of unknown type, %d malformed"):format(
  c.packets, c.data, c.context, c.delivered, c.late, c.duplicate, c.untyped, c.malformed))
print(("%d samples are missing in %d gaps; the sender restarted %d times; %d other packets"):format(c.missing, c.gaps, c.restarts, c.other + src.other))
if unrecorded > 0 then
  print(unrecorded .. " packets are not recorded")
  os.exit(1)
end
