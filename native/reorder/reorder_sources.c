#include "reorder/reorder.h"

#include <stdio.h>

dqi_reorder_sources *dqi_reorder_sources_new(dq_prog *number, uint32_t cells) {
    dqi_reorder_sources *s = calloc(1, sizeof *s + cells * sizeof *s->last);
    if (s) s->number = number;
    return s;
}

void dqi_reorder_sources_free(dqi_reorder_sources *s) {
    if (!s) return;
    dq_prog_free(s->number);
    free(s);
}

void dqi_reorder_sources_lost(dqi_reorder_sources *s, uint32_t id, dq_reason why) {
    dqi_source_counts *c = &s->of[id];
    _Atomic uint64_t *n = why == DQ_DROP_LATE        ? &c->late
                          : why == DQ_DROP_DUPLICATE ? &c->duplicate
                                                     : &c->dropped;
    atomic_fetch_add_explicit(n, 1, memory_order_relaxed);
}

// ---- batches ----------------------------------------------------------------------------------------------

// All cells of the batches that never were.
static void account_skipped(dqi_reorder *r, uint32_t cells) {
    dqi_reorder_sources *s = r->by_source;
    uint64_t skipped = dqi_get(&r->side.extra[DQ_EXTRA_SKIPPED]), n = skipped - s->skipped;
    s->skipped = skipped;
    for (uint32_t cell = 0; n > 0 && cell < cells; cell++)
        dqi_add(&s->of[s->last[cell]].missing, n);
}

void dqi_reorder_sources_account(dqi_reorder *r, const dqi_batch *b, bool cut) {
    dqi_reorder_sources *s = r->by_source;
    uint64_t bits = 0;
    account_skipped(r, b->agg.cells);
    for (uint32_t cell = 0; cell < b->agg.cells; cell++, bits >>= 1) {
        if (cell % 64 == 0) bits = atomic_load_explicit(&b->present[cell / 64], memory_order_relaxed);
        if (bits & 1) {
            s->last[cell] = atomic_load_explicit(&b->ids[cell], memory_order_relaxed);
            dqi_add(&s->of[s->last[cell]].packets, 1);
        } else if (!cut) {
            dqi_add(&s->of[s->last[cell]].missing, 1);
        }
    }
}

// ---- reading ----------------------------------------------------------------------------------------------

static void read_one(const dqi_reorder_sources *s, uint32_t id, dq_source_count *to) {
    const dqi_source_counts *c = &s->of[id];
    to->which = id == DQI_KEY_NONE    ? DQ_SOURCE_UNKNOWN
                : id == DQI_KEY_OTHER ? DQ_SOURCE_OTHERS
                : s->number           ? DQ_SOURCE_NUMBER
                                      : DQ_SOURCE_PEER;
    if (to->which == DQ_SOURCE_NUMBER) to->number = s->keys.keys[id - DQI_KEY_FIRST].a;
    if (to->which == DQ_SOURCE_PEER)
        dqi_key_peer_text(s->keys.keys[id - DQI_KEY_FIRST], to->peer, sizeof to->peer);
    to->packets = dqi_get(&c->packets);
    to->missing = dqi_get(&c->missing);
    to->late = dqi_get(&c->late);
    to->duplicate = dqi_get(&c->duplicate);
    to->dropped = dqi_get(&c->dropped);
}

uint32_t dqi_reorder_sources_read(const dq_stage *st, dq_source_count *out, uint32_t max) {
    const dqi_reorder *r = st->impl;
    const dqi_reorder_sources *s = r->by_source;
    uint32_t n = 0, end = s ? dqi_key_end(&s->keys) : 0;
    for (uint32_t id = 0; id < end; id++) {
        dq_source_count one = {0};
        read_one(s, id, &one);
        bool any = one.packets || one.missing || one.late || one.duplicate || one.dropped;
        if (!any || n++ >= max) continue;
        snprintf(one.name, sizeof one.name, "%s", st->name);
        out[n - 1] = one;
    }
    return n;
}
