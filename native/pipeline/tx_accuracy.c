// tx_accuracy.c: transmit timing: two histograms and two sums for each transmit queue with a pace or send
// times. The session time read just before the engine gets a packet counts as its departure.
#include "pipeline/tx_accuracy.h"
#include "pipeline/queue.h"

#include <stdlib.h>

dqi_tx_accuracy *dqi_tx_accuracy_new(uint32_t batch_size) {
    dqi_tx_accuracy *t = calloc(1, sizeof *t);
    if (!t) return NULL;
    t->cost = calloc(batch_size, sizeof *t->cost);
    t->asked = calloc(batch_size, sizeof *t->asked);
    t->fresh = true;
    if (t->cost && t->asked) return t;
    dqi_tx_accuracy_free(t);
    return NULL;
}

void dqi_tx_accuracy_free(dqi_tx_accuracy *t) {
    if (!t) return;
    free(t->cost);
    free(t->asked);
    free(t);
}

static double off(double a, double b) { return a < b ? b - a : a - b; }

// Records n gaps of 0: packets that left together with the one before.
static void note_batch(dqi_tx_accuracy *t, const double *gap, uint32_t n) {
    for (uint32_t i = 0, run; i < n; i += run) {
        for (run = 1; i + run < n && gap[i + run] == gap[i];)
            run++;
        dqi_histogram_note_many(&t->gap_error, (uint64_t)gap[i], run);
        t->wanted += run * gap[i];
    }
}

void dqi_tx_accuracy_paced(dqi_tx_accuracy *t, int64_t now, uint32_t n) {
    if (!t->fresh) {
        double took = (double)(now - t->last_ns);
        t->wanted += t->step;
        dqi_add(&t->took_ns, (uint64_t)(now - t->last_ns));
        if (!t->dry) dqi_histogram_note(&t->gap_error, (uint64_t)off(took, t->step));
    }
    note_batch(t, t->cost, n - 1);
    t->fresh = t->dry = false;
    t->last_ns = now;
    t->step = t->cost[n - 1];
    atomic_store_explicit(&t->wanted_ns, (uint64_t)t->wanted, memory_order_relaxed);
    atomic_store_explicit(&t->due_ns, now + (int64_t)t->step, memory_order_relaxed);
}

void dqi_tx_accuracy_followed(dqi_tx_accuracy *t, int64_t now, uint32_t n) {
    if (!t->fresh) {
        double took = (double)(now - t->last_ns);
        t->wanted += t->cost[0];
        dqi_add(&t->took_ns, (uint64_t)(now - t->last_ns));
        if (!t->dry) dqi_histogram_note(&t->gap_error, (uint64_t)off(took, t->cost[0]));
    }
    note_batch(t, t->cost + 1, n - 1);
    t->fresh = t->dry = false;
    t->last_ns = now;
    atomic_store_explicit(&t->wanted_ns, (uint64_t)t->wanted, memory_order_relaxed);
    atomic_store_explicit(&t->due_ns, now, memory_order_relaxed);
}

static bool paced(const dq_queue *q) {
    return atomic_load_explicit(&q->tx.pace.bps, memory_order_relaxed) > 0 ||
           atomic_load_explicit(&q->tx.pace.pps, memory_order_relaxed) > 0;
}

// Returns by how much an available packet is overdue, in ns.
static uint64_t overdue(const dq_queue *q) {
    int64_t due = dqi_gauge_get(&q->tx.timing->due_ns);
    if (due == 0 || !paced(q) || !atomic_load_explicit(&q->tx.busy, memory_order_relaxed)) return 0;
    int64_t over = dq_now(q->session) - due;
    return over > 0 ? (uint64_t)over : 0;
}

void dqi_tx_accuracy_end(dq_queue *q) {
    if (!q->tx.timing) return;
    dqi_add(&q->tx.timing->took_ns, overdue(q));
    q->tx.timing->fresh = true; // time between transmissions is not counted
}

void dqi_tx_accuracy_timed(dqi_tx_accuracy *t, dqi_counters *c, int64_t now, int64_t came, uint32_t n) {
    uint64_t timed = 0, late = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (t->asked[i] == 0) continue;
        timed++;
        late += t->asked[i] < came;
        if (t->asked[i] > now) continue; // enforced by the device
        dqi_histogram_note(&t->time_error, (uint64_t)(now - t->asked[i]));
    }
    dqi_add(&c->extra[DQ_EXTRA_TIMED], timed);
    dqi_add(&c->extra[DQ_EXTRA_LATE], late);
}

bool dqi_tx_accuracy_any(const dq_queue *q) {
    return q->tx.timing &&
           (dqi_gauge_get(&q->tx.timing->due_ns) != 0 || dqi_get(&q->c.extra[DQ_EXTRA_TIMED]) != 0);
}

void dqi_tx_accuracy_read(dq_queue *q, dq_tx_accuracy *out) {
    out->overdue_ns = overdue(q);
    out->wanted_ns = dqi_get(&q->tx.timing->wanted_ns);
    out->took_ns = dqi_get(&q->tx.timing->took_ns);
}
