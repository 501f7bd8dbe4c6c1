-- file: writing bursts to files, through writers of the session that have their own threads.
--
-- Raw: a file per packet, PREFIX_INDEX with the packet's index in its burst, which replaces an existing file. Pcap: all bursts of a prefix
-- are appended to PREFIX.pcap (nanoseconds, receive times), also to the content of an earlier run, with its precision and snaplen. A burst
-- is referenced until it is written, independently of the program.

local core = require "daqiri.api.core"
local packet = require "daqiri.api.packet"

local M = {}

local Handle = {} -- metatable; handle[1] is the write, nil after destroy; handle.key is the key of its writer

-- placed checks the destination of files: nil, or a message.
local function placed(dir, prefix)
  if type(dir) ~= "string" or dir:sub(1, 1) ~= "/" then return ("folder %s: an absolute path expected"):format(tostring(dir)) end
  if type(prefix) ~= "string" or not prefix:find("^[^/\\%z]+$") or #prefix > 200 then
    return ("prefix %s: 1 to 200 bytes without / and \\ expected"):format(tostring(prefix))
  end
  local folder = io.open(dir .. "/.")
  if not folder then return ("folder %s: there is none"):format(dir) end
  folder:close()
end

-- of_capture returns the options that continue an existing pcap with its precision and snaplen.
local function of_capture(path)
  local options = { append = true }
  local f = io.open(path, "rb")
  local head = f and f:read(24)
  if f then f:close() end
  if head and #head == 24 then
    local a, b, c, d = head:byte(17, 20)
    options.snaplen = a + 2 ^ 8 * b + 2 ^ 16 * c + 2 ^ 24 * d
    if head:sub(1, 4) == "\212\195\178\161" then options.precision = "us" end -- 0xa1b2c3d4, little endian
  end
  return options
end

-- writer returns the session's writer for a folder and its key: one for all raw files, one per pcap.
local function writer(kind, dir, prefix)
  core.writers = core.writers or {}
  local key = kind == "pcap" and dir .. "/" .. prefix .. ".pcap" or dir .. "/"
  local known = core.writers[key]
  if known then return known, key end
  local make, options = core.session.write_raw, {}
  if kind == "pcap" then make, options = core.session.write_pcap, of_capture(key) end
  if kind == "raw" then options.per, options.overwrite = "packet", true end
  options.dir, options.prefix, options.policy, options.manifest = dir, prefix, "wait", false
  local made, stage = pcall(make, core.session, options)
  if not made then return nil, tostring(stage) end
  core.writers[key] = { stage = stage, snaplen = options.snaplen }
  return core.writers[key], key
end

-- too_long returns a message for the first packet longer than the file's snaplen, or nil.
local function too_long(burst, w, path)
  for i = 0, w.snaplen and core.state(burst).n - 1 or -1 do
    local len = packet.get_packet_length(burst, i)
    if len > w.snaplen then return ("packet %d has %d bytes, and %s was begun for %d at most (its snaplen)"):format(i, len, path, w.snaplen) end
  end
end

local function submit(kind, burst, dir, prefix, options)
  local status, text = core.not_ready()
  if status then return status, nil, text end
  if burst == nil then return "NULL_PTR", nil, "the burst is nil" end
  local state = core.packets(burst)
  text = placed(dir, prefix) or core.finish(state)
  if text then return "INVALID_PARAMETER", nil, text end
  local w, key = writer(kind, dir, prefix)
  text = not w and key or too_long(burst, w, key)
  if text then return "INVALID_PARAMETER", nil, text end
  local write
  write, status, text = w.stage:write(state.b, options)
  if not write then return status, nil, text end
  return "SUCCESS", setmetatable({ write, key = key }, Handle)
end

local function offset_of(v)
  if core.whole(v, 0, 2 ^ 31 - 1) then return v end
  return nil, ("packet_data_offset %s: a number of bytes expected"):format(tostring(v))
end

function M.daqiri_write_raw_to_file_async(burst, dir, prefix, packet_data_offset)
  local offset, text = offset_of(packet_data_offset)
  if not offset then return "INVALID_PARAMETER", nil, text end
  return submit("raw", burst, dir, prefix, { prefix = prefix, packet_data_offset = offset })
end

function M.daqiri_write_pcap_to_file_async(burst, dir, prefix) return submit("pcap", burst, dir, prefix) end

local function write_of(handle)
  if getmetatable(handle) ~= Handle then core.misuse("a file write's handle expected, got a %s", type(handle)) end
  if not handle[1] then core.misuse("the handle was destroyed") end
  return handle[1]
end

-- outcome returns a status, {completed_packets, failed_packets, bytes_written}, and an error message. A failed writer does not retry: the
-- next call creates another.
local function outcome(handle)
  local write = handle[1]
  local done = write:poll()
  local counts = { completed_packets = write.completed_packets, failed_packets = write.failed_packets,
    bytes_written = write.bytes_written }
  if not done then return "NOT_READY", counts, "it is being written" end
  if counts.failed_packets > 0 then
    if core.writers then core.writers[handle.key] = nil end
    return "GENERIC_FAILURE", counts, write.error
  end
  return "SUCCESS", counts
end

function M.daqiri_file_write_poll(handle)
  if handle == nil then return "NULL_PTR", nil, "the handle is nil" end
  local write = write_of(handle)
  if core.session and not write:poll() then core.turn() end
  return outcome(handle)
end

function M.daqiri_file_write_wait(handle)
  if handle == nil then return "NULL_PTR", nil, "the handle is nil" end
  write_of(handle):wait()
  return outcome(handle)
end

-- daqiri_file_write_destroy waits for the write and invalidates the handle.
function M.daqiri_file_write_destroy(handle)
  if handle == nil then return "NULL_PTR", "the handle is nil" end
  write_of(handle):wait()
  handle[1] = nil
  return "SUCCESS"
end

-- and_wait returns the blocking form of an asynchronous function, with a status and a message as results.
local function and_wait(async)
  return function(...)
    local status, handle, text = async(...)
    if not handle then return status, text end
    local _
    status, _, text = M.daqiri_file_write_wait(handle)
    return status, text
  end
end

M.daqiri_write_raw_to_file = and_wait(M.daqiri_write_raw_to_file_async)
M.daqiri_write_pcap_to_file = and_wait(M.daqiri_write_pcap_to_file_async)

return M
