-- Kernels of the script's own, arrays and streams, on the host; tests/gpu has GPUs.
local daqiri = require "daqiri"
local function try(fn, ...) local ok, err = pcall(fn, ...) assert(not ok) return tostring(err) end
local function has(text, part) assert(text:find(part, 1, true), text) end

local function queue(name, regions, more)
  local q = { name = name, id = 0, cpu_core = -1, batch_size = 64, memory_regions = regions }
  for k, v in pairs(more or {}) do q[k] = v end
  return q
end
local function open()
  return daqiri.open({ version = 1, stream_type = "raw", master_core = 0, loopback = { mode = "sw", clock = "virtual", seed = 1 },
    memory_regions = { { name = "packets", kind = "host_pinned", affinity = 0, num_bufs = 512, buf_size = 256 },
      { name = "batches", kind = "device", affinity = 0, num_bufs = 8, buf_size = 256 } },
    interfaces = { { name = "port", address = "loop0", tx = { queues = { queue("tx", { "packets" }) } },
      rx = { queues = { queue("rx", { "packets" }, { timeout_us = 10 }) } } } } }, { memory = "host" })
end
local function send(s, ...)
  local tx = s:tx_queue("port")
  for _, payload in ipairs{ ... } do
    local b = tx:alloc(1)
    b:fill(tx:template{ udp_dst = 7148, payload = payload })
    assert(tx:send(b))
  end
end

