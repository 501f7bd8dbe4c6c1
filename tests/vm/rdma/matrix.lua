-- matrix.lua: operations on matrix.c, which checks what comes of them: of lengths about the MTU and far beyond, over 1 and many
-- connections, in up to four segments whose lengths are multiples of nothing.
--   matrix.lua --segments 4 --runs "send:64:16:1000 write:4097:4:100"      operation, bytes, connections, how many on each
local daqiri = require "daqiri"
local args = daqiri.args{ runs = "send:64:2:100", port = 4795, segments = 1, last = 65536 } -- bytes of the last segment
local PLACES = { 1001, 3001, 60001, args.last } -- of the segments
local BEFORE, COUNTER = 3, 8 -- in what matrix.c lends: the first message, and what atomics are done on
local few = args.last > 65536
local function region(name, n, bytes) return { name = name, kind = "host", affinity = 0, num_bufs = n, buf_size = bytes } end
local function queues(name, regions) return { queues = { { name = name, id = 0, cpu_core = -1, batch_size = 16, memory_regions = regions } } } end
local s = daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "socket", master_core = 0,
  memory_regions = { region("one", 256, PLACES[1]), region("two", 256, PLACES[2]), region("three", 256, PLACES[3]), region("four", few and 8 or 256, PLACES[4]), region("told", 256, 128) },
  interfaces = { { name = "me", address = "10.9.0.2", socket_config = { mode = "client", local_addr = "roce://10.9.0.2" }, roce_config = { transport_mode = "RC" },
    rx = queues("rx", { "told" }), tx = queues("tx", args.segments == 1 and { "four" } or { "one", "two", "three", "four" }) } } } } }
local tx, me = s:tx_queue "me", s:interface "me"
local reported = {} -- by connection: where its memory is
s:rx_queue("me"):on_burst(function(b)
  local addr, key, bytes = b:packet(1):bytes():match "^(%d+) (%d+) (%d+)$"
  reported[b.connection] = { addr = addr, rkey = key, bytes = bytes }
end)
s:start()
local pattern = {}
for k = 0, 255 do pattern[k + 1] = string.char((k * 131 + 7) % 256) end
pattern = table.concat(pattern)
local function connect()
  local x = { ops = {} }
  x.c = assert(me:connect{ address = "10.9.0.1:" .. args.port })
  x.c:on_disconnect(function(why) x.why = why end)
  return x
end
-- The lengths of packets of so many bytes in the burst's segments; where each begins.
local function lengths(b, bytes)
  local at, from = {}, 0
  for segment = 1, args.segments do
    at[segment] = from
    from = math.min(bytes, from + (args.segments == 1 and args.last or PLACES[segment]))
    b:set_lengths(from - at[segment], segment)
  end
  return at
end
-- A template fills packets of one segment; others are written by hand.
local function number(x, payload)
  local at = lengths(x.b, #payload)
  for k = 1, x.b.n do
    local n = x.seen + k - 1
    local head = string.char(math.floor(n / 2 ^ 24) % 256, math.floor(n / 2 ^ 16) % 256, math.floor(n / 256) % 256, n % 256)
    local text = #payload < 4 and head:sub(-#payload) or head .. payload:sub(5)
    for segment, begin in ipairs(at) do
      if begin < #text then x.b:packet(k, segment):set_bytes(0, text:sub(begin + 1, begin + PLACES[segment])) end
    end
  end
end
local function finish(op)
  assert(op:wait{ timeout = 120 } and not op.error, op.error)
  return op
end
-- Each begins with what exists: the connection, its burst and the run. What it can't begin now is tried again: false.
local does = {}
function does.send(x) return x.c:send(x.b) end
local function write(x, run, imm)
  local op, status, why = x.c:write(x.b, "ring", BEFORE + x.seen * run.bytes, { imm = imm })
  if not op then
    assert(status == "NO_SPACE_AVAILABLE", why)
    return false
  end
  x.ops[#x.ops + 1] = op
  return true
end
function does.write(x, run) return write(x, run) end
function does.imm(x, run) return write(x, run, x.seen + x.b.n) end
function does.read(x, run)
  lengths(x.b, run.bytes)
  local read = finish(assert(x.c:read("ring", BEFORE + x.seen * run.bytes, x.b))).burst
  while not x.c:send(read) do daqiri.sleep(1e-3) end
  return true
end
local function atomic(x, op, want)
  assert(tostring(finish(op).value) == ("%d"):format(want), "another value was there")
  op.burst:free()
  return true
end
function does.add(x) return atomic(x, assert(x.c:fetch_add("ring", COUNTER, x.seen + 1)), x.seen * (x.seen + 1) / 2) end
function does.swap(x) return atomic(x, assert(x.c:compare_swap("ring", COUNTER, x.seen, x.seen + 1)), x.seen) end
-- One step of a connection: whether something was begun.
local function step(x, run, payload)
  assert(not x.why, x.why)
  if x.left == 0 then return false end
  local single = run.op == "add" or run.op == "swap"
  if not single and not x.b then
    x.b = x.c:alloc(math.min(few and 1 or 16, x.left))
    if not x.b then return false end
    if x.tpl then x.b:fill(x.tpl) elseif run.op ~= "read" then number(x, payload) end
  end
  local n = single and 1 or x.b.n
  if not does[run.op](x, run) then return false end
  x.left, x.seen, x.b = x.left - n, x.seen + n, nil
  return true
end
local function go(run)
  local list = {}
  for k = 1, run.conns do list[k] = connect() end
  local payload = ("\0\0\0\0" .. pattern:rep(math.ceil(run.bytes / 256)):sub(5)):sub(1, run.bytes)
  for _, x in ipairs(list) do
    while not reported[x.c] do
      assert(not x.why, x.why)
      daqiri.sleep(1e-3)
    end
    assert(x.c:tell("ring", reported[x.c]))
    x.left, x.seen = run.messages, 0
    if args.segments == 1 and run.op ~= "read" then
      x.tpl = tx:template{ payload = payload, payload_bytes = run.bytes, vary = { { at = "payload", bit_offset = 0, bit_width = math.min(32, 8 * run.bytes) } } }
    end
  end
  local left = true
  while left do
    local moved = false
    left = false
    for _, x in ipairs(list) do
      moved = step(x, run, payload) or moved
      left = left or x.left > 0
    end
    if left and not moved then daqiri.sleep(1e-3) end
  end
  for _, x in ipairs(list) do
    for _, op in ipairs(x.ops) do finish(op) end
    x.c:close()
  end
  for _, x in ipairs(list) do
    while not x.why do daqiri.sleep(1e-3) end
    assert(x.why == "closed by the peer", x.why)
  end
end
local began = daqiri.now()
for op, bytes, conns, messages in args.runs:gmatch "(%a+):(%d+):(%d+):(%d+)" do
  print(("%.1f s: %s, %s bytes, %s connections, %s messages each"):format(daqiri.now() - began, op, bytes, conns, messages))
  go{ op = op, bytes = tonumber(bytes), conns = tonumber(conns), messages = tonumber(messages) }
end
s:stop "done"
