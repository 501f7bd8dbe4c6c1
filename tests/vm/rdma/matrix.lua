-- matrix.lua: messages to matrix.c, which compares them: of lengths about the MTU and far beyond, over 1 and many connections, in up to
-- four segments whose lengths are no multiple of anything.
--   matrix.lua --segments 4 --runs "64:16:1000 4097:4:100"      bytes, connections, messages of each
local daqiri = require "daqiri"
local args = daqiri.args{ runs = "64:2:100", port = 4795, segments = 1, last = 65536 } -- bytes of the last segment
local PLACES = { 1001, 3001, 60001, args.last } -- of the segments
local function region(name, n, bytes) return { name = name, kind = "host", affinity = 0, num_bufs = n, buf_size = bytes } end
local s = daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "socket", master_core = 0,
  memory_regions = { region("one", 256, PLACES[1]), region("two", 256, PLACES[2]), region("three", 256, PLACES[3]), region("four", args.last > 65536 and 8 or 256, PLACES[4]) },
  interfaces = { { name = "me", address = "10.9.0.2", socket_config = { mode = "client", local_addr = "roce://10.9.0.2" }, roce_config = { transport_mode = "RC" },
    tx = { queues = { { name = "tx", id = 0, cpu_core = -1, batch_size = 16, memory_regions = args.segments == 1 and { "four" } or { "one", "two", "three", "four" } } } } } } } } }
local tx, me = s:tx_queue "me", s:interface "me"
s:start()
local pattern = {}
for k = 0, 255 do pattern[k + 1] = string.char((k * 131 + 7) % 256) end
pattern = table.concat(pattern)
local function connect()
  local x = {}
  x.c = assert(me:connect{ address = "10.9.0.1:" .. args.port })
  x.c:on_disconnect(function(why) x.why = why end)
  return x
end
-- A template fills packets of one segment; others are written by hand.
local function number(x, payload)
  local at = {} -- where each segment begins
  local from = 0
  for segment, most in ipairs(PLACES) do
    at[segment] = from
    from = math.min(#payload, from + most)
    x.b:set_lengths(from - at[segment], segment)
  end
  for k = 1, x.b.n do
    local n = x.seen
    local head = string.char(math.floor(n / 2 ^ 24) % 256, math.floor(n / 2 ^ 16) % 256, math.floor(n / 256) % 256, n % 256)
    local text = #payload < 4 and head:sub(-#payload) or head .. payload:sub(5)
    for segment, begin in ipairs(at) do
      if begin < #text then x.b:packet(k, segment):set_bytes(0, text:sub(begin + 1, begin + PLACES[segment])) end
    end
    x.seen = n + 1
  end
end
for bytes, conns, messages in args.runs:gmatch "(%d+):(%d+):(%d+)" do
  bytes, conns, messages = tonumber(bytes), tonumber(conns), tonumber(messages)
  local list = {}
  for k = 1, conns do list[k] = connect() end
  local payload = ("\0\0\0\0" .. pattern:rep(math.ceil(bytes / 256)):sub(5)):sub(1, bytes)
  for _, x in ipairs(list) do
    while not x.c.open do
      assert(not x.why, x.why)
      daqiri.sleep(1e-3)
    end
    x.left = messages
    x.seen = 0
    x.tpl = args.segments == 1 and tx:template{ payload = payload, payload_bytes = bytes, vary = { { at = "payload", bit_offset = 0, bit_width = math.min(32, 8 * bytes) } } }
  end
  local busy = true
  while busy do
    busy = false
    local moved = false
    for _, x in ipairs(list) do
      assert(not x.why, x.why)
      if x.left > 0 and not x.b then
        x.b = x.c:alloc(math.min(args.last > 65536 and 1 or 16, x.left))
        if x.b and x.tpl then x.b:fill(x.tpl) end
        if x.b and not x.tpl then number(x, payload) end
      end
      local n = x.b and x.b.n
      if x.b and x.c:send(x.b) then
        x.left, x.b, moved = x.left - n, nil, true
      end
      busy = busy or x.left > 0
    end
    if not moved then daqiri.sleep(1e-3) end
  end
  for _, x in ipairs(list) do x.c:close() end
  for _, x in ipairs(list) do
    while not x.why do daqiri.sleep(1e-3) end
    assert(x.why == "closed by the peer", x.why)
  end
end
s:stop "done"
