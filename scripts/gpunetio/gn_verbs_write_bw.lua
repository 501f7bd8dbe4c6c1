-- gn_verbs_write_bw.lua: the threads of a client's block write into a server's memory by the low level: each fills an entry of the send queue, and
-- one submits them; the server checks every byte. The kernel has the shape of DOCA's sample gpunetio_verbs_write_bw.
-- Both sides are in one session, over the loop engine.
--   daqiri-run gn_verbs_write_bw.lua                     the kernels run on the CPU: needs a C++ compiler
--   daqiri-run gn_verbs_write_bw.lua -p 1                the script polls the rings
--   daqiri-run gn_verbs_write_bw.lua --memory gpu        on a GPU: needs NVRTC
local daqiri = require "daqiri"
local args = daqiri.args{ threads = 32, iters = 16, p = { 0, help = "1: the script polls the rings" }, memory = "host" }
local s = daqiri.open(args.p == 1 and "gn_proxy.yaml" or "gn_pair.yaml", { memory = args.memory == "host" and "host" or nil })

local src = [[
#include <doca_gpunetio_dev_verbs_onesided.cuh>

#define SIZES 10                                   // of 1, 2, 4 … 512 bytes a thread
#define AREA(total, index) ((total) * ((1u << (index)) - 1)) // where the bytes of all threads with a size begin

// Fills an entry of its own behind the producer index, without reserving it; the last thread submits all of a block.
__global__ void write_bw(struct doca_gpu_dev_verbs_qp *qp, uint32_t iters, uint8_t *local, uint32_t lkey, uint8_t *remote, uint32_t rkey,
                         unsigned long long *failed)
{
    uint32_t total = blockDim.x, t = threadIdx.x;
    bool last = t == total - 1;
    uint64_t at = 0;

    for (uint32_t index = 0; index < SIZES; index++) {
        uint32_t size = 1u << index, mine = AREA(total, index) + t * size;
        for (uint32_t k = 0; k < size; k++) local[mine + k] = index + 1;
        for (uint32_t k = 0; k < iters; k++) {
            at = doca_gpu_dev_verbs_atomic_read<uint64_t, DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU>(&qp->sq_wqe_pi) + t;
            struct doca_gpu_dev_verbs_wqe *wqe = doca_gpu_dev_verbs_get_wqe_ptr(qp, at & qp->sq_wqe_mask);
            doca_gpu_dev_verbs_wqe_prepare_write(qp, wqe, at, DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_WRITE,
                                                 last ? DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_CQ_UPDATE : DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_CQ_ERROR_UPDATE, 0,
                                                 (uint64_t)(remote + mine), rkey, (uint64_t)(local + mine), lkey, size);
            __syncthreads();
            if (last) doca_gpu_dev_verbs_submit<DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU>(qp, at + 1);
            __syncthreads();
        }
    }
    if (last && doca_gpu_dev_verbs_poll_cq_at(doca_gpu_dev_verbs_qp_get_cq_sq(qp), at) != 0) atomicAdd(failed, 1ull);
}

__global__ void check(void *context, const uint8_t *memory, uint32_t total, unsigned long long *wrong)
{
    for (uint32_t index = 0; index < SIZES; index++)
        for (uint32_t k = threadIdx.x; k < total << index; k += blockDim.x)
            if (memory[AREA(total, index) + k] != index + 1) atomicAdd(wrong, 1ull);
}
]]
local function kernel(entry, grid, block)
  return daqiri.kernel{ entry = entry, persistent = true, rings = { tx = 256 }, grid = grid, block = block, src = src }
end
local client = kernel("write_bw", 1, args.threads)
local server = kernel("check", 1, args.threads)
local failed = daqiri.array{ kind = "host_pinned", type = "uint64", shape = 1 }
local wrong = daqiri.array{ kind = "host_pinned", type = "uint64", shape = 1 }

local function finish(k)
  while args.p == 1 and k.running do s:interface("client"):progress() end
  assert(k:wait{ timeout = 100 })
  assert(k.refused == 0, k.fault)
  k:stop()
end

s:start()
client:start{ tx = s:tx_queue("client"), regions = { "local" }, remote = { "remote" },
  args = { { qp = 1 }, args.iters, { address = "local" }, { key = "local" }, { address = "remote" }, { key = "remote" }, failed } }
finish(client)
server:start{ tx = s:tx_queue("server"), regions = { "remote" }, args = { "context", { address = "remote" }, args.threads, wrong } }
finish(server)
print(("%d writes of 1 to 512 bytes, %d failed, %d bytes wrong"):format(10 * args.threads * args.iters, failed:get(1), wrong:get(1)))
assert(failed:get(1) == 0 and wrong:get(1) == 0, "Validation failed")
print("Validation successful! Data received correctly from client.")
