-- gn_verbs_write_lat.lua: two kernels of one thread write a byte into each other's memory in turn, by the low level: each fills an entry of
-- its send queue and submits it.
-- The kernels have the shape of DOCA's sample gpunetio_verbs_write_lat. Latency is half of a round trip; both sides are in one session, over the loop engine.
--   daqiri-run gn_verbs_write_lat.lua                     the kernels run on the CPU: needs a C++ compiler
--   daqiri-run gn_verbs_write_lat.lua --rate              also prints the latency: median, 99 % and maximum
--   daqiri-run gn_verbs_write_lat.lua -p 1                the script polls the rings
--   daqiri-run gn_verbs_write_lat.lua --memory gpu        on a GPU: needs NVRTC
local daqiri = require "daqiri"
local args = daqiri.args{ iters = 50, p = { 0, help = "1: the script polls the rings" }, rate = false, memory = "host" }
local s = daqiri.open(args.p == 1 and "gn_proxy.yaml" or "gn_pair.yaml", { memory = args.memory == "host" and "host" or nil })

local src = [[
#include <doca_gpunetio_dev_verbs_onesided.cuh>

template <bool is_client>
__global__ void write_lat(struct doca_gpu_dev_verbs_qp *qp, uint8_t *in, uint8_t *out, uint32_t out_key, uint8_t *peer, uint32_t peer_key, uint32_t iters, unsigned long long *took, unsigned long long *wrong)
{
    for (uint32_t k = 1; k <= iters; k++) {
        uint64_t began = doca_gpu_dev_verbs_query_globaltimer();
        for (int turn = 0; turn < 2; turn++) {
            if ((turn == 0) == is_client) {
                uint64_t at = qp->sq_wqe_pi;
                *out = (uint8_t)k;
                doca_gpu_dev_verbs_wqe_prepare_write(qp, doca_gpu_dev_verbs_get_wqe_ptr(qp, at & qp->sq_wqe_mask), at,
                                                     DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_WRITE, DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_CQ_UPDATE, 0,
                                                     (uint64_t)peer, peer_key, (uint64_t)out, out_key, 1);
                doca_gpu_dev_verbs_submit<DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_EXCLUSIVE>(qp, at + 1);
                if (doca_gpu_dev_verbs_poll_cq_at(doca_gpu_dev_verbs_qp_get_cq_sq(qp), at) != 0) wrong[0]++;
            } else {
                while (DOCA_GPUNETIO_VOLATILE(*in) != (uint8_t)k) continue;
            }
        }
        if (is_client) took[k - 1] = doca_gpu_dev_verbs_query_globaltimer() - began;
    }
}
]]
local function kernel(name, entry)
  return daqiri.kernel{ name = name, entry = entry, persistent = true, rings = { tx = 64 }, grid = 1, block = 1, src = src }
end
local client, server = kernel("write_lat", "write_lat<true>"), kernel("write_lat_server", "write_lat<false>")
local took = daqiri.array{ kind = "host_pinned", type = "uint64", shape = args.iters }
local wrong = daqiri.array{ kind = "host_pinned", type = "uint64", shape = 1 }

s:start()
server:start{ tx = s:tx_queue("server"), regions = { "remote" }, remote = { "local" },
  args = { { qp = 1 }, { address = "remote" }, { address = "remote", offset = 64 }, { key = "remote" }, { address = "local" }, { key = "local" }, args.iters, took, wrong } }
client:start{ tx = s:tx_queue("client"), regions = { "local" }, remote = { "remote" },
  args = { { qp = 1 }, { address = "local" }, { address = "local", offset = 64 }, { key = "local" }, { address = "remote" }, { key = "remote" }, args.iters, took, wrong } }
while args.p == 1 and (client.running or server.running) do
  s:interface("client"):progress()
  s:interface("server"):progress()
end
assert(client:wait{ timeout = 100 } and server:wait{ timeout = 100 })
print(("%d round trips, %d wrong"):format(args.iters, wrong:get(1)))
assert(wrong:get(1) == 0 and client.refused == 0 and server.refused == 0, client.fault or server.fault or "Validation failed")
client:stop()
server:stop()
local us = took:get()
for k, ns in ipairs(us) do us[k] = tonumber(ns) / 2000 end
table.sort(us)
local function at(part) return us[math.ceil(part * #us)] end
if args.rate then print(("latency: %.2f us median, %.2f us 99 %%, %.2f us at most"):format(at(0.5), at(0.99), at(1))) end
