-- init: opening and closing the session of daqiri.api; its version, engine and figures.

local daqiri = require "daqiri"
local core = require "daqiri.api.core"
local connection = require "daqiri.api.connection"
local configuration = require "daqiri.api.configuration"
local memory = require "daqiri.api.memory"

local M = {}

local message, parsed, as_text, source = configuration.message, configuration.parsed, configuration.as_text, configuration.source

-- queues returns the entries of a port's queues of one direction.
local function queues(port, list)
  local entries, ordered = {}, {}
  for _, q in ipairs(list) do
    local entry = { queue = q, id = q.id, port = port, batch_size = q.batch_size }
    entries[q.id] = entry
    ordered[#ordered + 1] = entry
  end
  return entries, ordered
end

-- rooms records the buffer sizes of the segments of each transmit queue.
local function rooms(port, config, sizes)
  for i = 1, #config.tx.queues do
    local q, room = config.tx.queues[i], {}
    for k = 1, q.memory_regions and #q.memory_regions or 0 do room[k] = sizes[q.memory_regions[k]] end
    port.tx[q.id].room = room
  end
end

local function sizes_of(config)
  local sizes = {}
  for i = 1, #config.memory_regions do sizes[config.memory_regions[i].name] = config.memory_regions[i].buf_size end
  return sizes
end

local function add_port(s, number, i, config, sizes)
  local port = { id = number, name = i.name, address = config.address, iface = i, mac = i.mac and core.mac_bytes(i.mac), engine = i.engine }
  local ordered
  port.rx, ordered = queues(port, s:rx_queues(i))
  port.tx = queues(port, s:tx_queues(i))
  port.rx_list, port.n_rx = ordered, #ordered
  port.timestamps = config.rx and config.rx.hardware_timestamps
  local regions = config.rx and config.rx.queues[1].memory_regions
  port.regions = regions ~= nil and #regions > 0
  port.reorders = {}
  local reorders = config.rx and config.rx.reorder_configs
  for k = 1, reorders and #reorders or 0 do port.reorders[reorders[k].name] = true end
  if config.tx then rooms(port, config, sizes) end
  for _, entry in ipairs(ordered) do table.insert(core.rx_queues, entry) end
  if config.socket_config then connection.attach(port, config.socket_config) end
  core.ports[number] = port
end

local function forget()
  core.session, core.virtual = nil, nil
  core.ports, core.rx_queues, core.conns, core.flows, core.writers, core.endpoints = {}, {}, {}, nil, nil, nil
  core.resources = nil
end

-- open opens and starts the session: all queues are usable when it returns SUCCESS. Regions named in bindings use memory of the application.
local function open(config, bindings)
  if core.session then return "INTERNAL_ERROR", "daqiri_init was called before: shutdown comes first" end
  local status, _, text, plan = parsed(config)
  if status ~= "SUCCESS" then return status, text end
  local bound
  status, bound, text = memory.bound(config, plan, bindings)
  if status ~= "SUCCESS" then return status, text end
  local ok, s = pcall(daqiri.open, config, { bindings = bound })
  if not ok then return "INTERNAL_ERROR", message(s) end
  local ready, err = pcall(function()
    local sizes = sizes_of(s.config)
    for number, i in ipairs(s:interfaces()) do add_port(s, number - 1, i, s.config.interfaces[number], sizes) end
    core.virtual = select(2, s:clock()) == "virtual"
    s:start()
  end)
  if not ready then
    s:close()
    forget()
    return "INTERNAL_ERROR", message(err)
  end
  core.session = s
  return "SUCCESS"
end

local function needs_string(v, name)
  if type(v) ~= "string" then core.misuse("%s expects a string, got a %s", name, type(v)) end
end

-- daqiri_init ignores the second result of daqiri.parse, so that its results can be the arguments.
function M.daqiri_init(config, bindings)
  if config == nil then return "NULL_PTR", "the configuration is nil" end
  if type(bindings) == "userdata" then bindings = nil end
  return open(type(config) == "string" and source(config) or config, bindings)
end

function M.daqiri_init_from_yaml_string(yaml, bindings)
  needs_string(yaml, "daqiri_init_from_yaml_string")
  return open(as_text(yaml), bindings)
end

function M.daqiri_init_from_yaml_file(path, bindings)
  needs_string(path, "daqiri_init_from_yaml_file")
  return open(path, bindings)
end

-- get_memory_region_requirements returns a status and, by region, kind, slot_size, num_bufs, capacity and alignment (and headroom), in bytes.
function M.get_memory_region_requirements(config)
  if config == nil then return "NULL_PTR", nil, "the configuration is nil" end
  return memory.requirements(type(config) == "string" and source(config) or config)
end

M.ExternalMemoryRegion = memory.ExternalMemoryRegion

-- written returns a status, the configuration as it is written, and an error message.
local function written(from)
  local status, config, text = parsed(from)
  return status, config, text
end

function M.parse_network_config(text)
  needs_string(text, "parse_network_config")
  return written(source(text))
end

function M.parse_network_config_from_yaml_string(yaml)
  needs_string(yaml, "parse_network_config_from_yaml_string")
  return written(as_text(yaml))
end

function M.parse_network_config_from_yaml_file(path)
  needs_string(path, "parse_network_config_from_yaml_file")
  return written(path)
end

-- shutdown ends the session in order. Bursts of the program become invalid.
function M.shutdown()
  if not core.session then return end
  if core.shared then core.misuse("shutdown: the session belongs to the task that called daqiri_init") end
  local s = core.session
  forget()
  s:stop("shutdown") -- errors of writers were reported before, and are in the summary
  s:close()
end

-- session returns the underlying session, for features without a name in the reference: pipes, stages, templates.
function M.session() return core.opened() end

function M.print_stats() print(core.opened():stats()) end

-- get_engine_type returns the engine of the first port: a session may have several.
function M.get_engine_type(config)
  if config == nil then return core.session and core.ports[0].engine or "unknown" end
  local ok, _, plan = pcall(daqiri.parse, type(config) == "string" and source(config) or config)
  if not ok then return "unknown", message(_) end
  return plan.interfaces[1].engine
end

-- Maps the reference's log levels to those of daqiri.log, whose highest is error.
local levels = { trace = "debug", debug = "debug", info = "info", warn = "warn", error = "error", critical = "error", off = "off" }

function M.set_log_level(level)
  if not levels[level] then core.misuse("set_log_level: there is no level %s here", tostring(level)) end
  daqiri.log_level(levels[level])
end

function M.get_log_level() return daqiri.log_level() end

local function version(n)
  local parts = {}
  for part in daqiri.version:gmatch("%d+") do parts[#parts + 1] = tonumber(part) end
  return parts[n] or 0
end

function M.version_string() return daqiri.version end

function M.version_year() return version(1) end

function M.version_month() return version(2) end

function M.version_patch() return version(3) end

-- abi_version returns the version of this module's interface, which changes when existing programs would break.
function M.abi_version() return 2 end

M.DAQIRI_VERSION, M.DAQIRI_ABI_VERSION = daqiri.version, M.abi_version()
M.DAQIRI_VERSION_YEAR, M.DAQIRI_VERSION_MONTH, M.DAQIRI_VERSION_PATCH = version(1), version(2), version(3)
M.__version__, M.__abi_version__ = M.DAQIRI_VERSION, M.DAQIRI_ABI_VERSION
M.__version_info__ = { version(1), version(2), version(3) }

return M
