// doca_gpunetio_dev_dma.cuh: copies between the kernel's regions. The host sees their end (k.completed).
#ifndef DOCA_GPUNETIO_DEV_DMA_CUH
#define DOCA_GPUNETIO_DEV_DMA_CUH

#include "doca_gpunetio_dev_buf.cuh"

struct doca_gpu_dma { // part 0 of a gn_object
    gn_u64 gn_back, gn_row;
    uint32_t gn_number, gn_size, gn_mask, gn_spare;
    gn_u64 gn_table;
    uint64_t gn_reserved, gn_committed;
    gn_u64 gn_words[9];
    gn_part gn_more[3];
};

GN_FN doca_error_t doca_gpu_dev_dma_memcpy(doca_gpu_dma *dma, doca_gpu_buf *src_buf, uint64_t src_offset,
                                           doca_gpu_buf *dst_buf, uint64_t dst_offset, size_t length) {
    doca_tx t = doca_open_tx(dma);
    gn_u64 index;
    if (length >> 32) return DOCA_ERROR_TOO_BIG;
    gn_slot slot = gn_fill_move(GN_OP_COPY, doca_buf_place(&t.q.s, src_buf, src_offset, 0),
                                doca_buf_place(&t.q.s, dst_buf, dst_offset, 0), (gn_u32)length);
    return doca_error_of(doca_post(dma, &dma->gn_reserved, GN_BY_THREAD, &slot, 1, &index));
}

// Copies begin when they are posted.
GN_FN doca_error_t doca_gpu_dev_dma_commit(doca_gpu_dma *dma) {
    gn_poke((gn_u64 *)&dma->gn_committed, gn_peek((gn_u64 *)&dma->gn_reserved));
    return DOCA_SUCCESS;
}

#endif
