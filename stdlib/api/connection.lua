-- connection: the connections of socket ports, by id, updated by the session's events.
--
-- Ids are those of the connection objects. A UDP port has an additional id for itself, whose peer is the default peer: that of the
-- configuration, or for a server the last sender.

local daqiri = require "daqiri"
local core = require "daqiri.api.core"

local M = {}

local ITSELF = 2 ^ 32     -- + port: above the ids of connections
local PATIENCE = 5        -- seconds to wait for a connection

-- note stores a connection under its id.
local function note(port, c)
  local conn = core.conns[c.id]
  if not conn then
    conn = { id = c.id, c = c, port = port, server = port.server }
    core.conns[c.id] = conn
    c:on_disconnect(function(why) conn.ended = ("connection %d: %s"):format(conn.id, why) end)
  end
  return conn
end

-- attach prepares a socket port before the session starts.
function M.attach(port, config)
  port.server = config.mode == "server"
  local function uri(v) return v and tostring(v):match('^"?([^"]*)"?$') end
  port.endpoint = uri(port.server and config.local_addr or config.remote_addr or config.local_addr)
  port.source = uri(config.local_addr)
  port.rdma = port.endpoint:find("^r%a+://") ~= nil
  port.udp = port.endpoint:find("^udp://") ~= nil
  port.waiting, port.asked = {}, {} -- client connections not fetched yet or server connections; connections requested by connect
  core.conns[ITSELF + port.id] = { id = ITSELF + port.id, port = port, server = port.server, queue = 0 }
  port.iface:on_connection(function(c)
    local conn = note(port, c)
    conn.queue = c.queue
    if not port.asked[c.id] then table.insert(port.waiting, conn) end
  end)
end

-- known returns a connection, or nil, a status and a message.
function M.known(id)
  local conn = core.conns[id]
  if conn then return conn end
  return nil, "INVALID_PARAMETER", ("connection %s is not known, or it has ended"):format(tostring(id))
end

local function host_port(address, port)
  return (address:find(":", 1, true) and "[%s]:%d" or "%s:%d"):format(address, port)
end

-- find returns a port of one kind with this endpoint; second a client that could open another connection.
local function find(server, target)
  local other
  for number = 0, #core.ports do
    local port = core.ports[number]
    if port and port.server == server then
      if port.endpoint:match("^%a+://(.*)$") == target then return port end
      other = other or port
    end
  end
  return nil, other
end

-- fetch returns the id of the oldest open connection of a port that was not fetched before.
local function fetch(port)
  while #port.waiting > 0 do
    local conn = table.remove(port.waiting, 1)
    if not conn.ended then return conn.id end
  end
end

-- await serves events until done returns a result.
local function await(done)
  local deadline = daqiri.now() + PATIENCE
  repeat
    local found = done()
    if found then return found end
    daqiri.sleep(1e-3)
  until daqiri.now() > deadline
end

-- additional opens an additional connection of a client port.
local function additional(port, target, source)
  local c, status, text = port.iface:connect{ address = target, src_addr = source }
  if not c then return status == "INVALID_PARAMETER" and status or "CONNECT_FAILURE", nil, text end
  port.asked[c.id] = true
  local conn = note(port, c)
  local up = await(function() return conn.queue or conn.ended end)
  if conn.ended or not up then
    core.conns[conn.id] = nil
    return "CONNECT_FAILURE", nil, conn.ended or ("%s does not answer"):format(target)
  end
  return "SUCCESS", conn.id
end

-- connect returns the connection of the client port configured for this server, or an additional one.
function M.connect(address, server_port, source)
  local target = host_port(address, server_port)
  local port, other = find(false, target)
  if not port and not other then return "INVALID_PARAMETER", nil, "the configuration has no socket client" end
  local configured = port and (not source or (port.source or ""):find("://" .. source, 1, true))
  if not configured or port.fetched then return additional(port or other, target, source) end
  port.fetched = true
  if port.udp then return "SUCCESS", ITSELF + port.id end
  local id = await(function() return fetch(port) end)
  if id then return "SUCCESS", id end
  port.fetched = nil
  return "CONNECT_FAILURE", nil, ("%s does not answer"):format(target)
end

-- accepted returns the oldest open connection of a server port.
function M.accepted(address, server_port)
  local target = host_port(address, server_port)
  local port = find(true, target)
  if not port then return "NULL_PTR", nil, ("no socket server of the configuration listens on %s"):format(target) end
  if port.udp then return "SUCCESS", ITSELF + port.id end
  core.turn()
  local waiting = port.waiting
  while waiting[1] and waiting[1].ended do table.remove(waiting, 1) end
  if waiting[1] then return "SUCCESS", waiting[1].id end
  return "NULL_PTR", nil, ("no peer has connected to %s"):format(target)
end

-- connect_rdma connects from the client port with this source address, or from the first one.
function M.connect_rdma(address, server_port, source)
  local client
  for number = 0, #core.ports do
    local port = core.ports[number]
    local fits = port and port.rdma and not port.server and (not source or port.source:match("^%a+://%[?([^%]]*)%]?$") == source)
    if fits and not client then client = port end
  end
  if not client then return "INVALID_PARAMETER", nil, ("no RDMA client has the address %s"):format(tostring(source or "that it needs")) end
  return additional(client, host_port(address, server_port))
end

-- accepted_rdma returns the oldest connection of a server port that was not returned before.
function M.accepted_rdma(address, server_port)
  local target = host_port(address, server_port)
  local port = find(true, target)
  if not port or not port.rdma then return "INVALID_PARAMETER", nil, ("no RDMA server of the configuration listens on %s"):format(target) end
  core.turn()
  local id = fetch(port)
  if id then return "SUCCESS", id end
  return "NOT_READY", nil, ("no peer has connected to %s"):format(target)
end

-- alone returns a message if a server has no peer to send to, otherwise nil.
function core.alone(port)
  if not port.server or port.paired then return nil end
  local there = port.iface:connection().peer ~= ""
  port.paired = there and port.udp -- a UDP peer remains
  if not there then return ("port %d (%s): no peer is known yet"):format(port.id, port.name) end
end

return M
