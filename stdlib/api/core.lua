-- core: state and functions shared by the parts of daqiri.api: the open session, its ports, connections, bursts, errors.
--
-- Functions with a status return it for a wrong argument; others raise an error, as does every use of a burst that was sent or freed.

local M = {
  session = nil,    -- of daqiri.open; nil before daqiri_init and after shutdown
  shared = nil,     -- true: it belongs to another task (task.lua)
  ports = {},       -- by number, from 0
  rx_queues = {},   -- of all ports, in order
  conns = {},       -- by connection id
  Burst = {},       -- metatable of bursts; burst[1] is the burst's state
  unsent = setmetatable({}, { __mode = "k" }), -- states of bursts to send that have buffers
}

local NOT_INITIALIZED = "daqiri_init has not been called"

-- caller returns the name and line of the script that called daqiri.api, searching from that stack level up; nil if it was called by pcall.
local function caller(level)
  for at_level = level + 1, level + 32 do
    local at = debug.getinfo(at_level, "Sl")
    if not at then return nil end
    if at.currentline > 0 and at.source:sub(1, 7) ~= "stdlib/" then return at.source, at.currentline end
  end
end

-- misuse raises an error with the script's line.
function M.misuse(format, ...)
  local source, line = caller(2)
  error((source and ("%s:%d: "):format(source, line) or "") .. format:format(...), 0)
end

-- opened returns the session or raises an error; it is for functions without a status.
function M.opened()
  if not M.session then M.misuse(NOT_INITIALIZED) end
  return M.session
end

-- not_ready returns nil, or the status and message for functions with a status.
function M.not_ready()
  if not M.session then return "NOT_READY", NOT_INITIALIZED end
end

local function whole(v, low, high) return type(v) == "number" and v >= low and v <= high and v % 1 == 0 end
M.whole = whole

-- port returns a port by its number, or nil and a message.
function M.port(number)
  local port = M.ports[number]
  if port then return port end
  return nil, ("port %s: there are ports 0 to %d"):format(tostring(number), M.session and #M.ports or -1)
end

-- port_named returns the port with a name, or else the first one with this address; nil if there is none.
function M.port_named(key)
  for _, port in pairs(M.ports) do
    if port.name == key then return port end
  end
  for number = 0, #M.ports do
    if M.ports[number] and M.ports[number].address == key then return M.ports[number] end
  end
end

-- queue returns a queue of a port, or nil and a message. direction is "rx" or "tx".
function M.queue(number, id, direction)
  local port, text = M.port(number)
  if not port then return nil, text end
  local q = port[direction][id]
  if q and q.of then return nil, ("port %d (%s): %s queue %d belongs to %s"):format(number, port.name, direction, id, q.of) end
  if q then return q end
  return nil, ("port %d (%s): there is no %s queue %s"):format(number, port.name, direction, tostring(id))
end

-- turn serves the session's events once. On the virtual clock it takes a microsecond.
function M.turn() require("daqiri").sleep(M.virtual and 1e-6 or 0) end

-- consume marks a burst as gone; what is the reason. It must be called directly by a function that the script calls.
function M.consume(state, what)
  state.gone, state.b, M.unsent[state] = what, nil, nil
  state.source, state.line = caller(3)
end

-- fate returns the reason and the position at which a burst ended.
function M.fate(state)
  return state.source and ("%s at %s:%d"):format(state.gone, state.source, state.line) or state.gone
end

-- state returns a burst's state. It raises an error for other values and for a burst that is gone.
function M.state(burst)
  if getmetatable(burst) ~= M.Burst then
    M.misuse("a burst expected, got %s", burst == nil and "nil" or "a " .. type(burst))
  end
  local state = burst[1]
  if state.gone then M.misuse("the burst was %s", M.fate(state)) end
  return state
end

-- packets returns the state of a burst with packets.
function M.packets(burst)
  local state = M.state(burst)
  if not state.b then M.misuse("the burst has no packets yet: get_tx_packet_burst gives it some") end
  return state
end

-- outside returns an error message for an invalid packet or segment index, or nil. Both are numbered from 0.
function M.outside(state, seg, idx)
  if not whole(idx, 0, state.n - 1) then
    return ("packet %s: the burst has packets 0 to %d"):format(tostring(idx), state.n - 1)
  elseif not whole(seg, 0, state.segs - 1) then
    return ("segment %s: the burst has segments 0 to %d"):format(tostring(seg), state.segs - 1)
  end
end

-- has returns the state of a burst with this packet, or nil. It is the fast path of the functions below.
local function has(burst, seg, idx)
  if getmetatable(burst) ~= M.Burst or type(idx) ~= "number" or type(seg) ~= "number" then return nil end
  local state = burst[1]
  if state.b and idx >= 0 and idx < state.n and idx % 1 == 0 and seg >= 0 and seg < state.segs and seg % 1 == 0 then
    return state
  end
end

-- packet returns the state of a burst with this packet, or raises an error.
function M.packet(burst, seg, idx)
  local state = has(burst, seg, idx)
  if not state then M.misuse("%s", M.outside(M.packets(burst), seg, idx)) end
  return state
end

-- sound returns the state of a burst with this packet, or nil, a status and a message.
function M.sound(burst, seg, idx)
  local state = has(burst, seg, idx)
  if state then return state end
  if burst == nil then return nil, "NULL_PTR", "the burst is nil" end
  state = M.state(burst)
  if not state.b then return nil, "NULL_PTR", "the burst has no packets yet: get_tx_packet_burst gives it some" end
  return nil, "INVALID_PARAMETER", M.outside(state, seg, idx)
end

-- write writes text to a packet if it fits.
function M.write(state, seg, idx, offset, text)
  local p = state.b:packet(idx + 1, seg + 1)
  local room = state.alloc and state.alloc.room[seg + 1] or #p
  if offset + #text > room then
    return "INVALID_PARAMETER", ("%d bytes at %d do not fit into the %d of the buffer"):format(#text, offset, room)
  end
  p:set_bytes(offset, text)
  state.finished = nil
  return "SUCCESS"
end

-- mac_bytes converts the text of an Ethernet address to six bytes, or returns nil.
function M.mac_bytes(text)
  if not text:find("^%x%x:%x%x:%x%x:%x%x:%x%x:%x%x$") then return nil end
  return (text:gsub("(%x%x):?", function(byte) return string.char(tonumber(byte, 16)) end))
end

-- ipv4_bytes converts an IPv4 address, a number in host byte order or dotted text, to four bytes, or returns nil.
function M.ipv4_bytes(v)
  if whole(v, 0, 2 ^ 32 - 1) then
    return string.char(math.floor(v / 2 ^ 24), math.floor(v / 2 ^ 16) % 256, math.floor(v / 2 ^ 8) % 256, v % 256)
  end
  if type(v) ~= "string" then return nil end
  local a, b, c, d = v:match("^(%d+)%.(%d+)%.(%d+)%.(%d+)$")
  for _, part in ipairs{ a or 256, b, c, d } do
    if tonumber(part) > 255 then return nil end
  end
  return string.char(tonumber(a), tonumber(b), tonumber(c), tonumber(d))
end

-- absent returns a function for a missing engine; values is the number of results before the message.
function M.absent(values, text)
  return function()
    if values == 0 then return "NOT_SUPPORTED", text end
    return "NOT_SUPPORTED", nil, text
  end
end

return M
