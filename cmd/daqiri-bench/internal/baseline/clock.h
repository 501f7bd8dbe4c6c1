// clock.h: seconds of a clock and their median, for the baseline loops, which have no session to ask.
#ifndef DQ_BASELINE_CLOCK_H
#define DQ_BASELINE_CLOCK_H

#include <stdint.h>
#include <stdlib.h>
#include <time.h>

static inline double baseline_seconds(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static inline int baseline_by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// The middle one of n times, n above 0; sorts them.
static inline double baseline_median(double *took, uint32_t n) {
    qsort(took, n, sizeof *took, baseline_by_size);
    return took[n / 2];
}

#endif
