-- text: conversion between words and values of enums, as written in configurations.
--
-- A value of an enum is its word (constants.lua): these functions check it, and treat an unknown word like the reference: as INVALID, or as
-- an error if the reference throws.

local core = require "daqiri.api.core"
local constants = require "daqiri.api.constants"

local M = {}

-- words returns the set of an enum's values.
local function words(enum)
  local set = {}
  for _, value in pairs(enum) do set[value] = true end
  return set
end

-- convert defines NAME_from_string and NAME_to_string. Words in none are not accepted; an unknown word becomes instead, or raises an error
-- if instead is nil; otherwise is the text of an invalid value.
local function convert(name, enum, none, instead, otherwise)
  local known = words(enum)
  M[name .. "_from_string"] = function(text)
    if known[text] and not none[text] then return text end
    if not instead then core.misuse("%s_from_string: there is no '%s'", name, tostring(text)) end
    return instead
  end
  M[name .. "_to_string"] = function(value) return known[value] and value or otherwise end
end

local invalid = { invalid = true }
convert("stream_type", constants.StreamType, invalid, "invalid", "invalid")
convert("socket_protocol", constants.SocketProtocol, invalid, "invalid", "invalid")
convert("queue_poll_mode", constants.QueuePollMode, invalid, "invalid", "invalid")
convert("reorder_data_type", constants.ReorderDataType, { invalid = true, same = true }, "invalid", "invalid")
convert("reorder_endianness", constants.ReorderEndianness, invalid, "invalid", "invalid")
convert("flow_type", constants.FlowType, {}, nil, "unknown")
convert("tunnel_type", constants.TunnelType, { none = true }, nil, "unknown")
convert("engine_type", constants.EngineType, { unknown = true }, nil, "unknown")
convert("log_level", constants.LogLevel, {}, nil, "warn")

local engine, level = M.engine_type_from_string, M.log_level_from_string

-- engine_type_from_string: ibverbs is the engine of roce:// endpoints unless the configuration has raw interfaces.
function M.engine_type_from_string(text) return text == "ibverbs" and "rdma" or engine(text) end

function M.log_level_from_string(text) return level(type(text) == "string" and text:lower() or text) end

-- config_engine_from_string converts the key engine of a configuration of that stream_type, which does not accept rdma.
function M.config_engine_from_string(text, stream_type)
  if text == "rdma" then core.misuse("config_engine_from_string: a configuration has no 'rdma': 'ibverbs' serves roce:// endpoints") end
  if text == "ibverbs" and stream_type == constants.StreamType.RAW then return "ibverbs" end
  return M.engine_type_from_string(text)
end

function M.config_engine_to_string(value) return value == "rdma" and "ibverbs" or M.engine_type_to_string(value) end

return M
