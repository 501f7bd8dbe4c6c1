-- rdma: RoCE connections and their operations, as in the reference: an operation is a burst that is described by rdma_set_header, started
-- by send_tx_burst, and returned by get_rx_burst(connection, server) on completion.

local core = require "daqiri.api.core"
local connection = require "daqiri.api.connection"
local constants = require "daqiri.api.constants"

local M = {}

local OPCODES = constants.RDMAOpCode

function M.rdma_connect_to_server(dst_addr, dst_port, src_addr)
  local status, text = core.not_ready()
  if status then return status, nil, text end
  if type(dst_addr) ~= "string" or not core.whole(dst_port, 1, 65535) then
    return "INVALID_PARAMETER", nil, ("%s, %s: an address and a port number expected"):format(tostring(dst_addr), tostring(dst_port))
  end
  return connection.connect_rdma(dst_addr, dst_port, src_addr)
end

-- rdma_get_server_conn_id returns each connection of the server once, and NOT_READY if there is no new one.
function M.rdma_get_server_conn_id(server_addr, server_port)
  local status, text = core.not_ready()
  if status then return status, nil, text end
  if type(server_addr) ~= "string" or not core.whole(server_port, 1, 65535) then
    return "INVALID_PARAMETER", nil, ("%s, %s: an address and a port number expected"):format(tostring(server_addr), tostring(server_port))
  end
  return connection.accepted_rdma(server_addr, server_port)
end

function M.rdma_get_port_queue(conn_id)
  local status, text = core.not_ready()
  if status then return status, nil, nil, text end
  local conn
  conn, status, text = connection.known(conn_id)
  if not conn then return status, nil, nil, text end
  return "SUCCESS", conn.port.id, conn.queue
end

-- rdma_set_header sets the burst's operation. local_mr_name is the region of its packets. remote is an extension: {name, offset, imm}
-- selects memory lent by the peer for RDMA_WRITE, RDMA_WRITE_IMM and RDMA_READ; for SEND it holds imm.
function M.rdma_set_header(burst, opcode, conn_id, is_server, num_pkts, wr_id, local_mr_name, remote)
  local status, text = core.not_ready()
  if status then return status, text end
  if burst == nil then return "NULL_PTR", "the burst is nil" end
  local state, conn = core.state(burst)
  conn, status, text = connection.known(conn_id)
  if not conn then return status, text end
  if not conn.c then return "INVALID_PARAMETER", ("connection %d is not of RDMA"):format(conn_id) end
  if is_server ~= nil and is_server ~= conn.server then
    return "INVALID_PARAMETER", ("connection %d is one of a %s"):format(conn_id, conn.server and "server" or "client")
  end
  if opcode == OPCODES.CONNECT or opcode == OPCODES.RDMA_READ_IMM or opcode == OPCODES.INVALID or not rawget(OPCODES, opcode) then
    return "NOT_SUPPORTED", ("%s is not an operation of a burst"):format(tostring(opcode))
  end
  local afar = opcode:find "^RDMA_" ~= nil
  if afar and (type(remote) ~= "table" or type(remote.name) ~= "string") then
    return "INVALID_PARAMETER", opcode .. ": remote = {name, offset} names the place at the peer"
  end
  if not core.whole(num_pkts, 1, 2 ^ 31) or not core.whole(wr_id, 0, 2 ^ 53) then
    return "INVALID_PARAMETER", ("%s packets, work request %s: whole numbers expected"):format(tostring(num_pkts), tostring(wr_id))
  end
  if not pcall(core.session.region, core.session, local_mr_name) then
    return "INVALID_PARAMETER", ("there is no memory region %s"):format(tostring(local_mr_name))
  end
  state.n, state.segs, state.tx, state.port, state.q = num_pkts, 1, true, conn.port.id, conn.queue
  state.conn, state.wr_id = conn_id, wr_id
  state.rdma = { opcode = opcode, region = local_mr_name, remote = remote }
  return "SUCCESS"
end

-- rdma_get_opcode returns the operation of a burst from get_rx_burst; RECEIVE also if the receive queue took the message.
function M.rdma_get_opcode(burst)
  local state = core.state(burst)
  if state.rdma then return state.rdma.opcode end
  return state.of_rdma and OPCODES.RECEIVE or OPCODES.INVALID
end

-- obtain_rdma allocates the burst's buffers.
function core.obtain_rdma(state)
  if state.b then return "SUCCESS" end
  local conn, status, text = connection.known(state.conn)
  if not conn then return status, text end
  local b
  b, status, text = conn.c:alloc(state.n, state.rdma.region)
  if not b then
    core.turn() -- completed operations free their buffers
    b, status, text = conn.c:alloc(state.n, state.rdma.region)
  end
  if not b then return status, text end
  local room = core.session:region(state.rdma.region).buf_size
  state.b, state.alloc, state.lens = b, { room = { room }, batch_size = state.n, port = conn.port }, { {} }
  b:set_lengths(room)
  return "SUCCESS"
end

local BEGIN = {
  SEND = function(c, state) return c:message(state.b, { imm = state.rdma.remote and state.rdma.remote.imm }) end,
  RECEIVE = function(c, state) return c:receive(state.b) end,
  RDMA_WRITE = function(c, state) return c:write(state.b, state.rdma.remote.name, state.rdma.remote.offset or 0) end,
  RDMA_WRITE_IMM = function(c, state)
    return c:write(state.b, state.rdma.remote.name, state.rdma.remote.offset or 0, { imm = state.rdma.remote.imm or 0 })
  end,
  RDMA_READ = function(c, state) return c:read(state.rdma.remote.name, state.rdma.remote.offset or 0, state.b) end,
}

-- begin_rdma implements send_tx_burst for an operation.
function core.begin_rdma(state)
  local conn, status, text = connection.known(state.conn)
  if not conn then return status, text end
  local whole = state.rdma.opcode == "RECEIVE" and not state.same and #state.lens[1] == 0 -- capacity of its buffers
  text = not whole and core.finish(state) or nil
  if text then return "INVALID_PARAMETER", text end
  if conn.ended then return "CONNECT_FAILURE", conn.ended end
  local op
  op, status, text = BEGIN[state.rdma.opcode](conn.c, state)
  if not op then return status == "NOT_READY" and "CONNECT_FAILURE" or status, text end
  conn.ops = conn.ops or {}
  table.insert(conn.ops, { op = op, n = state.n, wr_id = state.wr_id, rdma = state.rdma, port = state.port, q = state.q, conn = state.conn })
  core.consume(state, "sent")
  return "SUCCESS"
end

-- ended_rdma returns the oldest completed operation of a connection as a burst, or nil.
function core.ended_rdma(conn)
  for at, done in ipairs(conn.ops or {}) do
    if done.op:poll() then
      table.remove(conn.ops, at)
      local b = done.op.burst
      done.b, done.segs, done.op, done.error = b, 1, nil, done.op.error
      return setmetatable({ done }, core.Burst)
    end
  end
end

return M
