// staging.c: two buffers that GPUs reach, and the mover that copies into them.
#include "writer/staging.h"
#include "core/atomics.h"
#include "core/burst.h"
#include "core/clock.h"
#include "core/err.h"
#include "cuda/mover.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#define BYTES (2 * (size_t)DQI_STAGING_BYTES)

struct dqi_staging {
    dqi_gpu *gpu;
    dqi_mover *mover;
    uint8_t *bytes;
    bool pinned;
};

static int pin(dqi_staging *s, const char *what, dq_diag *diag) {
    const dqi_cuda_driver *cu = s->gpu->cu;
    void *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return dqi_fail(diag, DQ_ESYS - errno, "%s: no memory to stage packets in", what);
    s->bytes = p;
    madvise(p, BYTES, MADV_HUGEPAGE);
    cu_result err = dqi_gpu_enter(s->gpu);
    if (err == CU_SUCCESS) err = cu->host_register(p, BYTES, CU_REGISTER_PORTABLE | CU_REGISTER_MAPPED);
    s->pinned = err == CU_SUCCESS;
    return dqi_cuda_check(err, what, "cuMemHostRegister", diag);
}

int dqi_staging_new(dqi_gpu *g, const char *what, dqi_staging **out, dq_diag *diag) {
    dqi_staging *s = calloc(1, sizeof *s);
    if (!s) return dqi_fail(diag, DQ_ESYS - ENOMEM, "%s: no memory", what);
    s->gpu = g;
    const dqi_mover_conf conf = {.gpu = g, .bytes = DQI_LIST_BYTES, .delay_ns = DQI_LIST_NS};
    int err = pin(s, what, diag);
    if (err == DQ_OK) err = dqi_mover_new(&conf, what, &s->mover, diag);
    if (err == DQ_OK)
        *out = s;
    else
        dqi_staging_free(s);
    return err;
}

void dqi_staging_free(dqi_staging *s) {
    if (!s) return;
    if (s->mover) dqi_staging_land(s, NULL);
    dqi_mover_free(s->mover);
    if (s->pinned && dqi_gpu_enter(s->gpu) == CU_SUCCESS) s->gpu->cu->host_unregister(s->bytes);
    if (s->bytes) munmap(s->bytes, BYTES);
    free(s);
}

int dqi_staging_reach(_Atomic(dqi_staging *) *s, dq_region *const *regions, uint32_t n, const char *what,
                      dq_diag *diag) {
    int err = DQ_OK;
    for (uint32_t k = 0; k < n && err == DQ_OK; k++) {
        dqi_gpu *g = regions[k]->gpu;
        dqi_staging *have = atomic_load(s);
        if (!g || (have && have->gpu == g)) continue;
        if (have)
            return dqi_fail(diag, DQ_NOT_SUPPORTED,
                            "%s: it writes what lies on GPU %d, and region %s lies on GPU %d: hint: a writer "
                            "for each",
                            what, have->gpu->info.number, regions[k]->conf.name, g->info.number);
        err = dqi_staging_new(g, what, &have, diag);
        if (err == DQ_OK) atomic_store(s, have);
    }
    return err;
}

int dqi_staging_regions(const dq_burst *b, dq_region **regions) {
    int n = 0;
    for (uint32_t s = 0; s < b->nseg && b->n > 0; s++) {
        if (!(b->dark >> s & 1)) continue;
        regions[n] = dqi_off_region(b->session, b->off[s][0]);
        if (!regions[n++]->gpu) return -1;
    }
    return n;
}

dqi_gpu *dqi_staging_gpu(const dqi_staging *s) { return s->gpu; }

uint8_t *dqi_staging_buffer(const dqi_staging *s, uint32_t k) {
    return s->bytes + (size_t)k * DQI_STAGING_BYTES;
}

void dqi_staging_copy(dqi_staging *s, dq_burst *b, uint32_t seg, uint32_t i, uint32_t from, uint8_t *to,
                      uint32_t n, _Atomic uint32_t *latch) {
    if (n == 0) return;
    while (!dqi_mover_room(s->mover, 1)) {
        if (dqi_mover_lost(s->mover)) return; // the landing tells
        if (dqi_mover_poll(s->mover, dqi_mono_ns()) == 0) dqi_mover_nap();
    }
    const dqk_move m = {(uintptr_t)dqi_device_bytes(b, seg, i) + from, (uintptr_t)to, n, DQK_COPY};
    dqi_mover_add(s->mover, &m, 1, false, b, latch);
    dqi_mover_push(s->mover, false);
}

void dqi_staging_push(dqi_staging *s) { dqi_mover_push(s->mover, true); }

bool dqi_staging_land(dqi_staging *s, const _Atomic uint32_t *latch) {
    dqi_staging_push(s);
    while (latch ? dqi_load_acq32(latch) > 0 : dqi_mover_next(s->mover) != INT64_MAX)
        if (dqi_mover_poll(s->mover, dqi_mono_ns()) == 0) dqi_mover_nap();
    return !dqi_mover_lost(s->mover);
}

bool dqi_staging_busy(dqi_staging *s) {
    dqi_staging_push(s);
    dqi_mover_poll(s->mover, dqi_mono_ns());
    return dqi_mover_next(s->mover) != INT64_MAX;
}
