-- walk.lua: every member of every type, of objects in every state: a Lua error or a result, and never the memory of another object.
local daqiri, stand = require "daqiri", require "api.stand"

local function free(b) pcall(b.free, b) end
-- What the parts of a burst are reached by: the burst itself, or whose packets it shows.
local function of(w, o) return type(o) == "userdata" and tostring(o):find "^burst" and o or w.parent end
local function each_task(_, o)
  return function() -- in this task and in the other one
    daqiri.task(function(x) for _ = 1, 3 do pcall(function() return x.name, x.length, x:select "len > 0" end) end end, o)
  end
end

-- What happens to an object, and to the arguments, before it is used; false where there is nothing that it could happen to, and the
-- object is as fresh as in that state.
local states = {
  fresh = function() end,
  closed = function(w) w.session:close() end,
  stopped = function(w) if not w.started then return false end w.session:stop "enough" end,
  other = function() end,
  other_closed = function(w) w.x.session:close() end,
  freed = function(w, o) local b = of(w, o) if not b then return false end free(b) end,
  partly_freed = function(w, o) local b = of(w, o) if not b then return false end b:free{ packet = 1 } if b.n > 1 then b:free{ packet = b.n } end w:hog() end,
  parent_freed = function(w) if not w.parent then return false end for i = 1, w.parent.n do w.parent:free{ packet = i } end free(w.parent) w:hog() end,
  parent_truncated = function(w) if not w.parent then return false end pcall(w.parent.truncate, w.parent, 0) w:hog() end,
  truncated = function(w, o) local b = of(w, o) if not b then return false end pcall(b.truncate, b, 1) w:hog() end,
  sent = function(w, o) local b = of(w, o) if not b or not w.started then return false end w.tx:send(b) w:hog() end,
  child_sent = function(w) if not w.child or not w.started then return false end w.tx:send(w.child) end,
  written = function(w, o) local b = of(w, o) if not b then return false end w.writer:write(b) end,
  child_written = function(w) if not w.child then return false end w.writer:write(w.child) end,
  written_and_freed = function(w, o) local b = of(w, o) if not b then return false end w.writer:write(b) free(b) w:hog() end,
  handed_over = function(w, o) pcall(each_task(w, o)) end,
}

local bad = { "runtime error", "invalid memory", "interface conversion", "unsafe.", "nil pointer", "out of range [", "slice bounds", "reflect" }
local calls, refused = 0, 0

local function call(what, w, fn)
  calls = calls + 1
  local ok, v = pcall(fn)
  if not ok then
    refused = refused + 1
    for _, text in ipairs(bad) do
      if tostring(v):find(text, 1, true) then error(what .. " is a fault of the program: " .. tostring(v), 0) end
    end
  elseif type(v) == "string" and (v:find("aliena", 1, true) or v:find(daqiri.hex "aliena", 1, true)) then
    error(what .. " shows packets of another burst: " .. v, 0)
  end
  local fine, why = pcall(w.intact, w, what)
  if not fine and tostring(why):find "another burst" then error(why, 0) end
end

-- visit makes an object and arguments, of the same session or of another one, brings them into a state and uses one member once.
-- It returns whether there is such an object, and whether there is none in this state.
local function visit(kind, started, make, state, arguments, use)
  local w = stand.world(kind)
  if state:find "^other" then w.x = stand.world(w.kind, "x") end
  local args, nowhere
  local made, o = pcall(function()
    if started then w:start() end
    args = arguments(w.x or w)
    return make(w)
  end)
  if made and o ~= nil then
    local prepared, why = pcall(states[state], w, o)
    if not prepared and state ~= "handed_over" then
      for _, text in ipairs(bad) do assert(not tostring(why):find(text, 1, true), why) end
    end
    nowhere = prepared and why == false
    if not nowhere then use(w, o, args) end
  end
  pcall(w.session.close, w.session)
  if w.x then pcall(w.x.session.close, w.x.session) end
  return made, nowhere
end

-- On the real clock a call is made in two of the five kinds of sessions, by a sum of its text, so that each is made with threads;
-- the virtual clock makes them all.
local turns = { faulty = 0, direct = 1, loop = 2, tcp = 3, udp = 4 }
local function its_turn(kind, what)
  local sum = 0
  for i = 1, #what do sum = (sum * 31 + what:byte(i)) % 1000003 end
  return not turns[kind] or (sum + turns[kind]) % 5 < 2
end

local function walk(kind, started, type_name, variant, make, state)
  local names, nowhere = members[type_name], false
  local function each(what, list)
    for k = 1, nowhere and 0 or #list({ burst = function() return 1 end, rx = 1, tx = 1, filter = 1, writer = 1, blocks = 1 }) do
      local function arguments(x) return list(x)[k] end
      local description = ("%s:%s (%s, %s, %s, arguments %d)"):format(type_name, what, variant, state, started and "started" or "not started", k)
      if its_turn(kind, description) then
        local made
        made, nowhere = visit(kind, started, make, state, arguments, function(w, o, args)
          call(kind .. " " .. description, w, function() return o[what](o, unpack(args)) end)
        end)
        if not made or nowhere then return end
      end
    end
  end
  for _, name in ipairs(names.methods) do
    each(name, assert(stand.args[type_name][name], "stand.lua has no arguments for " .. type_name .. ":" .. name))
  end
  if nowhere then return end
  visit(kind, started, make, state, function() end, function(w, o)
    for _, name in ipairs(names.fields) do
      call(("%s %s.%s (%s, %s)"):format(kind, type_name, name, variant, state), w, function() return tostring(o[name]) end)
    end
    for _, fn in ipairs{ tostring, function(v) return #v end, function(v) return v[1] end, function(v) return v .. "x" end, function(v) return v + v end,
      function(v) return v == w.tx end, function(v) return v < v end, function(v) v.name = 1 end, function(v) return v() end, daqiri.json } do
      call(("%s %s (%s, %s): an operator"):format(kind, type_name, variant, state), w, function() return fn(o) end)
    end
  end)
end

-- Where time is real, aggregates wait for it; they are the same on the virtual clock.
local waits = { aggregate = true, block = true, data = true, extra = true }
local virtual = walk_kind == "virtual" or walk_kind == "faulty"
for type_name, variants in pairs(stand.objects) do
  assert(members[type_name], "no type " .. type_name)
  for variant, make in pairs(variants) do
    for _, started in ipairs{ false, true } do
      if virtual or not waits[variant] and started then walk(walk_kind, started, type_name, variant, make, walk_state) end
    end
  end
end
for type_name in pairs(members) do assert(stand.objects[type_name], "stand.lua has no object of type " .. type_name) end
print(calls, refused)
