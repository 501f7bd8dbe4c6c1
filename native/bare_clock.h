// bare_clock.h: seconds of a clock, for the bare loops, which have no session to ask.
#ifndef DQ_BARE_CLOCK_H
#define DQ_BARE_CLOCK_H

#include <time.h>

static inline double bare_seconds(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

#endif
