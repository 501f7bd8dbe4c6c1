-- reorder: aggregates of packets in order. Reordering is not in this version: no burst has the flag REORDERED.

local core = require "daqiri.api.core"

local M = {}

M.set_reorder_cuda_stream = core.absent(0, "reordering on a GPU is not in this version")
M.get_reorder_burst_info = core.absent(1, "reordering is not in this version: no burst is a reordered one")

return M
