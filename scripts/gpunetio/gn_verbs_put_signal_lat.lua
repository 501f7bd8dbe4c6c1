-- gn_verbs_put_signal_lat.lua: two kernels of one thread put a byte into each other's memory in turn, each with a signal, for which the other one
-- waits.
-- The kernels have the shape of DOCA's sample gpunetio_verbs_put_signal_lat. Latency is half of a round trip; both sides are in one session, over the loop engine.
--   daqiri-run gn_verbs_put_signal_lat.lua                     the kernels run on the CPU: needs a C++ compiler
--   daqiri-run gn_verbs_put_signal_lat.lua --rate              also prints the latency: median, 99 % and maximum
--   daqiri-run gn_verbs_put_signal_lat.lua -p 1                the script polls the rings
--   daqiri-run gn_verbs_put_signal_lat.lua --memory gpu        on a GPU: needs NVRTC
local daqiri = require "daqiri"
local args = daqiri.args{ iters = 50, p = { 0, help = "1: the script polls the rings" }, rate = false, memory = "host" }
local s = daqiri.open(args.p == 1 and "gn_proxy.yaml" or "gn_pair.yaml", { memory = args.memory == "host" and "host" or nil })

local src = [[
#include <doca_gpunetio_dev_verbs_onesided.cuh>

template <bool is_client>
__global__ void put_signal_lat(struct doca_gpu_dev_verbs_qp *qp, uint8_t *local, uint32_t lkey, uint8_t *peer, uint32_t rkey, uint32_t iters, unsigned long long *took, unsigned long long *wrong)
{
    // Memory of each side: the peer's byte at 0, its signal at 128; the own byte at 64, and what the peer's signal was before at 192.
    struct doca_gpu_dev_verbs_addr from = { (uint64_t)(local + 64), lkey }, to = { (uint64_t)peer, rkey };
    struct doca_gpu_dev_verbs_addr count = { (uint64_t)(peer + 128), rkey }, old = { (uint64_t)(local + 192), lkey };
    uint64_t *flag = (uint64_t *)(local + 128);

    for (uint32_t k = 1; k <= iters; k++) {
        uint64_t began = doca_gpu_dev_verbs_query_globaltimer();
        for (int turn = 0; turn < 2; turn++) {
            if ((turn == 0) == is_client) {
                local[64] = (uint8_t)k;
                doca_gpu_dev_verbs_put_signal<DOCA_GPUNETIO_VERBS_SIGNAL_OP_ADD>(qp, to, from, 1, count, old, 1);
            } else {
                while (doca_gpu_dev_verbs_atomic_read<uint64_t, DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU>(flag) < k) continue;
                doca_gpu_dev_verbs_fence_acquire<DOCA_GPUNETIO_VERBS_SYNC_SCOPE_SYS>();
                if (DOCA_GPUNETIO_VOLATILE(local[0]) != (uint8_t)k) wrong[0]++;
            }
        }
        if (is_client) took[k - 1] = doca_gpu_dev_verbs_query_globaltimer() - began;
    }
}
]]
local function kernel(name, entry)
  return daqiri.kernel{ name = name, entry = entry, persistent = true, rings = { tx = 64 }, grid = 1, block = 1, src = src }
end
local client, server = kernel("put_signal_lat", "put_signal_lat<true>"), kernel("put_signal_lat_server", "put_signal_lat<false>")
local took = daqiri.array{ kind = "host_pinned", type = "uint64", shape = args.iters }
local wrong = daqiri.array{ kind = "host_pinned", type = "uint64", shape = 1 }

s:start()
server:start{ tx = s:tx_queue("server"), regions = { "remote" }, remote = { "local" },
  args = { { qp = 1 }, { address = "remote" }, { key = "remote" }, { address = "local" }, { key = "local" }, args.iters, took, wrong } }
client:start{ tx = s:tx_queue("client"), regions = { "local" }, remote = { "remote" },
  args = { { qp = 1 }, { address = "local" }, { key = "local" }, { address = "remote" }, { key = "remote" }, args.iters, took, wrong } }
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
