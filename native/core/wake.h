// wake.h: wake-up of a sleeping thread.
#ifndef DQI_WAKE_H
#define DQI_WAKE_H

#include "core/atomics.h"

// Lets one thread sleep until another has work for it; no system calls while it is awake.
typedef struct dqi_wake {
    _Atomic uint32_t sleeping;
    int fd; // eventfd
} dqi_wake;
int dqi_wake_init(dqi_wake *w);
void dqi_wake_close(dqi_wake *w);
void dqi_wake_up(dqi_wake *w); // any thread
// Announces that the caller is about to sleep. It must check for work once more, then call dqi_wake_stay or
// dqi_wake_sleep (poller.h).
static inline void dqi_wake_announce(dqi_wake *w) { atomic_exchange(&w->sleeping, 1); }
static inline void dqi_wake_stay(dqi_wake *w) { atomic_exchange(&w->sleeping, 0); }

#endif
