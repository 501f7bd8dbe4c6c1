-- task: threads for ported programs. The reference's programs poll one session from several threads; here each is a task, with a separate
-- Lua state and its own queues. Functions of the whole session (flows, files, connections, figures, shutdown) remain with the task that
-- called daqiri_init.

local daqiri = require "daqiri"
local core = require "daqiri.api.core"

local M = {}

local WHOSE = "the task that called daqiri_init"

-- described returns the description of ports and queues for another task.
local function described(taken)
  local ports = {}
  for number, port in pairs(core.ports) do
    local p = { id = number, name = port.name, address = port.address, mac = port.mac, mac_text = port.iface.mac, engine = port.engine,
      timestamps = port.timestamps, n_rx = port.n_rx, reorders = port.reorders, rx = {}, tx = {} }
    for _, direction in ipairs{ "rx", "tx" } do
      for id, entry in pairs(port[direction]) do
        if taken[entry] then
          p[direction][id] = { id = id, queue = entry.queue, batch_size = entry.batch_size, room = entry.room }
        else
          p[direction][id] = { id = id, of = entry.of or WHOSE }
        end
      end
    end
    ports[number] = p
  end
  return ports
end

-- named returns the set of entries selected by the list of queues.
local function named(queues)
  local taken = {}
  for k, want in ipairs(queues) do
    if type(want) ~= "table" or want[3] ~= "rx" and want[3] ~= "tx" then
      core.misuse("task: queue %d of the list is no {port, queue, \"rx\" or \"tx\"}", k)
    end
    local entry, text = core.queue(want[1], want[2], want[3])
    if not entry then core.misuse("task: %s", text) end
    taken[entry] = true
  end
  return taken
end

local function without(list, taken)
  local left = {}
  for _, entry in ipairs(list) do
    if not taken[entry] then left[#left + 1] = entry end
  end
  return left
end

-- hand_over records the new owner of the queues.
local function hand_over(taken, name)
  for entry in pairs(taken) do entry.of, entry.queue = name, nil end
  core.rx_queues = without(core.rx_queues, taken)
  for _, port in pairs(core.ports) do port.rx_list = without(port.rx_list, taken) end
end

-- begin is the new task's main function: it takes the queues and calls work.
local function begin(work, virtual, ports, ...)
  require "daqiri.api"
  require("daqiri.api.core").join(virtual, ports)
  return work(...)
end

-- task(work, queues, ...) starts a task that owns these queues, {port, queue, "rx" or "tx"} each, and calls work with the arguments. work
-- must be a function without upvalues. It returns the result of daqiri.task.
function M.task(work, queues, ...)
  core.opened()
  if type(work) ~= "function" then core.misuse("task expects a function, got a %s", type(work)) end
  if type(queues) ~= "table" then core.misuse("task expects a list of queues, got a %s", type(queues)) end
  local taken = named(queues)
  local info = debug.getinfo(work, "S")
  local started, t = pcall(daqiri.task, begin, work, core.virtual, described(taken), ...)
  if not started then core.misuse("task: %s", (tostring(t):gsub("^stdlib/[^:]*:%d+: ", ""))) end
  hand_over(taken, ("task %s:%d"):format(info.source, info.linedefined))
  return t
end

-- of_another is a placeholder for objects that this task does not own.
local function of_another(what)
  return setmetatable({}, { __index = function(_, name) core.misuse("'%s': the %s belongs to %s", name, what, WHOSE) end })
end

local function joined(port)
  port.iface, port.rx_list = of_another "port", {}
  rawset(port.iface, "mac", port.mac_text)
  for _, direction in ipairs{ "rx", "tx" } do
    for _, entry in pairs(port[direction]) do entry.port = port end
  end
  for _, entry in pairs(port.rx) do
    if entry.queue then
      table.insert(port.rx_list, entry)
      table.insert(core.rx_queues, entry)
    end
  end
end

-- join attaches this task to the session of another task, with the queues passed to it.
function core.join(virtual, ports)
  core.session, core.shared, core.virtual, core.ports = of_another "session", true, virtual, ports
  for number = 0, #ports do joined(ports[number]) end
end

return M
