-- Regions in memory of the application: requirements, bindings, and each refusal.
local daqiri, api, t, rig = require "daqiri", require "daqiri.api", require "check", require "rig"
local ok, fails = rig.ok, rig.fails

local config = rig.config("raw", { rig.port("a", "loop", 1, 1) }, { loopback = { mode = "sw", clock = "virtual" } })
config.memory_regions[1].num_bufs = 64
config.memory_regions[2] = { name = "mine", kind = "host", affinity = 0, num_bufs = 64, buf_size = 2048, owned = false }
config.interfaces[1].rx.queues[1].memory_regions = { "mine" }

local need = ok(api.get_memory_region_requirements(config))
t.equal(need.mine.kind, "host")
t.equal(need.mine.num_bufs, 64)
assert(need.mine.slot_size >= 2048 + need.mine.headroom and need.mine.capacity >= 64 * need.mine.slot_size)
t.equal(need.mine.capacity % need.mine.alignment, 0)
fails("NULL_PTR", "nil", api.get_memory_region_requirements(nil))
fails("INVALID_PARAMETER", "no such file", api.get_memory_region_requirements("nowhere.yaml"))

local function array(bytes) return daqiri.array{ kind = "host", type = "uint8", shape = bytes } end
local memory, capacity = array(need.mine.capacity), need.mine.capacity
local function try(bindings) return api.daqiri_init(config, bindings) end
local function region(data, bytes) return api.ExternalMemoryRegion(data, bytes) end
t.equal(api.ExternalMemoryRegion(memory, capacity).capacity, capacity)
fails("INVALID_PARAMETER", "memory region mine: owned is false, and there is no binding for it", try(nil))
fails("INVALID_PARAMETER", "memory region mine: owned is false, and there is no binding for it", try{})
fails("INVALID_PARAMETER", "no region of that name; did you mean mine?", try{ mine = region(memory, capacity), min = region(memory, capacity) })
fails("INVALID_PARAMETER", "its data is nil", try{ mine = region(nil, capacity) })
fails("INVALID_PARAMETER", "above 0", try{ mine = region(memory, 0) })
fails("INVALID_PARAMETER", "need", try{ mine = region(memory, capacity - need.mine.alignment) })
fails("INVALID_PARAMETER", "the range ends behind", try{ mine = region(memory, 2 * capacity) })
fails("INVALID_PARAMETER", "the range ends behind", try{ mine = region(memory, 2 ^ 52) })
fails("INVALID_PARAMETER", "is not a multiple of", try{ mine = region({ array = array(2 * capacity), offset = 100 }, capacity) })
fails("INVALID_PARAMETER", "overlaps that of region", try{ mine = region(memory, capacity), m = region(memory, capacity) })
fails("INVALID_PARAMETER", "Bad file descriptor", try{ mine = region({ fd = 2 ^ 30 }, capacity) })
fails("INVALID_PARAMETER", "No such file", try{ mine = region({ shm = "/daqiri-none" }, capacity) })
fails("INVALID_PARAMETER", "is GPU memory", try{ mine = region({ cuda_ipc = ("x"):rep(64) }, capacity) })
fails("INVALID_PARAMETER", "unknown", try{ mine = region({ fds = 3 }, capacity) })

-- a bound region that owns its memory otherwise, and one that has to be bound
ok(try{ mine = region(memory, capacity), m = region(array(need.m.capacity), need.m.capacity) })
rig.send(0, 0, 3, 7148)
local burst = rig.poll(0, 0)
local text, bytes = ok(api.get_packet_bytes(burst, 2)), memory:get()
api.free_all_packets_and_burst_rx(burst)
api.shutdown()
local found = 0
for slot = 0, need.mine.num_bufs - 1 do
  local first = slot * need.mine.slot_size + need.mine.headroom
  if string.char(unpack(bytes, first + 1, first + #text)) == text then found = found + 1 end
end
t.equal(found, 3) -- the packets are equal
ok(api.daqiri_init_from_yaml_string(daqiri.json(config), { mine = region(memory, capacity) })) -- memory is bound again
api.shutdown()
