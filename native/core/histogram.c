#include "core/histogram.h"

#define PARTS 16 // buckets per octave; the first octaves have buckets of width 1
#define SHIFT 4  // log2 of PARTS

uint32_t dqi_histogram_bucket(uint64_t v) {
    if (v < PARTS) return (uint32_t)v;
    uint32_t top = 63 - (uint32_t)__builtin_clzll(v);
    uint32_t k = (top - SHIFT + 1) * PARTS + ((uint32_t)(v >> (top - SHIFT)) & (PARTS - 1));
    return k < DQ_HISTOGRAM_BUCKETS ? k : DQ_HISTOGRAM_BUCKETS - 1;
}

uint64_t dq_histogram_most(uint32_t k) {
    if (k < PARTS) return k;
    uint32_t wide = k / PARTS - 1;
    return (((uint64_t)PARTS + k % PARTS + 1) << wide) - 1;
}

void dqi_histogram_read(const dqi_histogram *s, dq_histogram *out) {
    out->sum += dqi_get(&s->sum);
    for (uint32_t k = 0; k < DQ_HISTOGRAM_BUCKETS; k++)
        out->n[k] += dqi_get(&s->n[k]);
}
