-- Arguments of persistent kernels that are tables: semaphores, queue pairs, buffers, places of memory; what they give, and what is refused.
local daqiri = require "daqiri"
local function try(fn, ...) local ok, err = pcall(fn, ...) assert(not ok) return tostring(err) end
local function has(text, part) assert(text:find(part, 1, true), text) end
local function array(type, shape) return daqiri.array{ kind = "host_pinned", memory = "host", type = type, shape = shape } end
local function region(name, n, bytes) return { name = name, kind = "host_pinned", affinity = 0, num_bufs = n, buf_size = bytes } end
local function queue(name, id) return { name = name, id = id, cpu_core = -1, batch_size = 8, memory_regions = { "frames" } } end
local s = daqiri.open({ version = 1, stream_type = "raw", master_core = 0, loopback = { mode = "sw", clock = "real" },
  memory_regions = { region("frames", 64, 256), region("mine", 4, 256), region("theirs", 1, 1024), region("other", 1, 64) },
  interfaces = { { name = "port", address = "loop0", tx = { queues = { queue("a", 0), queue("b", 1) } } } } }, { memory = "host" })
local a, b = s:tx_queue("port", 0), s:tx_queue("port", 1)

local n = 0
local function kernel(parameters, body, headers)
  n = n + 1
  return daqiri.kernel{ name = "k" .. n, memory = "host", persistent = true, rings = { tx = 16 }, grid = 1, block = 1,
    src = (headers or "#include <doca_gpunetio_dev_rdma.cuh>\n#include <doca_gpunetio_dev_sem.cuh>\n") ..
      ("__global__ void k(%s)\n{\n%s\n}\n"):format(parameters, body or "") }
end
local function run(k, o)
  k:start(o)
  assert(k:wait{ timeout = 60 })
  assert(k.refused == 0, k.fault)
  local done = k.completed
  k:stop()
  return done
end
s:start()

-- A semaphore's items: the script and the kernel read and write status, packets and the program's own words, of any item.
local sem, result = array("uint64", { 4, 5 }), array("uint64", 4)
sem:set(3, 1, 1)
sem:set(3, 4, 41)
run(kernel("doca_gpu_semaphore_gpu *sem, void *context, uint64_t *result", [[
    doca_gpu_semaphore_status status;
    uint64_t *words;
    result[0] = doca_gpu_dev_semaphore_get_status(sem, 1, &status) == DOCA_SUCCESS && status == DOCA_GPU_SEMAPHORE_STATUS_READY;
    doca_gpu_dev_semaphore_get_custom_info_addr(sem, 1, (void **)&words);
    result[1] = words[0];
    words[1] = 42;
    doca_gpu_dev_semaphore_set_packet_info(sem, 1, DOCA_GPU_SEMAPHORE_STATUS_DONE, 7, 8);
    result[2] = doca_gpu_dev_semaphore_set_status_cas(sem, 2, DOCA_GPU_SEMAPHORE_STATUS_READY, DOCA_GPU_SEMAPHORE_STATUS_DONE) == DOCA_ERROR_NOT_PERMITTED;
    result[3] = doca_gpu_dev_semaphore_get_status(sem, 3, &status) == DOCA_ERROR_INVALID_VALUE; // there are three
]]), { tx = a, args = { { semaphore = sem }, "context", result } })
assert(table.concat(result:get(), " ") == "1 41 1 1", table.concat(result:get(), " "))
assert(sem:get(3, 1) == 2 and sem:get(3, 2) == 7 and sem:get(3, 3) == 8 and sem:get(3, 4) == 41 and sem:get(3, 5) == 42 and sem:get(4, 1) == 0)

-- Queue pairs side by side: each is a ring of its own. Buffers: the i-th of its size, behind an offset.
result = array("uint64", 3)
local done = run(kernel("doca_gpu_dev_verbs_qp *qps, doca_gpu_buf_arr *from, doca_gpu_buf_arr *to, uint8_t *mine, uint64_t *result", [[
    doca_gpu_buf *source, *target;
    uintptr_t source_at, target_at;
    uint32_t source_key, target_key;
    for (uint32_t k = 0; k < 2; k++) {
        doca_gpu_dev_buf_get_buf(from, k, &source);
        doca_gpu_dev_buf_get_addr(source, &source_at);
        doca_gpu_dev_buf_get_mkey(source, &source_key);
        doca_gpu_dev_buf_get_buf(to, k, &target);
        doca_gpu_dev_buf_get_addr(target, &target_at);
        doca_gpu_dev_buf_get_mkey(target, &target_key);
        *(uint8_t *)source_at = (uint8_t)(k + 1);
        doca_gpu_dev_verbs_ticket_t ticket;
        doca_gpu_dev_verbs_put(qps + k, doca_gpu_dev_verbs_addr{ target_at, target_key }, doca_gpu_dev_verbs_addr{ source_at, source_key }, 1, &ticket);
        result[2] += ticket; // the first one of each ring is 0
        doca_gpu_dev_verbs_wait(qps + k);
        result[k] = (source_at - (uint64_t)mine) * 1000 + *(uint8_t *)target_at;
    }
]]), { tx = { a, b }, regions = { "mine" }, remote = { "theirs" }, args = { { qps = { 1, 2 } }, { buffers = "mine", bytes = 128, offset = 64 },
  { buffers = "theirs", bytes = 256 }, { address = "mine" }, result } })
