// reorder_window.c: opens and closes the batches of the window (reorder.h), by packet number.
//
// Numbers wrap: a packet belongs to the batch with its number that is nearest to `top`; of two equally near
// ones to the later. A packet in the window, or of the batch after `top`, moves it; any other one belongs to
// a trial (reorder_trial.c), or is late.
#include "core/burst.h"
#include "reorder/reorder.h"

#include <string.h>

// ---- numbers ----------------------------------------------------------------------------------------------

// Returns a number's distance from top in batches, at least -r->back.
static int64_t distance(const dqi_reorder *r, uint64_t number) {
    uint64_t ahead = number - r->top_first;
    if (r->seq) return (int64_t)(((ahead + r->back * r->conf.slots) & r->mask) / r->conf.slots - r->back);
    uint64_t wrap = r->conf.wrap;
    if (wrap == 0) return (int64_t)ahead;
    if (number < r->top_first) ahead += wrap;
    return (int64_t)(ahead >= wrap - r->back ? ahead - wrap : ahead);
}

uint64_t dqi_window_first(const dqi_reorder *r, int64_t away) {
    if (r->seq) return (r->top_first + (uint64_t)away * r->conf.slots) & r->mask;
    uint64_t wrap = r->conf.wrap, first = r->top_first + (uint64_t)away;
    if (wrap == 0) return first;
    if (away < 0 && r->top_first < (uint64_t)-away) return first + wrap;
    return first >= wrap ? first - wrap : first;
}

// ---- opening and closing ----------------------------------------------------------------------------------

void dqi_window_note_due(dqi_reorder *r) {
    int64_t first = INT64_MAX;
    for (uint32_t i = 0; i <= r->open_mask; i++)
        if (r->open[i] && r->open[i]->base.due_ns < first) first = r->open[i]->base.due_ns;
    atomic_store_explicit(&r->base.due_ns, first, memory_order_relaxed);
}

// Closes the lowest batch, or counts it as skipped if it was never opened.
static void close_low(dqi_reorder *r, uint32_t flag) {
    dqi_batch **at = &r->open[r->low & r->open_mask], *b = *at;
    uint64_t bit = UINT64_C(1) << r->low % 64;
    *at = NULL;
    r->low++;
    if (!b) {
        r->full &= ~bit;
        dqi_add(&r->side.extra[DQ_EXTRA_SKIPPED], 1);
        dqi_add(&r->side.extra[DQ_EXTRA_EXPECTED], (uint64_t)r->conf.slots * r->cells_each);
        dqi_add(&r->side.extra[DQ_EXTRA_MISSING], (uint64_t)r->conf.slots * r->cells_each);
        return;
    }
    if (dqi_block_full(b)) {
        r->full |= bit;
    } else {
        r->full &= ~bit;
        b->base.agg.flags |= flag | (b->base.agg.ordinal == r->sync ? DQ_AGGREGATE_FIRST : 0);
    }
    if (b->base.due_ns != INT64_MAX) dqi_window_note_due(r);
    dqi_assembly_close(&r->base, &b->base);
}

void dqi_window_advance(dqi_reorder *r, uint64_t to, uint32_t flag) {
    while ((int64_t)(to - r->low) > 0)
        close_low(r, flag);
}

void dqi_window_close_full(dqi_reorder *r) {
    for (;;) {
        dqi_batch *b = r->open[r->low & r->open_mask];
        if (!b || !dqi_block_full(b)) return;
        close_low(r, 0);
    }
}

void dqi_window_expire(dqi_reorder *r, int64_t now) {
    for (uint64_t o = r->low + r->conf.window; o-- != r->low;) {
        const dqi_batch *b = r->open[o & r->open_mask];
        if (!b || b->base.due_ns > now) continue;
        dqi_window_advance(r, o + 1, DQ_AGGREGATE_TIMEOUT);
        break;
    }
    dqi_window_close_full(r);
}

uint64_t dqi_window_close(dqi_reorder *r, uint32_t flag) {
    uint64_t full = r->low, last = r->low, n = 0; // after the last full batch, and after the last batch
    for (uint32_t k = 0; k < r->conf.window; k++) {
        const dqi_batch *b = r->open[(r->low + k) & r->open_mask];
        if (!b) continue;
        last = r->low + k + 1;
        if (dqi_block_full(b)) full = last;
        n++;
    }
    dqi_window_advance(r, full, DQ_AGGREGATE_PUSHED); // the stream had passed these
    dqi_window_advance(r, last, flag);
    return n;
}

