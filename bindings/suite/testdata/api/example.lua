-- example.lua: runs an example of the reference with objects of every type, and what it has set going for a moment. Objects are made
-- when the example first names them; one that needs a session that runs starts it.
package.path = module_path
local daqiri, stand = require "daqiri", require "api.stand"
local w = stand.world(example_kind)

w.started = example:find("s:start()", 1, true) ~= nil -- then it does so itself
local function started()
  if not w.started then w:start() end
  return w
end

local objects = {
  daqiri = function() return daqiri end, dir = function() return "captures" end,
  s = function() return w.session end, i = function() return w.interface end, q = function() return w.rx end, tx = function() return w.tx end,
  tpl = function() return w.template end, w = function() return w.writer end, blocks = function() return w.blocks end,
  ctl = function() return daqiri.control{ tcp = "127.0.0.1:0", token = "open sesame" } end,
  st = function() return w.filter end, timer = function() return w.session:every(1, function() end) end,
  k = function()
    if example:find "k:start" then return stand.persistent() end
    if example:find "k:stop" or example:find "k:wait" then return stand.persistent():start{ tx = w.tx, semaphores = 1 } end
    return daqiri.kernel{ memory = "host", grid = 1, block = 4, src = "__global__ void scale(float *a, float by) { a[threadIdx.x] *= by; }" }
  end,
  sem = function() return stand.persistent():start{ tx = w.tx, semaphores = 1 }.semaphores[1] end,
  array = function() return daqiri.array{ kind = "host", type = "fp32", shape = 4 } end,
  stream = function() return daqiri.stream{ memory = "host" } end,
  t = function()
    return daqiri.task(function()
      local d = require "daqiri"
      d.on_message(d.send)
    end)
  end,
  at = function() return daqiri.time "now" end, u = function() return daqiri.u64(5) end, f = function() return daqiri.format "chips" end,
  c = function() return started().connection end, b = function() return started():received() end, a = function() return started():aggregate() end,
  p = function() return started():received():packet(1) end, col = function() return started():received():column "len" end,
  x = function() return started():received():samples(nil, { type = "u8" }) end,
  present = function() return started():aggregate().present end, op = function() return (assert(w.writer:write(started():burst()))) end,
}

local env = setmetatable({ print = function(...) for n = 1, select("#", ...) do tostring((select(n, ...))) end end }, {
  __index = function(t, name)
    local make = objects[name]
    if not make then return _G[name] end
    local o = make()
    rawset(t, name, o)
    return o
  end })

setfenv(assert(loadstring(example, "example")), env)()

-- Handlers and timers that it has set get something to do.
local over = not pcall(function() return w.session:region "packets" end)
if not over and not example:find "write_s3" and not example:find ":run" and not example:find ":stop" then
  if not w.started then w.session:start() end
  for _ = 1, 3 do w.tx:send(w:burst(8)) end
  daqiri.sleep(0.02)
end
