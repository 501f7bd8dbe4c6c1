-- vdif_record.lua: writes the VDIF frames of VLBI stations, from a capture or live, into one .vdif file for each station.
--   daqiri-run vdif_record --source scan1.pcapng --where 'udp_dst == 12345' --write scan1
--   daqiri-run vdif_record --source :12345 --write scan1 --frames 8000 --skip 8 --seconds 60
-- Station Sx becomes scan1_Sx.vdif, one with a number scan1_21.vdif. Frames are in order of time and thread. A missing frame is a filler: the header
-- of its thread with the invalid bit set, and zeros. Without --frames the first second that ends shows how many frames a second has. Without
-- --source the script shows this with two threads in memory that lose frames.
local daqiri, source, newfile, vdif = require "daqiri", require "daqiri.source", require "daqiri.newfile", require "daqiri.vdif"
local args = daqiri.args{
  source = { "", help = "a capture, a Linux interface, [HOST]:PORT or udp://HOST:PORT" },
  write = { "station", help = "the files are WRITE_STATION.vdif, which must not exist" },
  where = { type = "string", help = "which packets to take, a condition (help conditions)" },
  seconds = { type = "number", unit = "s", help = "ends after so long" },
  frames = { type = "number", help = "frames of a thread in a second" },
  skip = { 0, unit = "bytes", help = "in front of each frame, such as the 8 bytes of a packet counter (VTP)" },
  window = { 16, help = "frame numbers that are held for those that come late" },
  fill = { 10, unit = "s", help = "longest gap that is filled" },
  stations = { 16, help = "most stations to record" },
}
for name, least in pairs{ frames = 1, skip = 0, window = 1, fill = 0, stations = 1 } do
  local v = args[name]
  if v and (v < least or v % 1 ~= 0) then error(("--%s %s is not valid (expected a whole number of at least %d)"):format(name, v, least), 0) end
end

-- example returns the frames of threads 0 and 1 of station Sx, 4 in a second, without three of them, and with two in the wrong order.
local function example()
  local format, list = daqiri.format "vdif", {}
  for i = 0, 11 do
    for thread = 0, 1 do
      local lost = i == 5 or i == 9 and thread == 1
      list[#list + 1] = not lost and format:encode{ seconds = 1000 + math.floor(i / 4), frame = i % 4, thread = thread, station = 0x5378, epoch = 46,
        bits_minus_1 = 1, payload = string.char(16 * i + thread):rep(64) } or nil
    end
  end
  list[4], list[5] = list[5], list[4]
  return list
end

local options = { name = "vdif_record", where = args.where }
local src = args.source ~= "" and source.open(args.source, options) or source.memory(example(), options)
local stations, names, malformed, refused = {}, {}, 0, 0

-- name_of returns a station's name: two letters or digits, the first one in the high byte, or a number.
local function name_of(id)
  local letters = string.char(math.floor(id / 256), id % 256)
  return letters:match "^%w%w$" or tostring(id)
end

local function station(id)
  if stations[id] or #names == args.stations then return stations[id] end
  local file = newfile.open(("%s_%s.vdif"):format(args.write, name_of(id)))
  stations[id] = { file = file, stream = vdif.stream({ frames = args.frames, window = args.window, fill = args.fill },
    function(frame) file:write(frame) end) }
  names[#names + 1] = id
  return stations[id]
end

src:each(function(payload)
  local frame = args.skip == 0 and payload or payload:sub(args.skip + 1)
  local _, _, _, id = vdif.header(frame)
  local st = id and station(id)
  if st then st.stream:packet(frame) elseif id then refused = refused + 1 else malformed = malformed + 1 end
end)
src.session:run{ seconds = args.seconds }

table.sort(names)
for _, id in ipairs(names) do
  local st = stations[id]
  st.stream:finish()
  local c = st.stream.counts
  print(("%s: %d bytes, %d frames and %d fillers of threads %s; %s frames in a second"):format(st.file.path, st.file:close(), c.delivered, c.fillers,
    table.concat(st.stream.threads, ", "), st.stream.frames or "unknown"))
  print(("  %d packets: %d late, %d twice, %d of another length, %d marked invalid; %d jumps"):format(c.packets, c.late, c.duplicate, c.malformed,
    c.invalid, c.jumps))
  if c.corrected > 0 then io.stderr:write(st.file.path, ": the frames in a second were taken to be fewer: give --frames\n") end
end
print(("%d packets without a whole frame, %d of further stations, %d others"):format(malformed, refused, src.other))