-- A kernel follows the session that was opened last; arrays of all kinds are the host's then.
local s = open()
local scale = daqiri.kernel{ grid = { 2, 1, 1 }, block = 2, src = [[
extern "C" __global__ void scale(float *a, double by, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) a[i] *= by;
}
]] }
assert(scale.on_host and scale.name == "scale" and tostring(scale) == "kernel scale")
local a = daqiri.array{ kind = "device", type = "fp32", shape = { 2, 2 } }
assert(#a == 4 and a.kind == "device" and a.type == "fp32" and a.shape[2] == 2 and a:sum() == 0 and tostring(a) == "array of 2 x 2 fp32 (device)")
a:set{ 1, 2, 3, 4 }
a:set(2, 1, -3)
local ended
local op = assert(scale:launch(a, 0.5, 3))
op:on_done(function(o) ended = o end)
assert(op:poll() and op:wait() and not op.error and ended == op and tostring(op) == "op of kernel scale: 1 launches completed", tostring(op))
assert(a:get(1, 1) == 0.5 and a:get(1, 2) == 1 and a:get(2, 1) == -1.5 and a:get(2, 2) == 4)
assert(a:sum() == 4 and a:min() == -1.5 and a:max() == 4 and table.concat(a:get(), " ") == "0.5 1 -1.5 4")
local h = a:histogram{ bins = 2, min = -2, max = 2 }
assert(h.counts[1] == 1 and h.counts[2] == 2 and h.above == 1 and h.below == 0)
local before = a:snapshot()
a:fill(0.1)
assert(a:sum() > 0.4 and before:sum() == 4 and before.kind == "host")
a:set("\0\0\128\63" .. ("\0"):rep(12))
assert(a:get(1, 1) == 1 and a:sum() == 1)

-- Types: the widest numbers, halves, and what is refused.
local wide = daqiri.array{ kind = "host", type = "uint64", shape = 2 }
wide:set("\255\255\255\255\255\255\255\255" .. ("\0"):rep(8))
assert(wide:get(1):eq(daqiri.u64 "0xffffffffffffffff") and wide:max() == wide:max() and tostring(wide:max()) == "18446744073709551615")
has(try(wide.sum, wide), "does not fit into 64 bits")
wide:set(2, daqiri.u64 "0x123456789abcdef1")
assert(wide:get(2):eq(daqiri.u64 "0x123456789abcdef1"))
local half = daqiri.array{ kind = "host", type = "fp16", shape = 4 }
half:set{ 0.1, 65504, 1e-7, 1e9 }
assert(half:get(1) == 0.0999755859375 and half:get(2) == 65504 and half:get(3) == 2 ^ -24 * 2 and half:get(4) == 1 / 0, table.concat(half:get(), " "))
has(try(half.get, half, 5), "array of 4 fp16 (host): index 5 of dimension 1: it is 1 to 4")
has(try(half.get, half, 1, 1), "2 indices for 1 dimensions")
local bytes = daqiri.array{ kind = "host", type = "uint8", shape = 2 }
has(try(bytes.set, bytes, 1, 256), "256 is no uint8")
bytes:set(1, daqiri.u64(255))
assert(bytes:get(1) == 255)
has(try(bytes.set, bytes, 1, daqiri.u64(256)), "256 is no uint8")
has(try(bytes.set, bytes, 1, bytes), "number, u64, list or string expected")
has(try(bytes.set, bytes, 1, 0.5), "0.5 is no uint8")
has(try(bytes.set, bytes, { 1 }), "1 values for 2 elements")
has(try(bytes.set, bytes, "a"), "2 bytes expected, got 1")
has(try(daqiri.array, { kind = "host", type = "fp8", shape = 1 }), '"fp8" is not one of int8')
has(try(daqiri.array, { kind = "host", type = "fp64", shape = { 2 ^ 40, 2 ^ 40 } }), "the whole at most")

-- What can't be launched.
has(try(scale.launch, scale, a), "kernel scale: it takes 3 arguments (float *a, double by, int n), got 1")
has(try(scale.launch, scale, half, 1, 1), "argument 1 (float *a): the array has elements of type fp16")
has(try(scale.launch, scale, a, 1, 0.5), "argument 3 (int n): 0.5 is not a whole number of 32 bits")
has(try(scale.launch, scale, a, "x", 1), "argument 2 (double by): a number")
local ok, err = pcall(function()
  daqiri.kernel{ grid = 1, block = 1, src = [[
    __global__ void wrong(int *a)
    {
        a[0] = nothing;
    }
  ]] }
end)
assert(not ok)
has(tostring(err), "kernel wrong: its source doesn't compile:\n  ")
has(tostring(err), ":3: error: 'nothing' was not declared")
has(try(daqiri.kernel, { grid = 1, block = 1, ptx = ".version 8.0" }), "PTX is for a GPU")
has(try(daqiri.kernel, { grid = 1, src = "" }), "option 'block' is missing")
has(try(daqiri.kernel, { grid = 1, block = 1, src = "", file = "a.cu" }), "exactly one of the options")
has(try(daqiri.kernel, { grid = 1, block = 1, file = "nowhere.cu" }), "nowhere.cu")
local large = daqiri.kernel{ grid = 1, block = { 32, 33 }, src = "__global__ void f() {}" }
has(try(large.launch, large), "kernel f: a block of 1056 threads, and it takes 1024 at most")

-- In a pipe: of aggregates, whose data the next stage sees changed; of packets, by their places.
local up = daqiri.kernel{ grid = 4, block = 8, src = [[
__global__ void up(unsigned char *data, const unsigned long long *present, unsigned long long id, const unsigned long long *extra, unsigned int *ids)
{
    unsigned char *c = &data[blockIdx.x * 8 + threadIdx.x];
    if (present[0] >> blockIdx.x & 1 && *c >= 'a' && *c <= 'z') *c -= 32;
    if (threadIdx.x == 0) ids[id] += extra[blockIdx.x];
}
]] }
local count = daqiri.kernel{ name = "lengths", grid = 1, block = 64, src = [[
__global__ void count(const daqiri_burst *b, unsigned int n, unsigned long long *bytes)
{
    if (threadIdx.x < n && n == b->packets && b->at[threadIdx.x].data[12] == 8) atomicAdd(bytes, b->at[threadIdx.x].bytes);
}
]] }
local ids, sum = daqiri.array{ kind = "host", type = "uint32", shape = 2 }, daqiri.array{ kind = "host", type = "uint64", shape = 1 }
local blocks = s:reorder{ name = "blocks", memory_region = "batches", packets_per_batch = 4, slot_bytes = 8, fill = 46, extra = "len",
  payload_byte_offset = 43, sequence_number = { bit_offset = 336, bit_width = 8 }, timeout_us = 20 }
has(try(up.stage, up, { args = { "data", "present", "batch_id", "extra" } }), "it takes 5 arguments")
has(try(up.stage, up, { args = { "data", "present", "id", "extra", ids } }), "argument 3 (unsigned long long id): a number, a u64, an array or one of batch_id, burst, data")
has(try(up.stage, up, { args = { "batch_id", "present", "batch_id", "extra", ids } }), "batch_id")
local stage = up:stage{ args = { "data", "present", "batch_id", "extra", ids } }
assert(stage.kind == "kernel" and stage.name == "up")
has(try(s.pipe, s, s:rx_queue("port"), up:stage{ name = "raw", args = { "data", "present", "batch_id", "extra", ids } }),
  "kernel raw: \"data\", \"present\", \"extra\" and \"batch_id\" are of what a reorder stage makes, and queue rx hands out packets")
s:pipe(s:rx_queue("port"), blocks, stage, s:count{ name = "behind" })
s:pipe(s:rx_queue("port"), count:stage{ args = { "burst", "packets", sum } })
local seen, launched, kept = {}, nil, nil
stage:on_burst(function(b)
  seen[#seen + 1] = b.data:bytes(0, 32)
  kept = kept or b:keep()
end)
s:after(0, function() send(s, "\0zero", "\1one", "\3three", "\5five") end)
local l = s:run{ seconds = 0.001 }
assert(seen[1] == "ZERO....ONE.............THREE..." and seen[2]:sub(9, 16) == "FIVE....", seen[1])
assert(ids:get(1) == 3 * 42 + 5 + 4 + 6 and ids:get(2) == 42 + 5, ids:get(1))
assert(sum:get(1) == 4 * 42 + 5 + 4 + 6 + 5, sum:get(1))
assert(l.up["in"] == 2 and l.up.out == 2 and l.up.held == 0 and l.behind.out == 2 and l.lengths.out == 4 and l.lengths["in"] == 4, l)

-- By themselves: of a kept burst, as long as the script has it.
assert(up:launch(kept.data, kept.present, kept.batch_id, kept.extra, ids):wait())
assert(count:launch(kept, 1, sum):wait())
has(try(up.launch, up, kept.data, kept.present, 0, kept.extra, kept), "kernel up: argument 5 (unsigned int *ids): a burst is passed as")
kept:free()
has(try(count.launch, count, kept, 1, sum), "freed")
local stream = daqiri.stream()
stream:synchronize()
local again = daqiri.kernel{ stream = stream, grid = 1, block = 1, src = "__global__ void one(unsigned int *a) { *a += 1; }" }
for _ = 1, 100 do assert(again:launch(ids)) end
assert(ids:get(1) >= 100)
s:close()
