// reorder_gpu.c: GPU support of a reorder stage: payloads and gaps as lists of moves.
//
// Each source has a mover, whose lists its poller fills; the stage's poll checks the tickets of all. A list
// is launched at 1 MiB of payload; when a batch closes, by the push that closed it, and by the poll for other
// sources; or after a delay, so that packets of a slow stream are released.
#include "core/burst.h"
#include "core/clock.h"
#include "core/err.h"
#include "cuda/memory.h"
#include "cuda/pinned.h"
#include "cuda/resident.h"
#include "reorder/reorder.h"

#include <stdio.h>

#define GAPS  64    // runs of missing cells appended at a time
#define MARK  1024u // bytes per move of marks: longer ones would split the payloads of their list
#define MARKS 1024u // maximum moves of marks: larger ones are not copied

static void title(const char *name, char *buf, size_t len) {
    snprintf(buf, len, "reorder %.*s", DQ_REORDER_LEN, name);
}

bool dqi_reorder_gpu_timed(const dqi_reorder *r) {
    return r->base.gpu && !dqi_virtual(r->conf.region->session);
}

static int new_mover(dqi_reorder *r, const char *name, dqi_mover **out, dq_diag *diag) {
    char what[DQ_REORDER_LEN + 16];
    title(name, what, sizeof what);
    bool runs = dqi_reorder_gpu_timed(r);
    const dqi_mover_conf conf = {.gpu = r->base.gpu,
                                 .conversion = r->convert.conversion,
                                 .packed = dqi_convert_packed(&r->convert),
                                 .bytes = DQI_LIST_BYTES,
                                 .delay_ns = runs ? DQI_LIST_LAZY_NS : 0,
                                 .ran = runs ? &r->ran : NULL};
    return dqi_mover_new(&conf, what, out, diag);
}

// ---- marks ------------------------------------------------------------------------------------------------

static int make_marks(dqi_reorder *r, const char *what, dq_diag *diag) {
    dqi_marks *m = &r->marks;
    uint64_t words = ((uint64_t)r->conf.slots * r->cells_each + 63) / 64 + (r->extra ? r->conf.slots : 0);
    m->bytes = words * sizeof(uint64_t);
    m->each = dqi_round_up(m->bytes, 64);
    if (m->bytes > MARK * MARKS) return DQ_OK;
    m->mapped = m->each * r->conf.region->conf.num_bufs;
    uint64_t all = m->mapped;
    int err = dqi_pinned_new(r->base.gpu, &m->mapped, &m->host, what, diag);
    return err == DQ_OK ? dqi_cuda_check(r->base.gpu->cu->mem_alloc(&m->gpu, all), what, "cuMemAlloc", diag)
                        : err;
}

static void free_marks(dqi_reorder *r) {
    dqi_marks *m = &r->marks;
    if (!m->host) return;
    dqi_gpu_free_memory(r->base.gpu, m->gpu);
    dqi_pinned_free(r->base.gpu, m->host, m->mapped);
}

uint32_t dqi_reorder_gpu_marks(const dqi_reorder *r) {
    return r->marks.host ? (uint32_t)((r->marks.bytes + MARK - 1) / MARK) : 0;
}

void dqi_reorder_gpu_mark(dqi_reorder *r, dqi_batch *b, dqi_mover *m) {
    const dqi_marks *marks = &r->marks;
    if (!marks->host || b->marked) return;
    b->marked = true;
    for (uint64_t at = 0; at < marks->bytes; at += MARK) {
        uint64_t left = marks->bytes - at;
        dqk_move move = {(uintptr_t)b->present + at, b->base.agg.on_gpu + at,
                         left < MARK ? (uint32_t)left : MARK, DQK_COPY};
        dqi_mover_add(m, &move, 1, true, NULL, &b->base.fillers);
    }
}

// ---- lifecycle --------------------------------------------------------------------------------------------

