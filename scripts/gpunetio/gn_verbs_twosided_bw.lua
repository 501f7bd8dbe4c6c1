-- gn_verbs_twosided_bw.lua: all threads of a client's kernel send messages to a server (RDMA sends). The server's kernel posts a receive for each, waits
-- for it, and checks its bytes. The kernels have the shape of DOCA's sample gpunetio_verbs_twosided_bw.
-- Both sides are in one session, over the loop engine.
--   daqiri-run gn_verbs_twosided_bw.lua                     the kernels run on the CPU: needs a C++ compiler
--   daqiri-run gn_verbs_twosided_bw.lua --scope warp        the threads of a warp send together
--   daqiri-run gn_verbs_twosided_bw.lua -p 1                the script polls the rings
--   daqiri-run gn_verbs_twosided_bw.lua --memory gpu        on a GPU: needs NVRTC
local daqiri = require "daqiri"
local args = daqiri.args{ threads = 32, iters = 16, size = { 64, unit = "bytes", help = "of a message" }, p = { 0, help = "1: the script polls the rings" },
  scope = { "thread", choices = { "thread", "warp" } }, memory = "host" }
local s = daqiri.open(args.p == 1 and "gn_proxy.yaml" or "gn_pair.yaml", { memory = args.memory == "host" and "host" or nil })

local src = [[
#include <doca_gpunetio_dev_verbs_twosided.cuh>
#define SHARED DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU
#define NIC DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO

template <enum doca_gpu_dev_verbs_exec_scope scope>
__global__ void client(struct doca_gpu_dev_verbs_qp *qp, uint32_t iters, uint32_t size, uint8_t *local, uint32_t lkey, unsigned long long *failed)
{
    uint8_t *mine = local + threadIdx.x * size;
    struct doca_gpu_dev_verbs_addr from = { (uint64_t)mine, lkey };
    doca_gpu_dev_verbs_ticket_t ticket;

    for (uint32_t k = 0; k < iters; k++) {
        for (uint32_t i = 0; i < size; i++) mine[i] = k + 1;
        doca_gpu_dev_verbs_send<SHARED, NIC, scope>(qp, from, size, &ticket);
        if (doca_gpu_dev_verbs_poll_cq_at(doca_gpu_dev_verbs_qp_get_cq_sq(qp), ticket) != 0) atomicAdd(failed, 1ull);
        __syncthreads(); // the messages of a round come before those of the next one
    }
}

template <enum doca_gpu_dev_verbs_exec_scope scope>
__global__ void server(struct doca_gpu_dev_verbs_qp *qp, uint32_t iters, uint32_t size, uint8_t *memory, uint32_t key, unsigned long long *wrong)
{
    uint8_t *mine = memory + threadIdx.x * size;
    struct doca_gpu_dev_verbs_addr to = { (uint64_t)mine, key };
    struct mlx5_cqe64 *cqe;
    doca_gpu_dev_verbs_ticket_t ticket;

    for (uint32_t k = 0; k < iters; k++) {
        doca_gpu_dev_verbs_recv<SHARED, NIC, scope>(qp, to, size, &ticket);
        doca_gpu_dev_verbs_recv_wait<SHARED, NIC>(qp, to, &ticket, &cqe);
        bool same = cqe && doca_gpu_dev_verbs_cqe_get_bytes(cqe) == size;
        for (uint32_t i = 0; i < size; i++) same = same && mine[i] == (uint8_t)(k + 1);
        if (!same) atomicAdd(wrong, 1ull);
        __syncthreads();
    }
}
]]
local function kernel(side)
  return daqiri.kernel{ name = "twosided_" .. side, entry = ("%s<DOCA_GPUNETIO_VERBS_EXEC_SCOPE_%s>"):format(side, args.scope:upper()), persistent = true, rings = { tx = 256, rx = 1024 },
    grid = 1, block = args.threads, src = src }
end
local client, server = kernel "client", kernel "server"
local failed = daqiri.array{ kind = "host_pinned", type = "uint64", shape = 1 }
local wrong = daqiri.array{ kind = "host_pinned", type = "uint64", shape = 1 }

s:start()
server:start{ tx = s:tx_queue("server"), rx = s:rx_queue("server"), regions = { "remote" }, policy = "wait",
  args = { { qp = 1, rx = 1 }, args.iters, args.size, { address = "remote" }, { key = "remote" }, wrong } }
client:start{ tx = s:tx_queue("client"), regions = { "local" }, args = { { qp = 1 }, args.iters, args.size, { address = "local" }, { key = "local" }, failed } }
while args.p == 1 and (client.running or server.running) do
  s:interface("client"):progress()
  s:interface("server"):progress()
end
assert(client:wait{ timeout = 100 } and server:wait{ timeout = 100 })
print(("%d messages of %d bytes sent, %d failed; %d received, %d wrong"):format(client.completed, args.size, failed:get(1), server.received, wrong:get(1)))
assert(failed:get(1) == 0 and wrong:get(1) == 0 and server.received == args.threads * args.iters, client.fault or "Validation failed")
client:stop()
server:stop()
print("Validation successful! Data received correctly from client.")
