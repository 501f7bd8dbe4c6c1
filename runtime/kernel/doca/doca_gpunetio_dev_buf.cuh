// doca_gpunetio_dev_buf.cuh: buffers. A doca_gpu_buf * is no address: it holds the buffer's address, 48 bits,
// and its key, 16.
#ifndef DOCA_GPUNETIO_DEV_BUF_CUH
#define DOCA_GPUNETIO_DEV_BUF_CUH

#include "doca_base.cuh"

struct doca_gpu_buf;
struct doca_gpu_buf_arr { // part 0 of a gn_object
    gn_part gn_parts[4];
};

#define DOCA_BUF_ADDRESS ((1ull << 48) - 1)

GN_FN void doca_gpu_dev_buf_create(uintptr_t addr, uint32_t mkey, doca_gpu_buf **buf) {
    gn_u64 key = mkey == DOCA_ANY_KEY || mkey <= 0xffff ? mkey & 0xffff : doca_swap32(mkey) & 0xffff;
    *buf = (doca_gpu_buf *)(uintptr_t)(key << 48 | (addr & DOCA_BUF_ADDRESS));
}

GN_FN void doca_gpu_dev_buf_get_buf(const doca_gpu_buf_arr *buf_arr, uint64_t buf_idx, doca_gpu_buf **buf) {
    const gn_part *p = buf_arr->gn_parts;
    gn_side s = doca_side(p);
    gn_u32 row = gn_place_region(p->row);
    const gn_context *c = (const gn_context *)s.context;
    gn_u64 base = ((const gn_region *)gn_at(c, c->regions))[row].base;
    doca_gpu_dev_buf_create(base + gn_place_offset(p->row) + buf_idx * p->size, row, buf);
}

GN_FN void doca_gpu_dev_buf_get_addr(const doca_gpu_buf *buf, uintptr_t *addr) {
    *addr = (uintptr_t)((gn_u64)buf & DOCA_BUF_ADDRESS);
}

GN_FN void doca_gpu_dev_buf_get_mkey(const doca_gpu_buf *buf, uint32_t *mkey) {
    uint32_t key = (uint32_t)((gn_u64)buf >> 48);
    *mkey = key == 0xffff ? DOCA_ANY_KEY : key;
}

// Returns the place of a byte of a buffer.
DOCA_FN gn_u64 doca_buf_place(const gn_side *s, const doca_gpu_buf *buf, gn_u64 offset, gn_u32 remote) {
    uintptr_t addr;
    uint32_t key;
    doca_gpu_dev_buf_get_addr(buf, &addr);
    doca_gpu_dev_buf_get_mkey(buf, &key);
    return doca_place(s, addr + offset, key, remote);
}

#endif
