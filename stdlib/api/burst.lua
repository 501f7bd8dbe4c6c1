-- burst: a burst's metadata and its fields, under the names of the reference's structure.
--
-- Packets and segments are numbered from 0, as in the reference. Fields are read-only except connection_id and rdma_wr_id.

local core = require "daqiri.api.core"
local constants = require "daqiri.api.constants"
local packet = require "daqiri.api.packet"

local M = {}

local FLAGS = { constants.DAQIRI_BURST_FLAG_REORDERED, constants.DAQIRI_BURST_FLAG_REORDER_TIMEOUT, constants.DAQIRI_BURST_FLAG_DIRECT_PLACED }

-- create_tx_burst_params returns a burst without packets. get_tx_packet_burst allocates them and reports empty pools.
function M.create_tx_burst_params() return setmetatable({ { n = 0, segs = 1, conn = 0, tx = true } }, core.Burst) end

M.create_burst_params = M.create_tx_burst_params

-- set_header sets the destination and size of a burst. A received burst can be forwarded: it keeps its packets.
function M.set_header(burst, port, q, num, segs)
  local state = core.state(burst)
  if not core.whole(num, 0, 2 ^ 31) then core.misuse("set_header: %s is not a number of packets", tostring(num)) end
  if not core.whole(segs, 1, constants.MAX_NUM_SEGS) then
    core.misuse("set_header: a packet has 1 to %d segments, not %s", constants.MAX_NUM_SEGS, tostring(segs))
  end
  if state.b and segs ~= state.segs then
    core.misuse("set_header: %d segments, and the burst's packets have %d", segs, state.segs)
  end
  M.set_num_packets(burst, num)
  state.port, state.q, state.segs, state.tx = port, q, segs, true
end

-- set_num_packets sets the number of packets. A burst with packets can only be shortened, which frees the rest.
function M.set_num_packets(burst, num)
  local state = core.state(burst)
  if state.b and num ~= state.n then
    if not core.whole(num, 0, state.n) then
      core.misuse("%s packets: the burst has %d, and it can only be made shorter", tostring(num), state.n)
    end
    state.b:truncate(num)
    state.columns, state.finished = nil, nil
    for _, list in ipairs(state.lens or {}) do
      for i = num + 1, state.n do list[i] = nil end
    end
    for i = num + 1, state.times and state.n or 0 do state.times[i] = nil end
  end
  state.n = num
end

function M.get_num_packets(burst) return core.state(burst).n end

function M.get_q_id(burst) return core.state(burst).q or 0 end

-- get_burst_tot_byte returns the bytes of all packets; for a burst being filled, of those with a length.
function M.get_burst_tot_byte(burst)
  local state = core.state(burst)
  if not state.b then return 0 end
  if not state.lens then return state.b.bytes end
  local total = 0
  for seg, lens in ipairs(state.lens) do
    if state.same then
      total = total + state.n * state.same[seg]
    else
      for i = 1, state.n do total = total + (lens[i] or 0) end
    end
  end
  return total
end

-- get_connection_id returns the connection's id, or 0 if there is none.
function M.get_connection_id(burst)
  local state = core.state(burst)
  if state.conn == nil then
    local c = state.b.connection
    state.conn = c and c.id or 0
  end
  return state.conn
end

function M.set_connection_id(burst, conn_id)
  if not core.whole(conn_id, 0, 2 ^ 53) then core.misuse("%s is not a connection id", tostring(conn_id)) end
  core.state(burst).conn = conn_id
end

-- synchronize_burst_event returns at once: bursts are delivered after the GPU has finished with them.
function M.synchronize_burst_event(burst)
  if burst == nil then return "NULL_PTR", "the burst is nil" end
  core.state(burst)
  return "SUCCESS"
end

-- list returns a table indexed from 0 whose elements are computed on access.
local function list(get) return setmetatable({}, { __index = function(_, i) return get(i) end }) end

local function flags(state)
  local all = state.b and state.b.flags or 0
  local known = 0
  for _, flag in ipairs(FLAGS) do
    if all % (2 * flag) >= flag then known = known + flag end
  end
  return known
end

local function largest(burst, state)
  local max = 0
  for i = 0, state.n - 1 do max = math.max(max, packet.get_packet_length(burst, i)) end
  return max
