-- gpu_pipeline.lua: datagrams through the kernel's UDP on loopback become blocks of fp32 in a GPU's memory, of which a kernel
-- adds up the samples, or cuBLAS or cuFFT makes what instruments want of them; or they are received and counted, and nothing
-- more. Sent and received in one process as fast as it goes, or at a pace. Prints figures as JSON. Of several ports each has a
-- sender with a thread and blocks of its own, and one thread receives them all: then it is the limit, not a sender.
--   daqiri-run gpu_pipeline.lua --seconds 2
--   daqiri-run --cores auto gpu_pipeline.lua --ports 7156,7157,7158
--   daqiri-run gpu_pipeline.lua --workload fft
--   daqiri-run gpu_pipeline.lua --pps 20000 --poll direct    how soon the handler has a block
--   daqiri-run gpu_pipeline.lua --gpu=false     the same receive without a GPU; at a pace, how soon a handler has a datagram
local daqiri = require "daqiri"
local args = daqiri.args{
  gpu = { true, help = "false: only count what is received, or time it" },
  workload = { "add", choices = { "add", "gemm", "fft" }, help = "what is done with a block: its sum, a product of square matrices, or Fourier transforms" },
  memory = { "gpu", help = "host: the processor does what the GPU would" },
  ports = { "7156", help = "to use on 127.0.0.1" },
  samples = { 4000, help = "of 16 bits, in a datagram, behind 8 bytes with its number" },
  per = { 256, unit = "packets", help = "of a block" },
  timeout = { 20, unit = "µs", help = "that a datagram waits for others of its burst, of a queue with a thread" },
  poll = { "indirect", choices = { "indirect", "direct" }, help = "direct: the handler's task receives; it has not to be woken" },
  pps = { 0, help = "datagrams a second; 0: as fast as it goes" },
  seconds = { 1, help = "to measure, after a tenth of that to warm up" },
}

