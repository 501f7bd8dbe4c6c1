// queue.h: receive and transmit queues.
#ifndef DQI_QUEUE_H
#define DQI_QUEUE_H

#include "pipeline/dq_session.h"
#include "core/counters.h"
#include "pipeline/pace.h"
#include "pipeline/pipe.h"
#include "core/ring.h"
#include "packet/template.h"

typedef struct dqi_poller dqi_poller;
typedef struct dqi_tx_accuracy dqi_tx_accuracy;
typedef struct dqi_tx_gpu dqi_tx_gpu; // tx_gpu.h
typedef struct dqi_histogram dqi_histogram;
typedef struct dqi_flow_counts dqi_flow_counts;
typedef struct dqi_peer_counts dqi_peer_counts;

struct dq_queue {
    dq_queue_conf conf;
    dq_session *session;
    dq_iface *iface;
    _Atomic(dqi_poller *) poller; // kicked by senders while it changes hands
    dq_stage *owner;              // of a stage's queue (stage_queue.h)
    void *engine;                 // the engine's own; of a stage's queue the stage's
    dqi_burst_pool *bursts;
    dqi_counters c;
    dqi_fault faults[DQI_FAULTS];
    dqi_gauge held;   // packets in the current burst, the dispatch and the transmit ring
    uint32_t n_armed; // descriptors that its engine armed for the poller's sleep
    int64_t next_ns;  // session time at which polling makes sense again; 0: now, INT64_MAX: on a kick only
    _Atomic uint32_t stopping;

    // receive
    dq_burst *cur;
    int32_t stamping;    // dq_stamps: software or virtual, unless the engine says otherwise at open
    uint8_t device_only; // of its regions (dqi_device_only)
    bool heads;          // packets lie on a GPU whole, and bursts bring their heads
    bool immediate;      // without a time-out, deliver what a poll brought
    int64_t cur_since;   // session time of cur's first packet
    dqi_dispatch dispatch;
    dq_pipe **pipes;
    dq_pipe *claim; // goes first, once for each burst: the pipes get what it leaves. NULL: there is none
    uint32_t n_pipes, n_consumers;
    bool handles;           // bursts may go through the pipes as handles
    uint32_t pipes_version; // grows with every change of pipes
    bool deliver_now;       // the engine's wish: what the current burst has goes before what comes next
    bool blocked;           // can't take packets now, which wait for a stage or, where none is, for room in
                            // the pools: readable descriptors are no reason to wake
    _Atomic bool consumed;  // it is read: n_pipes > 0; with a claim, once aggregates of it are asked for
    dqi_histogram *sizes;   // of the bursts delivered, see DQ_HISTOGRAM_BURST_SIZE
    dqi_flow_counts *flow_counts;
    dqi_peer_counts *peer_counts; // of payloads
    _Atomic bool stalled;         // of a stage's queue: blocked, for other threads
    int64_t rest_ns;    // how long the engine may keep packets while the burst's time-out runs; 0: not at all
    int64_t rest_until; // session time until which it does
    // Bytes that flows' actions take away at most (actions.h); 0: no flow has any. The engine receives a
    // frame into lead + buf_size bytes that begin lead bytes before the buffer's place; rx.c sees to what is
    // too long then.
    _Atomic uint32_t lead;

    // transmit
    dqi_ring ring;
    dq_burst *tx;
    uint32_t tx_pos;
    int64_t tx_since;  // when tx was looked at first
    _Atomic bool busy; // had something to send at the last poll
    int64_t now_ns;    // of the last look at the clock, for the engine
    bool tx_made;      // tx is of the transmission gen
    dqi_pace pace;
    dqi_tx_accuracy *timing;
    dq_template *gen;
    _Atomic uint64_t gen_left;
    dq_burst *shared; // somebody else reads it: it is copied, from packet shared_pos on, before flows change
    uint32_t shared_pos; // its packets
    int64_t ahead_ns; // so long before its send time the engine takes a packet, and its device keeps to the
                      // time; 0: it sends at once
    uint8_t device_sums;       // DQ_HAS_*: the engine takes bursts whose `sums` have only these
    dqi_stamped stamped;       // places: NULL where other queues write the buffers
    _Atomic bool unstamped;    // others do
    _Atomic(dqi_tx_gpu *) gpu; // brings what lies in its memory; NULL: nothing has
};

// Somebody else begins to write buffers of r: what transmit queues have written there is not taken to be
// there still. Any thread.
void dqi_tx_share_region(const dq_session *s, const dq_region *r);
// True when some pipe takes what comes from this connection (0: from none). Queue's poller.
bool dqi_queue_wants(const dq_queue *q, uint32_t conn);
// Polls a queue once; work done. Poller's thread.
int dqi_rx_poll(dq_queue *q);
int dqi_tx_poll(dq_queue *q);
static inline int dqi_queue_poll(dq_queue *q) {
    return q->conf.dir == DQ_RX ? dqi_rx_poll(q) : dqi_tx_poll(q);
}

// Packets that q, or its engine for it, has. Any thread.
uint64_t dqi_queue_held(const dq_queue *q);
// Wakes whoever polls q. Any thread.
void dqi_queue_kick(dq_queue *q);
// The same for the queue that waits for a consumer's room, which has come; NULL: none does.
static inline void dqi_queue_go_on(_Atomic(dq_queue *) *stalled) {
    if (atomic_load_explicit(stalled, memory_order_relaxed) == NULL) return;
    dq_queue *q = atomic_exchange(stalled, NULL);
    if (q) dqi_queue_kick(q);
}

// A burst of n packets with buffers for q; of its columns only off is filled.
int dqi_tx_take_burst(dq_queue *q, uint32_t n, dq_burst **out);
// Whether q may send packets of another queue whose segments lie where device_only says.
int dqi_tx_reaches(dq_queue *q, uint32_t device_only, const dq_queue *from, dq_diag *diag);
// dq_tx_send, but that nobody polls the queue or is woken.
int dqi_tx_put(dq_queue *q, dq_burst *b);
// True when nothing waits to be sent.
bool dqi_tx_idle(const dq_queue *q);
// Drop what is left, counted as stopped; pollers have ended.
void dqi_tx_drop_rest(dq_queue *q);
void dqi_rx_drop_rest(dq_queue *q);

#endif
