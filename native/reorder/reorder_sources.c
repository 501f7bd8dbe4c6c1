#include "reorder/reorder.h"

#include <stdio.h>
#include <string.h>

dqi_reorder_sources *dqi_reorder_sources_new(dq_prog *number, uint32_t cells) {
    dqi_reorder_sources *s = calloc(1, sizeof *s + cells * (sizeof *s->last + sizeof *s->unlearnt));
    if (!s) return NULL;
    s->number = number;
    s->unlearnt = (uint8_t *)(s->last + cells);
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

// Counts all cells of skipped batches as missing.
static void account_skipped(dqi_reorder *r, uint32_t cells) {
    dqi_reorder_sources *s = r->by_source;
    uint64_t skipped = dqi_get(&r->side.extra[DQ_EXTRA_SKIPPED]), n = skipped - s->skipped;
    s->skipped = skipped;
    for (uint32_t cell = 0; n > 0 && cell < cells; cell++)
        dqi_add(&s->of[s->last[cell]].missing, n);
}

static void miss(dqi_reorder *r, uint32_t id, uint64_t cells) {
    dqi_add(&r->by_source->of[id].missing, cells);
    dqi_ends_count(&r->base.done, cells, 0);
}

// Counts the cells that this source lacks as missing.
static void flush(dqi_reorder *r, uint32_t id) {
    dqi_reorder_sources *s = r->by_source;
    if (s->tail[id] == 0) return;
    miss(r, id, s->tail[id]);
    s->tails -= s->tail[id];
    s->tail[id] = 0;
}

// Resolves a cell without a known source that the first batch lacked: its first packet has arrived.
static void learn(dqi_reorder *r, uint32_t cell, uint32_t id) {
    dqi_reorder_sources *s = r->by_source;
    s->unlearnt[cell] = 0;
    s->n_unlearnt--;
    if (s->begun[id] && s->first[id] < cell)
        miss(r, id, 1);
    else
        dqi_ends_count(&r->base.done, 0, 1);
}

static void came(dqi_reorder *r, uint32_t cell, uint32_t id) {
    dqi_reorder_sources *s = r->by_source;
    const uint32_t line = r->seq ? DQI_KEY_NONE : id;
    dqi_add(&s->of[id].packets, 1);
    if (s->n_unlearnt > 0 && s->unlearnt[cell]) learn(r, cell, id);
    if (!s->begun[line]) s->first[line] = s->joined ? UINT32_MAX : cell;
    s->begun[line] = true;
    s->last[cell] = (uint16_t)id;
    for (uint32_t k = 0; r->seq && s->tails > 0 && k < DQI_KEY_IDS; k++)
        flush(r, k);
    flush(r, id);
}

static void lacks(dqi_reorder *r, uint32_t cell) {
    dqi_reorder_sources *s = r->by_source;
    const uint32_t id = s->last[cell];
    if (!r->seq && id == DQI_KEY_NONE && !s->joined) {
        s->unlearnt[cell] = 1;
        s->n_unlearnt++;
    } else if ((r->seq || id != DQI_KEY_NONE) && !s->begun[r->seq ? DQI_KEY_NONE : id]) {
        dqi_ends_count(&r->base.done, 0, 1);
    } else {
        s->tail[id]++;
        s->tails++;
    }
}

void dqi_reorder_sources_account(dqi_reorder *r, const dqi_batch *b) {
    dqi_reorder_sources *s = r->by_source;
    uint64_t bits = 0;
    if (b->epoch != s->stream) dqi_reorder_sources_close(r);
    s->stream = b->epoch;
    account_skipped(r, b->base.agg.cells);
    if (!r->seq && b->base.agg.present_cells > 0) flush(r, DQI_KEY_NONE);
    for (uint32_t cell = 0; cell < b->base.agg.cells; cell++, bits >>= 1) {
        if (cell % 64 == 0) bits = atomic_load_explicit(&b->present[cell / 64], memory_order_relaxed);
        if (bits & 1)
            came(r, cell, atomic_load_explicit(&b->ids[cell], memory_order_relaxed));
        else
            lacks(r, cell);
    }
    s->joined = true;
}

void dqi_reorder_sources_close(dqi_reorder *r) {
    dqi_reorder_sources *s = r->by_source;
    dqi_ends_count(&r->base.done, 0, s->tails + s->n_unlearnt);
    memset(s->tail, 0, sizeof s->tail);
    memset(s->begun, 0, sizeof s->begun);
    if (s->n_unlearnt > 0) memset(s->unlearnt, 0, (size_t)r->conf.slots * r->cells_each);
    s->tails = s->n_unlearnt = 0;
    s->joined = false;
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
