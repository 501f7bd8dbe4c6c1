-- managed: RxBurst and TxBurst, objects that own one burst, or none, and their statistics.
--
-- Lua has no destructors: reset ends the burst. What an object still owns at shutdown is freed with the session and counted as a lifecycle
-- error; a later session has nothing to do with it.

local daqiri = require "daqiri"
local core = require "daqiri.api.core"
local burst = require "daqiri.api.burst"
local free = require "daqiri.api.free"
local rx = require "daqiri.api.rx"
local tx = require "daqiri.api.tx"
local endpoint = require "daqiri.api.endpoint"

local M = {}

local EMPTY, FULL = "the object has no burst", "the object has a burst already"
local Rx, Tx = { name = "RxBurst" }, { name = "TxBurst" }
Rx.__index, Tx.__index = Rx, Tx

local stats = { outstanding = 0, deferred = 0, peak_outstanding = 0, peak_deferred = 0, total_outstanding = 0, total_deferred = 0,
  deferred_wait_ns_sum = 0, deferred_wait_ns_max = 0, lifecycle_errors = 0 }

-- rise counts one more in stats[key], its peak and its total.
local function rise(key)
  local peak, total = "peak_" .. key, "total_" .. key
  stats[key], stats[total] = stats[key] + 1, stats[total] + 1
  stats[peak] = math.max(stats[peak], stats[key])
end

-- own makes the object the owner of a burst.
local function own(object, b)
  rise("outstanding")
  object[1], object.session = b, core.session
end

-- disown empties the object and returns its burst.
local function disown(object)
  local b = object[1]
  object[1], object.session = nil, nil
  if b then stats.outstanding = stats.outstanding - 1 end
  return b
end

-- live returns whether the object's burst is of the open session. A burst of an ended one went with it.
local function live(object) return object[1] ~= nil and object.session == core.session end

-- stale empties an object whose session has ended, and counts that.
local function stale(object)
  if object[1] == nil or live(object) then return false end
  disown(object)
  stats.lifecycle_errors = stats.lifecycle_errors + 1
  daqiri.log("warn", "a " .. getmetatable(object).name .. " still had a burst when its session ended", {})
  return true
end

-- RxBurst returns an empty object for received bursts, TxBurst one for bursts to send.
function M.RxBurst() return setmetatable({}, Rx) end
function M.TxBurst() return setmetatable({}, Tx) end

-- reset frees the burst with its packets.
local function reset(object)
  if stale(object) then return end
  local b = disown(object)
  if b and not b[1].gone then free.free_rx_burst(b) end
end

-- release returns the burst, which then belongs to the caller, or nil.
local function release(object)
  if stale(object) then return nil end
  return disown(object)
end

-- get returns the burst, which still belongs to the object, or nil.
local function get(object) return live(object) and object[1] or nil end

for _, class in ipairs{ Rx, Tx } do class.reset, class.release, class.get = reset, release, get end

-- synchronize waits for a stream; the default one is not waited for, as its launches hold the bursts that they were given.
local function synchronize(stream)
  if stream == nil or stream == 0 then return "SUCCESS" end
  if getmetatable(stream) ~= "stream" then return "INVALID_PARAMETER", "the stream is neither nil, 0 nor of daqiri.stream" end
  local done, text = pcall(stream.synchronize, stream)
  if done then return "SUCCESS" end
  return "GENERIC_FAILURE", tostring(text)
end

-- release_on_stream frees the burst after all earlier work of the stream. Unless it returns SUCCESS the object keeps the burst.
function Rx:release_on_stream(stream)
  if stale(self) or self[1] == nil then return "NULL_PTR", EMPTY end
  local began = daqiri.now()
  rise("deferred")
  local status, text = synchronize(stream)
  stats.deferred = stats.deferred - 1
  if status ~= "SUCCESS" then return status, text end
  local waited = math.floor((daqiri.now() - began) * 1e9 + 0.5)
  stats.deferred_wait_ns_sum = stats.deferred_wait_ns_sum + waited
  stats.deferred_wait_ns_max = math.max(stats.deferred_wait_ns_max, waited)
  self:reset()
  return "SUCCESS"
end

-- has_packet_buffers returns whether get_tx_packet_burst gave the burst its packets.
function Tx:has_packet_buffers() return live(self) and self[1][1].b ~= nil end

-- send sends the burst, as send_tx_burst does. The object is empty afterwards if the engine took the burst.
function Tx:send()
  if stale(self) or self[1] == nil then return "NULL_PTR", EMPTY end
  if not self:has_packet_buffers() then return "INVALID_PARAMETER", "the burst has no packets yet: get_tx_packet_burst gives it some" end
  local status, text = endpoint.send_tx_burst(self[1])
  if self[1][1].gone then disown(self) end
  return status, text
end

-- vacant returns nil if the object can take a burst, otherwise a status and a message.
local function vacant(object)
  stale(object)
  if object[1] ~= nil then return "INVALID_PARAMETER", FULL end
end

-- get_rx_burst also accepts an RxBurst in front of its arguments, which then owns the burst.
function M.get_rx_burst(first, ...)
  if getmetatable(first) ~= Rx then return rx.get_rx_burst(first, ...) end
  local status, text = vacant(first)
  if status then return status, text end
  local got
  status, got, text = rx.get_rx_burst(...)
  if got then own(first, got) end
  return status, text
end

-- create_tx_burst gives a TxBurst a burst without packets.
function M.create_tx_burst(object)
  if object == nil then return "NULL_PTR", "the object is nil" end
  if getmetatable(object) ~= Tx then core.misuse("create_tx_burst expects a TxBurst, got a %s", type(object)) end
  local status, text = vacant(object)
  if status then return status, text end
  own(object, burst.create_tx_burst_params())
  return "SUCCESS"
end

-- get_tx_packet_burst also accepts a TxBurst.
function M.get_tx_packet_burst(b)
  if getmetatable(b) ~= Tx then return tx.get_tx_packet_burst(b) end
  if stale(b) or b[1] == nil then return "NULL_PTR", EMPTY end
  return tx.get_tx_packet_burst(b[1])
end

-- get_managed_burst_stats returns counts of this task's objects: outstanding (bursts that objects own), deferred (being freed by
-- release_on_stream), the peaks and totals of both, the waits of release_on_stream in ns (sum, max), and lifecycle_errors.
function M.get_managed_burst_stats()
  local copy = {}
  for key, value in pairs(stats) do copy[key] = value end
  return copy
end

return M
