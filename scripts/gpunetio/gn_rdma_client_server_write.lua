-- gn_rdma_client_server_write.lua: two threads of a client's kernel write buffers B and C into the server's buffer A, and each sends the number of its
-- buffer; the server's kernel receives the numbers, checks A and sets the client's flag F with an inline write.
-- The kernels have the shape of DOCA's sample gpunetio_rdma_client_server_write. Both sides are in one session, over the loop engine.
--   daqiri-run gn_rdma_client_server_write.lua                   the kernels run on the CPU: needs a C++ compiler
--   daqiri-run gn_rdma_client_server_write.lua --memory gpu      on a GPU: needs NVRTC
local daqiri = require "daqiri"
local args = daqiri.args{ memory = "host" }
local s = daqiri.open("gn_pair.yaml", { memory = args.memory == "host" and "host" or nil })

local src = [[
#include <doca_gpunetio_dev_rdma.cuh>
#define BYTES 128

// Buffers of the client: 0 B, 1 C, 2 F, 3 the numbers; of the server: 0 and 1 A, 2 the numbers.
__device__ uint8_t *bytes(struct doca_gpu_buf_arr *buffers, uint64_t index)
{
    struct doca_gpu_buf *buf;
    uintptr_t at;
    doca_gpu_dev_buf_get_buf(buffers, index, &buf);
    doca_gpu_dev_buf_get_addr(buf, &at);
    return (uint8_t *)at;
}

__global__ void client(struct doca_gpu_dev_rdma *rdma, struct doca_gpu_buf_arr *local, struct doca_gpu_buf_arr *server, unsigned long long *failed)
{
    struct doca_gpu_buf *from, *to, *number;
    uint32_t commits;

    doca_gpu_dev_buf_get_buf(local, threadIdx.x, &from);
    doca_gpu_dev_buf_get_buf(local, 3, &number);
    doca_gpu_dev_buf_get_buf(server, threadIdx.x, &to);
    for (uint32_t k = 0; k < BYTES; k++) bytes(local, threadIdx.x)[k] = 2 + threadIdx.x;
    bytes(local, 3)[threadIdx.x] = 1 + threadIdx.x;
    __threadfence_system();
    if (doca_gpu_dev_rdma_write_strong(rdma, 0, to, 0, from, 0, BYTES, 0, DOCA_GPU_RDMA_WRITE_FLAG_NONE) != DOCA_SUCCESS) atomicAdd(failed, 1ull);
    if (doca_gpu_dev_rdma_send_strong(rdma, 0, number, threadIdx.x, 1, 0, DOCA_GPU_RDMA_SEND_FLAG_NONE) != DOCA_SUCCESS) atomicAdd(failed, 1ull);
    __syncthreads();
    if (threadIdx.x > 0) return;
    doca_gpu_dev_rdma_commit_strong(rdma, 0);
    if (doca_gpu_dev_rdma_wait_all(rdma, &commits) != DOCA_SUCCESS || commits != 1) atomicAdd(failed, 1ull);
    while (DOCA_GPUNETIO_VOLATILE(*bytes(local, 2)) != 1) continue; // F
}

__global__ void server(struct doca_gpu_dev_rdma *rdma, struct doca_gpu_buf_arr *local, struct doca_gpu_buf_arr *client, unsigned long long *failed,
                       unsigned long long *wrong)
{
    struct doca_gpu_dev_rdma_r *receives;
    struct doca_gpu_buf *number, *flag;
    uint32_t received, commits;
    uint8_t one = 1;

    doca_gpu_dev_rdma_get_recv(rdma, &receives);
    doca_gpu_dev_buf_get_buf(local, 2, &number);
    doca_gpu_dev_buf_get_buf(client, 2, &flag);
    for (uint32_t k = 0; k < 2; k++) doca_gpu_dev_rdma_recv_strong(receives, number, 1, k, 0);
    doca_gpu_dev_rdma_recv_commit_strong(receives);
    if (doca_gpu_dev_rdma_recv_wait_all(receives, DOCA_GPU_RDMA_RECV_WAIT_FLAG_B, &received, NULL, NULL) != DOCA_SUCCESS || received != 2) failed[0]++;
    if (bytes(local, 2)[0] + bytes(local, 2)[1] != 3) wrong[0]++; // 1 and 2, in any order
    for (uint32_t k = 0; k < 2 * BYTES; k++)
        if (bytes(local, 0)[k] != (k < BYTES ? 2 : 3)) wrong[0]++;
    if (doca_gpu_dev_rdma_write_inline_strong(rdma, 0, flag, 0, &one, 1, 0, DOCA_GPU_RDMA_WRITE_FLAG_NONE) != DOCA_SUCCESS) failed[0]++;
    doca_gpu_dev_rdma_commit_strong(rdma, 0);
    if (doca_gpu_dev_rdma_wait_all(rdma, &commits) != DOCA_SUCCESS) failed[0]++;
}
]]
local function kernel(entry, threads) return daqiri.kernel{ name = "write_" .. entry, entry = entry, persistent = true, grid = 1, block = threads, src = src } end
local client, server = kernel("client", 2), kernel("server", 1)
local failed = daqiri.array{ kind = "host_pinned", type = "uint64", shape = 1 }
local wrong = daqiri.array{ kind = "host_pinned", type = "uint64", shape = 1 }

s:start()
server:start{ tx = s:tx_queue("server"), rx = s:rx_queue("server"), regions = { "remote" }, remote = { "local" }, policy = "wait",
  args = { { rdma = 1, rx = 1 }, { buffers = "remote", bytes = 128 }, { buffers = "local", bytes = 128 }, failed, wrong } }
client:start{ tx = s:tx_queue("client"), regions = { "local" }, remote = { "remote" },
  args = { { rdma = 1 }, { buffers = "local", bytes = 128 }, { buffers = "remote", bytes = 128 }, failed } }
assert(client:wait{ timeout = 100 } and server:wait{ timeout = 100 })
print(("%d operations of the client, %d of the server, %d failed; %d bytes wrong"):format(client.completed, server.completed, failed:get(1), wrong:get(1)))
assert(failed:get(1) == 0 and wrong:get(1) == 0 and client.refused == 0 and server.refused == 0, client.fault or server.fault or "Validation failed")
client:stop()
server:stop()
print("Validation successful! The server has buffers B and C in A, and the client its flag.")
