-- tx: bursts to send: buffers, lengths, sending.
--
-- A packet's view covers its whole buffer until the burst is sent; set_packet_lengths sets its length. SUCCESS and NO_SPACE_AVAILABLE
-- consume the burst; after any other status the caller still owns it.

local core = require "daqiri.api.core"
local connection = require "daqiri.api.connection"

local M = {}

-- target returns the transmit queue selected by set_header, or nil and a message.
local function target(state)
  if state.port == nil then return nil, "set_header has not been called" end
  return core.queue(state.port, state.q, "tx")
end

-- allocate allocates the burst's buffers and returns a status and a message.
local function allocate(state, entry)
  local b, status, text = entry.queue:alloc(state.n)
  if not b then
    core.turn() -- sent packets free their buffers
    b, status, text = entry.queue:alloc(state.n)
  end
  if not b then return status, text end
  state.b, state.alloc, state.lens = b, entry, {}
  core.unsent[state] = true
  for seg, room in ipairs(entry.room) do
    b:set_lengths(room, seg)
    state.lens[seg] = {}
  end
  return "SUCCESS"
end

-- fits checks the size of the burst against the queue: nil, or a message.
local function fits(state, entry)
  if not core.whole(state.n, 1, entry.batch_size) then
    return ("%s packets: a burst of the queue has 1 to %d (batch_size)"):format(tostring(state.n), entry.batch_size)
  elseif state.segs ~= #entry.room then
    return ("%d segments: the queue's packets have %d (memory_regions)"):format(state.segs, #entry.room)
  end
end

-- obtain allocates the buffers unless the burst has them.
local function obtain(burst)
  local status, text = core.not_ready()
  if status then return status, text end
  if burst == nil then return "NULL_PTR", "the burst is nil" end
  local state, entry = core.state(burst)
  if state.rdma then return core.obtain_rdma(state) end
  entry, text = target(state)
  text = text or fits(state, entry)
  if text then return "INVALID_PARAMETER", text end
  if state.reserved then return "SUCCESS" end
  if state.b then return "INVALID_PARAMETER", "the burst has packets already" end
  return allocate(state, entry)
end

-- is_tx_burst_available allocates the buffers if there are enough, so that get_tx_packet_burst will succeed.
function M.is_tx_burst_available(burst)
  local status, text = obtain(burst)
  if status ~= "SUCCESS" then return false, text end
  core.state(burst).reserved = true
  return true
end

function M.get_tx_packet_burst(burst)
  local status, text = obtain(burst)
  if status ~= "SUCCESS" then return status, text end
  core.state(burst).reserved = nil
  return "SUCCESS"
end

-- lengths checks a list of lengths, one per segment: nil, or a message.
local function lengths(state, lens)
  if type(lens) ~= "table" or #lens ~= state.segs then
    return ("a list of lengths expected, one for each of %d segments"):format(state.segs)
  end
  for seg, len in ipairs(lens) do
    if not core.whole(len, 0, state.alloc.room[seg]) then
      return ("%s bytes do not fit into the %d of a buffer"):format(tostring(len), state.alloc.room[seg])
    end
  end
end

-- measured is the common check of both functions that set lengths: it returns the state, or nil, a status and a message.
local function measured(burst, idx, lens)
  local state, status, text = core.sound(burst, 0, idx)
  if not state then return nil, status, text end
  if not state.alloc then return nil, "INVALID_PARAMETER", "the lengths of a received burst stay as they are" end
  text = lengths(state, lens)
  if text then return nil, "INVALID_PARAMETER", text end
  return state
end

-- set_packet_lengths(burst, idx, {bytes of each segment}) sets the length of a packet.
function M.set_packet_lengths(burst, idx, lens)
  local state, status, text = measured(burst, idx, lens)
  if not state then return status, text end
  for seg, len in ipairs(lens) do
    local list, same = state.lens[seg], state.same
    for i = 1, same and state.n or 0 do list[i] = same[seg] end
    list[idx + 1] = len
  end
  state.same, state.finished = nil, nil
  return "SUCCESS"
end

function M.set_all_packet_lengths(burst, lens)
  local state, status, text = measured(burst, 0, lens)
  if not state then return status, text end
  state.same, state.finished = { unpack(lens) }, nil
  return "SUCCESS"
end

-- measure applies the lengths that were set: nil, or a message.
local function measure(state)
  if not state.lens then return nil end
  for seg, lens in ipairs(state.lens) do
    for i = 1, state.same and 0 or state.n do
      if not lens[i] then return ("packet %d has no length: set_packet_lengths gives it one"):format(i - 1) end
    end
    state.b:set_lengths(state.same and state.same[seg] or lens, seg)
  end
end

-- finish completes the packets to send: lengths, send times, checksums. It returns nil, or a message.
function core.finish(state)
  if state.finished then return nil end
  local text = measure(state)
  if text then return text end
  if state.times then
    for i = 1, state.n do state.times[i] = state.times[i] or 0 end
    state.b:tx_times(state.times)
  end
  local headers = state.headers
  if headers and headers.n == state.n then
    state.b:checksums()
  elseif headers then
    for i = 1, state.n do
      if headers[i] then state.b:checksums(i) end
    end
  end
  state.finished = true
end

-- through sends on the queue, or on the connection selected by set_connection_id: true, or nil, a status and a message.
local function through(state, entry)
  local conn, status, text
  if state.tx and state.conn and state.conn ~= 0 then
    conn, status, text = connection.known(state.conn)
    if not conn then return nil, status, text end
    if conn.ended then return nil, "CONNECT_FAILURE", conn.ended end
  end
  if not conn or not conn.c then
    text = state.alloc and core.alone(entry.port)
    if text then return nil, "CONNECT_FAILURE", text end
    return entry.queue:send(state.b)
  end
  local called, sent
  called, sent, status, text = pcall(conn.c.send, conn.c, state.b)
  if not called then return nil, "CONNECT_FAILURE", tostring(sent) end -- it has ended, but its disconnect event is still pending
  return sent, status, text
end

function M.send_tx_burst(burst)
  local status, text = core.not_ready()
  if status then return status, text end
  if burst == nil then return "NULL_PTR", "the burst is nil" end
  local state = core.state(burst)
  if not state.b then return "NULL_PTR", "the burst has no packets yet: get_tx_packet_burst gives it some" end
  if state.rdma then return core.begin_rdma(state) end
  local entry
  entry, text = target(state)
  text = text or core.finish(state)
  if text then return "INVALID_PARAMETER", text end
  local sent
  sent, status, text = through(state, entry)
  if sent then
    core.consume(state, "sent")
    return "SUCCESS"
  end
  if status == "NO_SPACE_AVAILABLE" then
    state.b:free()
    core.consume(state, "given up by send_tx_burst: NO_SPACE_AVAILABLE")
  end
  return status, text
end

return M
