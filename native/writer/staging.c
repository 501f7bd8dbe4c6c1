// staging.c: two pinned buffers accessible to GPUs, and the mover that copies into them.
#include "writer/staging.h"
#include "core/atomics.h"
#include "core/burst.h"
#include "core/clock.h"
#include "core/err.h"
#include "cuda/mover.h"
#include "cuda/pinned.h"
#include "kernels/kernels.h"

#include <errno.h>
#include <stdlib.h>

#define SUMS      (DQI_SUMMED_BYTES / DQK_PAGE)
#define SUM_BYTES (8u << 20) // bytes per list
#define BYTES     (2 * (size_t)DQI_STAGING_BYTES + SUMS * sizeof(uint32_t))

struct dqi_staging {
    dqi_gpu *gpu;
    dqi_mover *mover;
    uint8_t *bytes; // two buffers, and page checksums
    size_t mapped;
    const dqi_cufile *cufile; // NULL: not used
    dqi_mover *summer;
    uint32_t summed; // pages with a started checksum
};

static bool land(dqi_mover *m, const _Atomic uint32_t *latch) {
    dqi_mover_push(m, true);
    while (latch ? dqi_load_acq32(latch) > 0 : dqi_mover_next(m) != INT64_MAX)
        if (dqi_mover_poll(m, dqi_mono_ns()) == 0) dqi_mover_nap();
    return !dqi_mover_lost(m);
}

// Waits for space for n moves. False: the GPU is lost.
static bool make_room(dqi_mover *m, uint32_t n) {
    while (!dqi_mover_room(m, n)) {
        if (dqi_mover_lost(m)) return false; // the landing reports it
        if (dqi_mover_poll(m, dqi_mono_ns()) == 0) dqi_mover_nap();
    }
    return true;
}

static int staging_new(dqi_gpu *g, const dqi_cufile *cufile, const char *what, dqi_staging **out,
                       dq_diag *diag) {
    dqi_staging *s = calloc(1, sizeof *s);
    if (!s) return dqi_fail(diag, DQ_ESYS - ENOMEM, "%s: no memory", what);
    s->gpu = g;
    s->cufile = cufile;
    const dqi_mover_conf copies = {.gpu = g, .bytes = DQI_LIST_BYTES, .delay_ns = DQI_LIST_NS};
    const dqi_mover_conf sums = {
        .gpu = g, .conversion = DQK_SUMS, .bytes = SUM_BYTES, .delay_ns = DQI_LIST_NS};
    s->mapped = BYTES;
    int err = dqi_pinned_new(g, &s->mapped, &s->bytes, what, diag);
    if (err == DQ_OK) err = dqi_mover_new(&copies, what, &s->mover, diag);
    if (err == DQ_OK && cufile) err = dqi_mover_new(&sums, what, &s->summer, diag);
    if (err == DQ_OK)
        *out = s;
    else
        dqi_staging_free(s);
    return err;
}

void dqi_staging_free(dqi_staging *s) {
    if (!s) return;
    if (s->mover) dqi_staging_land(s, NULL);
    if (s->summer) land(s->summer, NULL);
    dqi_mover_free(s->mover);
    dqi_mover_free(s->summer);
    dqi_pinned_free(s->gpu, s->bytes, s->mapped);
    free(s);
}

int dqi_staging_reach(_Atomic(dqi_staging *) *s, dq_region *const *regions, uint32_t n,
                      const dqi_cufile *cufile, const char *what, dq_diag *diag) {
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
        err = staging_new(g, cufile, what, &have, diag);
        if (err == DQ_OK) atomic_store(s, have);
    }
    return err;
}

int dqi_staging_regions(const dq_burst *b, dq_region **regions) {
    int n = 0;
    for (uint32_t s = 0; s < b->nseg && b->n > 0; s++) {
        if (!(b->device_only >> s & 1)) continue;
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
    if (n == 0 || !make_room(s->mover, 1)) return;
    const dqk_move m = {(uintptr_t)dqi_device_bytes(b, seg, i) + from, (uintptr_t)to, n, DQK_COPY};
    dqi_mover_add(s->mover, &m, 1, false, b, latch);
    dqi_mover_push(s->mover, false);
}

void dqi_staging_push(dqi_staging *s) { dqi_mover_push(s->mover, true); }

bool dqi_staging_land(dqi_staging *s, const _Atomic uint32_t *latch) { return land(s->mover, latch); }

bool dqi_staging_busy(dqi_staging *s) {
    dqi_staging_push(s);
    dqi_mover_poll(s->mover, dqi_mono_ns());
    return dqi_mover_next(s->mover) != INT64_MAX;
}

// ---- without the host -------------------------------------------------------------------------------------

const dqi_cufile *dqi_staging_cufile(const dqi_staging *s) { return s->cufile; }

void dqi_staging_sum(dqi_staging *s, uint64_t at, uint32_t n) {
    uint32_t *sums = (uint32_t *)(void *)dqi_staging_buffer(s, 2);
    dqk_move m[64];
    s->summed = n / DQK_PAGE;
    for (uint32_t i = 0, k; i < s->summed; i += k) {
        for (k = 0; k < 64 && i + k < s->summed; k++)
            m[k] = (dqk_move){at + (uint64_t)(i + k) * DQK_PAGE, (uintptr_t)&sums[i + k], DQK_PAGE, DQK_SUM};
        if (!make_room(s->summer, k)) return;
        dqi_mover_add(s->summer, m, k, false, NULL, NULL);
        dqi_mover_push(s->summer, false);
    }
    dqi_mover_push(s->summer, true);
}

bool dqi_staging_add_sum(dqi_staging *s, uint32_t *crc) {
    const uint32_t *sums = (const uint32_t *)(const void *)dqi_staging_buffer(s, 2);
    if (!land(s->summer, NULL)) return false;
    for (uint32_t i = 0; i < s->summed; i++)
        *crc = dqk_sum_join(*crc, sums[i]);
    return true;
}
