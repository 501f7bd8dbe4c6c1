-- configuration: what functions of daqiri.api accept as a configuration: a file, YAML text or a table.

local daqiri = require "daqiri"

local M = {}

-- message returns an error's text without a position in these files.
function M.message(err) return (tostring(err):gsub("^stdlib/[^:]*:%d+: ", "")) end

-- parsed parses a configuration and returns a status, the configuration as written, an error message, and the resolved configuration.
function M.parsed(source)
  local ok, config, plan = pcall(daqiri.parse, source)
  if ok then return "SUCCESS", config, nil, plan end
  return "INVALID_PARAMETER", nil, M.message(config)
end

-- as_text makes daqiri.open treat a string as YAML, regardless of its content.
function M.as_text(yaml) return yaml .. "\n" end

local function is_file(name)
  local f = io.open(name, "rb")
  if f then f:close() end
  return f ~= nil
end

-- source returns the name of an existing or YAML file unchanged, and other strings as YAML text, also on one line.
function M.source(text)
  local yaml_file = text:lower():find("%.ya?ml$") or is_file(text)
  if text:find("\n", 1, true) or not yaml_file and text:find("[{:]") then return M.as_text(text) end
  return text
end

return M
