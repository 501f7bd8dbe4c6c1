// poller.h: what serves queues on one thread; sleeping, and threads.
#ifndef DQI_POLLER_H
#define DQI_POLLER_H

#include "core/dq_core.h"
#include "core/wake.h"

#include <poll.h>
#include <pthread.h>

// Serves a set of queues on one thread.
typedef struct dqi_poller {
    dqi_wake wake;
    dq_queue **queues;
    uint32_t n, cap;
    dq_stage **stages; // that are polled with them
    uint32_t n_stages;
    _Atomic uint32_t hold; // control threads that want it to stand still
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool held, running;
    pthread_t thread;
    bool own_thread;            // a worker, not a task
    _Atomic(const void *) task; // identity of the task's thread (dqi_self), once it has waited
    int core;
    dq_session *session;
    _Atomic uint32_t quit;
    int64_t spin_ns; // how long it tries before it sleeps
    int64_t wake_ns; // what a wake-up takes
    int64_t lead_ns; // how long before a departure it has to be awake
} dqi_poller;
int dqi_poller_init(dqi_poller *p, dq_session *s);
void dqi_poller_close(dqi_poller *p);
// A queue comes with the stages whose source it is, a stage with its queues. The poller stands still.
int dqi_poller_add(dqi_poller *p, dq_queue *q);
int dqi_poller_add_stage(dqi_poller *p, dq_stage *st);
void dqi_poller_remove(dqi_poller *p, dq_queue *q);
// Makes the poller stand still until the release; no effect where the caller is its thread or it has none.
// Pairs.
void dqi_poller_hold(dqi_poller *p);
void dqi_poller_release(dqi_poller *p);
// Identifies the calling thread.
const void *dqi_self(void);
// Polls each queue and stage once. Work done (0: idle).
int dqi_poller_once(dqi_poller *p);
// Sleeps until woken, an engine's descriptor is ready, or until_ns (monotonic). Returns at once if there is
// work.
void dqi_poller_sleep(dqi_poller *p, int64_t until_ns);
// True while some queue lets its packets wait: there is no use in trying on.
bool dqi_poller_rests(const dqi_poller *p);
// Lets a moment pass in which the poller, idle for so long, goes on trying; false: it has tried for long
// enough.
bool dqi_poller_tries(const dqi_poller *p, int64_t idle_ns);
// Sets the timer slack of the calling thread, how late its timers may end, to 1 ns: Linux gives it 50 us.
// Once.
void dqi_thread_set_timer_slack(void);

// Sleeps on fds[1..n) and the wake-up (which it puts into fds[0]) for ns nanoseconds (INT64_MAX: for ever).
// The caller has announced it (dqi_wake_announce) and looked for work since. True: nothing woke it.
bool dqi_wake_sleep(dqi_wake *w, struct pollfd *fds, nfds_t n, int64_t ns);
// Starts p's own thread, pinned to p->core unless that is -1.
int dqi_worker_start(dqi_poller *p, dq_diag *diag);
// Ends and joins it. Fine when it never started.
void dqi_worker_stop(dqi_poller *p);

#endif
