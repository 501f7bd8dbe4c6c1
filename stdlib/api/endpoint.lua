-- endpoint: named receivers of UDP packets. A burst sent to one holds payloads; the headers come from the endpoint's cached template.

local core = require "daqiri.api.core"
local tx = require "daqiri.api.tx"

local M = {}

local HEADERS, LONGEST, MOST = 42, 65549, 4096 -- bytes of Ethernet, IPv4 and UDP; largest mtu; endpoints of a session
local last = 0                                  -- id of the newest endpoint; ids are never used again

M.INVALID_ENDPOINT_ID = 0

-- raw_port returns the port with this name or address, or nil, a message and a status.
local function raw_port(interface)
  local port = core.port_named(interface)
  if not port then return nil, ("there is no interface %s"):format(tostring(interface)), "INVALID_PARAMETER" end
  if port.mac then return port end
  return nil, ("interface %s has no Ethernet address: it sends no frames"):format(tostring(interface)), "NOT_SUPPORTED"
end

-- template makes the headers, with a queue of the port that this task owns; nil and a message if a value is invalid.
local function template(port, c)
  for _, entry in pairs(port.tx) do
    if entry.queue then
      local made, t = pcall(entry.queue.template, entry.queue, { eth_dst = c.dst_mac, ipv4_src = c.src_ipv4, ipv4_dst = c.dst_ipv4,
        udp_src = c.src_port, udp_dst = c.dst_port, payload_bytes = 0 })
      if made then return t end
      return nil, (tostring(t):gsub("^.-bad argument #1 to 'template' ", ""))
    end
  end
  return nil, ("interface %s has no transmit queue"):format(port.name)
end

-- refused returns a message for an invalid configuration, or nil.
local function refused(c)
  if type(c.name) ~= "string" or c.name == "" then return "the endpoint has no name" end
  if core.endpoints.by_name[c.name] then return ("there is an endpoint %s already"):format(c.name) end
  for _, key in ipairs{ "src_port", "dst_port" } do
    if not core.whole(c[key], 1, 65535) then return ("%s: %s is not a valid port (expected 1 to 65535)"):format(key, tostring(c[key])) end
  end
  for _, key in ipairs{ "dst_mac", "src_ipv4", "dst_ipv4" } do
    if type(c[key]) ~= "string" then return ("%s: %s is not an address"):format(key, tostring(c[key])) end
  end
  if not core.whole(c.mtu or 1514, HEADERS + 1, LONGEST) then
    return ("mtu: %s is not a valid frame length (expected %d to %d)"):format(tostring(c.mtu), HEADERS + 1, LONGEST)
  end
end

-- add_endpoint{name, interface, dst_mac, src_ipv4, dst_ipv4, src_port, dst_port, mtu} returns the id of a receiver. interface is a name or
-- an address of the configuration; mtu (default 1514) is the longest frame without its checksum, bytes.
function M.add_endpoint(c)
  local status, text = core.not_ready()
  if status then return status, nil, text end
  if type(c) ~= "table" then return "NULL_PTR", nil, "the endpoint's configuration is nil" end
  core.endpoints = core.endpoints or { n = 0, by_id = {}, by_name = {} }
  text = refused(c)
  local port, t
  if not text then port, text, status = raw_port(c.interface) end
  if port then t, text = template(port, c) end
  if not t then return status or "INVALID_PARAMETER", nil, text end
  if core.endpoints.n == MOST then return "NO_SPACE_AVAILABLE", nil, ("there are %d endpoints already"):format(MOST) end
  last = last + 1
  core.endpoints.n, core.endpoints.by_name[c.name] = core.endpoints.n + 1, last
  core.endpoints.by_id[last] = { id = last, name = c.name, port = port, template = t, longest = (c.mtu or 1514) - HEADERS }
  return "SUCCESS", last
end

-- find returns an endpoint by its id or name, or nil, a status and a message.
local function find(key)
  local status, text = core.not_ready()
  if status then return nil, status, text end
  local all = core.endpoints
  local e = all and all.by_id[type(key) == "string" and all.by_name[key] or key]
  if e then return e end
  return nil, "INVALID_PARAMETER", ("there is no endpoint %s"):format(tostring(key))
end

function M.get_endpoint_id(name)
  if name == nil then return "NULL_PTR", nil, "the name is nil" end
  local e, status, text = find(tostring(name))
  if e then return "SUCCESS", e.id end
  return status, nil, text
end

-- delete_endpoint deletes an endpoint by its id or name.
function M.delete_endpoint(key)
  local e, status, text = find(key)
  if not e then return status, text end
  local all = core.endpoints
  all.n, all.by_name[e.name], all.by_id[e.id] = all.n - 1, nil, nil
  return "SUCCESS"
end

-- unfit returns a message if the burst of payloads cannot go to the endpoint through the queue, or nil.
local function unfit(e, q, state)
  if state.port ~= e.port.id or state.q ~= q then
    return ("the burst is of port %s, queue %s, not of port %d, queue %s"):format(tostring(state.port), tostring(state.q), e.port.id, tostring(q))
  elseif state.segs ~= 1 then
    return ("the burst has %d segments: an endpoint's has one"):format(state.segs)
  elseif state.headers_of and state.headers_of ~= e.id then
    return ("the burst has the headers of endpoint %d"):format(state.headers_of)
  end
  for i = 1, state.n do
    local len = state.same and state.same[1] or state.lens[1][i]
    if len and len > e.longest then return ("packet %d has %d bytes: endpoint %s takes %d"):format(i - 1, len, e.name, e.longest) end
  end
end

-- write_headers puts the endpoint's headers in front of the payloads. It returns nil, or a status and a message; the burst is unchanged then.
local function write_headers(e, state)
  if state.headers_of then return nil end
  local written, text = pcall(state.b.prepend, state.b, e.template)
  if not written then
    text = tostring(text)
    return text:find("device memory", 1, true) and "NOT_SUPPORTED" or "INVALID_PARAMETER", (text:gsub("^stdlib/[^:]*:%d+: ", ""))
  end
  state.headers_of = e.id
end

-- send sends a burst of payloads to an endpoint through one of its port's queues. Unless it returns SUCCESS or NO_SPACE_AVAILABLE the
-- caller still owns the burst.
local function send(key, q, burst)
  local e, status, text = find(key)
  if not e then return status, text end
  if burst == nil then return "NULL_PTR", "the burst is nil" end
  local state = core.state(burst)
  if not state.b then return "NULL_PTR", "the burst has no packets yet: get_tx_packet_burst gives it some" end
  text = not state.alloc and "the burst was received" or unfit(e, q, state) or core.finish(state)
  if text then return "INVALID_PARAMETER", text end
  status, text = write_headers(e, state)
  if status then return status, text end
  return tx.send_tx_burst(burst)
end

-- send_tx_burst(burst) sends a burst of frames, send_tx_burst(endpoint, queue, burst) one of payloads.
function M.send_tx_burst(burst, ...)
  if select("#", ...) == 0 then return tx.send_tx_burst(burst) end
  return send(burst, ...)
end

return M
