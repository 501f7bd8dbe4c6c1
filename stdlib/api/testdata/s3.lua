-- Bursts as objects: rejected calls and, with a store (--endpoint, --bucket), the uploaded objects.
local daqiri, api, t, rig = require "daqiri", require "daqiri.api", require "check", require "rig"
local ok, fails = rig.ok, rig.fails
local args = daqiri.args{ endpoint = "", bucket = "bucket", nowhere = "http://127.0.0.1:1", clock = "real" }
local config = { bucket = args.bucket, endpoint_override = args.endpoint ~= "" and args.endpoint or args.nowhere, path_style = true,
  aws_sdk_already_initialized = false, max_inflight_uploads = 2, max_staged_bytes = 400 }
local function with(key, value)
  local c = {}
  for k, v in pairs(config) do c[k] = v end
  c[key] = value
  return c
end

fails("NOT_READY", "daqiri_init", api.daqiri_s3_writer_create(config))
fails("NOT_READY", "daqiri_init", api.daqiri_write_raw_to_s3_objects_async(nil, nil, "x", 0))
ok(api.daqiri_init(rig.config("raw", { rig.port("port", "loop0", 1, 1) }, { loopback = { mode = "sw", clock = args.clock } })))
rig.send(0, 0, 3, 7000)
local burst = rig.poll(0, 0)

-- invalid writers and invalid writes
fails("NULL_PTR", "configuration", api.daqiri_s3_writer_create(nil))
fails("INVALID_PARAMETER", "not a table", api.daqiri_s3_writer_create("bucket"))
fails("INVALID_PARAMETER", "bucket", api.S3Writer(with("bucket", "")))
fails("INVALID_PARAMETER", "no nonsense", api.S3Writer(with("nonsense", 1)))
for key, value in pairs{ path_style = "yes", max_inflight_uploads = 0, max_staged_bytes = 0.5, region = 7, endpoint_override = "ftp://x" } do
  fails("INVALID_PARAMETER", key == "endpoint_override" and "endpoint" or key, api.S3Writer(with(key, value)))
end
fails("NULL_PTR", "handle", api.daqiri_s3_write_poll(nil))
fails("NULL_PTR", "handle", api.daqiri_s3_write_wait(nil))
fails("NULL_PTR", "handle", api.daqiri_s3_write_destroy(nil))
fails("NULL_PTR", "writer", api.daqiri_s3_writer_destroy(nil))
fails("NULL_PTR", "writer", api.daqiri_write_raw_to_s3_objects_async(nil, burst, "x", 0))
t.raises("an S3 writer expected", function() api.daqiri_s3_writer_destroy{} end)
t.raises("an S3 write's handle expected", api.daqiri_s3_write_wait, 5)
if args.endpoint == "" then
  api.shutdown()
  return
end
fails("CONNECT_FAILURE", args.nowhere, api.daqiri_s3_writer_create(with("endpoint_override", args.nowhere)))
fails("CONNECT_FAILURE", "nobody", api.daqiri_s3_writer_create(with("bucket", "nobody")))

local w = ok(api.daqiri_s3_writer_create(config))
fails("NULL_PTR", "burst", api.daqiri_write_raw_to_s3_objects_async(w, nil, "x", 0))
for _, prefix in ipairs{ "", "/a", ("x"):rep(201), "a\0" } do
  fails("INVALID_PARAMETER", "prefix", api.daqiri_write_raw_to_s3_objects_async(w, burst, prefix, 0))
end
fails("INVALID_PARAMETER", "data_offset", api.daqiri_write_raw_to_s3_objects_async(w, burst, "x", -1))

-- an object per packet, by its index in the burst, without its first bytes; the burst may be freed at once
local a = ok(api.daqiri_write_raw_to_s3_objects_async(w, burst, "day/one", 42))
local b = ok(api.daqiri_write_raw_to_s3_objects_async(w, burst, "two", 100))
t.equal(ok(api.daqiri_s3_write_wait(a)), { completed_objects = 3, failed_objects = 0, bytes_uploaded = 60 })
local status, counts
repeat
  status, counts = api.daqiri_s3_write_poll(b)
until status ~= "NOT_READY"
t.equal({ status, counts }, { "SUCCESS", { completed_objects = 3, failed_objects = 0, bytes_uploaded = 0 } })
ok(api.daqiri_s3_write_destroy(a))
ok(api.daqiri_s3_write_destroy(b))
t.raises("the handle was destroyed", api.daqiri_s3_write_poll, a)

-- more than max_staged_bytes are rejected until some of them are uploaded
local handles = {}
repeat
  local handle, text
  status, handle, text = api.daqiri_write_raw_to_s3_objects_async(w, burst, "many" .. #handles, 0)
  handles[#handles + 1] = handle
  if status ~= "SUCCESS" then fails("NO_SPACE_AVAILABLE", "max_staged_bytes (400)", status, nil, text) end
until status ~= "SUCCESS" or #handles == 1000
t.equal(status, "NO_SPACE_AVAILABLE")
api.free_all_packets_and_burst_rx(burst)
for _, handle in ipairs(handles) do t.equal(ok(api.daqiri_s3_write_wait(handle)).bytes_uploaded, 186) end
local more = ok(api.daqiri_s3_writer_create(config)) -- a second writer, used by its methods
rig.send(0, 0, 2, 7000)
burst = rig.poll(0, 0)
ok(more:write_raw_objects(burst, "methods", 60))
local third = ok(more:write_raw_objects_async(burst, "whole"))
t.equal(ok(third:wait()), { completed_objects = 2, failed_objects = 0, bytes_uploaded = 124 })
t.equal(third:poll(), "SUCCESS")
ok(third:destroy())
t.raises("the handle was destroyed", third.wait, third)
fails("INVALID_PARAMETER", "prefix", more:write_raw_objects(burst, ""))
api.free_all_packets_and_burst_rx(burst)
ok(api.daqiri_s3_writer_destroy(w))
ok(more:destroy())
t.raises("the writer was destroyed", api.daqiri_s3_writer_destroy, w)
print(#handles)
api.shutdown()
