// reorder_out.c: operations on closed batches of a reorder stage: gaps, accounts, batches of a rejected
// trial. One thread calls them, outside the lock.
#include "core/burst.h"
#include "reorder/reorder.h"

#include <string.h>

static bool bit_of(const dqi_batch *b, uint64_t cell) {
    return atomic_load_explicit(&b->present[cell / 64], memory_order_relaxed) >> cell % 64 & 1;
}

uint64_t dqi_batch_gap(const dqi_reorder *r, const dqi_batch *b, uint64_t *cell, uint64_t *bytes) {
    const dq_aggregate *a = &b->base.agg;
    uint64_t at = 0;
    for (*bytes = 0; *cell < a->cells; ++*cell) {
        uint64_t k = *cell % r->cells_each, from = k * a->cell_bytes, room = a->slot_bytes - from;
        if (bit_of(b, *cell)) {
            if (*bytes > 0) break;
            continue;
        }
        if (*bytes == 0) at = *cell / r->cells_each * a->slot_bytes + from;
        *bytes += room < a->cell_bytes ? room : a->cell_bytes;
    }
    return at;
}

void dqi_reorder_fill_gaps(dqi_assembly *a, dqi_assembled *of) {
    const dqi_reorder *r = (const dqi_reorder *)a;
    const dqi_batch *b = (const dqi_batch *)of;
    for (uint64_t cell = 0, bytes, at = dqi_batch_gap(r, b, &cell, &bytes); bytes > 0;
         at = dqi_batch_gap(r, b, &cell, &bytes))
        memset(of->data + at, a->fill, bytes);
}

void dqi_reorder_account(dqi_assembly *a, const dqi_assembled *of) {
    dqi_reorder *r = (dqi_reorder *)a;
    const dqi_batch *b = (const dqi_batch *)of;
    if (r->by_source)
        dqi_reorder_sources_account(r, b);
    else if (r->seq)
        dqi_ends_of_sequence(&a->ends, &a->done, &of->agg, b->epoch);
    else
        dqi_ends_of_batch(&a->ends, &a->done, &of->agg, b->epoch, r->conf.window);
}

// Drops a batch of a rejected trial.
bool dqi_reorder_discard(dqi_assembly *a, dqi_assembled *of) {
    const dqi_reorder *r = (const dqi_reorder *)a;
    const dqi_batch *b = (const dqi_batch *)of;
    if (!b->rejected) return false;
    for (uint32_t cell = 0; r->by_source && cell < of->agg.cells; cell++)
        if (bit_of(b, cell))
            dqi_reorder_sources_lost(r->by_source, atomic_load_explicit(&b->ids[cell], memory_order_relaxed),
                                     b->otherwise);
    dqi_gauge_add(&a->done.held, -(int64_t)of->agg.packets);
    dqi_drop(&a->done.c, b->otherwise, of->agg.packets);
    dq_burst_unref(of->burst);
    return true;
}
