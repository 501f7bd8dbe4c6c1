// poller.h: sleeping and threads, for waiter.c, writers and session.c.
#ifndef DQI_POLLER_H
#define DQI_POLLER_H

#include "dqi.h"

#include <poll.h>

// Sleeps on fds[1..n) and the wake-up (which it puts into fds[0]) for ns nanoseconds (INT64_MAX: for ever).
// The caller has announced it (dqi_wake_announce) and looked for work since. True: nothing woke it.
bool dqi_wake_sleep(dqi_wake *w, struct pollfd *fds, nfds_t n, int64_t ns);
// Starts a thread that takes no signals.
int dqi_thread_start(pthread_t *t, void *(*fn)(void *), void *arg);
// Starts p's own thread, pinned to p->core unless that is -1.
int dqi_worker_start(dqi_poller *p, dq_diag *diag);
// Ends and joins it. Fine when it never started.
void dqi_worker_stop(dqi_poller *p);

#endif
