// counters.h: packet counters: one writer each, any number of readers.
#ifndef DQI_COUNTERS_H
#define DQI_COUNTERS_H

#include "core/atomics.h"
#include "core/dq_ledger.h"

typedef struct dqi_counters {
    dqi_count in, in_bytes, out, out_bytes, bursts;
    dqi_count dropped[DQ_REASONS];
    dqi_count extra[DQ_EXTRAS];
} dqi_counters;

#define DQI_QUEUE_ERRORS 6

// Counts of system errors by errno, the last of all others; err 0: this and later entries are unused.
typedef struct dqi_queue_error {
    _Atomic int32_t err;
    dqi_count n;
} dqi_queue_error;

// Counts n errors of errno err. Any thread.
void dqi_queue_error_add(dqi_queue_error errors[DQI_QUEUE_ERRORS], int err, uint64_t n);

// Adds the counters to a ledger line. Any thread.
void dqi_line_add(dq_line *l, const dqi_counters *c);

// Counts n dropped packets. Thread of the counters' writer.
void dqi_drop(dqi_counters *c, dq_reason why, uint64_t n);

// Adds to a counter with several writers (tasks and stages may send on the same transmit queue).
static inline void dqi_add_shared(dqi_count *c, uint64_t n) {
    atomic_fetch_add_explicit(c, n, memory_order_relaxed);
}

#endif
