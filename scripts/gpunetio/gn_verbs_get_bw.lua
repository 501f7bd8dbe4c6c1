-- gn_verbs_get_bw.lua: all threads of a client's kernel get messages out of a server's memory (RDMA reads), wait for each of them and check every
-- byte. The kernel has the shape of DOCA's sample gpunetio_verbs_get_bw. Both sides are in one session, over the loop engine.
--   daqiri-run gn_verbs_get_bw.lua                     the kernels run on the CPU: needs a C++ compiler
--   daqiri-run gn_verbs_get_bw.lua --scope warp        the threads of a warp post together
--   daqiri-run gn_verbs_get_bw.lua -p 1                the script polls the rings
--   daqiri-run gn_verbs_get_bw.lua --memory gpu        on a GPU: needs NVRTC
local daqiri = require "daqiri"
local args = daqiri.args{ blocks = 2, threads = 32, iters = 16, p = { 0, help = "1: the script polls the rings" },
  scope = { "thread", choices = { "thread", "warp" } }, memory = "host" }
local s = daqiri.open(args.p == 1 and "gn_proxy.yaml" or "gn_pair.yaml", { memory = args.memory == "host" and "host" or nil })

local src = [[
#include <doca_gpunetio_dev_verbs_onesided.cuh>

#define SIZES 10                                   // of 1, 2, 4 … 512 bytes a thread
#define AREA(total, index) ((total) * ((1u << (index)) - 1)) // where the bytes of all threads with a size begin

__global__ void fill(void *context, uint8_t *memory, uint32_t total)
{
    for (uint32_t index = 0; index < SIZES; index++)
        for (uint32_t k = threadIdx.x; k < total << index; k += blockDim.x) memory[AREA(total, index) + k] = index + 1;
}

template <enum doca_gpu_dev_verbs_exec_scope scope>
__global__ void get_bw(struct doca_gpu_dev_verbs_qp *qp, uint32_t iters, uint8_t *local, uint32_t lkey, uint8_t *remote, uint32_t rkey,
                       unsigned long long *failed, unsigned long long *wrong)
{
    uint32_t total = gridDim.x * blockDim.x, t = blockIdx.x * blockDim.x + threadIdx.x;
    struct doca_gpu_dev_verbs_addr dump = { (uint64_t)local, lkey };
    doca_gpu_dev_verbs_ticket_t ticket;

    for (uint32_t index = 0; index < SIZES; index++) {
        uint32_t size = 1u << index, mine = AREA(total, index) + t * size;
        struct doca_gpu_dev_verbs_addr from = { (uint64_t)(remote + mine), rkey }, to = { (uint64_t)(local + mine), lkey };
        for (uint32_t k = 0; k < size; k++) local[mine + k] = 0;
        for (uint32_t k = 0; k < iters; k++) {
            doca_gpu_dev_verbs_get<DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU, DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO, scope>(qp, from, to, size, dump, &ticket);
            if (doca_gpu_dev_verbs_get_wait(qp, dump, ticket) != DOCA_SUCCESS) atomicAdd(failed, 1ull);
        }
        for (uint32_t k = 0; k < size; k++)
            if (local[mine + k] != index + 1) atomicAdd(wrong, 1ull);
    }
}
]]
local function kernel(entry, grid, block)
  return daqiri.kernel{ entry = entry, persistent = true, rings = { tx = 256 }, grid = grid, block = block, src = src }
end
local client = kernel(("get_bw<DOCA_GPUNETIO_VERBS_EXEC_SCOPE_%s>"):format(args.scope:upper()), args.blocks, args.threads)
local server = kernel("fill", 1, args.threads)
local failed = daqiri.array{ kind = "host_pinned", type = "uint64", shape = 1 }
local wrong = daqiri.array{ kind = "host_pinned", type = "uint64", shape = 1 }

local function finish(k)
  while args.p == 1 and k.running do s:interface("client"):progress() end
  assert(k:wait{ timeout = 100 })
  assert(k.refused == 0, k.fault)
  k:stop()
end

s:start()
server:start{ tx = s:tx_queue("server"), regions = { "remote" }, args = { "context", { address = "remote" }, args.blocks * args.threads } }
finish(server)
client:start{ tx = s:tx_queue("client"), regions = { "local" }, remote = { "remote" },
  args = { { qp = 1 }, args.iters, { address = "local" }, { key = "local" }, { address = "remote" }, { key = "remote" }, failed, wrong } }
finish(client)
print(("%d gets of 1 to 512 bytes, %d failed, %d bytes wrong"):format(10 * args.blocks * args.threads * args.iters, failed:get(1), wrong:get(1)))
assert(failed:get(1) == 0 and wrong:get(1) == 0, "Validation failed")
print("Validation successful! Data received correctly from server.")
