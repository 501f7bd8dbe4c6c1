-- port: ports by number and name, their addresses, and dropping of their traffic.

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
  for number, port in pairs(core.ports) do
    if port.name == key then return number end
  end
  for number = 0, #core.ports do
    if core.ports[number] and core.ports[number].address == key then return number end
  end
  return -1
end

function M.get_num_rx_queues(number)
  core.opened()
  local port, text = core.port(number)
  if not port then core.misuse("%s", text) end
  return port.n_rx
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
