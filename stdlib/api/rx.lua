-- rx: received bursts, without blocking: an empty poll is NULL_PTR. On the virtual clock a poll takes a microsecond.

local core = require "daqiri.api.core"
local connection = require "daqiri.api.connection"

local M = {}

local AT_ONCE, SOON = { timeout_us = 0 }, { timeout_us = 1 }
local EMPTY = "no burst is there"
local last = 0 -- index of the queue of the last burst from any port

local function wrap(b, port, q)
  return setmetatable({ { b = b, port = port.id, q = q, n = b.n, segs = b.segments } }, core.Burst)
end

-- poll polls one queue.
local function poll(entry)
  local b = entry.queue:get_burst(core.virtual and SOON or AT_ONCE)
  if b then return "SUCCESS", wrap(b, entry.port, entry.id) end
  return "NULL_PTR", nil, EMPTY
end

-- any polls queues in turn, starting after the one with the last burst; it also returns the index of the queue.
local function any(list, from)
  for k = 1, #list do
    local at = (from + k - 1) % #list + 1
    local status, burst = poll(list[at])
    if burst then return at, status, burst end
  end
  return from, "NULL_PTR", nil, EMPTY
end

local function of_port(number)
  local port, text = core.port(number)
  if not port then return "INVALID_PARAMETER", nil, text end
  local status, burst
  port.last, status, burst, text = any(port.rx_list, port.last or 0)
  return status, burst, text
end

-- ended_operation returns a completed operation of a connection, as a burst.
local function ended_operation(conn)
  local done = core.ended_rdma(conn)
  if done then return done end
  core.turn()
  return core.ended_rdma(conn)
end

-- received returns the next burst of a connection. The first call, for an open connection only, makes the script its reader.
local function received(conn)
  local b = conn.early
  conn.early = nil
  if b then return b end
  if conn.ended and not conn.tapped then return nil end
  conn.tapped = true
  return conn.c:get_burst(core.virtual and SOON or AT_ONCE)
end

-- of_connection returns operations before bursts; after the end of the connection the rest of its data, then CONNECT_FAILURE.
local function of_connection(conn)
  local port = conn.port
  local reads = port.regions or not port.rdma
  if port.rdma then
    if reads and not conn.tapped then conn.early = received(conn) end -- read, even if only operations are found
    local done = ended_operation(conn)
    if done then return "SUCCESS", done end
  end
  local b = reads and received(conn)
  if b then
    local burst = wrap(b, port, conn.queue)
    burst[1].of_rdma = port.rdma
    return "SUCCESS", burst
  end
  if not conn.ended or #(conn.ops or {}) > 0 then return "NULL_PTR", nil, EMPTY end
  core.conns[conn.id] = nil
  return "CONNECT_FAILURE", nil, conn.ended
end

-- get_rx_burst_for_connection returns bursts of this connection only. server selects the end of the connection, as in the reference, and
-- must match the id, which already identifies one end.
function M.get_rx_burst_for_connection(conn_id, server)
  local status, text = core.not_ready()
  if status then return status, nil, text end
  local conn
  conn, status, text = connection.known(conn_id)
  if not conn then return status, nil, text end
  if server ~= nil and server ~= conn.server then
    return "INVALID_PARAMETER", nil, ("connection %d is one of a %s"):format(conn_id, conn.server and "server" or "client")
  end
  if not conn.c then -- the id of the port itself
    return of_port(conn.port.id)
  end
  return of_connection(conn)
end

-- get_rx_burst accepts (port, queue), (port), () or (connection, server).
function M.get_rx_burst(port, q)
  local status, text = core.not_ready()
  if status then return status, nil, text end
  if type(q) == "boolean" then return M.get_rx_burst_for_connection(port, q) end
  if port == nil then
    local burst
    last, status, burst, text = any(core.rx_queues, last)
    return status, burst, text
  end
  if q == nil then return of_port(port) end
  local entry
  entry, text = core.queue(port, q, "rx")
  if not entry then return "INVALID_PARAMETER", nil, text end
  return poll(entry)
end

return M
