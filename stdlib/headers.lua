-- headers: parsing the Ethernet, IP, UDP and TCP headers of a frame.
--
--   local headers = require "headers"
--   local h = headers.parse(b:packet(1))          -- h.eth, h.vlan, h.ip, h.udp or h.tcp, h.payload (its offset)
--   print(headers.describe(b:packet(1)))          -- 10.0.0.1:4096 > 10.0.0.2:7148 UDP, 12 bytes
--
-- Addresses are text, numbers are numbers, offsets are bytes from the frame's start. A truncated header is absent. For many packets use the
-- methods of bursts: b:column, b:select, b:set.

local M = {}

local function mac(p, at) return (p:hex(at, 6):gsub("(..)(..)(..)(..)(..)(..)", "%1:%2:%3:%4:%5:%6")) end

local function ipv4(p, at) return ("%d.%d.%d.%d"):format(p:u8(at), p:u8(at + 1), p:u8(at + 2), p:u8(at + 3)) end

local function ipv6(p, at)
  local parts = {}
  for i = 0, 7 do parts[i + 1] = ("%x"):format(p:u16(at + 2 * i)) end
  return table.concat(parts, ":")
end

local function transport(p, h, at, proto)
  if proto == 17 and #p >= at + 8 then
    h.udp, h.payload = { src = p:u16(at), dst = p:u16(at + 2), length = p:u16(at + 4) }, at + 8
  elseif proto == 6 and #p >= at + 20 then
    h.tcp = { src = p:u16(at), dst = p:u16(at + 2), seq = p:u32(at + 4), ack = p:u32(at + 8), flags = p:u8(at + 13) }
    h.payload = at + 4 * math.floor(p:u8(at + 12) / 16)
  else
    h.payload = at
  end
  return h
end

-- parse parses the packet view of a frame.
function M.parse(p)
  local h = { payload = 0 }
  if #p < 14 then return h end
  local at, kind = 14, p:u16(12)
  h.eth = { dst = mac(p, 0), src = mac(p, 6) }
  while (kind == 0x8100 or kind == 0x88a8) and #p >= at + 4 do
    h.vlan = h.vlan or bit.band(p:u16(at), 0xfff)
    kind = p:u16(at + 2)
    at = at + 4
  end
  h.eth.type, h.payload = kind, at
  if kind == 0x0800 and #p >= at + 20 then
    local length = 4 * bit.band(p:u8(at), 15)
    h.ip = { src = ipv4(p, at + 12), dst = ipv4(p, at + 16), proto = p:u8(at + 9), ttl = p:u8(at + 8), length = p:u16(at + 2) }
    if bit.band(p:u16(at + 6), 0x1fff) > 0 then h.payload = at + length return h end   -- a later fragment
    return transport(p, h, at + length, h.ip.proto)
  elseif kind == 0x86dd and #p >= at + 40 then
    h.ip = { src = ipv6(p, at + 8), dst = ipv6(p, at + 24), proto = p:u8(at + 6), ttl = p:u8(at + 7), length = p:u16(at + 4) }
    return transport(p, h, at + 40, h.ip.proto)
  end
  return h
end

-- describe returns a one-line description of a packet.
function M.describe(p)
  local h = M.parse(p)
  if not h.eth then return #p .. " bytes, too short for Ethernet" end
  if not h.ip then return ("%s > %s type 0x%04x, %d bytes"):format(h.eth.src, h.eth.dst, h.eth.type, #p - h.payload) end
  local ports, form = h.udp or h.tcp, h.ip.src:find(":", 1, true) and "[%s]:%d" or "%s:%d"
  local name = h.udp and "UDP" or h.tcp and "TCP" or "protocol " .. h.ip.proto
  local src = ports and form:format(h.ip.src, ports.src) or h.ip.src
  local dst = ports and form:format(h.ip.dst, ports.dst) or h.ip.dst
  return ("%s > %s %s, %d bytes"):format(src, dst, name, math.max(#p - h.payload, 0))
end

-- selftest parses frames of the default session's templates.
function M.selftest()
  local s = require("daqiri").open()
  local tx = s:tx_queue("loop0")
  local function describe(options)
    local b = assert(tx:alloc(1))
    b:fill(tx:template(options))
    local text = M.describe(b:packet(1))
    b:free()
    return text
  end
  assert(describe{ payload = "hello", ipv4_src = "10.0.0.1", udp_dst = 7148 } == "10.0.0.1:4096 > 192.0.2.2:7148 UDP, 5 bytes")
  assert(describe{ payload = "x", ipv6_dst = "2001:db8::5", tcp_dst = 80, vlan_id = 7 } ==
    "[2001:db8:0:0:0:0:0:1]:4096 > [2001:db8:0:0:0:0:0:5]:80 TCP, 1 bytes")
  assert(describe{ ethertype = 0x88b5, payload = "abc" } == "02:00:00:00:00:01 > ff:ff:ff:ff:ff:ff type 0x88b5, 3 bytes")
  assert(describe{ bytes = "abc" } == "3 bytes, too short for Ethernet")
  s:close()
end

return M
