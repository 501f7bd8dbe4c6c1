// queue.h: receive and transmit queues.
#ifndef DQI_QUEUE_H
#define DQI_QUEUE_H

#include "core/counters.h"
#include "core/ring.h"
#include "packet/template.h"
#include "pipeline/dq_session.h"
#include "pipeline/pace.h"
#include "pipeline/pipe.h"

typedef struct dqi_poller dqi_poller;
typedef struct dqi_tx_accuracy dqi_tx_accuracy;
typedef struct dqi_tx_gpu dqi_tx_gpu; // tx_gpu.h
typedef struct dqi_histogram dqi_histogram;
typedef struct dqi_flow_counts dqi_flow_counts;
typedef struct dqi_peer_counts dqi_peer_counts;

// What a receive queue has in addition. Accessed by its poller, unless noted otherwise.
typedef struct dqi_rx_part {
    dq_burst *cur;
    int32_t stamping; // dq_stamps: software or virtual, unless the engine sets it at open
    bool immediate;   // without a timeout, deliver the result of each poll
    int64_t since;    // session time of cur's first packet
    dqi_dispatch dispatch;
    dq_pipe **pipes;
    dq_pipe *claim; // runs first, once per burst: the pipes get its output. NULL: none
    uint32_t n_pipes, n_consumers;
    bool handles;           // bursts may go through the pipes as handles
    uint32_t pipes_version; // incremented with every change of pipes
    bool deliver_now;       // set by the engine: deliver the current burst before receiving more
    bool blocked; // can't accept packets, because of a stage or empty pools: readable descriptors are not
                  // armed
    _Atomic bool consumed; // has consumers: n_pipes > 0; with a claim, once its aggregates are read
    dqi_histogram *sizes;  // of delivered bursts, see DQ_HISTOGRAM_BURST_SIZE
    dqi_flow_counts *flow_counts;
    dqi_peer_counts *peer_counts; // queues of payloads
    _Atomic bool stalled;         // stage's queue: `blocked`, for other threads
    int64_t rest_ns;              // how long the engine may keep packets within the burst's timeout; 0: not
    int64_t rest_until;           // session time at which that ends
    // Maximum bytes removed by actions of flows (actions.h); 0: no flow removes any. The engine receives a
    // frame into lead + buf_size bytes that start lead bytes before the buffer; rx.c handles frames that are
    // still too long afterwards.
    _Atomic uint32_t lead;
} dqi_rx_part;

// What a transmit queue has in addition, likewise.
typedef struct dqi_tx_part {
    dqi_ring ring;
    dq_burst *cur;
    uint32_t pos;
    int64_t since;     // when the first poll saw cur
    _Atomic bool busy; // had packets to send at the last poll
    int64_t now_ns;    // clock at the last poll, for the engine
    bool made;         // cur is a burst of the transmission gen
    dqi_pace pace;
    dqi_tx_accuracy *timing;
    dq_template *gen;
    _Atomic uint64_t gen_left;
    dq_burst *shared; // burst with other readers: copied from packet shared_pos on before flows modify it
    uint32_t shared_pos;
    int64_t ahead_ns; // lead before the send time at which the engine accepts a packet, whose time the device
                      // enforces; 0: none
    uint8_t device_sums;       // DQ_HAS_*: checksums in `sums` that the device can compute
    dqi_stamped stamped;       // places: NULL if other queues write the buffers
    _Atomic bool unstamped;    // other writers have appeared
    _Atomic(dqi_tx_gpu *) gpu; // copies packets out of its memory; NULL: not needed so far
} dqi_tx_part;

// Life of a queue. Classifiers and senders skip a queue that is not alive.
enum dqi_queue_life {
    DQI_QUEUE_ALIVE,
    DQI_QUEUE_DRAINING, // deleted, with packets or bursts in use
    DQI_QUEUE_GONE,     // polled by no thread; its counters stay in the ledger
};

struct dq_queue {
    dq_queue_conf conf;
    dq_session *session;
    dq_iface *iface;
    _Atomic(dqi_poller *) poller; // kicked by senders while it changes hands
    dq_stage *owner;              // stage of a stage's queue (stage_queue.h), otherwise NULL
    void *engine;                 // engine's data; for a stage's queue the stage's
    dqi_burst_pool *bursts;
    dqi_counters c;
    dqi_queue_error errors[DQI_QUEUE_ERRORS];
    dqi_gauge held;   // packets in the current burst, the dispatch and the transmit ring
    uint32_t n_armed; // descriptors that its engine armed for the poller's sleep
    int64_t next_ns;  // session time of the next useful poll; 0: now, INT64_MAX: on a kick only
    _Atomic uint32_t stopping;
    _Atomic uint32_t life; // dqi_queue_life
    uint8_t device_only;   // segments of its regions (dqi_device_only)
    bool heads;            // packets are whole on a GPU, and bursts have copies of their heads
    dqi_rx_part rx;
    dqi_tx_part tx;
};

