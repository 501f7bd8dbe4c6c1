-- port: ports by number and name, their addresses and neighbours, dropping of their traffic, and the end of what they send.

local daqiri = require "daqiri"
local core = require "daqiri.api.core"

local M = {}

-- get_mac_addr returns the address as text; format_eth_addr converts it to six bytes.
function M.get_mac_addr(number)
  local status, text = core.not_ready()
  if status then return status, nil, text end
  local port
  port, text = core.port(number)
  if not port then return "INVALID_PARAMETER", nil, text end
  if port.iface.mac then return "SUCCESS", port.iface.mac end
  return "NOT_SUPPORTED", nil, ("port %d (%s) has no Ethernet address"):format(number, port.name)
end

-- format_eth_addr converts text to six bytes; an invalid address becomes zeros, as in the reference.
function M.format_eth_addr(text) return core.mac_bytes(tostring(text)) or ("\0"):rep(6) end

-- get_port_id returns the port with a name or address, or -1.
function M.get_port_id(key)
  local port = core.port_named(key)
  return port and port.id or -1
end

function M.get_num_rx_queues(number)
  core.opened()
  local port, text = core.port(number)
  if not port then core.misuse("%s", text) end
  return port.n_rx
end

-- host returns the text of a host's IPv4 address, given as text or as a number in host byte order; nil for other values.
local function host(v)
  local bytes = core.ipv4_bytes(v)
  if not bytes or bytes == "\0\0\0\0" or bytes:byte() >= 224 then return nil end -- multicast, reserved, broadcast
  return ("%d.%d.%d.%d"):format(bytes:byte(1, 4))
end

-- resolve_ipv4_mac returns the Ethernet address, as text, to which frames for an IPv4 address go through a port.
function M.resolve_ipv4_mac(number, dst, timeout_ms)
  local status, text = core.not_ready()
  if status then return status, nil, text end
  local port
  port, text = core.port(number)
  if not port then return "INVALID_PARAMETER", nil, text end
  local addr = host(dst)
  if not addr then return "INVALID_PARAMETER", nil, ("%s is not the IPv4 address of a host"):format(tostring(dst)) end
  if not core.whole(timeout_ms, 1, 2 ^ 32 - 1) then
    return "INVALID_PARAMETER", nil, ("%s is not a valid timeout (expected ms from 1 on)"):format(tostring(timeout_ms))
  end
  local mac
  mac, status, text = port.iface:resolve(addr, { timeout = timeout_ms / 1000 })
  if mac then return "SUCCESS", mac end
  return status, nil, text
end

-- wait_for_tx_idle waits until all transmit queues have sent what they were given. A burst with buffers that was not sent keeps them busy.
function M.wait_for_tx_idle(timeout_ms)
  local status, text = core.not_ready()
  if status then return status, text end
  if not core.whole(timeout_ms, 0, 2 ^ 32 - 1) then
    return "INVALID_PARAMETER", ("%s is not a valid timeout (expected ms from 0 on)"):format(tostring(timeout_ms))
  end
  local ends, idle = daqiri.now() + timeout_ms / 1000
  for _, i in ipairs(core.session:interfaces()) do
    for _, q in ipairs(core.session:tx_queues(i)) do
      idle, status, text = q:drain{ timeout = math.max(0, ends - daqiri.now()) }
      if not idle then return status, ("queue %s: %s"):format(q.name, text) end
    end
  end
  if next(core.unsent) then return "NOT_READY", "a burst has buffers and was not sent" end
  return "SUCCESS"
end

-- let returns drop_all_traffic or allow_all_traffic.
local function let(in_)
  return function(number)
    local status, text = core.not_ready()
    if status then return status, text end
    local port
    port, text = core.port(number)
    if not port then return "INVALID_PARAMETER", text end
    if in_ and not port.drops then
      return "INVALID_PARAMETER", ("port %d (%s): drop_all_traffic was not called"):format(number, port.name)
    end
    local done
    if in_ then done, status, text = port.iface:allow_all_traffic() else done, status, text = port.iface:drop_all_traffic() end
    if not done then return status, text end
    port.drops = not in_
    return "SUCCESS"
  end
end

M.drop_all_traffic = let(false)
M.allow_all_traffic = let(true)

-- flush_port_queue discards the packets in a receive queue, including those that arrive up to the next poll.
function M.flush_port_queue(number, q)
  core.opened()
  local entry, text = core.queue(number, q, "rx")
  if not entry then core.misuse("%s", text) end
  local at_once = { timeout_us = 0 }
  for _ = 1, 2 do
    local b = entry.queue:get_burst(at_once)
    while b do
      b:free()
      b = entry.queue:get_burst(at_once)
    end
    entry.queue:flush()
  end
end

return M
