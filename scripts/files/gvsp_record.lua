-- gvsp_record.lua: writes the images of a GigE Vision camera, from a capture or live, into one file, with a line of JSON for each image.
--   daqiri-run gvsp_record --source camera.pcapng --where 'udp_dst == 20202' --write run1
--   daqiri-run gvsp_record --source :20202 --write run1 --seconds 60
-- run1.raw has the images back to back, as the camera sends their pixels. Each line of run1.jsonl describes one: its offset and length in bytes, width,
-- height, pixel_format (PFNC number), type of samples (daqiri-run help samples), and missing, the numbers of lost data packets, whose bytes are zeros.
-- Size and format are those of the camera's leaders. Images that are only partly there are written and counted. Without --source the script shows
-- this with three images in memory, one of them incomplete.
local daqiri, source, newfile = require "daqiri", require "daqiri.source", require "daqiri.newfile"
local images, sender = require "daqiri.gvsp_images", require "daqiri.gvsp_sender"
local args = daqiri.args{
  source = { "", help = "a capture, a Linux interface, [HOST]:PORT or udp://HOST:PORT" },
  write = { "images", help = "writes WRITE.raw and WRITE.jsonl, which must not exist" },
  where = { type = "string", help = "which packets belong to the camera, a condition (help conditions)" },
  seconds = { type = "number", unit = "s", help = "ends after so long" },
  timeout = { 100, unit = "ms", help = "longest time between the first and the last packet of an image" },
}
if not (args.timeout > 0 and args.timeout % 1 == 0) then error("--timeout " .. args.timeout .. " is not valid (expected a whole number above 0)", 0) end

-- example returns the packets of three images of 64 x 32 pixels, the second one without data packet 3.
local function example()
  local list = {}
  for block = 1, 3 do
    local rows = {}
    for y = 0, 31 do rows[y + 1] = string.char((y * block) % 256):rep(64) end
    local o = { block_id = block, width = 64, height = 32, timestamp = 1000 * block, data_payload_bytes = 512, drop = block == 2 and 3 or nil }
    for _, packet in ipairs(sender.packets(table.concat(rows), o)) do list[#list + 1] = packet end
  end
  return list
end

local options = { name = "gvsp_record", where = args.where }
local src = args.source ~= "" and source.open(args.source, options) or source.memory(example(), options)
local raw, index = newfile.open(args.write .. ".raw"), newfile.open(args.write .. ".jsonl")

local receiver = images.receiver({ frame_timeout_ms = args.timeout }, function(f)
  index:write(daqiri.json{ block_id = f.block_id, offset = raw.size, bytes = #f.data, width = f.width, height = f.height, type = f.type,
    pixel_format = ("0x%08x"):format(f.pixel_format), timestamp = f.timestamp, received = tostring(src:time(f.first_time * 1e9)),
    complete = f.complete, missing = #f.missing > 0 and f.missing or nil }, "\n")
  raw:write(f.data)
end)
src:each(function(payload, ns) receiver:packet(payload, ns / 1e9) end)
src.session:run{ seconds = args.seconds }
receiver:finish()
raw:close()
index:close()

local c = receiver.counts
print(("%d images, %d of them incomplete, %d bytes in %s"):format(c.frames or 0, c.incomplete or 0, raw.size, raw.path))
print(("of %d packets %d are placed, %d came twice, %d late, %d before the first image, %d malformed; %d others without a payload or not selected"):format(
  c.packets, c.placed or 0, c.duplicate or 0, c.late or 0, c.early, (c.malformed or 0) + (c.camera_error or 0) + (c.other_image or 0), src.other))
