-- Regions in memory of the application: requirements, bindings of daqiri.open, and where packets are.
local daqiri, t = require "daqiri", require "check"

local function queue(name, region) return { name = name, id = 0, cpu_core = -1, batch_size = 16, memory_regions = { region } } end
local function region(name, owned) return { name = name, kind = "host", affinity = 0, num_bufs = 64, buf_size = 2000, owned = owned } end
local virtual = select(2, daqiri.open():clock()) == "virtual"
local config = { version = 1, stream_type = "raw", master_core = 0, loopback = { mode = "sw", clock = virtual and "virtual" or "real" },
  memory_regions = { region("out"), region("mine", false) },
  interfaces = { { name = "a", address = "a", tx = { queues = { queue("tx", "out") } } },
    { name = "b", address = "b", rx = { queues = { queue("rx", "mine") } } } } }
local needs = daqiri.memory_requirements(config)
local need = needs.mine
t.equal(need.kind, "host")
t.equal(needs.out.num_bufs, 64)
local pages = 2 * need.capacity / need.alignment
local memory = daqiri.array{ kind = "host", type = "uint8", shape = { pages, need.alignment } }

-- what the options say
local function refused(words, binding) t.raises(words, daqiri.open, config, { bindings = { mine = binding } }) end
t.raises("a table of regions expected, got the number 3", daqiri.open, config, { bindings = 3 })
t.raises("names of regions expected, got the number 1", daqiri.open, config, { bindings = { memory } })
refused("region mine: an array or a table expected, got the number 7", 7)
refused("unknown option 'files' (did you mean 'file'?)", { files = "x" })
refused("array", {})
refused("array", { array = memory, fd = 3 })
refused("an array expected, got the number 1", { array = 1 })
refused("the name of a POSIX shared memory object expected", { shm = "/a/b" })
refused("the 64 bytes of a handle expected, got 3", { cuda_ipc = "abc" })
refused("its memory has no bytes", { array = memory, bytes = 0 })
refused("cannot bind memory region mine: /dev/shm/daqiri-none: No such file or directory", { shm = "/daqiri-none" })
t.raises("owned: cannot open memory region mine: owned is false, and there is no binding for it", daqiri.open, config)
local none, status, text = daqiri.memory_requirements(config, { bindings = { mine = { array = memory, offset = need.alignment / 2 } } })
t.equal(none, nil)
t.equal(status, "INVALID_PARAMETER")
assert(text:find("is not a multiple of", 1, true), text)

-- packets are in the array, behind the offset, where b:offsets has them
local s = daqiri.open(config, { bindings = { mine = { array = memory, offset = need.capacity } } })
local seen = 0
s:rx_queue("b"):on_burst(function(b)
  local offsets, name = b:offsets()
  t.equal(name, "mine")
  for i = 1, b.n do
    local at = need.capacity + offsets[i]
    t.equal(offsets[i] % need.slot_size, need.headroom)
    t.equal(memory:get(math.floor(at / need.alignment) + 1, at % need.alignment + 13), 8) -- the EtherType
    seen = seen + 1
  end
  t.equal(#b:offsets(1), b.n)
  t.raises("segment", b.offsets, b, 2)
end)
local tx = s:tx_queue("a")
tx:transmit{ template = tx:template{ udp_dst = 7148, payload_bytes = 64 }, count = 40 }
s:run{ packets = 40, seconds = 20 }
t.equal(seen, 40)
s:close()

-- the array outlives the script's reference while a session has it
local again = daqiri.open(config, { bindings = { mine = memory } })
memory = nil
collectgarbage()
again:close()

-- a deleted region leaves its array as it is; a later region of that name has memory of the session
local kept = daqiri.array{ kind = "host", type = "uint8", shape = { pages, need.alignment } }
local open = daqiri.open(config, { bindings = { mine = kept } })
local rx, at = open:rx_queue("b"), nil
rx:on_burst(function(b) at = b:offsets()[1] end)
open:start()
open:tx_queue("a"):transmit{ template = open:tx_queue("a"):template{ udp_dst = 7148, payload_bytes = 64 }, count = 1 }
for _ = 1, 1e4 do
  if at then break end
  daqiri.sleep("1ms")
end
assert(assert(rx:delete()):wait{ timeout = 10 })
assert(assert(open:delete_region("mine")):wait{ timeout = 10 })
local function type_byte() return kept:get(math.floor(at / need.alignment) + 1, at % need.alignment + 13) end
t.equal(type_byte(), 8)
assert(open:add_region(region("mine")))
t.equal(open:region("mine").free_bufs, 64)
t.equal(type_byte(), 8)

-- a region that is added may lie in memory of the application, too
assert(assert(open:delete_region("mine")):wait{ timeout = 10 })
local later = daqiri.array{ kind = "host", type = "uint8", shape = { pages, need.alignment } }
local function not_added(words, ...)
  local none, status, text = open:add_region(...)
  t.equal({ none, status }, { nil, "INVALID_PARAMETER" })
  assert(text:find(words, 1, true), text)
end
not_added("pass the memory, too", region("mine", false))
not_added("need " .. need.capacity .. " bytes", region("mine"), { array = later, bytes = need.alignment })
not_added("is not a multiple of", region("mine"), { array = later, offset = 1 })
not_added("No such file or directory", region("mine"), { shm = "/daqiri-none" })
t.raises("(region mine: an array or a table expected, got the number 7", function() open:add_region(region("mine"), 7) end)
assert(open:add_region(region("mine", false), { array = later, offset = need.capacity }))
not_added("overlaps that of region mine", region("twice"), { array = later, offset = need.capacity })
local i = open:interface("b")
local more = assert(i:add_rx_queue(queue("rx", "mine")))
i:add_flows("late", { { name = "all", match = { udp_dst = 7148 }, action = { type = "queue", id = 0 } } })
at = nil
more:on_burst(function(b) at = b:offsets()[1] end)
open:tx_queue("a"):transmit{ template = open:tx_queue("a"):template{ udp_dst = 7148, payload_bytes = 64 }, count = 1 }
for _ = 1, 1e4 do
  if at then break end
  daqiri.sleep("1ms")
end
local place = need.capacity + at
local function later_byte() return later:get(math.floor(place / need.alignment) + 1, place % need.alignment + 13) end
t.equal(later_byte(), 8)
i:delete_flows("late")
assert(assert(more:delete()):wait{ timeout = 10 })
assert(assert(open:delete_region("mine")):wait{ timeout = 10 })
assert(open:add_region(region("mine"), later)) -- in the same addresses
open:close()
t.equal({ type_byte(), later_byte() }, { 8, 8 })
