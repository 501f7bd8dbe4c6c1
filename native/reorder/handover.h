// handover.h: output accounting and burst construction, shared by reorder and heaps stages. Called by the
// poller of the stage's own queue unless noted otherwise.
#ifndef DQI_HANDOVER_H
#define DQI_HANDOVER_H

#include "core/burst.h"
#include "core/counters.h"
#include "core/err.h"
#include "core/histogram.h"

typedef struct dqi_handover {
    dqi_counters c;     // of delivered and dropped packets
    dqi_histogram took; // ns from an aggregate's first packet to its delivery
    dqi_gauge held;     // packets in open and closed aggregates; any thread
} dqi_handover;

static inline bool dqi_aggregate_full(const dq_aggregate *a) { return a->present_cells == a->cells; }

// Accounts a, closed and complete or not, `ns` after its first packet. ends.h handles the cells it lacks.
static inline void dqi_handover_account(dqi_handover *h, const dq_aggregate *a, int64_t ns) {
    dqi_count *x = h->c.extra;
    dqi_add(&x[dqi_aggregate_full(a) ? DQ_EXTRA_BATCHES : DQ_EXTRA_PARTIAL], 1);
    if (a->flags & DQ_AGGREGATE_TIMEOUT) dqi_add(&x[DQ_EXTRA_TIMEOUTS], 1);
    if (a->flags & DQ_AGGREGATE_PUSHED) dqi_add(&x[DQ_EXTRA_PUSHED], 1);
    dqi_add(&x[DQ_EXTRA_EXPECTED], a->present_cells);
    dqi_histogram_note(&h->took, (uint64_t)ns);
    dqi_gauge_add(&h->held, -(int64_t)a->packets);
}

// Drops an aggregate that has been accounted.
static inline void dqi_handover_drop(dqi_handover *h, dq_burst *b, const dq_aggregate *a, dq_reason why) {
    dqi_drop(&h->c, why, a->packets);
    dq_burst_unref(b);
}

// Builds the burst of one packet with a's data; a must outlive it.
static inline dq_burst *dqi_handover_burst(dqi_handover *h, dq_burst *out, dq_aggregate *a) {
    out->flags = DQ_BURST_REORDERED | (a->flags & DQ_AGGREGATE_TIMEOUT ? DQ_BURST_REORDER_TIMEOUT : 0);
    out->len[0][0] = a->slots * a->slot_bytes;
    out->bytes = out->len[0][0];
    out->ts[0] = a->first_ns;
    out->flow[0] = 0;
    out->aggregate = a;
    dqi_add(&h->c.out, a->packets);
    dqi_add(&h->c.out_bytes, out->bytes);
    return out;
}

#endif
