-- pcall and xpcall: caught errors leave the locals around them alone.
local daqiri, t = require "daqiri", require "check"

local shared = 0
local function add() shared = shared + 1 end
add()
t.equal(pcall(error, "x"), false)
add()
shared = shared + 10
add()
t.equal(shared, 13, "a closure and its function share a local after a caught error")

-- results, arguments, error values
local ok, a, b = pcall(function(...) return select("#", ...), ... end, 7, nil)
t.equal(ok, true)
t.equal(a, 2)
t.equal(b, 7)
local value = {}
t.equal(select(2, pcall(error, value)), value)
t.equal(select(2, pcall(function() error("here") end)), "protected.lua:20: here")
t.equal(select(2, pcall(nil)), "attempt to call a nil value")
t.raises("bad argument #1 to 'pcall' (function expected, got no value)", pcall)
local callable = setmetatable({}, { __call = function(_, x) return x + 1 end })
t.equal(select(2, pcall(callable, 1)), 2)

-- closures that escape from a failed call keep their values
local escaped
pcall(function()
  local inner = 5
  escaped = function() inner = inner + 1; return inner end
  error("out")
end)
t.equal(escaped() + escaped(), 13)
local trace
ok, value = xpcall(function()
  local inner = 50
  escaped = function() inner = inner + 1; return inner end
  local nothing = nil
  return nothing.x
end, function(e)
  trace = debug.traceback(e)
  return "handled"
end)
t.equal(ok, false)
t.equal(value, "handled")
assert(trace:find("protected.lua:39", 1, true), trace)
t.equal(escaped(), 51)
add()
t.equal(shared, 14)
t.equal({ xpcall(function() return 1, 2 end, print) }, { true, 1, 2 })
t.raises("function(error) expected", xpcall, print)

-- nesting ends with an error, not with the process
local function deep() local fine, e = pcall(deep); if not fine then error(e, 0) end end
t.raises("stack overflow", deep)
local function recurse() return 1 + recurse() end
t.raises("stack overflow", recurse)

-- a wait works inside; a yield says that it does not
local before = daqiri.now()
assert(pcall(daqiri.sleep, 0.001))
assert(daqiri.now() - before >= 0.001)
local co = coroutine.create(function() return pcall(coroutine.yield, 1) end)
local _, fine, why = coroutine.resume(co)
t.equal(fine, false)
assert(why:find("can not yield", 1, true), why)
local sum = 0
for i in coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end) do sum = sum + i end
t.equal(sum, 6)
