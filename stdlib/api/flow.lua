-- flow: dynamic flows. A rule is a table {name, match, action} as in the configuration.
--
-- Engines apply changes at once; the results are nevertheless queued for poll_flow_op, in order.

local core = require "daqiri.api.core"

local M = {}

-- flows returns the state of the session's dynamic flows.
local function flows()
  core.flows = core.flows or { last_op = 0, results = {}, port_of = {} }
  return core.flows
end

-- result queues the result of an operation and returns the operation's id.
local function result(kind, status, ids, text)
  local f = flows()
  f.last_op = f.last_op + 1
  table.insert(f.results, { op_id = f.last_op, type = kind, status = status, flow_id = ids[1] or 0, flow_ids = ids, text = text })
  return f.last_op
end

local function add(kind, number, rules)
  local status, text = core.not_ready()
  if status then return status, nil, text end
  local port
  port, text = core.port(number)
  if not port then return "INVALID_PARAMETER", nil, text end
  if type(rules) ~= "table" then return "NULL_PTR", nil, "the rule is nil" end
  if #rules == 0 then return "INVALID_PARAMETER", nil, "there is no rule to add" end
  if port.server ~= nil then
    return "NOT_SUPPORTED", nil, ("port %d (%s) is a socket: connections and ports select there"):format(number, port.name)
  end
  local called, ids
  called, ids, status, text = pcall(port.iface.add_flows, port.iface, "api." .. flows().last_op + 1, rules)
  if not called then return "INVALID_PARAMETER", nil, (tostring(ids):gsub("^.-bad argument #2 to 'add_flows' ", "")) end
  for _, id in ipairs(ids or {}) do flows().port_of[id] = port end
  return "SUCCESS", result(kind, ids and "SUCCESS" or status, ids or {}, text)
end

function M.add_rx_flow_async(port, rule) return add("ADD_RX", port, rule and { rule }) end

-- add_rx_flows_async adds all rules or none, as one operation.
function M.add_rx_flows_async(port, rules) return add("ADD_RX_BATCH", port, rules) end

-- delete_flow_async deletes a flow that was added by one of the functions above.
function M.delete_flow_async(flow_id)
  local status, text = core.not_ready()
  if status then return status, nil, text end
  local port = flows().port_of[flow_id]
  if not port then
    return "INVALID_PARAMETER", nil, ("flow %s: no flow of that id was added while the session ran"):format(tostring(flow_id))
  end
  local deleted
  deleted, status, text = port.iface:delete_flows(flow_id)
  if deleted then flows().port_of[flow_id] = nil end
  return "SUCCESS", result("DELETE", deleted and "SUCCESS" or status, { flow_id }, text)
end

-- poll_flow_op returns {op_id, type, status, flow_id, flow_ids, text} of the next operation, or NOT_READY.
function M.poll_flow_op()
  local status, text = core.not_ready()
  if status then return status, nil, text end
  local f = flows()
  if #f.results == 0 then return "NOT_READY", nil, "no operation has ended" end
  return "SUCCESS", table.remove(f.results, 1)
end

return M
