-- gn_verbs_put_signal_bw.lua: all threads of a client's kernel put messages into a server's memory, each with a signal that the server's flag counts; the
-- server checks bytes and flags.
-- The kernel has the shape of DOCA's sample gpunetio_verbs_put_signal_bw. Both sides are in one session, over the loop engine.
--   daqiri-run gn_verbs_put_signal_bw.lua                     the kernels run on the CPU: needs a C++ compiler
--   daqiri-run gn_verbs_put_signal_bw.lua -p 1                the script polls the rings
--   daqiri-run gn_verbs_put_signal_bw.lua --memory gpu        on a GPU: needs NVRTC
local daqiri = require "daqiri"
local args = daqiri.args{ blocks = 2, threads = 32, iters = 16, p = { 0, help = "1: the script polls the rings" }, memory = "host" }
local s = daqiri.open(args.p == 1 and "gn_proxy.yaml" or "gn_pair.yaml", { memory = args.memory == "host" and "host" or nil })

local src = [[
#include <doca_gpunetio_dev_verbs_onesided.cuh>

#define SIZES 10                                   // of 1, 2, 4 … 512 bytes a thread
#define AREA(total, index) ((total) * ((1u << (index)) - 1)) // where the bytes of all threads with a size begin

__global__ void put_signal_bw(struct doca_gpu_dev_verbs_qp *qp, uint32_t iters, uint8_t *local, uint32_t lkey,
                              uint8_t *remote, uint32_t rkey, uint64_t *flag, uint32_t flag_key, uint64_t *prev, uint32_t prev_key)
{
    uint32_t total = gridDim.x * blockDim.x, t = blockIdx.x * blockDim.x + threadIdx.x;
    struct doca_gpu_dev_verbs_addr count = { (uint64_t)(flag + t), flag_key }, old = { (uint64_t)(prev + t), prev_key };
    doca_gpu_dev_verbs_ticket_t ticket = 0;

    for (uint32_t index = 0; index < SIZES; index++) {
        uint32_t size = 1u << index, mine = AREA(total, index) + t * size;
        struct doca_gpu_dev_verbs_addr from = { (uint64_t)(local + mine), lkey }, to = { (uint64_t)(remote + mine), rkey };
        for (uint32_t k = 0; k < size; k++) local[mine + k] = index + 1;
        for (uint32_t k = 0; k < iters; k++)
            doca_gpu_dev_verbs_put_signal<DOCA_GPUNETIO_VERBS_SIGNAL_OP_ADD>(qp, to, from, size, count, old, 1, &ticket);
    }
    doca_gpu_dev_verbs_wait(qp, ticket);
    // The last one finds the signal as all others left it.
    while (doca_gpu_dev_verbs_atomic_read<uint64_t, DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU>(prev + t) != SIZES * iters - 1)
        doca_gpu_dev_verbs_fence_acquire<DOCA_GPUNETIO_VERBS_SYNC_SCOPE_SYS>();
}

__global__ void check(void *context, const uint8_t *memory, const uint64_t *flag, uint32_t total, uint32_t iters, unsigned long long *wrong)
{
    for (uint32_t t = threadIdx.x; t < total; t += blockDim.x)
        if (flag[t] != SIZES * iters) atomicAdd(wrong, 1ull);
    for (uint32_t index = 0; index < SIZES; index++)
        for (uint32_t k = threadIdx.x; k < total << index; k += blockDim.x)
            if (memory[AREA(total, index) + k] != index + 1) atomicAdd(wrong, 1ull);
}
]]
local function kernel(entry, grid, block)
  return daqiri.kernel{ entry = entry, persistent = true, rings = { tx = 256 }, grid = grid, block = block, src = src }
end
local client = kernel("put_signal_bw", args.blocks, args.threads)
local server = kernel("check", 1, args.threads)
local wrong = daqiri.array{ kind = "host_pinned", type = "uint64", shape = 1 }

local function finish(k)
  while args.p == 1 and k.running do s:interface("client"):progress() end
  assert(k:wait{ timeout = 100 })
  assert(k.refused == 0, k.fault)
  k:stop()
end

s:start()
client:start{ tx = s:tx_queue("client"), regions = { "local", "previous" }, remote = { "remote", "flags" },
  args = { { qp = 1 }, args.iters, { address = "local" }, { key = "local" }, { address = "remote" }, { key = "remote" }, { address = "flags" }, { key = "flags" },
    { address = "previous" }, { key = "previous" } } }
finish(client)
server:start{ tx = s:tx_queue("server"), regions = { "remote", "flags" },
  args = { "context", { address = "remote" }, { address = "flags" }, args.blocks * args.threads, args.iters, wrong } }
finish(server)
print(("%d puts of 1 to 512 bytes and as many signals, %d bytes or signals wrong"):format(10 * args.blocks * args.threads * args.iters, wrong:get(1)))
assert(wrong:get(1) == 0, "Validation failed")
print("Validation successful! Data received correctly from client.")
