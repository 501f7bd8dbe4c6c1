-- rdma: RoCE connections and their operations. The engine for roce:// endpoints is not in this version.

local core = require "daqiri.api.core"

local M = {}

local TEXT = "RDMA: the engine for roce:// endpoints is not in this version"

M.rdma_connect_to_server = core.absent(1, TEXT)
M.rdma_get_server_conn_id = core.absent(1, TEXT)
M.rdma_set_header = core.absent(0, TEXT)

function M.rdma_get_port_queue() return "NOT_SUPPORTED", nil, nil, TEXT end

-- rdma_get_opcode: no burst is of an RDMA operation.
function M.rdma_get_opcode(burst)
  core.state(burst)
  return "INVALID"
end

return M
