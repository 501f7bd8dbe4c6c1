-- resource: memory regions and queues that are added and deleted while the session runs. Their configurations are tables as in a
-- configuration: {name, kind, affinity, num_bufs, buf_size} and {name, id, cpu_core, batch_size, memory_regions, ...}.
--
-- Additions are complete when the call returns, deletions once nothing uses the region or queue. poll_resource_op reports both.

local core = require "daqiri.api.core"
local external = require "daqiri.api.memory"

local M = {}

-- state returns the session's operations: results to be polled, and deletions that wait.
local function state()
  core.resources = core.resources or { last = 0, results = {}, waiting = {} }
  return core.resources
end

-- begin returns the result of a new operation, with its id.
local function begin(kind, fields)
  local s = state()
  s.last = s.last + 1
  local result = { op_id = s.last, type = kind, state = "FAILED", status = "NOT_READY", memory_region = "", port_id = -1, queue_id = -1 }
  for key, v in pairs(fields) do result[key] = v end
  return result
end

-- ended queues a result for poll_resource_op, and returns what the starting call returns.
local function ended(result, to, status, text)
  result.state, result.status, result.text = to, status, text
  table.insert(state().results, result)
  return "SUCCESS", result.op_id
end

-- deleting records a deletion that has begun.
local function deleting(result, op)
  result.state = "DRAINING"
  table.insert(state().waiting, { result = result, op = op })
  return "SUCCESS", result.op_id
end

local function reason(err) return (tostring(err):gsub("^.-bad argument #%d+ to '[%w_]+' ", "")) end

-- owner returns a status and a message unless this task may change the session.
local function refused(before_init)
  if core.shared then core.misuse("regions and queues belong to the task that called daqiri_init") end
  if not core.session then return before_init, 0, "daqiri_init has not been called" end
end

-- at_once are the statuses that the reference returns from add_memory_region_async itself.
local at_once = { ALREADY_EXISTS = true, NOT_SUPPORTED = true, NO_SPACE_AVAILABLE = true }

--- add_memory_region_async adds a region, in memory of the application if that is given: an ExternalMemoryRegion, for a region with owned = false.
function M.add_memory_region_async(config, memory)
  local status, id, text = refused("NOT_READY")
  if status then return status, id, text end
  if type(config) ~= "table" then return "NULL_PTR", 0, "the memory region's configuration is nil" end
  local name = type(config.name) == "string" and config.name or ""
  local bound, wrong
  if memory ~= nil then bound, wrong = external.binding(name, memory) end
  if wrong then return ended(begin("ADD_MEMORY_REGION", { memory_region = name }), "FAILED", "INVALID_PARAMETER", wrong) end
  local valid, added
  valid, added, status, text = pcall(core.session.add_region, core.session, config, bound)
  if valid and at_once[status] then return status, 0, text end
  local result = begin("ADD_MEMORY_REGION", { memory_region = name })
  if not valid then return ended(result, "FAILED", "INVALID_PARAMETER", reason(added)) end
  if added then return ended(result, "ACTIVE", "SUCCESS") end
  return ended(result, "FAILED", status == "INVALID_PARAMETER" and status or "NULL_PTR", text)
end

function M.delete_memory_region_async(name)
  local status, id, text = refused("INVALID_PARAMETER")
  if status then return status, id, text end
  if type(name) ~= "string" then return "INVALID_PARAMETER", 0, "the memory region's name is not text" end
  local op
  op, status, text = core.session:delete_region(name)
  if not op then return status, 0, text end
  return deleting(begin("DELETE_MEMORY_REGION", { memory_region = name }), op)
end

-- list adds a queue to the lists of its port, in which the functions of the api look.
local function list(port, way, q, config)
  local entry = { queue = q, id = q.id, port = port, batch_size = q.batch_size }
  port[way][q.id] = entry
  if way == "rx" then
    table.insert(port.rx_list, entry)
    table.insert(core.rx_queues, entry)
    port.n_rx = port.n_rx + 1
  else
    entry.room = {}
    for k, name in ipairs(config.memory_regions) do entry.room[k] = core.session:region(name).buf_size end
  end
end

local function without(entries, entry)
  for k = #entries, 1, -1 do
    if entries[k] == entry then table.remove(entries, k) end
  end
end

local function unlist(port, way, entry)
  port[way][entry.id] = nil
  if way == "tx" then return end
  without(port.rx_list, entry)
  without(core.rx_queues, entry)
  port.n_rx = port.n_rx - 1
end

-- adding returns the function that adds queues of one direction.
local function adding(way, kind)
  return function(number, config)
    local status, id, text = refused("INVALID_PARAMETER")
    if status then return status, id, text end
    local port
    port, text = core.port(number)
    if not port then return "INVALID_PARAMETER", 0, text end
    if type(config) ~= "table" then return "NULL_PTR", 0, "the queue's configuration is nil" end
    local add, valid, q = port.iface["add_" .. way .. "_queue"]
    valid, q, status, text = pcall(add, port.iface, config)
    if not valid then return "INVALID_PARAMETER", 0, reason(q) end
    if q then
      list(port, way, q, config)
      return ended(begin(kind, { port_id = number, queue_id = q.id }), "ACTIVE", "SUCCESS")
    end
    if status ~= "GENERIC_FAILURE" then return status, 0, text end
    return ended(begin(kind, { port_id = number, queue_id = config.id }), "FAILED", status, text)
  end
end

-- removing returns the function that deletes queues of one direction.
local function removing(way, kind)
  return function(number, queue_id)
    local status, id, text = refused("INVALID_PARAMETER")
    if status then return status, id, text end
    local entry
    entry, text = core.queue(number, queue_id, way)
    if not entry then return "INVALID_PARAMETER", 0, text end
    local op
    op, status, text = entry.queue:delete()
    if not op then return status, 0, text end
    unlist(core.ports[number], way, entry)
    return deleting(begin(kind, { port_id = number, queue_id = queue_id }), op)
  end
end

M.add_rx_queue_async, M.delete_rx_queue_async = adding("rx", "ADD_RX_QUEUE"), removing("rx", "DELETE_RX_QUEUE")
M.add_tx_queue_async, M.delete_tx_queue_async = adding("tx", "ADD_TX_QUEUE"), removing("tx", "DELETE_TX_QUEUE")

-- collect queues the results of deletions that have ended. It takes a moment, in which bursts on their way to the task are freed.
local function collect(s)
  local waiting = {}
  for _, w in ipairs(s.waiting) do
    if not w.op:wait{ timeout = 1e-6 } then
      table.insert(waiting, w)
    elseif w.op.error then
      ended(w.result, "FAILED", "GENERIC_FAILURE", w.op.error)
    else
      ended(w.result, "REMOVED", "SUCCESS")
    end
  end
  s.waiting = waiting
end

-- poll_resource_op returns {op_id, type, state, status, memory_region, port_id, queue_id, text} of the next operation, or NOT_READY.
function M.poll_resource_op()
  local status, _, text = refused("NOT_READY")
  if status then return status, nil, text end
  local s = state()
  collect(s)
  if #s.results == 0 then return "NOT_READY", nil, "no operation has ended" end
  return "SUCCESS", table.remove(s.results, 1)
end

return M
