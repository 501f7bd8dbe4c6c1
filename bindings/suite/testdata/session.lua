-- open, the objects of a session, its configuration, clock, log, metric, threshold, stats, start, stop, close.
local daqiri, t = require "daqiri", require "check"

t.raises("bad argument #1 to 'open' (file name, YAML text, table or nothing expected, got the number 7)", daqiri.open, 7)
t.raises("unknown option 'engin' (did you mean 'engine'?)", daqiri.open, nil, { engin = "loop" })
t.raises("no such file", daqiri.open, "nowhere.yaml")
t.raises("set", daqiri.open, nil, { set = { ["interfaces.loop0.rx.queues.rx0.batch_sise"] = 3 } })


-- parse: the configuration as it is written
local written, resolved = daqiri.parse()
t.equal(resolved.interfaces[1].engine, "loop")
t.equal(written.daqiri.cfg.interfaces[1].name, "loop0")
t.equal(written.daqiri.cfg.memory_regions[1].num_bufs, 4096)
t.raises('unknown key; did you mean "version"?', daqiri.parse, { verson = 1, stream_type = "raw" })
t.raises("no such file", daqiri.parse, "nowhere.yaml")
written.daqiri.cfg.interfaces[1].name = "renamed"
t.equal(daqiri.open(written):interfaces()[1].name, "renamed")

local s = daqiri.open(nil, { set = { ["interfaces.loop0.rx.queues.rx0.batch_size"] = 32 } })
t.equal(s.name, "default")
t.equal(tostring(s), "session default")
t.raises("unknown field or method 'rx_que' (did you mean 'rx_queue'?) of session", function() s:rx_que() end)
t.raises("calling 'start' on no value", function() s.start() end)

