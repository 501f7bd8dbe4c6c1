// session.h: a session, its state and its end.
//
// Threads: a queue is touched by one thread at a time, its poller's (poller.h: a worker, or the task of a
// direct queue). Bursts cross threads through bounded rings (ring.h). Control calls that change what a poller
// walks (pipes, transmissions, rules) hold the poller first (dqi_poller_hold), so the packet path takes no
// lock.
#ifndef DQI_SESSION_H
#define DQI_SESSION_H

#include "core/dq_core.h"
#include "core/atomics.h"

#include <pthread.h>

typedef struct dqi_burst_pool dqi_burst_pool;
typedef struct dqi_poller dqi_poller;
typedef struct dqi_cuda_memory dqi_cuda_memory; // cuda/memory.h

#define DQI_MAX_IFACES       64
#define DQI_MAX_REGIONS      256
#define DQI_MAX_STAGES       1024
#define DQI_MAX_STAGE_QUEUES 64
#define DQI_MAX_NOTES        256
#define DQI_MAX_WORKERS      256

typedef enum dqi_state { DQI_NEW, DQI_OPEN, DQI_STARTED, DQI_STOPPED, DQI_FINISHED } dqi_state;

struct dq_session {
    dq_session_conf conf;
    _Atomic dqi_state state; // control calls change it
    bool ending;             // dq_session_stop was called
    int64_t end_ns;          // a stage that gets nowhere for so long is abandoned at the end
    int64_t drain_until;     // session time until which it sends what was queued
    // clock
    int64_t start_ns, mono0_ns;
    _Atomic int64_t virtual_ns;
    // Receiving ends at one moment: what came before is delivered, what comes later belongs to nobody.
    // DQI_RECEIVING: it goes on; DQI_STOP_NOW: the moment is being taken.
    _Atomic int64_t stop_ns;
    int64_t quiesced_ns; // when receiving had ended and the last packet had left; 0: not yet
    // arena
    uint8_t *base;
    void *reserved; // the mapping that base lies in
    uint64_t reserved_bytes;
    uint64_t huge_at;     // where its part on huge pages begins
    uint64_t arena_bytes; // of CPU memory; offsets from there on are of regions that the CPU can't read
    uint8_t *device;      // where what stands for a device has those
    uint64_t device_bytes;
    int fds[3];            // memfds: small pages, huge pages, what the CPU can't read
    dqi_cuda_memory *cuda; // what GPUs have of it; NULL: it uses none
    dq_region *regions[DQI_MAX_REGIONS];
    uint32_t n_regions;
    bool heads;   // some region has heads: bursts have columns for them
    bool origins; // packets may come with what a capture says of them: the same
    bool targets; // regions keep where packets were sent to (peers.h)
    dq_iface *ifaces[DQI_MAX_IFACES];
    uint32_t n_ifaces;
    dqi_poller *workers[DQI_MAX_WORKERS];
    uint32_t n_workers;
    dq_stage *stages[DQI_MAX_STAGES];
    _Atomic uint32_t n_stages;
    dq_queue *stage_queues[DQI_MAX_STAGE_QUEUES]; // receive queues that stages hand bursts out of
    _Atomic uint32_t n_stage_queues;
    dqi_spin notes_lock;
    char *notes[DQI_MAX_NOTES];
    uint32_t n_notes;
    dqi_burst_pool *picks; // descriptors of selections, of picks_cap packets
    uint32_t picks_cap;
    pthread_mutex_t control;    // pipes and stages, against readers of the ledger
    pthread_mutex_t engines;    // of the end of engines, against stages that ask them for connections
    bool closed;                // they have ended
    bool memory_leaked;         // something outside of its stages may touch its memory for ever
    _Atomic bool failing;       // a device has failed one of its queues,
    _Atomic(dq_queue *) failed; // this one, and why
    char failure[224];
};

// Adds a line to the session's report. Any thread.
void dqi_note(dq_session *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define DQI_RECEIVING INT64_MAX
#define DQI_STOP_NOW  INT64_MIN
#define DQI_ON_WAY_NS INT64_C(5000000) // behind the stop: the kernel hands over what it stamped before it
// The session time at which receiving ended, or DQI_RECEIVING. Engines ask after they have got a packet: if
// it came before the stop they hear so, whoever ends receiving meanwhile. May wait for a moment.
int64_t dqi_stop_wait(const dq_session *s);
static inline int64_t dqi_stop_time(const dq_session *s) {
    int64_t t = atomic_load_explicit(&s->stop_ns, memory_order_acquire);
    return t == DQI_STOP_NOW ? dqi_stop_wait(s) : t;
}
static inline bool dqi_receives(const dq_session *s) { return dqi_stop_time(s) == DQI_RECEIVING; }

static inline bool dqi_virtual(const dq_session *s) { return s->conf.virtual_clock != 0; }

// Frees an interface and its event tap; the engine is closed already.
void dqi_iface_free(dq_iface *i);

#endif
