-- s3: uploading bursts as objects of an S3 store, one per packet, through writers of the session.
--
-- A writer copies the bytes to staging memory, so that the burst may be freed after the call, and uploads them in its own threads.
-- Credentials are found in the environment, the profile, or the machine's role, as usual for S3.

local core = require "daqiri.api.core"

local M = {}

local Writer = {} -- metatable: { stage, limit (bytes), pending = {{write, bytes}...} }; stage is nil after destroy
local Handle = {} -- metatable; handle[1] is the write, nil after destroy
local writer_calls, handle_calls = {}, {} -- methods of the Python class S3Writer and of its handles
Writer.__index, Handle.__index = writer_calls, handle_calls

local LEAST_STAGING = 16 * 2 ^ 20 -- minimum of a writer

-- keys maps keys of a writer's configuration to default and type.
local keys = {
  bucket = { "", "string" }, region = { "", "string" }, endpoint_override = { "", "string" }, path_style = { false, "boolean" },
  aws_sdk_already_initialized = { false, "boolean" }, -- no effect: no AWS SDK is used
  max_inflight_uploads = { 8, 256 }, max_staged_bytes = { 2 ^ 30, 2 ^ 40 },
}

-- settings checks a writer's configuration and returns a table, or nil and a message.
local function settings(config)
  if type(config) ~= "table" then return nil, ("the configuration is a %s, not a table"):format(type(config)) end
  for key in pairs(config) do
    if not keys[key] then return nil, ("an S3 writer's configuration has no %s"):format(tostring(key)) end
  end
  local c = {}
  for key, rule in pairs(keys) do
    local value = config[key]
    if value == nil then value = rule[1] end
    if type(rule[2]) == "number" and not core.whole(value, 1, rule[2]) then
      return nil, ("%s %s: a number from 1 to %.0f expected"):format(key, tostring(value), rule[2])
    elseif type(rule[2]) == "string" and type(value) ~= rule[2] then
      return nil, ("%s %s: a %s expected"):format(key, tostring(value), rule[2])
    end
    c[key] = value
  end
  return c
end

-- daqiri_s3_writer_create verifies the bucket: CONNECT_FAILURE if the store does not respond or refuses access.
function M.daqiri_s3_writer_create(config)
  local status, text = core.not_ready()
  if status then return status, nil, text end
  if config == nil then return "NULL_PTR", nil, "the configuration is nil" end
  local c
  c, text = settings(config)
  if not c then return "INVALID_PARAMETER", nil, text end
  local made, stage = pcall(core.session.write_s3, core.session, { bucket = c.bucket, prefix = "object", overwrite = true, policy = "wait",
    region = c.region ~= "" and c.region or nil, endpoint = c.endpoint_override ~= "" and c.endpoint_override or nil,
    path_style = c.path_style, uploads = c.max_inflight_uploads, staging = math.max(c.max_staged_bytes, LEAST_STAGING) })
  if not made then
    text = tostring(stage)
    return text:find("write_s3", 1, true) and "INVALID_PARAMETER" or "CONNECT_FAILURE", nil, text
  end
  return "SUCCESS", setmetatable({ stage = stage, limit = c.max_staged_bytes, pending = {}, session = core.session }, Writer)
end

M.S3Writer = M.daqiri_s3_writer_create

