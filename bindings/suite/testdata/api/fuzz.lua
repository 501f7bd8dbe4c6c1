-- fuzz.lua: random calls of random members with random objects, of two sessions that start, stop and close at random. What was
-- written has to be in the file as it was when it was written.
local daqiri, stand = require "daqiri", require "api.stand"
math.randomseed(fuzz_seed)
local random = math.random
local pools, worlds, calls = {}, {}, 0
local most = 48 -- objects of each type

local function chance(percent) return random(100) <= percent end
local function pick(list) return #list > 0 and list[random(#list)] or nil end

local function keep(o)
  if type(o) ~= "userdata" then return o end
  local kind = getmetatable(o)
  local pool = pools[kind]
  if pool then pool[#pool < most and #pool + 1 or random(most)] = o end
  return o
end

local types = {}
for name in pairs(stand.objects) do types[#types + 1] = name pools[name] = {} end
table.sort(types)
-- What packets are made of is used more often.
for _, name in ipairs{ "burst", "burst", "burst", "burst", "burst", "packet", "packet", "packet", "queue", "queue", "template", "op", "stage" } do types[#types + 1] = name end

local bad = { "runtime error", "invalid memory", "interface conversion", "unsafe.", "nil pointer", "slice bounds", "reflect" }
local function try(what, fn, ...)
  calls = calls + 1
  local ok, a, b, c = pcall(fn, ...)
  if not ok then
    for _, text in ipairs(bad) do
      if tostring(a):find(text, 1, true) then error(what .. " is a fault of the program: " .. tostring(a), 0) end
    end
    return nil
  end
  keep(a) keep(b) keep(c)
  return a
end

-- The bytes of a burst's packets, in their order.
local function contents(b)
  local list = {}
  for i = 1, b.n do list[i] = b:packet(i):bytes() end
  return list
end

local function write(w, b)
  local ok, list = pcall(contents, b)
  local h = try("stage:write", w.writer.write, w.writer, b)
  if h and ok then w.writes[#w.writes + 1] = { handle = h, packets = list } end
end

local function number(text, at)
  local a, b, c, d = text:byte(at, at + 3)
  return a + b * 256 + c * 65536 + d * 16777216
end

-- verify compares the file of a closed session with what was written; sockets' packets get headers in it.
local function verify(w)
  if w.piped or not w.started then return end
  local written = {}
  for k, one in ipairs(w.writes) do
    local h, n = one.handle, #one.packets
    if h.completed_packets + h.failed_packets ~= n then error(("write %d of %s: %d packets completed, %d failed, of %d"):format(k, w.path, h.completed_packets, h.failed_packets, n), 0) end
    if h.completed_packets == n then
      for _, p in ipairs(one.packets) do written[#written + 1] = p end
    elseif h.completed_packets > 0 then return end -- which one is unknown
  end
  local file = io.open(w.path, "rb")
  local text = file and file:read "*a" or ""
  if file then file:close() end
  local at, n = 25, 0
  while at + 15 <= #text do
    local len = number(text, at + 8)
    local got, want = text:sub(at + 16, at + 15 + len), written[n + 1]
    if not want or got:sub(-#want) ~= want and want ~= "" then error(("packet %d of %s is not as it was written"):format(n + 1, w.path), 0) end
    at, n = at + 16 + len, n + 1
  end
  if n ~= #written then error(("%s has %d packets, %d were written"):format(w.path, n, #written), 0) end
end

local function new_world(k)
  local w = stand.world(fuzz_kind, "f")
  w.writes, w.path = {}, ("%s/%s.pcap"):format(work_dir, w.file)
  worlds[k] = w
  for _, name in ipairs(types) do
    for _, make in pairs(stand.objects[name]) do
      local ok, o = pcall(make, w)
      if ok then keep(o) end
    end
  end
  return w
end

-- A handler that does what scripts do, and what they should not.
local stale
local function handler(b)
  local what = random(8)
  if what == 1 then stale = b keep(b)
  elseif what == 2 then keep(b:keep())
  elseif what == 3 then keep(b:select "len > 0")
  elseif what == 4 then keep(b:packet(1))
  elseif what == 5 then b:free()
  elseif what == 6 then b:select("len > 0"):keep()
  elseif what == 7 then pcall(function() return stale.n end)
  end
end

local function garbage()
  local k = random(12)
  if k <= 3 then return pick{ 0, 1, -1, 2, 1e300, -1e300, 0 / 0, 1 / 0, 2 ^ 53, 2 ^ 31, 0.5 } end
  if k == 4 then return pick{ "", "len > 0", "x", ("y"):rep(300), "\0\255", "10ms", "1" } end
  if k <= 7 then return pick(pools[pick(types)]) end
  if k == 8 then return {} end
  if k == 9 then return { garbage(), garbage() } end
  if k == 10 then return { [pick{ "packet", "segment", "n", "template", "count", "where", "name", "policy" }] = garbage() } end
  if k == 11 then return handler end
  return nil
end

-- Calls that wait (on the virtual clock, while traffic goes on as fast as it can), or that write where they are told, get no arguments but those of the stand; those that end a session are made by turn.
local careful = { run = true, measure = true, drain = true, get_burst = true, wait = true, resolve = true, close = true, stop = true, write_s3 = true, pipe = true, start = true, write = true,
  write_blocks = true, write_pcap = true, write_raw = true, write_sigmf = true, write_dada = true, write_guppi = true, write_zarr = true }

local function call_member()
  local name = pick(types)
  local o, w = pick(pools[name]), pick(worlds)
  if not o then return end
  local m = members[name]
  if #m.methods == 0 or chance(10) then
    local field = pick(m.fields)
    return field and try(name .. "." .. field, function() return o[field] end)
  end
  local method = pick(m.methods)
  if careful[method] and (name == "session" or name == "interface") and not method:find "^write_[bpr]" then return end
  if method == "write" then return write(w, pick(pools.burst)) end
  local args
  if not careful[method] and chance(20) then
    args = {}
    for k = 1, random(0, 3) do args[k] = garbage() end
  else
    local ok, list = pcall(stand.args[name][method], w)
    if not ok or #list == 0 then return end
    args = pick(list)
    if method == "on_burst" then args = { handler, args[2] } end
  end
  return try(name .. ":" .. method, o[method], o, unpack(args, 1, 3))
end

local function life(k)
  local w = worlds[k]
  local what = random(12)
  if what <= 5 then
    if not w.started then pcall(w.start, w) end
  elseif what == 6 then
    try("session:stop", w.session.stop, w.session, "fuzz")
  elseif what == 7 then
    try("session:pipe", w.session.pipe, w.session, w.rx, w.filter, w.session:count{})
  elseif what == 8 then
    w.piped = try("session:pipe", w.session.pipe, w.session, w.rx, w.writer) or w.piped or true
  elseif what == 9 and w.kind ~= "virtual" and w.kind ~= "faulty" then -- packets that go round take a stop its 2 s, at a wire's rate
    try("session:pipe", w.session.pipe, w.session, w.rx, w.tx)
  elseif what == 10 then
    try("session:run", w.session.run, w.session, { seconds = 1e-4 })
    w.started = true
  else
    try("session:close", w.session.close, w.session)
    verify(w)
    new_world(k)
  end
end

for k = 1, 2 do new_world(k) end
while calls < fuzz_calls do
  if chance(1) and chance(30) then
    life(random(2))
  elseif chance(8) then
    try("tx:alloc", function()
      local b = pick(worlds).tx:alloc(random(16))
      return b and b:fill(pick(pools.template))
    end)
  elseif chance(6) then
    try("select", function() return pick(pools.burst):select(pick{ "len > 0", "len > 1000", "flow_id >= 0" }) end)
  elseif chance(6) then
    try("packet", function() return pick(pools.burst):packet(1) end)
  elseif chance(4) then
    try("send", function()
      local w, b = pick(worlds), pick(pools.burst)
      return w.tx:send(b)
    end)
  elseif chance(3) then
    write(pick(worlds), pick(pools.burst))
  elseif chance(1) and chance(10) then
    try("sleep", daqiri.sleep, 1e-4)
  else
    call_member()
  end
end
for k = 1, 2 do
  try("session:close", worlds[k].session.close, worlds[k].session)
  verify(worlds[k])
end
print(calls)
