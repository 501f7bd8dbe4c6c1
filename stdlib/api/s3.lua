-- s3: bursts as objects of a store. The engine that uploads is not in this version.

local core = require "daqiri.api.core"

local M = {}

local TEXT = "S3: uploads are not in this version"

M.daqiri_s3_writer_create = core.absent(1, TEXT)
M.S3Writer = core.absent(1, TEXT)
M.daqiri_write_raw_to_s3_objects_async = core.absent(1, TEXT)
M.daqiri_s3_write_poll = core.absent(1, TEXT)
M.daqiri_s3_write_wait = core.absent(1, TEXT)
M.daqiri_s3_write_destroy = core.absent(0, TEXT)
M.daqiri_s3_writer_destroy = core.absent(0, TEXT)

return M
