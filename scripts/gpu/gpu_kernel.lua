-- gpu_kernel.lua: a custom kernel on blocks in a GPU's memory: the GPU puts packets in order and converts them (gpu_reorder.lua),
-- then the kernel "power" sums the squares of the samples of each block, and the block returns to the reorder stage. A second
-- kernel, launched by the script, sums all blocks. Each sum is compared with one computed from the packet numbers.
--   daqiri-run gpu_kernel.lua                  the same on the CPU: needs a C++ or C compiler
--   daqiri-run gpu_kernel.lua --memory gpu     on a GPU: needs NVRTC
local daqiri = require "daqiri"
local args = daqiri.args{ packets = 4096, loss = 0.01, clock = "virtual", memory = "host" }

local SAMPLES, PER = 256, 64 -- samples per packet, packets per block
local BLOCKS = math.ceil(args.packets / PER) + 1
local function queue(name, region) return { name = name, id = 0, poll_mode = "direct", batch_size = 64, memory_regions = { region } } end
local s = daqiri.open({ version = 1, stream_type = "raw", master_core = 0,
  loopback = { mode = "sw", clock = args.clock, loss = args.loss, reorder = 0.05, seed = 7 },
  memory_regions = {
    { name = "out", kind = "host", affinity = 0, num_bufs = 1024, buf_size = 1024 },
    { name = "in", kind = "host_pinned", affinity = 0, num_bufs = 4096, buf_size = 1024 },
    { name = "blocks", kind = "device", affinity = 0, num_bufs = 64, buf_size = 4 * SAMPLES * PER } },
  interfaces = {
    { name = "instrument", address = "a", tx = { queues = { queue("tx", "out") } } },
    { name = "receiver", address = "b", rx = { queues = { queue("rx", "in") } } } } },
  { memory = args.memory == "host" and "host" or nil })

-- Each packet has a 4-byte header and SAMPLES samples of 16 bits; the second sample is its number, up to 32767.
local tx = s:tx_queue("instrument")
local template = tx:template{ udp_dst = 7148, payload_bytes = 4 + 2 * SAMPLES,
  vary = { { at = "payload", bit_offset = 32, bit_width = 32, step = 1 } } }

-- One block of threads per packet of a block, one thread per 64 samples. A bitmap marks the packets that arrived.
local power = daqiri.kernel{ grid = PER, block = 64, src = [[
__global__ void power(const float *data, const unsigned long long *present, unsigned long long batch, int samples,
                      unsigned long long *sums)
{
    __shared__ unsigned long long part[2];
    unsigned long long sum = 0;
    if (!(present[blockIdx.x / 64] >> blockIdx.x % 64 & 1)) return;
    for (int i = threadIdx.x; i < samples; i += blockDim.x) {
        float x = data[blockIdx.x * samples + i];
        sum += (unsigned long long)(x * x);
    }
    for (int n = 16; n > 0; n /= 2) sum += __shfl_down_sync(0xffffffff, sum, n);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(&sums[batch], part[0] + part[1]);
}
]] }
local total = daqiri.kernel{ grid = 1, block = 32, src = [[
__global__ void total(const unsigned long long *sums, unsigned int n, unsigned long long *out)
{
    for (unsigned int i = threadIdx.x; i < n; i += blockDim.x) atomicAdd(out, sums[i]);
}
]] }
local sums = daqiri.array{ kind = "device", type = "uint64", shape = BLOCKS }
local all = daqiri.array{ kind = "host_pinned", type = "uint64", shape = 1 }

local blocks = s:reorder{ name = "blocks", memory_region = "blocks", packets_per_batch = PER, slot_bytes = 2 * SAMPLES, fill = 0,
  sequence_number = { bit_offset = 8 * (42 + 4), bit_width = 32 }, payload_byte_offset = 42 + 4, timeout_us = 500,
  data_types = { input_type = "int16", output_type = "fp32", endianness = "network" } }
local squares = power:stage{ args = { "data", "present", "batch_id", SAMPLES, sums }, policy = "wait" }
s:pipe(s:rx_queue("receiver"), blocks, squares)

-- The expected sums, computed from the numbers of the packets that arrived.
local want, n, missing = {}, 0, 0
squares:on_burst(function(b)
  n, missing = n + 1, missing + b.missing
  local sum = 0
  for slot = 0, PER - 1 do
    if b.present[slot + 1] then sum = sum + (b.batch_id * PER + slot) ^ 2 end
  end
  want[b.batch_id + 1] = sum
end, { policy = "wait" })

tx:transmit{ template = template, count = args.packets }
s:run{ seconds = 1 }
local got, wrong, sum = sums:get(), 0, 0
for i, v in pairs(want) do
  if got[i] ~= v then wrong = wrong + 1 end
  sum = sum + v
end
local op = assert(total:launch(sums, BLOCKS, all))
assert(op:wait() and not op.error, op.error)
print(("%d blocks of %d packets, %d packets missing, power %.0f, %d blocks wrong"):format(n, PER, missing, sum, wrong))
assert(wrong == 0 and all:get(1) == sum)
