// doca_semaphore.h: semaphores with DOCA's names (doca_gpu.h). An index refers to the item currently at it:
// items are used round robin.
#ifndef DOCA_SEMAPHORE_H
#define DOCA_SEMAPHORE_H

enum doca_gpu_semaphore_status {
    DOCA_GPU_SEMAPHORE_STATUS_FREE = GN_SEM_FREE,
    DOCA_GPU_SEMAPHORE_STATUS_READY = GN_SEM_READY,
    DOCA_GPU_SEMAPHORE_STATUS_HOLD = GN_SEM_HOLD,
    DOCA_GPU_SEMAPHORE_STATUS_DONE = GN_SEM_DONE,
    DOCA_GPU_SEMAPHORE_STATUS_ERROR = GN_SEM_ERROR,
    DOCA_GPU_SEMAPHORE_STATUS_EXIT = GN_SEM_EXIT
};

struct doca_gpu_semaphore_gpu {
    gn_sem_row row;
};

GN_FN gn_sem doca_sem(const doca_gpu_semaphore_gpu *semaphore) {
    gn_side s = doca_side(semaphore, semaphore->row.back);
    gn_sem m;
    gn_sem_open_row(&m, &s, &semaphore->row);
    return m;
}

GN_FN doca_error_t doca_gpu_dev_semaphore_get_status(const doca_gpu_semaphore_gpu *semaphore, gn_u32 index,
                                                     doca_gpu_semaphore_status *status) {
    gn_sem m = doca_sem(semaphore);
    *status = (doca_gpu_semaphore_status)gn_sem_status_of(&m, gn_sem_ticket(&m, index));
    return DOCA_SUCCESS;
}

// Pushes items from the producer, in order: READY.
GN_FN doca_error_t doca_gpu_dev_semaphore_set_packet_info(const doca_gpu_semaphore_gpu *semaphore,
                                                          gn_u32 index, doca_gpu_semaphore_status status,
                                                          gn_u32 packets, gn_u64 first) {
    gn_sem m = doca_sem(semaphore);
    gn_u64 ready = gn_peek(&m.producer->ready) & ~GN_SEM_END;
    if (status != DOCA_GPU_SEMAPHORE_STATUS_READY || gn_index(ready, m.log2) != gn_index(index, m.log2))
        return DOCA_ERROR_INVALID_VALUE;
    return doca_said(gn_sem_push(&m, first, packets, GN_LIMIT, 0));
}

// Takes the item if all earlier ones have been taken; no effect if it has been taken.
GN_FN doca_error_t doca_hold(const gn_sem *m, gn_u64 ticket) {
    gn_sem_item item;
    gn_u64 took;
    if (gn_peek(&m->consumer->hold) > ticket) return DOCA_SUCCESS;
    if (gn_peek(&m->consumer->hold) < ticket) return DOCA_ERROR_INVALID_VALUE; // an earlier item was skipped
    return doca_said(gn_sem_take(m, 0, &took, &item));
}

// READY: pushes an item without data. HOLD: takes it. DONE or FREE: releases it. ERROR, EXIT: end.
GN_FN doca_error_t doca_gpu_dev_semaphore_set_status(const doca_gpu_semaphore_gpu *semaphore, gn_u32 index,
                                                     doca_gpu_semaphore_status status) {
    gn_sem m = doca_sem(semaphore);
    gn_u64 ticket = gn_sem_ticket(&m, index);
    doca_error_t err;
    switch (status) {
    case DOCA_GPU_SEMAPHORE_STATUS_READY:
        return doca_gpu_dev_semaphore_set_packet_info(semaphore, index, status, 0, 0);
    case DOCA_GPU_SEMAPHORE_STATUS_HOLD:
        return doca_hold(&m, ticket);
    case DOCA_GPU_SEMAPHORE_STATUS_DONE:
    case DOCA_GPU_SEMAPHORE_STATUS_FREE:
        if (gn_sem_status_of(&m, ticket) == GN_SEM_FREE) return DOCA_SUCCESS; // already DONE
        err = doca_hold(&m, ticket);
        return err == DOCA_SUCCESS ? doca_said(gn_sem_done(&m, ticket, GN_LIMIT)) : err;
    case DOCA_GPU_SEMAPHORE_STATUS_ERROR:
        gn_sem_fail(&m);
        return DOCA_SUCCESS;
    case DOCA_GPU_SEMAPHORE_STATUS_EXIT:
        gn_sem_exit(&m);
        return DOCA_SUCCESS;
    }
    return DOCA_ERROR_INVALID_VALUE;
}

// Returns the producer's data of the item if it has this status, otherwise NOT_FOUND.
GN_FN doca_error_t doca_gpu_dev_semaphore_get_packet_info_status(const doca_gpu_semaphore_gpu *semaphore,
                                                                 gn_u32 index,
                                                                 doca_gpu_semaphore_status status,
                                                                 gn_u32 *packets, gn_u64 *first) {
    gn_sem m = doca_sem(semaphore);
    if (gn_sem_status_of(&m, gn_sem_ticket(&m, index)) != (int)status) return DOCA_ERROR_NOT_FOUND;
    const gn_sem_item *i = &m.items[gn_index(index, m.log2)];
    *packets = (gn_u32)gn_peek(&i->count);
    *first = gn_peek(&i->first);
    return DOCA_SUCCESS;
}

#endif
