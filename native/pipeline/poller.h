// poller.h: pollers, sleeping, and worker threads.
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
    dq_stage **stages; // polled with the queues
    uint32_t n_stages;
    _Atomic uint32_t hold; // control threads that request a pause
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool held, running;
    pthread_t thread;
    bool own_thread;            // a worker, not a task
    _Atomic(const void *) task; // identity of the task's thread (dqi_self), after its first wait
    int core;
    dq_session *session;
    _Atomic uint32_t quit;
    _Atomic uint32_t
        rounds;      // of a task: incremented when it begins and when it ends to poll, so odd meanwhile
    int64_t spin_ns; // how long it spins before it sleeps
    int64_t wake_ns; // wake-up latency
    int64_t lead_ns; // how long before a departure it must be awake
} dqi_poller;
int dqi_poller_init(dqi_poller *p, dq_session *s);
void dqi_poller_close(dqi_poller *p);
// Add a queue with the stages it is the source of, or a stage with its queues. The poller is paused.
int dqi_poller_add(dqi_poller *p, dq_queue *q);
int dqi_poller_add_stage(dqi_poller *p, dq_stage *st);
void dqi_poller_remove(dqi_poller *p, dq_queue *q);
// Pauses the poller until the release; no effect if the caller is its thread or it has no thread. Calls must
// be paired.
void dqi_poller_hold(dqi_poller *p);
void dqi_poller_release(dqi_poller *p);
// Waits until the polls that have begun on p's thread have ended. Not on p's own thread within a poll.
void dqi_poller_pass(dqi_poller *p);
// Mark a poll of a task outside of dqi_poller_once. No effect on a worker, which dqi_poller_hold can pause.
void dqi_poller_begin(dqi_poller *p);
void dqi_poller_end(dqi_poller *p);
// Identifies the calling thread.
const void *dqi_self(void);
// Polls each queue and stage once. Returns the work done (0: idle).
int dqi_poller_once(dqi_poller *p);
// Sleeps until woken, an engine's descriptor is ready, or until_ns (monotonic). Returns immediately if there
// is work.
void dqi_poller_sleep(dqi_poller *p, int64_t until_ns);
// Whether a queue rests, with packets in its engine: spinning is then useless.
bool dqi_poller_rests(const dqi_poller *p);
// Spins once if a poller that has been idle for idle_ns should still spin; false: it should sleep.
bool dqi_poller_tries(const dqi_poller *p, int64_t idle_ns);
// Sets the timer slack of the calling thread to 1 ns (Linux default: 50 us). Once per thread.
void dqi_thread_set_timer_slack(void);

// Starts p's own thread, pinned to p->core unless that is -1.
int dqi_worker_start(dqi_poller *p, dq_diag *diag);
// Stops and joins p's thread, if it was started.
void dqi_worker_stop(dqi_poller *p);

#endif
