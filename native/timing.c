// timing.c: how departures kept to what was asked for: two histograms and two sums for each transmit queue
// with a pace or send times. A departure is the session time that the poller read just before it handed the
// packet to the engine.
#include "timing.h"
#include "queue.h"
#include "spread.h"

#include <stdlib.h>

dqi_timing *dqi_timing_new(uint32_t batch_size) {
    dqi_timing *t = calloc(1, sizeof *t);
    if (!t) return NULL;
    t->cost = calloc(batch_size, sizeof *t->cost);
    t->asked = calloc(batch_size, sizeof *t->asked);
    t->fresh = true;
    if (t->cost && t->asked) return t;
    dqi_timing_free(t);
    return NULL;
}

void dqi_timing_free(dqi_timing *t) {
    if (!t) return;
    free(t->cost);
    free(t->asked);
    free(t);
}

static double off(double a, double b) { return a < b ? b - a : a - b; }

// n gaps that were not kept: the packets behind them left with those before them.
static void note_batch(dqi_timing *t, const double *gap, uint32_t n) {
    for (uint32_t i = 0, run; i < n; i += run) {
        for (run = 1; i + run < n && gap[i + run] == gap[i];)
            run++;
        dqi_add(&t->gap_error[dqi_spread_bucket((uint64_t)gap[i])], run);
        t->wanted += run * gap[i];
    }
}

void dqi_timing_paced(dqi_timing *t, int64_t now, uint32_t n) {
    if (!t->fresh) {
        double took = (double)(now - t->last_ns);
        t->wanted += t->step;
        dqi_add(&t->took_ns, (uint64_t)(now - t->last_ns));
        if (!t->dry) dqi_add(&t->gap_error[dqi_spread_bucket((uint64_t)off(took, t->step))], 1);
    }
    note_batch(t, t->cost, n - 1);
    t->fresh = t->dry = false;
    t->last_ns = now;
    t->step = t->cost[n - 1];
    atomic_store_explicit(&t->wanted_ns, (uint64_t)t->wanted, memory_order_relaxed);
    atomic_store_explicit(&t->due_ns, now + (int64_t)t->step, memory_order_relaxed);
}

void dqi_timing_followed(dqi_timing *t, int64_t now, uint32_t n) {
    if (!t->fresh) {
        double took = (double)(now - t->last_ns);
        t->wanted += t->cost[0];
        dqi_add(&t->took_ns, (uint64_t)(now - t->last_ns));
        if (!t->dry) dqi_add(&t->gap_error[dqi_spread_bucket((uint64_t)off(took, t->cost[0]))], 1);
    }
    note_batch(t, t->cost + 1, n - 1);
    t->fresh = t->dry = false;
    t->last_ns = now;
    atomic_store_explicit(&t->wanted_ns, (uint64_t)t->wanted, memory_order_relaxed);
    atomic_store_explicit(&t->due_ns, now, memory_order_relaxed);
}

static bool paced(const dq_queue *q) {
    return atomic_load_explicit(&q->pace.bps, memory_order_relaxed) > 0 ||
           atomic_load_explicit(&q->pace.pps, memory_order_relaxed) > 0;
}

// For how long a packet that is there should have left.
static uint64_t overdue(const dq_queue *q) {
    int64_t due = dqi_gauge_get(&q->timing->due_ns);
    if (due == 0 || !paced(q) || !atomic_load_explicit(&q->busy, memory_order_relaxed)) return 0;
    int64_t over = dq_now(q->session) - due;
    return over > 0 ? (uint64_t)over : 0;
}

void dqi_timing_end(dq_queue *q) {
    if (!q->timing) return;
    dqi_add(&q->timing->took_ns, overdue(q));
    q->timing->fresh = true; // the time from one transmission to the next is nobody's
}

void dqi_timing_timed(dqi_timing *t, dqi_counters *c, int64_t now, int64_t came, uint32_t n) {
    uint64_t timed = 0, late = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (t->asked[i] == 0) continue;
        timed++;
        late += t->asked[i] < came;
        if (t->asked[i] > now) continue; // the device's matter
        dqi_add(&t->time_error[dqi_spread_bucket((uint64_t)(now - t->asked[i]))], 1);
    }
    dqi_add(&c->extra[DQ_EXTRA_TIMED], timed);
    dqi_add(&c->extra[DQ_EXTRA_LATE], late);
}

static void copy(uint64_t *to, const dqi_count *from) {
    for (uint32_t k = 0; k < DQ_SPREAD_BUCKETS; k++)
        to[k] = dqi_get(&from[k]);
}

bool dqi_timing_read(dq_queue *q, dq_timing *out) {
    dqi_timing *t = q->timing;
    if (!t) return false;
    if (dqi_gauge_get(&t->due_ns) == 0 && dqi_get(&q->c.extra[DQ_EXTRA_TIMED]) == 0) return false;
    if (!out) return true;
    out->overdue_ns = overdue(q);
    out->wanted_ns = dqi_get(&t->wanted_ns);
    out->took_ns = dqi_get(&t->took_ns);
    copy(out->gap_error, t->gap_error);
    copy(out->time_error, t->time_error);
    return true;
}