static inline bool dqi_queue_alive(const dq_queue *q) {
    return atomic_load_explicit(&q->life, memory_order_acquire) == DQI_QUEUE_ALIVE;
}
static inline bool dqi_queue_gone(const dq_queue *q) {
    return atomic_load_explicit(&q->life, memory_order_acquire) == DQI_QUEUE_GONE;
}
// Return the first receive or transmit queue of the interface that is alive, or NULL. Any thread.
dq_queue *dqi_first_rx(const dq_iface *i);
dq_queue *dqi_first_tx(const dq_iface *i);
// Allocates what a queue needs before its engine opens it. Control thread.
int dqi_queue_open(dq_queue *q, dq_diag *diag);
// Frees what the queue has, except its bursts and its engine's part. No thread polls it.
void dqi_queue_free(dq_queue *q);
// Makes the queue's worker serve it: the one of its core, or one without queues. Returns in *fresh a worker
// whose thread the caller starts; NULL: it runs. Control thread.
int dqi_queue_assign(dq_queue *q, dqi_poller **fresh, dq_diag *diag);
// Fills a queue from its configuration. Control thread.
void dqi_queue_init(dq_queue *q, dq_iface *i, const dq_queue_conf *conf);
// Checks the configuration of a new queue.
int dqi_queue_check(const dq_iface *i, const dq_queue_conf *conf, dq_diag *diag);
// Checks that the interface's list of queues has a place for one more: DQ_OK, or NO_SPACE_AVAILABLE.
int dqi_queue_place(const dq_iface *i, const dq_queue_conf *conf, dq_diag *diag);
// Appends a new queue to the list of its interface, which pollers and readers of the ledger read. Control
// thread.
void dqi_queue_list(dq_queue *q);

// Invalidates cached template writes of all transmit queues in region r, which gets another writer. Any
// thread.
void dqi_tx_share_region(const dq_session *s, const dq_region *r);
// Whether a pipe accepts packets of this connection (0: of none). Queue's poller.
bool dqi_queue_wants(const dq_queue *q, uint32_t conn);
// Poll a queue once; return the work done. Poller's thread.
int dqi_rx_poll(dq_queue *q);
int dqi_tx_poll(dq_queue *q);
static inline int dqi_queue_poll(dq_queue *q) {
    return q->conf.dir == DQ_RX ? dqi_rx_poll(q) : dqi_tx_poll(q);
}

// Returns the packets in q or inside its engine. Any thread.
uint64_t dqi_queue_held(const dq_queue *q);
// Wakes the poller of q. Any thread.
void dqi_queue_kick(dq_queue *q);
// Resumes the queue that was waiting for space at a consumer; NULL: none. Any thread.
static inline void dqi_queue_go_on(_Atomic(dq_queue *) *stalled) {
    if (atomic_load_explicit(stalled, memory_order_relaxed) == NULL) return;
    dq_queue *q = atomic_exchange(stalled, NULL);
    if (q) dqi_queue_kick(q);
}

// Returns a burst of n packets with buffers for q; only the column off is set.
int dqi_tx_take_burst(dq_queue *q, uint32_t n, dq_burst **out);
// Checks that q can send packets of queue `from` whose segments in device_only the CPU can't read.
int dqi_tx_reaches(dq_queue *q, uint32_t device_only, const dq_queue *from, dq_diag *diag);
// Like dq_tx_send, but neither polls the queue nor wakes its poller.
int dqi_tx_put(dq_queue *q, dq_burst *b);
// Whether q has no packets to send.
bool dqi_tx_idle(const dq_queue *q);
// Returns what a transmit queue's poller writes into packets by configuration, for an error message; NULL:
// nothing.
const char *dqi_tx_writes(const dq_queue *q);
// Drop the remaining packets, counted as stopped; pollers have ended.
void dqi_tx_drop_rest(dq_queue *q);
void dqi_rx_drop_rest(dq_queue *q);

#endif
