-- gn_peers.lua: kernels of three peers in the manner of libraries of collectives: queue pairs in a flat array by peer, regions that begin at 0, puts that
-- a companion counts, puts that ring later, signals whose old values are not read, and a time limit of the kernel's own. Prints what each of them found.
local daqiri = require "daqiri"
local args = daqiri.args{ rounds = 20, memory = "host" }
local N = 3
local function region(name) return { name = name, kind = "host_pinned", affinity = 0, num_bufs = 1, buf_size = 8192 } end
local regions, interfaces = { region("frames") }, {}
for i = 1, N do
  for _, name in ipairs{ "local", "window", "counters", "sink" } do regions[#regions + 1] = region(name .. i) end
  interfaces[i] = { name = "peer" .. i, address = "loop" .. i, tx = { queues = { { name = "tx" .. i, id = 0, cpu_core = -1, batch_size = 64, memory_regions = { "frames" } } } } }
end
local s = daqiri.open({ version = 1, stream_type = "raw", master_core = 0, loopback = { mode = "sw", clock = "real" }, memory_regions = regions, interfaces = interfaces },
  { memory = args.memory == "host" and "host" or nil })
local src = [[
#include <doca_gpunetio_dev_verbs_counter.cuh>
#define N 3
#define BYTES 64
#define LATER ((uint32_t)(DOCA_GPUNETIO_VERBS_GPU_CODE_OPT_SKIP_DB_RINGING | DOCA_GPUNETIO_VERBS_GPU_CODE_OPT_SKIP_AVAILABILITY_CHECK))
typedef struct doca_gpu_dev_verbs_addr addr;

__device__ uint8_t byte_of(uint32_t round, uint32_t from, uint32_t to, uint32_t k) { return (uint8_t)(round * 31 + from * 7 + to * 3 + k); }

// Waits for a completion up to a time limit of its own.
__device__ int wait_for(struct doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_ticket_t ticket, uint64_t ns)
{
    uint64_t until = doca_gpu_dev_verbs_query_globaltimer() + ns;
    int status;
    while ((status = doca_gpu_dev_verbs_poll_one_cq_at(doca_gpu_dev_verbs_qp_get_cq_sq(qp), ticket)) == EBUSY)
        if (doca_gpu_dev_verbs_query_globaltimer() > until) return EBUSY;
    return status;
}

// A window: messages of each round and sender, from 0; signals of each sender, from 4096. found: rounds, wrong bytes, failed waits, counters.
__global__ void peer(struct doca_gpu_dev_verbs_qp *qps, struct doca_gpu_dev_verbs_qp *companions, uint32_t me, uint32_t rounds, uint32_t key0, uint32_t key1,
                     uint32_t key2, uint32_t counter_key, uint8_t *local, uint32_t lkey, uint32_t sink_key, uint8_t *window, uint64_t *counters,
                     unsigned long long *found)
{
    const uint32_t keys[N] = { key0, key1, key2 };
    const addr sink = { 0, sink_key };
    doca_gpu_dev_verbs_ticket_t ticket;

    for (uint32_t round = 0; round < rounds; round++) {
        for (uint32_t j = 0; j < N; j++) {
            if (j == me) continue;
            struct doca_gpu_dev_verbs_qp *qp = qps + j;
            uint64_t at = (round * N + me) * BYTES, from = (round * N + j) * BYTES;
            for (uint32_t k = 0; k < BYTES; k++) local[from + k] = byte_of(round, me, j, k);
            doca_gpu_dev_verbs_fence_release<DOCA_GPUNETIO_VERBS_SYNC_SCOPE_SYS>();
            doca_gpu_dev_verbs_put(qp, addr{ at, keys[j] }, addr{ from, lkey }, BYTES / 2, LATER);
            doca_gpu_dev_verbs_put_counter(qp, addr{ at + BYTES / 2, keys[j] }, addr{ from + BYTES / 2, lkey }, BYTES / 4, companions + j, addr{ 8 * j, counter_key }, sink, 1, LATER);
            doca_gpu_dev_verbs_put_signal<DOCA_GPUNETIO_VERBS_SIGNAL_OP_ADD>(qp, addr{ at + 3 * BYTES / 4, keys[j] }, addr{ from + 3 * BYTES / 4, lkey }, BYTES / 4,
                                                                             addr{ 4096 + 8 * me, keys[j] }, sink, 1, &ticket);
            doca_gpu_dev_verbs_fence(qp);
            if (wait_for(qp, ticket, 20000000000ull) != 0) found[2]++;
        }
        for (uint32_t i = 0; i < N; i++) { // a fence between the peers: all have signalled this round
            uint64_t *signal = (uint64_t *)(window + 4096) + i, until = doca_gpu_dev_verbs_query_globaltimer() + 20000000000ull;
            if (i == me) continue;
            while (doca_gpu_dev_verbs_atomic_read<uint64_t, DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU>(signal) <= round)
                if (doca_gpu_dev_verbs_query_globaltimer() > until) {
                    found[2]++;
                    return;
                }
            doca_gpu_dev_verbs_fence_acquire<DOCA_GPUNETIO_VERBS_SYNC_SCOPE_SYS>();
            for (uint32_t k = 0; k < BYTES; k++) found[1] += window[(round * N + i) * BYTES + k] != byte_of(round, i, me, k);
        }
        found[0]++;
    }
    for (uint32_t j = 0; j < N; j++) {
        doca_gpu_dev_verbs_wait(companions + j);
        found[3] += DOCA_GPUNETIO_VOLATILE(counters[j]);
    }
}

// A completion that never comes ends the kernel's own wait, as EBUSY.
__global__ void limits(struct doca_gpu_dev_verbs_qp *qps, unsigned long long *found)
{
    found[0] = wait_for(qps + 1, 1000, 1000000) == EBUSY;
}
]]
local function array(n) return daqiri.array{ kind = "host_pinned", type = "uint64", shape = n } end
s:start()
local peers, found = {}, {}
for i = 1, N do peers[i] = daqiri.kernel{ name = "kernel" .. i, entry = "peer", persistent = true, rings = { tx = 64 }, grid = 1, block = 1, src = src } end
for i = 1, N do -- all are loaded: none can be while another one runs in the program
  local tx = s:tx_queue("peer" .. i)
  found[i] = array(4)
  peers[i]:start{ tx = { tx, tx, tx, tx, tx, tx }, regions = { "local" .. i, "sink" .. i }, remote = { "window1", "window2", "window3", "counters" .. i },
    args = { { qps = { 1, 2, 3 } }, { qps = { 4, 5, 6 } }, i - 1, args.rounds, { key = "window1" }, { key = "window2" }, { key = "window3" }, { key = "counters" .. i },
      { address = "local" .. i }, { key = "local" .. i }, { key = "sink" .. i }, { address = "window" .. i }, { address = "counters" .. i }, found[i] } }
end
for i = 1, N do
  local ok, _, why = peers[i]:wait{ timeout = 100 }
  print(("peer %d: %s %s, %d operations, %d refused"):format(i, tostring(ok), table.concat(found[i]:get(), " "), peers[i].completed, peers[i].refused), why or peers[i].fault or "")
  peers[i]:stop()
end
local k, said = daqiri.kernel{ name = "limits", entry = "limits", persistent = true, rings = { tx = 64 }, grid = 1, block = 1, src = src }, array(1)
k:start{ tx = { s:tx_queue("peer1"), s:tx_queue("peer1") }, args = { { qps = { 1, 2 } }, said } }
assert(k:wait{ timeout = 60 })
print("a wait with a limit of its own ended", said:get(1) == 1)
k:stop()
