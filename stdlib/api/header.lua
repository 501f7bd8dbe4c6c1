-- header: writing the Ethernet, IPv4 and UDP headers of a packet to send, for frames without a VLAN tag.
--
-- Lengths exclude the header itself, as in the reference. IPv4 and UDP checksums are computed when the burst is sent, in packets whose
-- headers were set here. Sockets have no such headers: NOT_SUPPORTED.

local core = require "daqiri.api.core"

local M = {}

local IPV4, UDP, PAYLOAD = 14, 34, 42 -- offsets
local char, floor = string.char, math.floor

local function two(v) return char(floor(v / 256), v % 256) end

-- usable returns the burst's state, or nil with a status and a message.
local function usable(burst, idx)
  local state, status, text = core.sound(burst, 0, idx)
  if not state then return nil, status, text end
  local port = state.alloc and state.alloc.port or core.ports[state.port]
  if port and port.server ~= nil then
    return nil, "NOT_SUPPORTED", ("port %d (%s) is a socket: its packets have no such header"):format(port.id, port.name)
  end
  return state, port
end

-- set_eth_header writes destination (text, or six bytes), the port's address as source, and the EtherType of IPv4.
function M.set_eth_header(burst, idx, dst)
  local state, port, text = usable(burst, idx)
  if not state then return port, text end
  local bytes = type(dst) == "string" and (#dst == 6 and dst or core.mac_bytes(dst))
  if not bytes then
    return "INVALID_PARAMETER", ("%s is not an Ethernet address: text such as 02:00:00:00:00:01, or its six bytes, expected")
      :format(tostring(dst))
  end
  local source = port and port.mac or "\0\0\0\0\0\0"
  return core.write(state, 0, idx, 0, bytes .. source .. "\8\0")
end

-- remembered returns a caching form of make(a, b, c, d), as most headers equal the previous one.
local function remembered(make)
  local a, b, c, d, header
  return function(a1, b1, c1, d1)
    if header and a1 == a and b1 == b and c1 == c and d1 == d then return header end
    local made, text = make(a1, b1, c1, d1)
    if made then a, b, c, d, header = a1, b1, c1, d1, made end
    return made, text
  end
end

local ipv4 = remembered(function(ip_len, proto, src_host, dst_host)
  if not core.whole(ip_len, 0, 65515) then
    return nil, ("%s bytes behind an IPv4 header: 0 to 65515 are possible"):format(tostring(ip_len))
  elseif not core.whole(proto, 0, 255) then
    return nil, ("%s is not a protocol number"):format(tostring(proto))
  end
  local src, dst = core.ipv4_bytes(src_host), core.ipv4_bytes(dst_host)
  if not src or not dst then
    return nil, ("%s is not an IPv4 address: a number in host byte order, or text, expected"):format(tostring(src and dst_host or src_host))
  end
  return char(0x45, 0) .. two(20 + ip_len) .. char(0, 0, 0x40, 0, 64, proto, 0, 0) .. src .. dst
end)

local udp = remembered(function(udp_len, src_port, dst_port)
  if not core.whole(udp_len, 0, 65507) then
    return nil, ("%s bytes behind a UDP header: 0 to 65507 are possible"):format(tostring(udp_len))
  elseif not core.whole(src_port, 0, 65535) or not core.whole(dst_port, 0, 65535) then
    return nil, ("ports %s and %s: 0 to 65535 are possible"):format(tostring(src_port), tostring(dst_port))
  end
  return two(src_port) .. two(dst_port) .. two(8 + udp_len) .. "\0\0"
end)

-- place writes a header whose checksum is computed when the packet is sent.
local function place(burst, idx, offset, make, a, b, c, d)
  local state, status, text = usable(burst, idx)
  if not state then return status, text end
  local header
  header, text = make(a, b, c, d)
  if not header then return "INVALID_PARAMETER", text end
  state.headers = state.headers or { n = 0 }
  if not state.headers[idx + 1] then
    state.headers[idx + 1] = true
    state.headers.n = state.headers.n + 1
  end
  return core.write(state, 0, idx, offset, header)
end

function M.set_ipv4_header(burst, idx, ip_len, proto, src_host, dst_host)
  return place(burst, idx, IPV4, ipv4, ip_len, proto, src_host, dst_host)
end

function M.set_udp_header(burst, idx, udp_len, src_port, dst_port) return place(burst, idx, UDP, udp, udp_len, src_port, dst_port) end

-- set_udp_payload writes the first len bytes of data (default: all).
function M.set_udp_payload(burst, idx, data, len)
  local state, status, text = usable(burst, idx)
  if not state then return status, text end
  if data == nil then return "NULL_PTR", "the data is nil" end
  local n = len or #data
  if not core.whole(n, 0, #data) then
    return "INVALID_PARAMETER", ("%s bytes of payload: the data has %d"):format(tostring(n), #data)
  end
  return core.write(state, 0, idx, PAYLOAD, n == #data and data or data:sub(1, n))
end

return M
