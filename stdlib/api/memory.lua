-- memory: memory of the application for regions: what it must have, and its form in daqiri.open.

local daqiri = require "daqiri"
local core = require "daqiri.api.core"
local configuration = require "daqiri.api.configuration"

local M = {}

-- ExternalMemoryRegion describes memory: an array of daqiri.array, or a table with fd, file, shm or cuda_ipc, and offset, as in daqiri.open;
-- capacity is its size in bytes.
function M.ExternalMemoryRegion(data, capacity) return { data = data, capacity = capacity } end

-- required returns a status, what memory of the regions must have, and an error message. Bindings, if given, are checked.
local function required(config, bindings)
  local ok, need, status, text = pcall(daqiri.memory_requirements, config, { bindings = bindings })
  if not ok then return "INVALID_PARAMETER", nil, configuration.message(need) end
  if not need then return status, nil, text end
  return "SUCCESS", need
end

function M.requirements(config) return required(config) end

-- binding returns the memory of a region in the form of daqiri.open, or nil and an error message.
function M.binding(name, region)
  local what = ("cannot bind memory region %s: "):format(tostring(name))
  if type(region) ~= "table" or region.data == nil then return nil, what .. "its data is nil" end
  if not core.whole(region.capacity, 1, 2 ^ 53) then return nil, what .. "capacity must be a number of bytes above 0" end
  local memory = type(region.data) == "table" and {} or { array = region.data }
  for key, value in pairs(type(region.data) == "table" and region.data or {}) do memory[key] = value end
  memory.bytes = region.capacity
  return memory
end

-- bound checks bindings and returns a status, the bindings for daqiri.open or nil for none, and an error message. A configuration whose regions
-- all have memory of the session needs no check.
function M.bound(config, plan, bindings)
  local needed = bindings ~= nil
  for i = 1, #plan.memory_regions do needed = needed or not plan.memory_regions[i].owned end
  if not needed then return "SUCCESS" end
  if bindings ~= nil and type(bindings) ~= "table" then return "INVALID_PARAMETER", nil, "bindings: a table expected, got a " .. type(bindings) end
  local list = {}
  for name, region in pairs(bindings or {}) do
    local memory, text = M.binding(name, region)
    if not memory then return "INVALID_PARAMETER", nil, text end
    list[name] = memory
  end
  local status, _, text = required(config, list)
  if status ~= "SUCCESS" then return status, nil, text end
  return "SUCCESS", list
end

return M
