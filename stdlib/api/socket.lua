-- socket: TCP connections and UDP endpoints.

local core = require "daqiri.api.core"
local connection = require "daqiri.api.connection"

local M = {}

-- given checks an address and a port number: nil, or a status and a message.
local function given(address, port)
  local status, text = core.not_ready()
  if status then return status, text end
  if type(address) ~= "string" or not core.whole(port, 1, 65535) then
    return "INVALID_PARAMETER", ("%s, %s: an address and a port number expected"):format(tostring(address), tostring(port))
  end
end

-- socket_connect_to_server returns the id of the connection of the client configured for this server; repeated calls open additional
-- connections. It waits at most five seconds.
function M.socket_connect_to_server(server_addr, server_port, src_addr)
  local status, text = given(server_addr, server_port)
  if status then return status, nil, text end
  return connection.connect(server_addr, server_port, src_addr)
end

-- socket_get_server_conn_id returns the server's oldest connection, the same one until that ends, or NULL_PTR. Those of other clients are
-- identified by get_connection_id of their data.
function M.socket_get_server_conn_id(server_addr, server_port)
  local status, text = given(server_addr, server_port)
  if status then return status, nil, text end
  return connection.accepted(server_addr, server_port)
end

function M.socket_get_port_queue(conn_id)
  local status, text = core.not_ready()
  if status then return status, nil, nil, text end
  local conn
  conn, status, text = connection.known(conn_id)
  if not conn then return status, nil, nil, text end
  return "SUCCESS", conn.port.id, conn.queue
end

-- socket_setsockopt calls setsockopt(2) with numbers or names such as "SO_RCVBUF"; the value is a number or bytes.
function M.socket_setsockopt(conn_id, level, option, value, len)
  local status, text = core.not_ready()
  if status then return status, text end
  if value == nil then return "NULL_PTR", "the value is nil" end
  local conn
  conn, status, text = connection.known(conn_id)
  if not conn then return status, text end
  if type(value) == "string" and len then value = value:sub(1, len) end
  local called, done
  called, done, status, text = pcall(function()
    return (conn.c or conn.port.iface:connection()):setsockopt(level, option, value)
  end)
  if not called then return "INVALID_PARAMETER", tostring(done) end
  if not done then return status, text end
  return "SUCCESS"
end

return M