int dqi_reorder_gpu_open(dqi_reorder *r, const char *name, dq_diag *diag) {
    const dq_region *region = r->conf.region;
    if (!region->gpu && !r->conf.by_gpu) return DQ_OK;
    char what[DQ_REORDER_LEN + 16];
    title(name, what, sizeof what);
    int err = dqi_convert_by_gpu(&r->convert, what, diag);
    if (err != DQ_OK) return err;
    int32_t number = region->gpu ? region->conf.gpu : -1;
    r->base.gpu = dqi_cuda_use(region->session, number, what, diag);
    if (!r->base.gpu) return DQ_NOT_SUPPORTED;
    r->stream = false;
    err = region->cpu ? DQ_OK : make_marks(r, what, diag);
    if (err != DQ_OK || (r->conf.fill == DQ_FILL_KEEP && !r->marks.host)) return err;
    return new_mover(r, name, &r->gaps, diag);
}

int dqi_reorder_gpu_join(dqi_reorder *r, dqi_source *s, dq_diag *diag) {
    return new_mover(r, r->base.stage->name, &s->mover, diag);
}

// Returns the k-th mover, the one for gaps last; NULL: not set.
static dqi_mover *mover_at(const dqi_reorder *r, uint32_t k) {
    return k < atomic_load(&r->n_sources) ? r->sources[k].mover : r->gaps;
}

static int look(dqi_reorder *r, int64_t *soonest) {
    int64_t now = dqi_mono_ns();
    int work = 0;
    *soonest = INT64_MAX;
    for (uint32_t k = 0; k <= atomic_load(&r->n_sources); k++) {
        dqi_mover *m = mover_at(r, k);
        if (!m) continue;
        work += dqi_mover_poll(m, now);
        if (dqi_mover_next(m) < *soonest) *soonest = dqi_mover_next(m);
    }
    return work;
}

// Launches pending lists once the next batch to deliver is closed.
static void hurry(dqi_reorder *r) {
    if (!r->base.head || dqi_load_acq32(&r->base.head->fillers) == 0) return;
    for (uint32_t k = 0; k < atomic_load(&r->n_sources); k++)
        if (r->sources[k].mover) dqi_mover_push(r->sources[k].mover, true);
}

int dqi_reorder_gpu_poll(dqi_reorder *r) {
    int64_t soonest;
    hurry(r);
    int work = look(r, &soonest);
    return dqi_stage_await(r->base.stage, r->base.gpu, work, soonest);
}

// Collects runs of missing cells from b->gap_cell on; returns their number.
static uint32_t gather_gaps(const dqi_reorder *r, dqi_batch *b, dqk_move *moves) {
    uint32_t n = 0;
    for (uint64_t bytes, at; n < GAPS; n++) {
        at = dqi_batch_gap(r, b, &b->gap_cell, &bytes);
        if (bytes == 0) break;
        moves[n] = (dqk_move){(uint8_t)r->conf.fill, (uintptr_t)b->base.data + at, (uint32_t)bytes, DQK_FILL};
    }
    return n;
}

bool dqi_reorder_gpu_gaps(dqi_reorder *r, dqi_batch *b) {
    bool gaps = r->conf.fill != DQ_FILL_KEEP && !dqi_block_full(b);
    if (!r->gaps || !(gaps || (r->marks.host && !b->marked))) return false;
    dqk_move moves[GAPS];
    while (gaps && b->gap_cell < b->base.agg.cells) {
        if (!dqi_mover_room(r->gaps, GAPS)) return !dqi_mover_lost(r->gaps);
        dqi_mover_add(r->gaps, moves, gather_gaps(r, b, moves), false, NULL, &b->base.fillers);
    }
    if (r->marks.host && !b->marked) {
        if (!dqi_mover_room(r->gaps, dqi_reorder_gpu_marks(r))) return !dqi_mover_lost(r->gaps);
        dqi_reorder_gpu_mark(r, b, r->gaps);
    }
    dqi_mover_push(r->gaps, true);
    return dqi_load_acq32(&b->base.fillers) > 0;
}

void dqi_reorder_gpu_finish(dqi_reorder *r) {
    for (int64_t soonest = 0;;) {
        for (uint32_t k = 0; k <= atomic_load(&r->n_sources); k++)
            if (mover_at(r, k)) dqi_mover_push(mover_at(r, k), true);
        look(r, &soonest);
        if (soonest == INT64_MAX) return;
        dqi_mover_nap();
    }
}

void dqi_reorder_gpu_free(dqi_reorder *r) {
    for (uint32_t k = 0; k <= atomic_load(&r->n_sources); k++)
        dqi_mover_free(mover_at(r, k));
    free_marks(r);
}
