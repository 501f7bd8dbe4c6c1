// tx_gpu.c: a dqi_mover per queue, created for the first burst or pipe that needs it.
#include "pipeline/tx_gpu.h"
#include "core/burst.h"
#include "core/clock.h"
#include "core/err.h"
#include "cuda/mover.h"
#include "pipeline/engine.h"
#include "pipeline/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct dqi_tx_gpu {
    dqi_gpu *gpu;
    dqi_mover *mover;
    dq_burst *coming;       // burst being copied; NULL: none
    _Atomic uint32_t lists; // unfinished copy lists of it
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // serializes creation

static dqi_tx_gpu *of(const dq_queue *q) { return atomic_load_explicit(&q->tx.gpu, memory_order_acquire); }

// Called with the lock held.
static int make(dq_queue *q, dqi_gpu *gpu, dq_diag *diag) {
    char what[DQ_NAME_LEN + 16];
    snprintf(what, sizeof what, "queue %s", q->conf.name);
    dqi_tx_gpu *have = of(q);
    if (have && have->gpu != gpu)
        return dqi_fail(diag, DQ_NOT_SUPPORTED, "%s: it sends what lies on GPU %d, and this lies on GPU %d",
                        what, have->gpu->info.number, gpu->info.number);
    if (have) return DQ_OK;
    dqi_tx_gpu *t = calloc(1, sizeof *t);
    if (!t) return dqi_fail(diag, DQ_ESYS - ENOMEM, "%s: no memory", what);
    t->gpu = gpu;
    const dqi_mover_conf conf = {.gpu = gpu, .bytes = DQI_LIST_BYTES, .delay_ns = DQI_LIST_NS};
    int err = dqi_mover_new(&conf, what, &t->mover, diag);
    if (err == DQ_OK) {
        atomic_store_explicit(&q->tx.gpu, t, memory_order_release);
        dqi_note(q->session, "queue %s: what lies on GPU %d is copied to pinned memory before it is sent",
                 q->conf.name, gpu->info.number);
    } else {
        free(t);
    }
    return err;
}

int dqi_tx_reach_gpu(dq_queue *q, uint32_t device_only, dq_region *const *regions, dq_diag *diag) {
    int err = DQ_OK;
    for (uint32_t s = 0; device_only >> s && err == DQ_OK; s++) {
        if (!(device_only >> s & 1)) continue;
        if (!regions[s]->gpu) return DQ_NOT_SUPPORTED;
        pthread_mutex_lock(&lock);
        err = make(q, regions[s]->gpu, diag);
        pthread_mutex_unlock(&lock);
    }
    return err;
}

bool dqi_tx_takes_gpu(dq_queue *q, const dq_burst *b) {
    dq_region *regions[DQ_MAX_SEGS] = {NULL};
    uint32_t device_only = b->device_only & ~(uint32_t)q->device_only;
    if (b->n == 0) return true;
    for (uint32_t s = 0; s < b->nseg; s++)
        if (device_only >> s & 1) regions[s] = dqi_off_region(b->session, b->off[s][0]);
    return dqi_tx_reach_gpu(q, device_only, regions, NULL) == DQ_OK;
}

void dqi_tx_bring(dq_queue *q, dq_burst *b, uint32_t seg, uint32_t i, uint8_t *to) {
    dqi_tx_gpu *t = of(q);
    const dqk_move m = {(uintptr_t)dqi_device_bytes(b, seg, i), (uintptr_t)to, b->len[seg][i], DQK_COPY};
    if (m.len == 0) return;
    while (!dqi_mover_room(t->mover, 1)) { // out of lists: some complete
        if (dqi_mover_lost(t->mover)) return;
        dqi_mover_poll(t->mover, dqi_mono_ns());
    }
    dqi_mover_add(t->mover, &m, 1, false, b, &t->lists);
    dqi_mover_push(t->mover, false);
}

void dqi_tx_bringing(dq_queue *q, dq_burst *c) {
    dqi_tx_gpu *t = of(q);
    t->coming = c;
    dqi_mover_push(t->mover, true);
}

bool dqi_tx_is_bringing(const dq_queue *q) {
    const dqi_tx_gpu *t = of(q);
    return t && t->coming;
}

// Ends a copy: returns the burst, without packets if the GPU was lost.
static dq_burst *end(dq_queue *q, dqi_tx_gpu *t) {
    dq_burst *c = t->coming;
    char words[256];
    t->coming = NULL;
    if (!dqi_gpu_lost(t->gpu, words, sizeof words)) return c;
    dqi_queue_fail(q, "%s", words);
    dqi_drop(&q->c, DQ_DROP_DEVICE_LOST, c->n);
    dqi_gauge_add(&q->held, -(int64_t)c->n);
    dq_burst_truncate(c, 0);
    return c;
}

dq_burst *dqi_tx_brought(dq_queue *q) {
    dqi_tx_gpu *t = of(q);
    if (!t || !t->coming) return NULL;
    dqi_mover_poll(t->mover, dqi_mono_ns());
    if (dqi_load_acq32(&t->lists) == 0) return end(q, t);
    if (dqi_virtual(q->session)) dqi_mover_nap(); // virtual time must not advance until the GPU is done
    q->next_ns = q->tx.now_ns + dqi_mover_next(t->mover);
    return NULL;
}

dq_burst *dqi_tx_brought_last(dq_queue *q) {
    dqi_tx_gpu *t = of(q);
    if (!t || !t->coming) return NULL;
    for (int64_t from = dqi_mono_ns(); dqi_load_acq32(&t->lists) > 0;) {
        dqi_mover_poll(t->mover, dqi_mono_ns());
        if (dqi_mono_ns() - from >= q->session->end_ns) {
            dq_session_leak_memory(q->session);
            dqi_drop(&q->c, DQ_DROP_STOPPED, t->coming->n);
            dqi_gauge_add(&q->held, -(int64_t)t->coming->n);
            t->coming = NULL;
            dqi_queue_fail(q, "GPU %d did not bring what was to be sent: for %lld s it took nothing",
                           t->gpu->info.number, (long long)(q->session->end_ns / 1000000000));
            return NULL;
        }
        dqi_mover_nap();
    }
    return end(q, t);
}

void dqi_tx_gpu_free(dq_queue *q) {
    dqi_tx_gpu *t = of(q);
    if (!t || q->session->memory_leaked) return;
    dqi_mover_free(t->mover);
    free(t);
    atomic_store(&q->tx.gpu, NULL);
}
