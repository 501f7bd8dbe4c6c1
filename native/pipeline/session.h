// session.h: a session's data and its states.
//
// Threads: only one thread at a time uses a queue, that of its poller (poller.h: a worker, or the task of a
// direct queue). Bursts cross threads through bounded rings (ring.h). Control calls that change what a poller
// reads (pipes, transmissions, rules) first pause it (dqi_poller_hold): no lock on the packet path.
#ifndef DQI_SESSION_H
#define DQI_SESSION_H

#include "core/core.h"

#include <pthread.h>

typedef struct dqi_poller dqi_poller;

#define DQI_MAX_IFACES       64
#define DQI_MAX_STAGES       1024
#define DQI_MAX_STAGE_QUEUES 64
#define DQI_MAX_WORKERS      256

typedef enum dqi_state { DQI_NEW, DQI_OPEN, DQI_STARTED, DQI_STOPPED, DQI_FINISHED } dqi_state;

struct dq_session {
    dqi_core core;           // first: see dqi_core_of
    _Atomic dqi_state state; // changed by control calls
    bool ending;             // dq_session_stop was called
    int64_t end_ns;          // how long the end of the session waits for a stage or device without progress
    int64_t drain_until;     // session time until which queued packets are sent
    // Receiving ends at one point in time: packets that arrived before are delivered, packets that arrive
    // later are not part of the session. DQI_RECEIVING: not ended; DQI_STOP_NOW: being determined.
    _Atomic int64_t stop_ns;
    int64_t quiesced_ns; // when receiving had ended and the last packet had left; 0: not yet
    dq_iface *ifaces[DQI_MAX_IFACES];
    uint32_t n_ifaces;
    dqi_poller *workers[DQI_MAX_WORKERS];
    uint32_t n_workers;
    dq_stage *stages[DQI_MAX_STAGES];
    _Atomic uint32_t n_stages;
    dq_queue *stage_queues[DQI_MAX_STAGE_QUEUES]; // receive queues fed by stages
    _Atomic uint32_t n_stage_queues;
    pthread_mutex_t control;    // guards pipes and stages against readers of the ledger
    pthread_mutex_t engines;    // guards engines while they close, against stages that request connections
    bool closed;                // the engines are closed
    bool memory_leaked;         // a device or kernel may still access its memory after the end
    _Atomic bool failing;       // a device has failed one of its queues:
    _Atomic(dq_queue *) failed; // this one; failure is the reason
    char failure[224];
};

_Static_assert(offsetof(dq_session, core) == 0, "dqi_core_of");

#define DQI_END_NS INT64_C(5000000000) // maximum time without progress

// Finishes all stages; those whose finish may block run concurrently on their own threads. A stage that
// releases no packet for s->end_ns is abandoned: its packets count as stopped, and everything it may access
// is leaked. Pollers have ended.
void dqi_stages_finish(dq_session *s);
// Records a device error of the queue; the session keeps the first one. Any thread.
void dqi_queue_fail(dq_queue *q, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
// Whether a stage was abandoned, or the session's memory was leaked.
bool dqi_session_abandoned(const dq_session *s);

#define DQI_RECEIVING INT64_MAX
#define DQI_STOP_NOW  INT64_MIN
#define DQI_ON_WAY_NS INT64_C(5000000) // grace after the stop, for packets timestamped before it
// Waits while the end of reception is being determined; returns it, as dqi_stop_time.
int64_t dqi_stop_wait(const dq_session *s);
// Returns the session time at which receiving ended, or DQI_RECEIVING. Engines call it after they got a
// packet: a packet that arrived before the stop is never taken for a later one. May wait briefly.
static inline int64_t dqi_stop_time(const dq_session *s) {
    int64_t t = atomic_load_explicit(&s->stop_ns, memory_order_acquire);
    return t == DQI_STOP_NOW ? dqi_stop_wait(s) : t;
}
static inline bool dqi_receives(const dq_session *s) { return dqi_stop_time(s) == DQI_RECEIVING; }

#endif
