// handover.h: accounts of a stage's aggregates, written by the poller of the stage's own queue.
#ifndef DQI_HANDOVER_H
#define DQI_HANDOVER_H

#include "core/counters.h"
#include "core/dq_burst.h"
#include "core/histogram.h"

typedef struct dqi_handover {
    dqi_counters c;     // of delivered and dropped packets
    dqi_histogram took; // ns from an aggregate's first packet to its delivery
    dqi_gauge held;     // packets in open and closed aggregates; any thread
} dqi_handover;

static inline bool dqi_aggregate_full(const dq_aggregate *a) { return a->present_cells == a->cells; }

#endif
