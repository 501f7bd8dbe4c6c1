-- gn_client_server_write.lua: two kernels access each other's memory (GPU-initiated one-sided operations): the client puts numbers into the
-- server's memory and signals; the server's kernel doubles them in place and signals back; the client gets and checks each of them.
-- Both increment a counter on the server. Both are in one session over the loop engine, where the memory of a peer is a region (`remote`).
--   daqiri-run gn_client_server_write.lua                     the kernels run on the CPU: needs a C++ or C compiler
--   daqiri-run gn_client_server_write.lua --memory gpu        on a GPU: needs NVRTC
local daqiri = require "daqiri"
local args = daqiri.args{ rounds = 20, numbers = 1024, memory = "host" }

local function region(name, bytes) return { name = name, kind = "host_pinned", affinity = 0, num_bufs = 1, buf_size = bytes } end
local function queue(name) return { name = name, id = 0, cpu_core = -1, batch_size = 32, memory_regions = { "frames" } } end
local s = daqiri.open({ version = 1, stream_type = "raw", master_core = 0, loopback = { mode = "sw", clock = "real" },
  memory_regions = { { name = "frames", kind = "host_pinned", affinity = 0, num_bufs = 64, buf_size = 64 }, -- for the queues; never sent
    region("local", 8 * args.numbers), region("results", 8), region("client_words", 64),
    region("memory", 8 * args.numbers), region("server_words", 64) },
  interfaces = { { name = "near", address = "a", tx = { queues = { queue "client_tx" } } },
    { name = "far", address = "b", tx = { queues = { queue "server_tx" } } } } },
  { memory = args.memory == "host" and "host" or nil })

-- Words: 0 the peer's signal, 8 the counter (in server_words).
local text = [[
#include "gn.h"
#define PATIENCE 20000000000ull

// Called by one thread; all threads of the block use the result.
__device__ int put_and_wait(const gn_tx *tx, unsigned int mine, unsigned int words, unsigned int memory, unsigned int theirs, unsigned int bytes,
                            unsigned int round)
{
    int status = gn_put_signal(tx, GN_BY_THREAD, gn_place(memory, 0), gn_place(mine, 0), bytes, gn_place(theirs, 0), 1, GN_LIMIT, 0);
    return status == GN_OK ? gn_wait_signal(&tx->s, gn_place(words, 0), round + 1, PATIENCE) : status;
}

__device__ int get(const gn_tx *tx, unsigned int mine, unsigned int memory, unsigned int bytes)
{
    gn_u64 ticket;
    int status = gn_get(tx, GN_BY_THREAD, gn_place(mine, 0), gn_place(memory, 0), bytes, GN_LIMIT, &ticket);
    return status == GN_OK ? gn_wait(tx, ticket, PATIENCE) : status;
}

__global__ void client(void *context, unsigned int mine, unsigned int results, unsigned int words, unsigned int memory, unsigned int theirs,
                       unsigned int rounds, unsigned int numbers, unsigned long long *counts)
{
    __shared__ int status;
    gn_side side;
    gn_tx tx;
    gn_u64 was = 0;
    if (gn_open(&side, context) != GN_OK || gn_tx_open(&tx, &side, 0) != GN_OK) return;
    gn_u64 *p = (gn_u64 *)gn_pointer(&side, gn_place(mine, 0));
    for (unsigned int n = 0; n < rounds; n++) {
        for (unsigned int k = threadIdx.x; k < numbers; k += blockDim.x) p[k] = ((gn_u64)n << 32) + k;
        __syncthreads();
        if (threadIdx.x == 0) status = put_and_wait(&tx, mine, words, memory, theirs, numbers * 8, n);
        __syncthreads();
        if (status != GN_OK) break;
        for (unsigned int k = threadIdx.x; k < numbers; k += blockDim.x) p[k] = 0;
        __syncthreads();
        if (threadIdx.x == 0) status = get(&tx, mine, memory, numbers * 8);
        if (threadIdx.x == 0 && status == GN_OK) status = gn_fetch_add(&tx, gn_place(theirs, 8), 1, gn_place(results, 0), PATIENCE, &was);
        __syncthreads();
        if (status != GN_OK) break;
        for (unsigned int k = threadIdx.x; k < numbers; k += blockDim.x)
            if (p[k] != 2 * (((gn_u64)n << 32) + k)) atomicAdd(&counts[1], 1ull);
        if (threadIdx.x == 0) counts[0]++;
        if (threadIdx.x == 0 && was != 2 * n + 1) counts[1]++; // the server's came first
        __syncthreads();
    }
}

__global__ void server(void *context, unsigned int memory, unsigned int words, unsigned int theirs, unsigned int rounds, unsigned int numbers)
{
    __shared__ int status;
    gn_side side;
    gn_tx tx;
    if (gn_open(&side, context) != GN_OK || gn_tx_open(&tx, &side, 0) != GN_OK) return;
    gn_u64 *p = (gn_u64 *)gn_pointer(&side, gn_place(memory, 0));
    for (unsigned int n = 0; n < rounds; n++) {
        if (threadIdx.x == 0) status = gn_wait_signal(&side, gn_place(words, 0), n + 1, PATIENCE);
        __syncthreads();
        if (status != GN_OK) break;
        for (unsigned int k = threadIdx.x; k < numbers; k += blockDim.x) p[k] *= 2;
        __threadfence_system();
        __syncthreads();
        if (threadIdx.x == 0) { // its own counter by the proxy, too: nothing else adds to that of a peer
            status = gn_signal(&tx, GN_BY_THREAD, gn_place(words, 8), 1, GN_LIMIT, 0);
            if (status == GN_OK) status = gn_signal(&tx, GN_BY_THREAD, gn_place(theirs, 0), 1, GN_LIMIT, 0);
        }
        __syncthreads();
        if (status != GN_OK) break;
    }
    if (threadIdx.x == 0) gn_flush(&tx, GN_LIMIT);
}
]]
local function kernel(entry)
  return daqiri.kernel{ entry = entry, persistent = true, rings = { tx = 16, ops = { "put", "get", "add" } }, grid = 1,
    block = args.memory == "host" and 32 or 64, src = text }
end
local client, server = kernel "client", kernel "server"
local counts = daqiri.array{ kind = "host_pinned", type = "uint64", shape = 2 }

s:start()
server:start{ tx = s:tx_queue("far"), regions = { "memory" }, remote = { "client_words", "server_words" },
  args = { "context", "memory", "server_words", "client_words", args.rounds, args.numbers } }
client:start{ tx = s:tx_queue("near"), regions = { "local", "results", "client_words" }, remote = { "memory", "server_words" },
  args = { "context", "local", "results", "client_words", "memory", "server_words", args.rounds, args.numbers, counts } }
assert(client:wait{ timeout = 100 } and server:wait{ timeout = 100 })
client:stop()
server:stop()
local l = s:stats()
print(("%d rounds of %d numbers, %d wrong; %d operations of the client, %d of the server"):format(counts:get(1), args.numbers, counts:get(2),
  l.client.tx.one_sided, l.server.tx.one_sided))
assert(counts:get(1) == args.rounds and counts:get(2) == 0 and client.fault == nil and server.fault == nil)