end

-- Fields of burst.hdr.hdr. Lua has no addresses: a packet's view replaces its pointer.
local header = {
  num_pkts = function(_, state) return state.n end,
  port_id = function(_, state) return state.port end,
  q_id = function(_, state) return state.q end,
  num_segs = function(_, state) return state.segs end,
  nbytes = function(burst) return M.get_burst_tot_byte(burst) end,
  first_pkt_addr = function(burst, state) return state.b and state.n > 0 and packet.get_packet_ptr(burst, 0) or nil end,
  max_pkt = function(_, state) return state.b and state.b.batch_id ~= nil and state.b.source_packets or state.n end,
  max_pkt_size = function(burst, state) return state.b and largest(burst, state) or 0 end,
  gpu_pkt0_idx = function() return 0 end,
  gpu_pkt0_addr = function() return nil end,
  burst_flags = function(_, state) return flags(state) end,
}

-- Fields of burst.transport_hdr; fields of one-sided transfers have the values of other bursts.
local transport = {
  version = function() return 1 end,
  opcode = function(_, state) return state.rdma and state.rdma.opcode or state.of_rdma and "RECEIVE" or "INVALID" end,
  status = function(_, state) return state.error and "GENERIC_FAILURE" or "SUCCESS" end,
  port_id = header.port_id,
  q_id = header.q_id,
  server = function(burst)
    local conn = core.conns[M.get_connection_id(burst)]
    return conn ~= nil and conn.server
  end,
  tx = function(_, state) return state.tx == true end,
  num_pkts = header.num_pkts,
  num_segs = header.num_segs,
  wr_id = function(_, state) return state.wr_id or 0 end,
  conn_id = function(burst) return M.get_connection_id(burst) end,
  local_mr_name = function(_, state) return state.rdma and state.rdma.region or "" end,
  remote_mr_name = function(_, state) return state.rdma and state.rdma.remote and state.rdma.remote.name or "" end,
  raddr = function() return nil end,
  dst_key = function() return 0 end,
  imm = function(_, state) return state.b and state.b.imm and state.b.imm[1] or 0 end,
  server_addr = function() return 0 end,
  server_port = function() return 0 end,
}

-- view returns a table with such functions as read-only fields.
local function view(burst, name, fields)
  return setmetatable({}, {
    __index = function(_, key)
      if not fields[key] then core.misuse("%s has no field '%s'", name, tostring(key)) end
      return fields[key](burst, core.state(burst))
    end,
    __newindex = function(_, key) core.misuse("%s.%s is for reading: functions such as set_header change it", name, tostring(key)) end,
  })
end

local fields = {
  hdr = function(burst)
    return { hdr = view(burst, "burst.hdr.hdr", header) }
  end,
  transport_hdr = function(burst) return view(burst, "burst.transport_hdr", transport) end,
  pkts = function(burst)
    return list(function(seg)
      return list(function(i) return packet.get_segment_packet_ptr(burst, seg, i) end)
    end)
  end,
  pkt_lens = function(burst)
    return list(function(seg)
      return list(function(i) return packet.get_segment_packet_length(burst, seg, i) end)
    end)
  end,
  connection_id = function(burst) return M.get_connection_id(burst) end,
  rdma_wr_id = function(burst) return core.state(burst).wr_id or 0 end,
  event = function() return nil end,
  pkt_extra_info = function() return nil end,
  custom_pkt_data = function() return nil end,
}

function core.Burst.__index(burst, key)
  if not fields[key] then core.misuse("a burst has no field '%s'", tostring(key)) end
  return fields[key](burst)
end

function core.Burst.__newindex(burst, key, value)
  if key == "connection_id" then return M.set_connection_id(burst, value) end
  if key ~= "rdma_wr_id" then core.misuse("a burst's field '%s' is for reading", tostring(key)) end
  if not core.whole(value, 0, 2 ^ 53) then core.misuse("%s is not a work request's id", tostring(value)) end
  core.state(burst).wr_id = value
end

function core.Burst.__tostring(burst)
  local state = burst[1]
  if state.gone then return "burst (" .. core.fate(state) .. ")" end
  return ("burst of %d packets, port %s queue %s"):format(state.n, tostring(state.port), tostring(state.q))
end

return M