assert(done == 2 and table.concat(result:get(), " ") == "64001 192002 0", table.concat(result:get(), " "))

-- RDMA functions: strong and weak operations, and commits since the last wait.
result = array("uint64", 3)
done = run(kernel("doca_gpu_dev_rdma *rdma, doca_gpu_buf_arr *from, doca_gpu_buf_arr *to, uint64_t *result", [[
    doca_gpu_buf *source, *target;
    uint32_t position, mask, commits;
    uint8_t value = 9;
    doca_gpu_dev_buf_get_buf(from, 0, &source);
    doca_gpu_dev_buf_get_buf(to, 0, &target);
    doca_gpu_dev_rdma_write_inline_strong(rdma, 0, target, 5, &value, 1, 0, DOCA_GPU_RDMA_WRITE_FLAG_NONE);
    doca_gpu_dev_rdma_commit_strong(rdma, 0);
    doca_gpu_dev_rdma_get_info(rdma, 0, &position, &mask);
    doca_gpu_dev_rdma_read_weak(rdma, 0, target, 5, source, 3, 1, position);
    doca_gpu_dev_rdma_commit_weak(rdma, 0, 1);
    result[0] = doca_gpu_dev_rdma_wait_all(rdma, &commits) == DOCA_SUCCESS;
    result[1] = commits;
    uintptr_t at;
    doca_gpu_dev_buf_get_addr(source, &at);
    result[2] = ((uint8_t *)at)[3];
]]), { tx = a, regions = { "mine" }, remote = { "theirs" }, args = { { rdma = 1 }, { buffers = "mine", bytes = 128 }, { buffers = "theirs", bytes = 128 }, result } })
assert(done == 2 and table.concat(result:get(), " ") == "1 2 9", table.concat(result:get(), " "))

-- What is refused.
local pointer = kernel("void *context, void *x", nil, "")
local number = kernel("void *context, unsigned int x", nil, "")
local function refused(k, argument, part) has(try(k.start, k, { tx = a, regions = { "mine" }, args = { "context", argument } }), part) end
refused(pointer, {}, "a table names one of qp, qps, mlx5, txq, rxq, dma, rdma, buffers, address, key, semaphore, exit")
refused(pointer, { pq = 1 }, "unknown key 'pq'")
refused(pointer, { address = "mine", ofset = 64 }, "unknown key 'ofset' (did you mean 'offset'?)")
refused(pointer, { qp = 1, txq = 1 }, "a table names qp or txq, not both")
refused(pointer, { qps = {} }, "qps is a list of transmit rings, from 1")
refused(pointer, { qps = { 1, 0 } }, "qps is the number of a transmit ring, from 1")
refused(pointer, { rdma = 0 }, "rdma is the number of a transmit ring, from 1")
refused(pointer, { qp = 2 }, "transmit ring 2: it has 1")
refused(pointer, { mlx5 = 0 }, "mlx5 is the number of a transmit ring, from 1")
has(try(pointer.start, pointer, { tx = a, args = { { qp = 1 }, { mlx5 = 1 } } }), "transmit ring 1 is an mlx5 queue in one argument and not in another; hint: a ring for each")
refused(pointer, { rxq = 1 }, "receive ring 1: it has 0")
refused(pointer, { buffers = "mine" }, 'buffers have bytes: { buffers = "region", bytes = 256 }')
refused(pointer, { buffers = "nowhere", bytes = 8 }, '"nowhere"')
refused(pointer, { buffers = "other", bytes = 8 }, 'memory region other was not given to it; hint: regions = { "other" }')
refused(pointer, { buffers = "mine", bytes = 4096 }, "argument 2: buffers up to byte 4096 of memory region mine, which has 1024")
refused(pointer, { buffers = "mine", bytes = 128, count = 8, offset = 64 }, "argument 2: buffers up to byte 1088 of memory region mine, which has 1024")
refused(pointer, { address = "other" }, 'memory region other was not given to it: hint: regions = { "other" }')
refused(pointer, { semaphore = 5 }, "semaphore is a daqiri.array of uint64 of shape { items + 1, 3 or more words }")
refused(pointer, { semaphore = array("uint32", { 3, 4 }) }, "semaphore is a daqiri.array of uint64")
refused(pointer, { semaphore = array("uint64", 12) }, "semaphore is a daqiri.array of uint64")
refused(pointer, { semaphore = array("uint64", { 1, 4 }) }, "semaphore is a daqiri.array of uint64")
refused(number, { qp = 1 }, "unsigned int x")
refused(number, { semaphore = array("uint64", { 2, 3 }) }, "unsigned int x")
s:close()