// Takes buffer k of the region; NULL: its last aggregate has not been freed. Free buffers that come first are
// armed for their own batches.
static dqi_assembled *take_armed(dqi_reorder *r, uint64_t k) {
    while (!r->armed[k]) {
        dqi_assembled *b = dqi_assembly_take(&r->base);
        if (!b) return NULL;
        r->armed[b->burst->bufs[0][0] - r->conf.region->first_id] = b;
    }
    dqi_assembled *b = r->armed[k];
    r->armed[k] = NULL;
    dqi_assembly_begin(&r->base, b);
    return b;
}

dqi_batch *dqi_window_open(dqi_reorder *r, uint64_t ordinal, uint64_t first, uint32_t len, int64_t ts,
                           dq_reason *why) {
    uint64_t number = r->seq ? first / r->conf.slots : first;
    dqi_batch *b = (dqi_batch *)(r->armed ? take_armed(r, number) : dqi_assembly_take(&r->base));
    *why = DQ_DROP_NO_PACKET_BUFFER; // there are more descriptors than buffers
    if (!b) return NULL;
    uint64_t k = b->base.burst->bufs[0][0] - r->conf.region->first_id;
    _Atomic uint64_t *own = (_Atomic uint64_t *)(b + 1); // stored after it in the record
    uint32_t words = (r->conf.slots * r->cells_each + 63) / 64;
    b->present = r->marks.host ? (_Atomic uint64_t *)(void *)(r->marks.host + k * r->marks.each) : own;
    b->extra = r->extra ? b->present + words : NULL;
    uint32_t slot_bytes = r->conf.slot_bytes ? r->conf.slot_bytes : len > r->longest ? len : r->longest;
    b->base.agg = (dq_aggregate){
        .batch_id = number,
        .ordinal = ordinal,
        .slots = r->conf.slots,
        .slot_bytes = slot_bytes,
        .cells = r->conf.slots * r->cells_each,
        .cell_bytes = r->offset ? r->conf.packet_bytes : slot_bytes,
        .dtype = r->conf.types.output,
        .first_ns = ts,
        .last_ns = ts,
        .fill = r->conf.fill,
        .present = (const uint64_t *)(const void *)b->present,
        .extra = (const uint64_t *)(const void *)b->extra,
        .on_gpu = r->marks.host ? r->marks.gpu + k * r->marks.each : 0,
    };
    memset((void *)b->present, 0, (b->base.agg.cells + 63) / 64 * sizeof *b->present);
    if (b->extra) memset((void *)b->extra, 0, r->conf.slots * sizeof *b->extra);
    b->ids = r->by_source ? (_Atomic uint16_t *)(void *)(own + words + (r->extra ? r->conf.slots : 0)) : NULL;
    b->base.data = dqi_device_bytes(b->base.burst, 0, 0);
    b->gap_cell = 0;
    b->marked = false;
    b->first = first;
    b->epoch = r->epoch;
    b->rejected = false;
    return b;
}

// ---- batch of a packet ------------------------------------------------------------------------------------

void dqi_window_synchronise(dqi_reorder *r, uint64_t number) {
    if (r->synced) {
        dqi_window_close(r, DQ_AGGREGATE_PUSHED);
        dqi_add(&r->side.extra[DQ_EXTRA_RESYNCS], 1);
        for (uint32_t i = 0; i < DQI_MAX_SOURCES; i++)
            r->sources[i].begun = false;
        r->epoch++;
    }
    r->low = r->top = r->sync = r->seq ? number / r->conf.slots : number;
    r->top_first = r->seq ? number - number % r->conf.slots : number;
    r->full = 0;
    r->strays = 0;
    r->longest = 0;
    r->synced = true;
}

// Counts consecutive packets that look late, or like duplicates from another path; returns true if enough
// agree that the sender must have restarted.
static bool many_agree(dqi_reorder *r, uint64_t ordinal) {
    int64_t apart = (int64_t)(ordinal - r->stray_at);
    bool same = apart < (int64_t)r->conf.window && -apart < (int64_t)r->conf.window;
    r->strays = r->strays > 0 && same ? r->strays + 1 : 1;
    r->stray_at = ordinal;
    return r->strays >= r->late_agree;
}