-- objects
local i = s:interface("loop0")
t.equal(i.name, "loop0")
t.equal(i.engine, "loop")
t.equal(i.address, "loopback")
assert(i.mac == nil or #i.mac == 17)
t.equal(#s:interfaces(), 1)
t.raises('did you mean "loop0"?', function() s:interface("lop0") end)
local q = s:rx_queue("loop0", 0)
t.equal(q.name, "rx0")
t.equal(q.id, 0)
t.equal(q.interface, "loop0")
t.equal(q.direction, "rx")
t.equal(q.layer, "frame")
t.equal(q.timestamps, select(2, s:clock()) == "virtual" and "virtual" or "software")
t.equal(q.batch_size, 32)
t.equal(s:rx_queue(i, "rx0").name, "rx0")
t.equal(s:rx_queue("loop0").name, "rx0")
t.equal(#s:rx_queues("loop0"), 1)
t.equal(s:tx_queues("loop0")[1].name, "tx0")
t.equal(s:tx_queue("loop0", "tx0").direction, "tx")
t.raises("receive queue", function() s:rx_queue("loop0", 3) end)
local r = s:region("packets")
t.equal(r.name, "packets")
t.equal(r.num_bufs, 4096)
t.raises("unknown field 'numbufs' (did you mean 'num_bufs'?) of region", function() return r.numbufs end)

-- the configuration is read-only
t.equal(s.config.interfaces[1].name, "loop0")
t.equal(s.config.interfaces[1].rx.queues[1].batch_size, 32)
t.equal(s.config.memory_regions[1].buf_size, 2048)
t.equal(#s.config.interfaces, 1)
for i, r in s.config.memory_regions() do t.equal(r.name, "packets", i) end
t.equal(daqiri.from_json(daqiri.json(s.config)).interfaces[1].name, "loop0")
t.raises("can't be changed", function() s.config.version = 2 end)
t.raises("can't be changed", function() s.config.interfaces[1].name = "x" end)
do -- no operator, call or assignment on any part of it changes anything, nor does its metatable
  local all, text = {}, tostring(s.config)
  local function walk(v, keys)
    if type(v) ~= "userdata" then return end
    all[#all + 1] = v
    for _, k in ipairs(keys) do
      local found, part = pcall(function() return v[k] end)
      if found then walk(part, keys) end
    end
  end
  walk(s.config, { 1, "interfaces", "memory_regions", "rx", "queues", "loopback", "flows", "memory_region", "name" })
  assert(#all > 6, #all)
  local others = { 1, "x", {}, unpack(all) }
  local ops = {
    function(a, b) return a + b end, function(a, b) return a - b end, function(a, b) return a * b end,
    function(a, b) return a / b end, function(a, b) return a % b end, function(a, b) return a ^ b end,
    function(a, b) return a .. b end, function(a) return -a end, function(a) a[1] = 1 end, function(a) a.name = "x" end,
  }
  for _, part in ipairs(all) do
    for n, op in ipairs(ops) do
      for _, other in ipairs(others) do
        assert(not pcall(op, part, other), tostring(n))
        if n < 8 then assert(not pcall(op, other, part), tostring(n)) end
      end
    end
    if part ~= all[1] then
      t.raises("can't be changed", function() return part ^ part end)
      t.raises("can't be changed", function() return part + 1 end)
    end
    local meta = getmetatable(part)
    if type(meta) == "table" then
      for k in pairs(meta) do meta[k] = nil end
      meta.__newindex, meta.__index = rawset, rawget
    end
  end
  t.raises("can't be changed", function() s.config.version = 2 end)
  t.equal(tostring(s.config), text)
end
t.raises("unknown key 'interface' (did you mean 'interfaces'?)", function() return s.config.interface end)

-- clock, log, metric, threshold, stats, report
local ns, clock = s:clock()
assert(ns >= 0 and (clock == "realtime" or clock == "virtual"))
s:log("info", "text", { n = 1, who = "me" })
s:log("warn", "value", 3)
daqiri.log("error", "from the module")
local level = daqiri.log_level("warn")
t.equal({ level, daqiri.log_level(), daqiri.log_level(level) }, { "info", "warn", "warn" })
t.raises("'loud' is not one of debug, info, warn, error", function() daqiri.log_level("loud") end)
t.raises("'loud' is not one of", function() s:log("loud", "x") end)
s:metric("power", 2.5)
t.raises("not a finite number", function() s:metric("x", 1 / 0) end)
s:threshold("power > 2", { after = 0.1, abort = true })
s:threshold("power > 3")
t.raises("threshold", function() s:threshold("power >") end)
t.equal(s:stats().power, 2.5)
t.equal(s:stats().loop0.rx.packets, 0)
t.raises("unknown figure 'droped' (did you mean 'dropped'?) of loop0.rx", function() return s:stats().loop0.rx.droped end)
assert(#s:report() > 0)

-- nothing moves before the start
t.raises("nothing moves before s:start()", function() q:get_burst{} end)
s:start()
t.raises("has started already", function() s:start() end)
local sum = s:stop("that was all")
t.equal(sum.reason, "that was all")
t.equal(#sum.failed, 1)
assert(sum.failed[1]:find("power > 3: violated", 1, true))
assert(sum.seconds >= 0 and #sum.files == 0 and sum.error == nil)
t.raises("has stopped: that was all", function() q:get_burst{} end)
s:close()
s:close()
t.raises("was closed", function() s:stats() end)
t.raises("was closed", function() q:flush() end)

-- configurations as text and as a table; sections of the script's own
local yaml = [[
daqiri:
  cfg:
    version: 1
    stream_type: raw
    master_core: 0
    loopback: sw
    memory_regions:
    - {name: m, kind: host, affinity: 0, num_bufs: 1024, buf_size: 2048}
    interfaces:
    - name: port
      address: loopback
      rx: {queues: [{name: q, id: 0, poll_mode: direct, memory_regions: [m]}]}
mine: {depth: 3, list: [a, b]}
]]
local mine = daqiri.open(yaml)
t.equal(mine.name, "text")
t.equal(mine.config.mine.depth, 3)
t.equal(mine.config.mine.list[2], "b")
t.equal(mine.config.interfaces[1].rx.queues[1].poll_mode, "direct")
mine:close()
local table_session = daqiri.open{
  version = 1, stream_type = "raw", master_core = 0, loopback = "sw",
  memory_regions = { { name = "m", kind = "host", affinity = 0, num_bufs = 1024, buf_size = 2048 } },
  interfaces = { { name = "port", address = "loopback",
    tx = { queues = { { name = "q", id = 0, poll_mode = "direct", memory_regions = { "m" } } } } } },
}
t.equal(table_session.name, "table")
table_session:close()
t.raises('unknown key; did you mean "version"?', daqiri.open, { verson = 1, stream_type = "raw" })

-- names of the ledger are not for metrics; a difference has its time; a configuration can be printed
local other = daqiri.open()
t.raises("the ledger has the figures of loop0", function() other:metric("loop0.rx.dropped", 1) end)
t.raises("the ledger has the figures of process", function() other:metric("process.rss", 1) end)
other:metric("mine.depth", 1)
t.raises('loop0.rx.droped has no value; did you mean "loop0.rx.dropped"?', function() other:threshold("loop0.rx.droped == 0") end)
other:threshold("disk.dropped == 0 or mine.depth > 0")       -- a stage that may come
t.equal(daqiri.from_json(tostring(other.config)).interfaces[1].name, "loop0")
t.equal(daqiri.from_json(tostring(other.config.interfaces[1].rx)).queues[1].name, "rx0")
other:start()
local m = other:measure{ seconds = 0.01 }
assert(m.seconds >= 0.01 and m.seconds < 10, m.seconds)
other:log("info", "not a number", { nan = 0 / 0, list = { 1, { a = 2 } } })
other:close()

-- a queue that splits its packets takes no template
local regions = {}
for i, name in ipairs{ "heads", "rest" } do
  regions[i] = { name = name, kind = "host", affinity = 0, num_bufs = 64, buf_size = 64 }
end
local split = daqiri.open{ version = 1, stream_type = "raw", master_core = 0, loopback = "sw", memory_regions = regions,
  interfaces = { { name = "port", address = "loopback",
    tx = { queues = { { name = "q", id = 0, batch_size = 16, poll_mode = "direct", memory_regions = { "heads", "rest" } } } } } } }
local splits = split:tx_queue("port")
t.raises("queue q splits its packets over 2 memory regions", function()
  splits:transmit{ template = splits:template{ payload_bytes = 50 } }
end)
split:close()

-- what completion is told of the configuration
local names = getmetatable(daqiri.open().config).__names
assert(table.concat(names, " "):find("interfaces log_level loopback", 1, true), table.concat(names, " "))
