// histogram.h: histograms with one writer and any number of readers.
//
// Buckets are log-linear: exact below 32, then 16 per octave, so a percentile is off by at most 6 %.
#ifndef DQI_HISTOGRAM_H
#define DQI_HISTOGRAM_H

#include "core/atomics.h"
#include "core/dq_ledger.h"

typedef struct dqi_histogram {
    dqi_count sum, n[DQ_HISTOGRAM_BUCKETS];
} dqi_histogram;

// Returns the bucket of v.
uint32_t dqi_histogram_bucket(uint64_t v);
// Counts one value. Writer's thread.
static inline void dqi_histogram_note(dqi_histogram *s, uint64_t v) {
    dqi_add(&s->sum, v);
    dqi_add(&s->n[dqi_histogram_bucket(v)], 1);
}
// Counts one value n times.
static inline void dqi_histogram_note_many(dqi_histogram *s, uint64_t v, uint64_t n) {
    dqi_add(&s->sum, v * n);
    dqi_add(&s->n[dqi_histogram_bucket(v)], n);
}
// Adds the counts to out. Any thread.
void dqi_histogram_read(const dqi_histogram *s, dq_histogram *out);

#endif
