// wake.h: wake-up of a sleeping thread.
#ifndef DQI_WAKE_H
#define DQI_WAKE_H

#include "core/atomics.h"

#include <poll.h>

// Lets one thread sleep until another has work for it; no system calls while it is awake.
typedef struct dqi_wake {
    _Atomic uint32_t sleeping;
    int fd; // eventfd
} dqi_wake;
int dqi_wake_init(dqi_wake *w);
void dqi_wake_close(dqi_wake *w);
void dqi_wake_up(dqi_wake *w); // any thread
// Announces that the caller is about to sleep. It must check for work once more, then call dqi_wake_stay or
// dqi_wake_sleep.
static inline void dqi_wake_announce(dqi_wake *w) { atomic_exchange(&w->sleeping, 1); }
static inline void dqi_wake_stay(dqi_wake *w) { atomic_exchange(&w->sleeping, 0); }
// Sleeps on fds[1..n) and the wake-up descriptor (stored in fds[0]) for ns nanoseconds (INT64_MAX: no limit).
// The caller has called dqi_wake_announce and checked for work since. Returns true on timeout.
bool dqi_wake_sleep(dqi_wake *w, struct pollfd *fds, nfds_t n, int64_t ns);

#endif
