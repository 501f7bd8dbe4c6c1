// spread.h: histograms that one thread writes and anybody reads.
//
// Buckets are linear in the logarithm: exact below 32, then 16 to an octave, so that a percentile is off by
// at most 6 %.
#ifndef DQI_SPREAD_H
#define DQI_SPREAD_H

#include "atomics.h"
#include "dq.h"

typedef struct dqi_spread {
    dqi_count sum, n[DQ_SPREAD_BUCKETS];
} dqi_spread;

// The bucket that v falls into.
uint32_t dqi_spread_bucket(uint64_t v);
// Counts one value. Its writer's thread.
static inline void dqi_spread_note(dqi_spread *s, uint64_t v) {
    dqi_add(&s->sum, v);
    dqi_add(&s->n[dqi_spread_bucket(v)], 1);
}
// Adds what it has to out. Any thread.
void dqi_spread_read(const dqi_spread *s, dq_spread *out);

#endif
