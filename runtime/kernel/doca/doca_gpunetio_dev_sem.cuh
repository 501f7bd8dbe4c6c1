// doca_gpunetio_dev_sem.cuh: semaphores of items in any order, each with a status, the packets it stands for,
// and bytes of the program's own. They lie in an array of the script: a row for the header, then one for each
// item, of gn_stride bytes. Semaphores whose items are used in order, with waits, are those of gn_sem.h.
#ifndef DOCA_GPUNETIO_DEV_SEM_CUH
#define DOCA_GPUNETIO_DEV_SEM_CUH

#include "doca_base.cuh"

enum doca_gpu_semaphore_status {
    DOCA_GPU_SEMAPHORE_STATUS_FREE = 0,
    DOCA_GPU_SEMAPHORE_STATUS_READY = 1,
    DOCA_GPU_SEMAPHORE_STATUS_DONE = 2,
    DOCA_GPU_SEMAPHORE_STATUS_HOLD = 3,
    DOCA_GPU_SEMAPHORE_STATUS_ERROR = 4,
    DOCA_GPU_SEMAPHORE_STATUS_EXIT = 5
};

struct doca_gpu_semaphore_gpu {
    gn_u64 gn_stride, gn_items;
};

struct doca_sem_item {
    gn_u64 status, packets, first; // the custom bytes follow
};

GN_FN doca_sem_item *doca_item(const doca_gpu_semaphore_gpu *sem, uint32_t idx) {
    return idx < sem->gn_items ? (doca_sem_item *)((gn_u8 *)sem + (1ull + idx) * sem->gn_stride) : 0;
}

GN_FN doca_error_t doca_gpu_dev_semaphore_get_status(const doca_gpu_semaphore_gpu *sem, uint32_t idx,
                                                     doca_gpu_semaphore_status *status) {
    const doca_sem_item *i = doca_item(sem, idx);
    if (!i) return DOCA_ERROR_INVALID_VALUE;
    doca_step();
    *status = (doca_gpu_semaphore_status)gn_load(&i->status);
    return DOCA_SUCCESS;
}

// The item's packets and custom bytes, written before, are visible with the status.
GN_FN doca_error_t doca_gpu_dev_semaphore_set_status(const doca_gpu_semaphore_gpu *sem, uint32_t idx,
                                                     doca_gpu_semaphore_status status) {
    doca_sem_item *i = doca_item(sem, idx);
    if (!i) return DOCA_ERROR_INVALID_VALUE;
    gn_store(&i->status, (gn_u64)status);
    return DOCA_SUCCESS;
}

// NOT_PERMITTED: it has another status than `compare`.
GN_FN doca_error_t doca_gpu_dev_semaphore_set_status_cas(const doca_gpu_semaphore_gpu *sem, uint32_t idx,
                                                         doca_gpu_semaphore_status compare,
                                                         doca_gpu_semaphore_status status) {
    doca_sem_item *i = doca_item(sem, idx);
    if (!i) return DOCA_ERROR_INVALID_VALUE;
    return gn_swap_shown(&i->status, (gn_u64)compare, (gn_u64)status) ? DOCA_SUCCESS
                                                                      : DOCA_ERROR_NOT_PERMITTED;
}

GN_FN doca_error_t doca_gpu_dev_semaphore_set_packet_info(const doca_gpu_semaphore_gpu *sem, uint32_t idx,
                                                          doca_gpu_semaphore_status status,
                                                          uint32_t num_packets, uint64_t doca_buf_idx_start) {
    doca_sem_item *i = doca_item(sem, idx);
    if (!i) return DOCA_ERROR_INVALID_VALUE;
    gn_poke(&i->packets, num_packets);
    gn_poke(&i->first, doca_buf_idx_start);
    gn_store(&i->status, (gn_u64)status);
    return DOCA_SUCCESS;
}

GN_FN doca_error_t doca_gpu_dev_semaphore_get_packet_info(const doca_gpu_semaphore_gpu *sem, uint32_t idx,
                                                          uint32_t *num_packets,
                                                          uint64_t *doca_buf_idx_start) {
    const doca_sem_item *i = doca_item(sem, idx);
    if (!i) return DOCA_ERROR_INVALID_VALUE;
    *num_packets = (uint32_t)gn_peek(&i->packets);
    *doca_buf_idx_start = gn_peek(&i->first);
    return DOCA_SUCCESS;
}

// NOT_FOUND: it has another status.
GN_FN doca_error_t doca_gpu_dev_semaphore_get_packet_info_status(const doca_gpu_semaphore_gpu *sem,
                                                                 uint32_t idx,
                                                                 doca_gpu_semaphore_status status,
                                                                 uint32_t *num_packets,
                                                                 uint64_t *doca_buf_idx_start) {
    doca_gpu_semaphore_status is;
    doca_error_t err = doca_gpu_dev_semaphore_get_status(sem, idx, &is);
    if (err == DOCA_SUCCESS && is != status) err = DOCA_ERROR_NOT_FOUND;
    return err == DOCA_SUCCESS
               ? doca_gpu_dev_semaphore_get_packet_info(sem, idx, num_packets, doca_buf_idx_start)
               : err;
}

GN_FN doca_error_t doca_gpu_dev_semaphore_get_custom_info_addr(const doca_gpu_semaphore_gpu *sem,
                                                               uint32_t idx, void **custom_info) {
    doca_sem_item *i = doca_item(sem, idx);
    if (!i) return DOCA_ERROR_INVALID_VALUE;
    *custom_info = i + 1;
    return DOCA_SUCCESS;
}

#endif