-- staged returns the number of bytes of earlier bursts that are not uploaded yet.
local function staged(writer)
  local left, bytes = {}, 0
  for _, p in ipairs(writer.pending) do
    if not p.write:poll() then
      left[#left + 1] = p
      bytes = bytes + p.bytes
    end
  end
  writer.pending = left
  return bytes
end

-- named checks the names and contents of a burst's objects: nil, or a message.
local function named(prefix, data_offset)
  if type(prefix) ~= "string" or not prefix:find("^[^/%z]%Z*$") or #prefix > 200 then
    return ("prefix %s: 1 to 200 bytes expected, and no / in front"):format(tostring(prefix))
  elseif not core.whole(data_offset, 0, 2 ^ 31 - 1) then
    return ("data_offset %s: a number of bytes expected"):format(tostring(data_offset))
  end
end

-- daqiri_write_raw_to_s3_objects_async uploads packet I as PREFIX_I, without its first data_offset bytes. It returns NO_SPACE_AVAILABLE
-- while more than max_staged_bytes of a writer's bursts are in progress.
function M.daqiri_write_raw_to_s3_objects_async(writer, burst, prefix, data_offset)
  local status, text = core.not_ready()
  if status then return status, nil, text end
  if writer == nil or burst == nil then return "NULL_PTR", nil, writer == nil and "the writer is nil" or "the burst is nil" end
  if getmetatable(writer) ~= Writer then core.misuse("an S3 writer expected, got a %s", type(writer)) end
  if not writer.stage then core.misuse("the writer was destroyed") end
  if writer.session ~= core.session then core.misuse("the writer's session was shut down") end
  local state = core.packets(burst)
  text = named(prefix, data_offset) or core.finish(state)
  if text then return "INVALID_PARAMETER", nil, text end
  local bytes, waiting = state.b.bytes, staged(writer)
  if waiting + bytes > writer.limit then
    return "NO_SPACE_AVAILABLE", nil, ("%.0f bytes are on their way to the store, and %.0f more are beyond max_staged_bytes (%.0f)")
      :format(waiting, bytes, writer.limit)
  end
  local write
  write, status, text = writer.stage:write(state.b, { prefix = prefix, packet_data_offset = data_offset })
  if not write then return status, nil, text end
  writer.pending[#writer.pending + 1] = { write = write, bytes = bytes }
  return "SUCCESS", setmetatable({ write }, Handle)
end

local function write_of(handle)
  if getmetatable(handle) ~= Handle then core.misuse("an S3 write's handle expected, got a %s", type(handle)) end
  if not handle[1] then core.misuse("the handle was destroyed") end
  return handle[1]
end

-- outcome returns a status, {completed_objects, failed_objects, bytes_uploaded}, and an error message.
local function outcome(write)
  local done = write:poll()
  local counts = { completed_objects = write.completed_packets, failed_objects = write.failed_packets,
    bytes_uploaded = write.bytes_written }
  if not done then return "NOT_READY", counts, "it is being uploaded" end
  if counts.failed_objects > 0 then return "GENERIC_FAILURE", counts, write.error end
  return "SUCCESS", counts
end

function M.daqiri_s3_write_poll(handle)
  if handle == nil then return "NULL_PTR", nil, "the handle is nil" end
  local write = write_of(handle)
  if core.session and not write:poll() then core.turn() end
  return outcome(write)
end

function M.daqiri_s3_write_wait(handle)
  if handle == nil then return "NULL_PTR", nil, "the handle is nil" end
  write_of(handle):wait()
  return outcome(handle[1])
end

-- daqiri_s3_write_destroy waits for the upload and invalidates the handle.
function M.daqiri_s3_write_destroy(handle)
  if handle == nil then return "NULL_PTR", "the handle is nil" end
  write_of(handle):wait()
  handle[1] = nil
  return "SUCCESS"
end

-- daqiri_s3_writer_destroy waits for the writer's uploads and frees its staging memory.
function M.daqiri_s3_writer_destroy(writer)
  if writer == nil then return "NULL_PTR", "the writer is nil" end
  if getmetatable(writer) ~= Writer then core.misuse("an S3 writer expected, got a %s", type(writer)) end
  if not writer.stage then core.misuse("the writer was destroyed") end
  if writer.session == core.session then writer.stage:close() end
  writer.stage = nil
  return "SUCCESS"
end

function writer_calls.write_raw_objects_async(writer, burst, prefix, data_offset)
  return M.daqiri_write_raw_to_s3_objects_async(writer, burst, prefix, data_offset or 0)
end

-- write_raw_objects waits for the upload and returns a status and a message.
function writer_calls.write_raw_objects(writer, burst, prefix, data_offset)
  local status, handle, text = writer:write_raw_objects_async(burst, prefix, data_offset)
  if not handle then return status, text end
  local _
  status, _, text = handle:wait()
  handle:destroy()
  return status, text
end

writer_calls.destroy = M.daqiri_s3_writer_destroy
handle_calls.poll, handle_calls.wait, handle_calls.destroy = M.daqiri_s3_write_poll, M.daqiri_s3_write_wait, M.daqiri_s3_write_destroy

return M
