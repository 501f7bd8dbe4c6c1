// reorder_trial.c: packets with numbers that the window does not expect: far ahead of it, or behind. The
// cause may be a wrong number, a restarted sender, or a large loss. They are placed in batches of a second
// window, the trial. Once its packets outnumber those of the window since its begin by `needed`, it becomes
// the window; otherwise it is rejected, at the latest at the end, and its packets are dropped. No timeout is
// involved, so the same packets give the same aggregates.
//
// needed is 3 after a silence, otherwise a batch's number of packets, within limits, so that one of several
// boards that sends wrong numbers does not move the window.
#include "pipeline/queue.h"
#include "reorder/reorder.h"

#define AFTER_SILENCE 3
#define REJECT_SCORE  (-8) // lead of the window in packets

static uint64_t later(uint64_t a, uint64_t b) { return (int64_t)(a - b) > 0 ? a : b; }
static uint64_t earlier(uint64_t a, uint64_t b) { return (int64_t)(a - b) < 0 ? a : b; }

bool dqi_trial_has(const dqi_reorder *r, uint64_t ordinal) {
    const dqi_trial *t = &r->trial;
    return t->begun && later(t->top, ordinal) - earlier(t->low, ordinal) < r->conf.window;
}

// Rejects a batch of the trial; it is dropped once its fillers have finished.
static void reject_batch(dqi_reorder *r, dqi_batch **at) {
    dqi_batch *b = *at;
    if (!b) return;
    *at = NULL;
    b->rejected = true;
    dqi_assembly_close(&r->base, &b->base);
}

void dqi_trial_reject(dqi_reorder *r) {
    for (uint32_t k = 0; r->trial.begun && k <= r->open_mask; k++)
        reject_batch(r, &r->trial.open[k]);
    r->trial.begun = false;
}

// ---- decision ---------------------------------------------------------------------------------------------

// Whether the trial is close enough ahead that the batches between were lost, and it is not another stream.
static bool goes_on(const dqi_reorder *r) {
    int64_t ahead = (int64_t)(r->trial.low - r->top);
    return ahead > 0 && ahead <= r->far;
}

// Makes the trial the window.
static void believe(dqi_reorder *r) {
    dqi_trial *t = &r->trial;
    uint64_t shift = 0;
    const int64_t now = dq_now(r->base.stage->session);
    t->begun = false;
    t->over = true;
    if (goes_on(r)) {
        dqi_window_advance(r, t->top - r->conf.window + 1, DQ_AGGREGATE_PUSHED);
    } else {
        const uint64_t first = dqi_window_first(r, (int64_t)(t->low - r->top));
        dqi_window_synchronise(r, first);
        r->top_first = first; // its batches stay, even if numbers wrap within one
        shift = r->low - t->low;
    }
    for (uint64_t o = t->low; o != t->top + 1; o++) {
        dqi_batch *b = t->open[o & r->open_mask];
        if (!b) continue;
        t->open[o & r->open_mask] = NULL;
        b->base.agg.ordinal += shift;
        b->epoch = r->epoch;
        b->base.due_ns =
            r->conf.timeout_ns ? now + r->conf.timeout_ns : INT64_MAX; // restart it, as it may have passed
        r->open[b->base.agg.ordinal & r->open_mask] = b;
        if (b->base.agg.slot_bytes > r->longest) r->longest = b->base.agg.slot_bytes;
    }
    r->top_first = dqi_window_first(r, (int64_t)(t->top + shift - r->top));
    r->top = t->top + shift;
    dqi_window_note_due(r);
    dqi_queue_kick(r->base.out); // it may sleep past the new timeout
    dqi_window_close_full(r);
}

void dqi_trial_count(dqi_reorder *r, const dqi_batch *b, uint32_t n) {
    dqi_trial *t = &r->trial;
    if (t->open[b->base.agg.ordinal & r->open_mask] == b) {
        t->score += n;
        if (t->score >= t->needed) believe(r);
    } else if (n > 0) {
        t->score -= n;
        t->alone = false;
        if (t->score <= REJECT_SCORE) dqi_trial_reject(r);
    }
}

// ---- batch of a packet ------------------------------------------------------------------------------------

static void begin(dqi_reorder *r, uint64_t ordinal) {
    dqi_trial *t = &r->trial;
    dqi_trial_reject(r);
    t->begun = t->alone = true;
    t->low = t->top = ordinal;
    t->score = 0;
    t->needed = r->agree;
}

// Handles a packet ahead of the trial: if both are ahead of the window, the trial becomes the window;
// otherwise the trial's lowest batches are rejected for it. Returns false if the packet is unrelated to the
// trial.
static bool go_behind(dqi_reorder *r, uint64_t ordinal) {
    dqi_trial *t = &r->trial;
    int64_t behind = (int64_t)(ordinal - t->top);
    if (!t->begun || !t->alone || behind <= 0 || behind > r->far) return false;
    if (goes_on(r) && t->score > 0) {
        believe(r);
        return true;
    }
    uint64_t low = ordinal - r->conf.window + 1;
    for (uint32_t k = 0; k < r->conf.window && (int64_t)(low - t->low) > 0; k++, t->low++)
        reject_batch(r, &t->open[t->low & r->open_mask]);
    t->low = low;
    return true;
}

dqi_batch *dqi_trial_find(dqi_reorder *r, uint64_t ordinal, uint32_t len, int64_t ts, bool quiet,
                          dq_reason *why) {
    dqi_trial *t = &r->trial;
    const dq_reason otherwise = *why;
    t->over = false;
    if (!dqi_trial_has(r, ordinal) && !go_behind(r, ordinal)) begin(r, ordinal);
    if (t->over) return NULL;
    if (quiet) t->needed = AFTER_SILENCE;
    t->low = earlier(t->low, ordinal);
    t->top = later(t->top, ordinal);
    dqi_batch **at = &t->open[ordinal & r->open_mask];
    if (!*at) {
        *at = dqi_window_open(r, ordinal, dqi_window_first(r, (int64_t)(ordinal - r->top)), len, ts, why);
        if (*at) (*at)->otherwise = otherwise;
    }
    if (*at) {
        atomic_fetch_add_explicit(&(*at)->base.fillers, 1, memory_order_relaxed);
        return *at;
    }
    *why = otherwise; // no buffer is free, and none will become free: count it without placing it
    if (++t->score >= t->needed) believe(r);
    return NULL;
}