local size, VALUE = 8 + 2 * args.samples, 3
local kind = args.gpu and args.memory == "gpu" and "host_pinned" or "host"
local worker = args.poll == "indirect" or nil -- a direct queue does not have the key
local ports, regions, interfaces = {}, {}, {}
for port in args.ports:gmatch("%d+") do ports[#ports + 1] = port end
local function region(name, is, bufs, bytes) regions[#regions + 1] = { name = name, kind = is, affinity = 0, num_bufs = bufs, buf_size = bytes } end
for k, port in ipairs(ports) do
  region("rx_packets" .. k, kind, math.ceil(64 * 2 ^ 20 / size), size)
  region("tx_packets" .. k, "host", 512, size)
  if args.gpu then region("blocks" .. k, "device", 32, 4 * args.samples * args.per) end
  interfaces[#interfaces + 1] = { name = "rx" .. k, address = "127.0.0.1", socket_config = { mode = "server", local_addr = "udp://127.0.0.1:" .. port },
    rx = { queues = { { name = "rx", id = 0, poll_mode = args.poll, cpu_core = worker and (#ports > 1 and 0 or -1), batch_size = 64,
      timeout_us = worker and args.timeout, memory_regions = { "rx_packets" .. k } } } } }
  interfaces[#interfaces + 1] = { name = "tx" .. k, address = "127.0.0.1", socket_config = { mode = "client", remote_addr = "udp://127.0.0.1:" .. port },
    tx = { queues = { { name = "tx", id = 0, cpu_core = -1, batch_size = 64, memory_regions = { "tx_packets" .. k } } } } }
end
local s = daqiri.open({ version = 1, stream_type = "socket", master_core = 1, memory_regions = regions, interfaces = interfaces },
  { memory = args.memory == "host" and "host" or nil })

-- Packet i of a block has the sample wave(n) at its place n, whatever i: a tone of 8 complex samples, real and imaginary
-- parts in turn; or the same number everywhere, for sums.
local function wave(n)
  if args.workload == "add" then return VALUE end
  local at = 2 * math.pi * math.floor(n / 2) / 8
  return math.floor(1000 * (n % 2 == 0 and math.cos(at) or math.sin(at)) + 0.5)
end
local function samples()
  local text = {}
  for n = 0, args.samples - 1 do local v = wave(n) % 65536; text[n + 1] = string.char(math.floor(v / 256), v % 256) end
  return table.concat(text)
end

-- What is done with a block: the stage's kernel and arguments, and check, which checks its result for the last block.
local works = {}
function works.add()
  local sum = daqiri.array{ kind = "device", type = "uint64", shape = 1 }
  return { args = { "data", "present", args.samples, sum }, sum = sum, kernel = daqiri.kernel{ grid = args.per, block = 256, src = [[
__global__ void add(const float *data, const unsigned long long *present, int samples, unsigned long long *sum)
{
    float mine = 0;
    if (!(present[blockIdx.x / 64] >> blockIdx.x % 64 & 1)) return;
    for (int i = threadIdx.x; i < samples; i += blockDim.x) mine += data[blockIdx.x * samples + i];
    for (int n = 16; n > 0; n /= 2) mine += __shfl_down_sync(0xffffffff, mine, n);
    if (threadIdx.x % 32 == 0) atomicAdd(sum, (unsigned long long)mine);
}
]] } }
end

-- A product of squares, the block's as large as it has samples for, its first row of one packet. The other has 1 on its diagonal
-- and below it, so that column c of the product is the sum of the block's columns c and c + 1.
function works.gemm()
  local n = math.min(args.samples, math.floor(math.sqrt(args.samples * args.per)))
  local b = daqiri.array{ kind = "device", type = "fp32", shape = { n, n } }
  local out = daqiri.array{ kind = "device", type = "fp32", shape = { n, n } }
  for c = 1, n do
    b:set(c, c, 1)
    if c < n then b:set(c + 1, c, 1) end
  end
  return { args = { "data", b, out }, kernel = daqiri.kernel{ library = "gemm", shape = { n, n, n } }, check = function()
    local got = out:snapshot()
    for c = 1, n do
      local want = wave(c - 1) + (c < n and wave(c) or 0)
      assert(math.abs(got:get(1, c) - want) < 0.01, ("column %d of the product is %g, not %g"):format(c, got:get(1, c), want))
    end
  end }
end

-- Transforms of as many points as a packet has, 1024 at most: the first one is of the tone alone.
function works.fft()
  local points = math.min(1024, 8 * math.floor(args.samples / 16))
  local many = math.floor(args.samples * args.per / (2 * points))
  local out = daqiri.array{ kind = "device", type = "fp32", shape = { many, points, 2 } }
  return { args = { "data", out }, kernel = daqiri.kernel{ library = "fft", shape = { points, many } }, check = function()
    local got = out:snapshot()
    for k = 0, points - 1 do
      local power = math.sqrt(got:get(1, k + 1, 1) ^ 2 + got:get(1, k + 1, 2) ^ 2)
      local want = k == points / 8 and 1000 * points or 0
      assert(math.abs(power - want) < points, ("point %d of the transform is %g, not %g"):format(k, power, want))
    end
  end }
end

-- Blocks that handlers got, and how long before each its last datagram had come.
local blocks, seen, waits, streams = 0, 0, {}, {}
local function note(time) waits[#waits + 1] = (s:clock() - time) / 1e3 end

-- The blocks of a port, and what is done with them.
local function pipeline(k, rx)
  local work = works[args.workload]()
  local order = s:reorder{ name = "blocks" .. k, memory_region = "blocks" .. k, at = "payload", payload_byte_offset = 8,
    slot_bytes = 2 * args.samples, packets_per_batch = args.per, timeout_us = 100e3, fill = "keep", policy = "wait",
    sequence_number = { at = "payload", bit_offset = 0, bit_width = 48, endianness = "little" },
    data_types = { input_type = "int16", output_type = "fp32", endianness = "network" } }
  local done = work.kernel:stage{ name = "work" .. k, args = work.args, policy = "wait" }
  s:pipe(rx, order, done)
  work.seen = 0
  done:on_burst(function(b)
    if not b.timed_out then note(b.last_time) end
    work.first = b.present[1]
    blocks, work.seen = blocks + 1, work.seen + b.source_packets
  end, { policy = "wait" })
  return work
end

-- Checks the result of the kernel for the last block, whose first packet was there: 1, or 0, where it was not. A sum is of at least
-- what the handler got, and at most what blocks had according to the ledger.
local function checked(k, work, l)
  if work.sum then
    local total, each, out = work.sum:get(1), args.samples * VALUE, l["blocks" .. k].out
    assert(total >= work.seen * each and total <= out * each and total % each == 0,
      ("the sum is of %g packets; the handler got %d, of %d"):format(total / each, work.seen, out))
  elseif work.first then
    work.check()
  end
  return (work.sum or work.first) and 1 or 0
end

for k in ipairs(ports) do
  local rx, tx = s:rx_queue("rx" .. k), s:tx_queue("tx" .. k)
  if args.gpu then
    streams[k] = pipeline(k, rx)
  elseif args.pps > 0 then
    rx:on_burst(function(b) note(b.rx_time) end, { policy = "wait" })
  else
    s:pipe(rx, s:count{ name = "counted" .. k })
  end
  if args.pps > 0 then tx:pace{ pps = args.pps } end
  tx:transmit{ template = tx:template{ payload = ("\0"):rep(8) .. samples(),
    vary = { { at = "start", bit_offset = 0, bit_width = 48, endianness = "little", start = 0, step = 1 } } } }
end

-- A figure of a ledger, of all ports: way is "rx", what they received, or "tx".
local function all(l, way, what)
  local n = 0
  for k in ipairs(ports) do n = n + l[way .. k][way][what] end
  return n
end

s:start()
s:measure{ seconds = args.seconds / 10 }
waits = {}
local m = s:measure{ seconds = args.seconds }
for k in ipairs(ports) do s:tx_queue("tx" .. k):transmit{ template = false } end
repeat local quiet = s:measure{ seconds = 0.3 } until all(quiet, "rx", "packets") == 0
local l = s:stop("measured")
local sent, got = all(l, "tx", "packets"), all(l, "rx", "packets")
local out = { packets = all(m, "rx", "packets"), bytes = all(m, "rx", "bytes"), seconds = m.seconds, cpu_seconds = m.process.cpu_seconds,
  offered_pps = all(m, "tx", "packets") / m.seconds, missing = sent - got, sent = sent, received = got }
if args.gpu then
  out.checked, out.blocks = 1, blocks
  for k, work in ipairs(streams) do
    out.checked, seen = math.min(out.checked, checked(k, work, l)), seen + work.seen
  end
  out.in_blocks, out.late = seen, 0
  for k in ipairs(ports) do out.late = out.late + l["blocks" .. k].dropped end
  if args.memory == "gpu" then out.list_p50, out.kernel_p50 = m.blocks1.run_time.p50 / 1e3, m.work1.run_time.p50 / 1e3 end
end
if #waits > 0 then
  table.sort(waits)
  out.n, out.p50, out.p99 = #waits, waits[math.ceil(#waits / 2)], waits[math.ceil(#waits * 0.99)]
end
print(daqiri.json(out))