// Returns the drop reason of a packet outside the window, should its number be wrong or its sender not have
// restarted.
static dq_reason why_not(const dqi_reorder *r, uint64_t ordinal) {
    int64_t behind = (int64_t)(r->low - ordinal);
    if (behind <= 0 || behind > r->far) return DQ_DROP_OUTLIER;
    return behind <= 64 && (r->full >> ordinal % 64 & 1) ? DQ_DROP_DUPLICATE : DQ_DROP_LATE;
}

// Whether this packet follows a silence long enough for a sender's restart.
static bool after_silence(dqi_reorder *r, int64_t ts) {
    bool is = ts != DQ_NO_TIME && ts - r->last_ts >= r->silence_ns;
    if (ts > r->last_ts) r->last_ts = ts;
    return is;
}

dqi_batch *dqi_window_find(dqi_reorder *r, uint64_t number, uint32_t len, int64_t ts, dq_reason *why) {
    if (!r->synced) dqi_window_synchronise(r, number);
    bool quiet = after_silence(r, ts);
    int64_t away = distance(r, number);
    uint64_t ordinal = r->top + (uint64_t)away;
    for (int64_t in; (in = (int64_t)(ordinal - r->low)) < 0 || (in >= (int64_t)r->conf.window && away > 1);) {
        *why = why_not(r, ordinal);
        if (*why == DQ_DROP_OUTLIER || quiet || dqi_trial_has(r, ordinal)) {
            dqi_batch *b = dqi_trial_find(r, ordinal, len, ts, quiet, why);
            if (b || !r->trial.over) return b;
        } else if (many_agree(r, ordinal)) {
            dqi_trial_reject(r);
            dqi_window_synchronise(r, number);
        } else {
            return NULL;
        }
        away = distance(r, number); // the window has moved
        ordinal = r->top + (uint64_t)away;
    }
    r->strays = 0;
    if ((int64_t)(ordinal - r->low) >= (int64_t)r->conf.window) {
        dqi_window_advance(r, ordinal - r->conf.window + 1, DQ_AGGREGATE_PUSHED);
        dqi_window_close_full(r);
    }
    uint64_t first = dqi_window_first(r, away);
    if (away > 0) {
        r->top = ordinal;
        r->top_first = first;
    }
    if (len > r->longest) r->longest = len;
    dqi_batch **at = &r->open[ordinal & r->open_mask];
    if (!*at && !(*at = dqi_window_open(r, ordinal, first, len, ts, why))) return NULL;
    dqi_assembly_note_due(&r->base, &(*at)->base);
    atomic_fetch_add_explicit(&(*at)->base.fillers, 1, memory_order_relaxed);
    return *at;
}

void dqi_window_leave(dqi_reorder *r, dqi_batch *b, uint32_t n, int64_t ts, uint32_t longest) {
    if (longest > r->longest) r->longest = longest;
    b->base.agg.present_cells += n;
    b->base.agg.packets += n;
    if (n > 0) b->base.agg.last_ns = ts;
    dqi_gauge_add(&r->base.done.held, n);
    if (n > 0 && ts > r->last_ts) r->last_ts = ts;
    if (r->trial.begun) dqi_trial_count(r, b, n);
    bool open = r->open[b->base.agg.ordinal & r->open_mask] == b;
    if (atomic_fetch_sub_explicit(&b->base.fillers, 1, memory_order_acq_rel) == 1 && !open)
        dqi_queue_kick(r->base.out); // it waits for the last filler
    if (open && dqi_block_full(b)) dqi_window_close_full(r);
}

// ---- waiting for other sources ----------------------------------------------------------------------------

bool dqi_window_ahead(dqi_reorder *r, uint64_t number, dqi_source *self) {
    if (!r->synced) return false;
    int64_t away = distance(r, number);
    uint64_t ordinal = r->top + (uint64_t)away,
             to = ordinal - r->conf.window + 1; // all lower batches would be closed
    if (away > r->far || (int64_t)(ordinal - r->low) < 0) return false;
    if (!self->begun || (int64_t)(ordinal - self->reached) > 0 || (int64_t)(self->reached - r->top) > 0)
        self->reached = ordinal; // a value above top came from an outlier
    self->begun = true;
    bool open = false; // the timeout of an open batch ends the wait
    for (uint32_t k = 0; k < r->conf.window && (int64_t)(to - r->low - k) > 0; k++)
        open |= r->open[(r->low + k) & r->open_mask] != NULL;
    for (uint32_t i = 0; open && i < atomic_load(&r->n_sources); i++) {
        const dqi_source *s = &r->sources[i];
        if (!s->begun || (int64_t)(s->reached - ordinal) < 0) return true;
    }
    return false;
}
