#include "reorder/ends.h"

static uint32_t words_of(const dq_aggregate *a) { return (a->cells + 63) / 64; }

static uint64_t first_cell(const dq_aggregate *a) {
    for (uint32_t k = 0; k < words_of(a); k++)
        if (a->present[k]) return 64 * (uint64_t)k + (uint64_t)__builtin_ctzll(a->present[k]);
    return a->cells;
}

static uint64_t behind_last_cell(const dq_aggregate *a) {
    for (uint32_t k = words_of(a); k-- > 0;)
        if (a->present[k]) return 64 * (uint64_t)k + 64 - (uint64_t)__builtin_clzll(a->present[k]);
    return 0;
}

// Cells a batch lacks: before the first received one, after the last, and between them.
typedef struct dqi_lacks {
    uint64_t before, after, between;
} dqi_lacks;

static dqi_lacks lacks_of(const dq_aggregate *a) {
    if (dqi_aggregate_full(a)) return (dqi_lacks){0};
    uint64_t first = first_cell(a), end = behind_last_cell(a);
    if (a->present_cells == 0) return (dqi_lacks){.after = a->cells};
    return (dqi_lacks){first, a->cells - end, end - first - a->present_cells};
}

void dqi_ends_of_sequence(dqi_ends *e, dqi_handover *h, const dq_aggregate *a, uint32_t stream) {
    const dqi_lacks l = lacks_of(a);
    if (stream != e->stream) dqi_ends_close(e, h);
    e->stream = stream;
    if (a->present_cells == 0) {
        e->tail += l.after;
        return;
    }
    if (e->begun)
        dqi_ends_count(h, e->tail + l.before + l.between, 0);
    else
        dqi_ends_count(h, l.between, e->tail + l.before);
    e->tail = l.after;
    e->begun = true;
}

// Counts open ends with ordinals below `to` as missing.
static void resolve(dqi_ends *e, dqi_handover *h, uint64_t to) {
    uint32_t kept = 0;
    for (uint32_t k = 0; k < e->n; k++)
        if ((int64_t)(e->open[k].ordinal - to) < 0)
            dqi_ends_count(h, e->open[k].cells, 0);
        else
            e->open[kept++] = e->open[k];
    e->n = kept;
}

// Records a closed batch that lacks `lacks` cells, which later batches may prove missing.
static void note(dqi_ends *e, dqi_handover *h, const dq_aggregate *a, uint64_t lacks, uint32_t window) {
    if (!e->begun || (int64_t)(a->ordinal - e->last) > 0) e->last = a->ordinal;
    e->begun = true;
    if (dqi_aggregate_full(a) && (!e->any_full || (int64_t)(a->ordinal - e->full) > 0)) {
        e->full = a->ordinal;
        e->any_full = true;
    }
    uint64_t from = e->last + 1 - window; // lower ordinals are missing
    if (e->any_full && (int64_t)(e->full - from) > 0) from = e->full;
    resolve(e, h, from);
    if (lacks == 0) return;
    if ((int64_t)(a->ordinal - from) < 0)
        dqi_ends_count(h, lacks, 0);
    else
        e->open[e->n++] = (dqi_open_end){a->ordinal, lacks};
}

void dqi_ends_of_batch(dqi_ends *e, dqi_handover *h, const dq_aggregate *a, uint32_t stream,
                       uint32_t window) {
    uint64_t lacks = a->cells - a->present_cells;
    if (stream != e->stream) dqi_ends_close(e, h);
    e->stream = stream;
    if (!e->begun) {
        dqi_ends_count(h, 0, lacks);
        lacks = 0;
    }
    note(e, h, a, lacks, window);
}

void dqi_ends_of_heap(dqi_ends *e, dqi_handover *h, const dq_aggregate *a, uint32_t window) {
    const dqi_lacks l = lacks_of(a);
    const bool first = a->ordinal == 0;
    dqi_ends_count(h, l.between + (first ? 0 : l.before), first ? l.before : 0);
    note(e, h, a, l.after, window);
}

void dqi_ends_close(dqi_ends *e, dqi_handover *h) {
    uint64_t cut = e->tail;
    for (uint32_t k = 0; k < e->n; k++)
        cut += e->open[k].cells;
    dqi_ends_count(h, 0, cut);
    *e = (dqi_ends){.stream = e->stream};
}
