// bed_pace.h: a template of numbered frames, and a check of the times at which packets left.
#ifndef BED_PACE_H
#define BED_PACE_H

#include "bed.h"

static const int64_t T0 = BED_START_NS;

static inline dq_template *plain(uint32_t len) {
    dq_diag d = {{0}};
    dq_template *t;
    uint8_t f[1024] = {0};
    bed_frame(f, len, 1000, 7, 0);
    dq_vary v = {.field = {.base = DQ_BASE_START, .bit_width = 64, .bit_offset = BED_HEAD * 8},
                 .step = 1,
                 .max = UINT64_MAX};
    bed_must(dq_template_new(f, len, &v, 1, 0, 1, &t, &d), &d, "template");
    return t;
}

// The k-th of n packets left k · gap after `from`, to the nanosecond.
static inline void check_gaps(const bed *b, size_t first, size_t n, int64_t from, double gap_ns) {
    DQ_CHECK(b->n >= first + n);
    for (size_t k = 0; k < n && first + k < b->n; k++) {
        double off = (double)(b->got[first + k].ts - from) - (double)k * gap_ns;
        if (off > -0.01 && off < 1.01) continue; // the first nanosecond that is not too soon
        fprintf(stderr, "%s: packet %zu is off by %.3f ns\n", dq_case, first + k, off);
        DQ_CHECK(false);
        break;
    }
}

// A histogram of the only paced queue.
static inline dq_histogram tx_histogram(const bed *b, dq_histogram_kind kind) {
    static dq_histogram all[16];
    uint32_t n = dq_histograms(b->s, all, 16);
    DQ_CHECK(n <= 16);
    for (uint32_t i = 0; i < n; i++)
        if (all[i].kind == (int32_t)kind) return all[i];
    DQ_CHECK(false);
    return all[0];
}

// The queue's timing; packets with a gap error, and the largest one in ns.
static inline dq_tx_accuracy timing_of(const bed *b, uint64_t *n, uint64_t *most) {
    static dq_tx_accuracy t[4];
    t[0] = (dq_tx_accuracy){.queue_id = 99};
    DQ_EQ(dq_tx_accuracies(b->s, t, 4), 1);
    dq_histogram gaps = tx_histogram(b, DQ_HISTOGRAM_GAP_ERROR);
    *n = *most = 0;
    for (uint32_t k = 0; k < DQ_HISTOGRAM_BUCKETS; k++) {
        *n += gaps.n[k];
        if (gaps.n[k] > 0) *most = dq_histogram_most(k);
    }
    return t[0];
}

#endif
