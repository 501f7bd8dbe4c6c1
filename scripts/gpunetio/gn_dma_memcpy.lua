-- gn_dma_memcpy.lua: a kernel copies a text from one memory region into another with the DMA queue (in the proxy); a second kernel reads it there.
-- The kernel has the shape of DOCA's sample gpunetio_dma_memcpy: the host sees the end of the copy (k:wait).
--   daqiri-run gn_dma_memcpy.lua                   the kernels run on the CPU: needs a C++ compiler
--   daqiri-run gn_dma_memcpy.lua --memory gpu      on a GPU: needs NVRTC
local daqiri = require "daqiri"
local args = daqiri.args{ text = "This is a sample piece of text", memory = "host" }
local s = daqiri.open("gn_pair.yaml", { memory = args.memory == "host" and "host" or nil })

local BYTES = 1024 -- of a buffer
local src = [[
#include <doca_gpunetio_dev_buf.cuh>
#include <doca_gpunetio_dev_dma.cuh>

__global__ void copy(struct doca_gpu_dma *dma, struct doca_gpu_buf_arr *src, struct doca_gpu_buf_arr *dst, const uint8_t *text, uint32_t bytes,
                     unsigned long long *failed)
{
    struct doca_gpu_buf *from, *to;
    uintptr_t at;
    doca_gpu_dev_buf_get_buf(src, 0, &from);
    doca_gpu_dev_buf_get_buf(dst, 0, &to);
    doca_gpu_dev_buf_get_addr(from, &at);
    for (uint32_t k = 0; k < bytes; k++) ((uint8_t *)at)[k] = text[k];
    __threadfence_system();
    if (doca_gpu_dev_dma_memcpy(dma, from, 0, to, 0, bytes) != DOCA_SUCCESS || doca_gpu_dev_dma_commit(dma) != DOCA_SUCCESS) failed[0]++;
}

__global__ void read(void *context, const uint8_t *memory, uint32_t bytes, uint8_t *text)
{
    for (uint32_t k = 0; k < bytes; k++) text[k] = memory[k];
}
]]
local function kernel(entry) return daqiri.kernel{ entry = entry, persistent = true, grid = 1, block = 1, src = src } end
local copy, read = kernel "copy", kernel "read"
local function bytes(n) return daqiri.array{ kind = "host_pinned", type = "uint8", shape = n } end
local from, to, failed = bytes(BYTES), bytes(BYTES), daqiri.array{ kind = "host_pinned", type = "uint64", shape = 1 }
from:set(args.text .. ("\0"):rep(BYTES - #args.text))

s:start()
copy:start{ tx = s:tx_queue("client"), regions = { "local", "remote" },
  args = { { dma = 1 }, { buffers = "local", bytes = BYTES }, { buffers = "remote", bytes = BYTES }, from, BYTES, failed } }
assert(copy:wait{ timeout = 100 })
assert(copy.refused == 0 and failed:get(1) == 0, copy.fault)
copy:stop()
read:start{ tx = s:tx_queue("client"), regions = { "remote" }, args = { "context", { address = "remote" }, BYTES, to } }
assert(read:wait{ timeout = 100 })
read:stop()

local text = string.char(unpack(to:get(), 1, #args.text))
print("Text in the destination buffer: " .. text)
assert(text == args.text, "the text differs")
print("Copied successfully")
