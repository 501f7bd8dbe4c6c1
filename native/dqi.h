// dqi.h: what the parts of the native engine know of each other.
//
// Threads: a queue is touched by one thread at a time, its poller's (poller.h: a worker, or the task of a
// direct queue). Bursts cross threads through bounded rings (ring.h). Control calls that change what a poller
// walks (pipes, transmissions, rules) hold the poller first (dqi_poller_hold), so the packet path takes no
// lock.
#ifndef DQI_H
#define DQI_H

#include "dq.h"
#include "steer.h"
#include "atomics.h"
#include "ring.h"

#include <pthread.h>

typedef struct dqi_pool dqi_pool;
typedef struct dqi_burst_pool dqi_burst_pool;
typedef struct dqi_poller dqi_poller;
typedef struct dqi_timing dqi_timing;
typedef struct dqi_spread dqi_spread;
typedef struct dqi_flow_counts dqi_flow_counts;
typedef struct dqi_peer_counts dqi_peer_counts;
typedef struct dqi_engine_ops dqi_engine_ops;
typedef struct dqi_stage_ops dqi_stage_ops;
typedef struct dqi_responder dqi_responder;
typedef struct dqi_rx_acts dqi_rx_acts;
typedef struct dqi_tx_acts dqi_tx_acts;
struct pollfd;
struct sockaddr_in6;
typedef struct dqi_writer dqi_writer;

// Writes the thing at fault into diag (may be NULL) and returns err.
int dqi_fail(dq_diag *diag, int err, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

// ---- counters: one writer each, any reader ----------------------------------------------------------------

typedef struct dqi_counters {
    dqi_count in, in_bytes, out, out_bytes, bursts;
    dqi_count dropped[DQ_REASONS];
    dqi_count extra[DQ_EXTRAS];
} dqi_counters;

#define DQI_FAULTS 6

// System errors by kind, the last for all others; err 0: none from here on. Any thread.
typedef struct dqi_fault {
    _Atomic int32_t err;
    dqi_count n;
} dqi_fault;

// Counts n of errno err. Any thread.
void dqi_fault_add(dqi_fault faults[DQI_FAULTS], int err, uint64_t n);

// Adds what the counters say to a ledger line. Any thread.
void dqi_line_add(dq_line *l, const dqi_counters *c);

// ---- memory -----------------------------------------------------------------------------------------------

// A group whose buffers are given out one by one; its owner is a holder.
typedef struct dqi_spare {
    uint32_t id, used; // id: DQI_NO_BUF, none
} dqi_spare;

// A fixed pool of packet buffers. Buffer ids are unique in the session: first_id .. first_id + num_bufs - 1.
struct dq_region {
    dq_region_conf conf;
    dq_session *session;
    uint8_t *base;   // of the arena
    uint64_t offset; // of the region in the arena
    uint32_t stride;
    uint32_t first_id;
    uint32_t want_bytes, want_least; // dqi_region_want_groups
    bool huge;                       // on huge pages
    dqi_pool *pool;
    // Holders of each super-buffer (UDP GRO, framed TCP); NULL where each buffer has one holder. Never in
    // packet memory.
    _Atomic uint32_t *holders;
    // Groups: the pool hands buffers out `group` at a time, under the first one's id, so that packets may lie
    // across them; 1: it doesn't. across[k]: they do so in group k, and have one peer.
    uint32_t group, n_groups;
    uint8_t *across;
    dqi_spin spare_lock;
    dqi_spare spare; // kept packets are copied there
};

#define DQI_NO_BUF UINT32_MAX

// Takes n buffer ids from the region; all or none: n or 0. Any thread.
uint32_t dqi_bufs_alloc(dq_region *r, uint32_t *ids, uint32_t n);
// The same, but as many as there are.
uint32_t dqi_bufs_some(dq_region *r, uint32_t *ids, uint32_t n);
// Returns buffers (DQI_NO_BUF skipped; super-buffers lose one holder). Regions may be mixed. Any thread.
void dqi_bufs_free(dq_session *s, const uint32_t *ids, uint32_t n);
dq_region *dqi_buf_region(const dq_session *s, uint32_t id);
// Adds a holder to a buffer of a region with a side array. The caller holds it already.
void dqi_buf_hold(dq_region *r, uint32_t id);
// Gives the region a side array; before open.
int dqi_region_share(dq_region *r, dq_diag *diag);
// Asks for groups of at least so many bytes behind one headroom, and for `least` of them: fewer, and the
// region stays as it is. Before the arena is laid out.
void dqi_region_want_groups(dq_region *r, uint32_t bytes, uint32_t least);
// The next buffer of *s, from a new group where that one has no more, or DQI_NO_BUF. The caller adds a holder
// to its group. One caller at a time.
uint32_t dqi_spare_take(dq_region *r, dqi_spare *s);
// The first buffer of the group that a buffer is in.
static inline uint32_t dqi_group_of(const dq_region *r, uint32_t id) {
    return id - (id - r->first_id) % r->group;
}
// Where a packet in buffer id starts: arena offset just after the headroom.
static inline uint64_t dqi_buf_off(const dq_region *r, uint32_t id) {
    return r->offset + (uint64_t)(id - r->first_id) * r->stride + DQ_HEADROOM;
}

// ---- bursts -----------------------------------------------------------------------------------------------

// A burst owns the buffers bufs[seg][0..n_bufs), or holds its parent (a selection owns none). Where each
// packet has a buffer of its own, bufs[seg][i] is packet i's and n_bufs == n, or more where packets were cut
// off that somebody else could reach; with super-buffers the two lists are independent. The checksums of a
// burst's packets that the device is to compute: of IPv4 and of the transport behind it.
typedef struct dqi_sums {
    uint8_t has;    // DQ_HAS_IPV4 or DQ_HAS_IPV6, with DQ_HAS_UDP or DQ_HAS_TCP; 0: they are in the packets
    uint8_t l2_len; // bytes before the IP header,
    uint8_t l3_len; // and of it, in all packets
} dqi_sums;

struct dq_burst {
    _Atomic uint32_t refs;
    uint32_t n, cap, n_bufs, nseg, flags, conn;
    int32_t clock;
    bool slices;  // packets are slices of super-buffers
    bool handles; // off[0][0..n) holds handles of the engine of its queue, len, flow and bufs nothing yet,
                  // and ts no more than ts[0] of the first same_ts (dqi_burst_columns); its one holder may
                  // look, and nobody else
    uint32_t shortest, longest; // bytes; where handles: of its packets
    uint32_t same_ts;           // where handles: packets that came with the first, at ts[0]
    bool grown;                 // a packet begins in the headroom and is longer than its buffer
    bool holes;                 // some packets' segments of length 0 were freed, and stay empty
    uint64_t bytes;
    dq_session *session;
    dq_queue *queue;               // that received it, or that it was allocated for
    dqi_burst_pool *home;          // where its descriptor returns
    dq_burst *parent;              // of a selection
    const dq_aggregate *aggregate; // of a reordered burst; NULL
    int64_t due_ns;                // wire: not before this time
    uint64_t *off[DQ_MAX_SEGS];
    uint32_t *len[DQ_MAX_SEGS];
    uint32_t *bufs[DQ_MAX_SEGS];
    uint32_t *flow;
    int64_t *ts;
    int64_t *tx_time; // values where timed
    bool timed;
    dqi_sums sums; // of a burst made for a queue with device_sums
};

// n descriptors of cap packets and nseg segments each. NULL: no memory.
dqi_burst_pool *dqi_burst_pool_new(dq_session *s, uint32_t n, uint32_t cap, uint32_t nseg);
void dqi_burst_pool_free(dqi_burst_pool *p);
uint32_t dqi_burst_pool_level(dqi_burst_pool *p); // free descriptors
// An empty burst with one reference, or NULL. Any thread.
dq_burst *dqi_burst_get(dqi_burst_pool *p);
// Allocates n buffers of each of the regions for b (empty) and sets off; the other columns are the caller's
// to fill. DQ_OK or DQ_NO_FREE_PACKET_BUFFERS.
int dqi_burst_fill(dq_burst *b, dq_region *const *regions, uint32_t nseg, uint32_t n);
// Moves packets [first, first + n) of src, with their buffers, to the end of dst. src must be owned alone,
// without slices; dst must have room.
void dqi_burst_move(dq_burst *dst, dq_burst *src, uint32_t first, uint32_t n);
static inline bool dqi_burst_alone(const dq_burst *b) { return dqi_load_acq32(&b->refs) == 1; }
// True when b's buffers are its own, one for each packet, and nobody else holds it: they may go on without
// it.
static inline bool dqi_burst_detachable(const dq_burst *b) {
    return dqi_burst_alone(b) && !b->parent && !b->slices && b->n_bufs == b->n;
}
static inline const uint8_t *dqi_burst_base(const dq_burst *b);
// Fills the columns of a burst that came as handles: before they are read. Its holder.
void dqi_burst_fill_columns(dq_burst *b);
static inline void dqi_burst_columns(dq_burst *b) {
    if (b->handles) dqi_burst_fill_columns(b);
}
// The peer's socket address (struct sockaddr_in or sockaddr_in6, family 0 where there is none) stands at the
// start of the first segment's headroom.
struct sockaddr_in6 *dqi_burst_peer_addr(const dq_burst *b, uint32_t i);

// ---- pollers, workers, waiting ----------------------------------------------------------------------------

// Lets one thread sleep until another has work for it, without a system call while it is awake.
typedef struct dqi_wake {
    _Atomic uint32_t sleeping;
    int fd; // eventfd
} dqi_wake;
int dqi_wake_init(dqi_wake *w);
void dqi_wake_close(dqi_wake *w);
void dqi_wake_up(dqi_wake *w); // any thread
// Says that the caller is about to sleep: it looks for work once more after this, and calls dqi_wake_stay or
// dqi_wake_sleep (poller.h).
static inline void dqi_wake_announce(dqi_wake *w) { atomic_exchange(&w->sleeping, 1); }
static inline void dqi_wake_stay(dqi_wake *w) { atomic_exchange(&w->sleeping, 0); }

// Serves a set of queues on one thread.
struct dqi_poller {
    dqi_wake wake;
    dq_queue **queues;
    uint32_t n, cap;
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
    int64_t lead_ns; // how long before a departure it has to be awake
};
int dqi_poller_init(dqi_poller *p, dq_session *s);
void dqi_poller_close(dqi_poller *p);
int dqi_poller_add(dqi_poller *p, dq_queue *q);
void dqi_poller_remove(dqi_poller *p, dq_queue *q);
// Makes the poller stand still until the release; no effect where the caller is its thread or it has none.
// Pairs.
void dqi_poller_hold(dqi_poller *p);
void dqi_poller_release(dqi_poller *p);
// Identifies the calling thread.
const void *dqi_self(void);
// Polls each queue once. Work done (0: idle).
int dqi_poller_once(dqi_poller *p);
// Sleeps until woken, an engine's descriptor is ready, or until_ns (monotonic). Returns at once if there is
// work.
void dqi_poller_sleep(dqi_poller *p, int64_t until_ns);
// True while some queue lets its packets wait: there is no use in trying on.
bool dqi_poller_rests(const dqi_poller *p);
// Timers of the calling thread end within a microsecond, not the 50 that Linux gives them. Once.
void dqi_thread_wakes_sharply(void);
// Wakes whoever polls q. Any thread.
void dqi_queue_kick(dq_queue *q);

// A bounded queue of events from pollers to a task.
typedef struct dqi_tap {
    dqi_ring ring;
    dq_waiter *waiter;
    uint64_t tag;
    dqi_gauge packets; // in the ring
} dqi_tap;

// ---- stages and pipes -------------------------------------------------------------------------------------

// One stage in one pipe: counters written by the pipe's queue's poller alone.
typedef struct dqi_node {
    dq_stage *stage;
    dqi_counters c;
    uint32_t turn;     // a sampler's position; how many packets of a stalled burst are through
    uint32_t rest;     // of these: that pass, their indices in scratch
    uint32_t *scratch; // of the pipe: room for the indices of one batch
} dqi_node;

struct dq_pipe {
    dq_queue *queue;
    uint32_t conn;
    uint32_t n;
    uint32_t *scratch; // batch_size indices, for the nodes in turn
    dqi_node nodes[];
};

struct dqi_stage_ops {
    int32_t line_kind; // dq_line_kind
    bool consumer;     // looks at packets after its push, or changes them: two on a queue make its bursts
                       // read-only
    bool blind;        // never looks at packets in its push: takes handles
    // Refuses a queue whose packets the stage can't take; NULL: takes all.
    int (*check)(const dq_stage *st, const dq_queue *q, dq_diag *diag);
    // A pipe of q begins to use the stage. Control thread; q's poller stands still. NULL: nothing to do.
    int (*join)(dq_stage *st, dq_queue *q, dq_diag *diag);
    // Consumes the caller's reference to in; *out: the burst to go on with, with a reference, or NULL.
    // DQ_NOT_READY: nothing consumed, try the same again later (policy wait). Queue's poller only; never
    // blocks.
    int (*push)(dq_stage *st, dqi_node *node, dq_burst *in, dq_burst **out);
    uint64_t (*held)(const dq_stage *st);               // packets inside; NULL: none
    void (*line)(const dq_stage *st, dq_line *line);    // adds counters of its own; NULL: none
    void (*spread)(const dq_stage *st, dq_spread *out); // fills its kind and counts; NULL: it has none
    uint32_t (*sources)(const dq_stage *st, dq_source_count *out, uint32_t max); // dq_source_counts; NULL
    int (*start)(dq_stage *st, dq_diag *diag);                                   // NULL: nothing to do
    int (*step)(dq_stage *st);       // virtual clock: work done; NULL
    uint64_t (*drain)(dq_stage *st); // the end of the stream: lets go what waits for more; how many; NULL
    void (*finish)(dq_stage *st);    // writes what it holds, ends its thread; NULL
    void (*free)(dq_stage *st);      // of impl; after finish
};

struct dq_stage {
    char name[DQ_NAME_LEN];
    const dqi_stage_ops *ops;
    dq_session *session;
    void *impl;
    dqi_counters past;       // of nodes whose pipes were removed
    const dq_region *region; // whose buffers it takes; NULL: none
    bool waits;              // for them, however long it takes
};

int dqi_stage_add(dq_session *s, const char *name, const dqi_stage_ops *ops, void *impl, dq_stage **out,
                  dq_diag *diag);
// Whether a stage, `what` in errors, may take the region's buffers: not where a queue joins them, and not
// where it would wait for those that packets behind or before it have.
int dqi_stage_may_take(dq_session *s, const char *what, const dq_region *r, bool waits, dq_diag *diag);

// ---- queues -----------------------------------------------------------------------------------------------

// How far a burst has come through its queue's pipes; a stage may stall it.
typedef struct dqi_dispatch {
    bool active;     // a burst is under way
    bool taken;      // by a pipe at least
    bool claimed;    // what the queue's claim takes is taken
    dq_burst *burst; // the reference for the pipes to come; NULL: `pipe` is the last
    dq_burst *cur;   // before node `node` of pipe `pipe`
    uint32_t pipe, node, conn, n;
    uint64_t bytes;
} dqi_dispatch;

// Software pacing: a packet leaves when its time has come; each moves the time on by what it costs at the
// rate.
typedef struct dqi_pace {
    _Atomic double bps, pps;     // 0: not limited
    _Atomic double speed;        // of the receive times that it follows (pace_follow.c); 0: none
    double next_ns;              // relative to the session's start
    double seen_bps, seen_pps;   // at the last look: next_ns and these two follow from them
    double per_byte, per_packet; // ns
    // follows receive times: next_ns is when the last packet was due
    double seen_speed, first_ns; // first_ns: when the first of the counted packets is due
    int64_t last_ts;             // the latest receive time so far; 0: none
    bool was_idle;               // the queue had nothing to send before these packets
} dqi_pace;

// Which buffers of a region hold the whole of a template already, by buffer from id `first` on: those whose
// place is `stamp` (above 0) in its upper half, and in its lower the first of the buffers that the packets
// before it fill without a gap.
typedef struct dqi_stamped {
    uint64_t *places;
    uint32_t stamp, first;
} dqi_stamped;

struct dq_queue {
    dq_queue_conf conf;
    dq_session *session;
    dq_iface *iface;
    _Atomic(dqi_poller *) poller; // kicked by senders while it changes hands
    dq_queue *leader, *behind; // of a stage's queue: the one whose poller serves it, too; and a list of those
    dq_queue *behind_too;      // that are served with this one: its first, and the next of its leader's
    void *engine;              // the engine's own
    dqi_burst_pool *bursts;
    dqi_counters c;
    dqi_fault faults[DQI_FAULTS];
    dqi_gauge held;  // packets in the current burst, the dispatch and the transmit ring
    int64_t next_ns; // session time at which polling makes sense again; 0: now, INT64_MAX: on a kick only
    _Atomic uint32_t stopping;

    // receive
    dq_burst *cur;
    int32_t stamping;  // dq_stamps: software or virtual, unless the engine says otherwise at open
    bool immediate;    // without a time-out, deliver what a poll brought
    int64_t cur_since; // session time of cur's first packet
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
    dqi_spread *sizes;      // of the bursts delivered, see DQ_SPREAD_BURST_SIZE
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
    dqi_timing *timing;
    dq_template *gen;
    _Atomic uint64_t gen_left;
    dq_burst *shared; // somebody else reads it: it is copied, from packet shared_pos on, before flows change
    uint32_t shared_pos; // its packets
    int64_t ahead_ns; // so long before its send time the engine takes a packet, and its device keeps to the
                      // time; 0: it sends at once
    uint8_t device_sums; // DQ_HAS_*: the engine takes bursts whose `sums` have only these
    dqi_stamped stamped; // places: NULL where others may write the buffers
};

// True when some pipe takes what comes from this connection (0: from none). Queue's poller.
bool dqi_queue_wants(const dq_queue *q, uint32_t conn);
// Polls a queue once; work done. Poller's thread.
int dqi_rx_poll(dq_queue *q);
int dqi_tx_poll(dq_queue *q);
static inline int dqi_queue_poll(dq_queue *q) {
    return q->conf.dir == DQ_RX ? dqi_rx_poll(q) : dqi_tx_poll(q);
}
// Counts n packets dropped by q's poller.
void dqi_drop(dqi_counters *c, dq_reason why, uint64_t n);

// ---- interfaces and engines -------------------------------------------------------------------------------

struct dq_iface {
    dq_iface_conf conf;
    dq_session *session;
    const dqi_engine_ops *ops;
    void *engine; // the engine's own
    uint32_t index;
    uint32_t n_rx, n_tx;
    dq_queue *rx[DQ_MAX_QUEUES], *tx[DQ_MAX_QUEUES];
    dq_xdp xdp;                         // of engine xdp
    _Atomic(dqi_tap *) events;          // connect and disconnect events
    _Atomic(dqi_responder *) responder; // responder.h; NULL: it says nothing by itself
    dqi_rx_acts *rx_acts;               // flows with actions (actions.h); NULL: none
    dqi_spin tx_lock;                   // of the pointer to
    _Atomic(dqi_tx_acts *) tx_acts;     // transmit flows (actions.h); NULL: none
};

// What every engine does. Calls on one interface never overlap, except rx, tx and arm on different queues.
struct dqi_engine_ops {
    const char *name;
    bool payload;       // queues hold payloads, not frames
    bool flows;         // dq_iface_change_rules works
    bool virtual_clock; // may run without threads
    bool copies;        // when tx has taken a packet nobody reads or writes its bytes any more
    uint32_t align;     // of buffers, bytes
    // Says how it will use regions (dqi_region_want_groups), before they are laid out. NULL.
    void (*claim)(dq_iface *i);
    // Acquires the interface: regions and queues are known (i->rx, i->tx), the arena is mapped. May block.
    int (*open)(dq_iface *i, dq_diag *diag);
    int (*start)(dq_iface *i, dq_diag *diag); // NULL: nothing to do
    // Ends reception and new connections: takes down how far each of its sources has come. Queued sends may
    // still be drained. Pollers go on, but none of them gets past dqi_stop_time until all interfaces have
    // stopped: it waits for none, and for no lock that they hold then.
    void (*stop)(dq_iface *i);
    // Frees all; works on a half-open interface. All pollers have ended.
    void (*close)(dq_iface *i);
    // Appends at most room packets to *b (its off, len, ts, bufs, bytes, or handles for the first four where
    // q->handles allows; c.in counts what arrived, drops
    // included). May exchange an empty *b for another of at most batch_size packets. Packets added, 0: none.
    // Sets q->next_ns when it knows when there will be more. With room 0 it only sees to its connections. A
    // connection that nobody takes packets of (dqi_queue_wants) isn't read. Queue's poller; never blocks.
    int (*rx)(dq_queue *q, dq_burst **b, uint32_t room);
    // Ends b->handles of a burst of its queues: fills off, len, flow and bufs, empty where a handle is NULL.
    // tx takes such a burst of the same engine as it is. NULL: the engine makes no such bursts.
    void (*columns)(dq_burst *b);
    // Sends packets [first, first + n) of b; the number taken. When it takes the burst's last packet it also
    // takes the caller's reference. What it can't send for good it takes and counts as dropped; 0: try again
    // later (it sets q->next_ns, or the queue is kicked). Counts c.out, c.out_bytes. Queue's poller; never
    // blocks.
    int (*tx)(dq_queue *q, dq_burst *b, uint32_t first, uint32_t n);
    // True when the queue takes no more for where b goes, though its ring has room: dq_tx_send says
    // NO_SPACE_AVAILABLE. Counts what b's connection alone is to blame for (DQ_EXTRA_REFUSED). Any thread.
    // NULL: never.
    bool (*refuse)(dq_queue *q, const dq_burst *b);
    // Completes earlier sends, on every poll of a transmit queue, also when there is nothing to send; work
    // done. NULL.
    int (*reap)(dq_queue *q);
    // Drops what it keeps of a transmit queue, counted as stopped; pollers have ended. NULL.
    void (*drop_rest)(dq_queue *q);
    // Descriptors whose readiness means work for q, for poll(2); at most max; the number. NULL: kicks only.
    int (*arm)(dq_queue *q, struct pollfd *fds, int max);
    uint64_t (*held)(dq_queue *q);                  // packets inside the engine, counted in c.in; NULL: none
    int64_t (*flush)(dq_queue *q);                  // discards what waits, counting it; NULL
    int (*lines)(dq_iface *i, dq_line *l, int max); // further ledger lines; NULL
    void (*refresh)(dq_iface *i);                   // reads kernel counters into extras; NULL. Any thread.
    int (*change_rules)(dq_iface *i, const uint64_t *gone, uint32_t n_gone, const dq_rule *add,
                        uint32_t n_add, dq_diag *diag);
    int (*drop_all)(dq_iface *i, bool drop);
    int (*mac)(const dq_iface *i, uint8_t mac[6]);
    uint32_t (*mtu)(const dq_iface *i); // bytes behind the Ethernet header; NULL or 0: no limit is known
    int (*multicast)(dq_iface *i, const char *group, const char *source, bool join, dq_diag *diag);
    // Whether the interface's frames come to dqi_flows_classify, so that it can answer for addresses; DQ_OK,
    // or why not. NULL: they don't.
    int (*answers)(const dq_iface *i, dq_diag *diag);
    // What is replayed there: dq_iface_source. NULL: nothing.
    bool (*source)(const dq_iface *i, dq_source *out);
    // connections; NULL where there are none
    int (*conn_open)(dq_iface *i, const char *address, const char *local, uint32_t *conn, dq_diag *diag);
    int (*conn_close)(dq_iface *i, uint32_t conn);
    int (*conn_read)(dq_iface *i, uint32_t conn, dq_conn_info *out);
    int (*conn_setsockopt)(dq_iface *i, uint32_t conn, int level, int option, const void *v, uint32_t len);
    void (*captured)(dq_iface *i); // what it receives will be in a capture; may be NULL
};

extern const dqi_engine_ops dqi_engine_loop;
extern const dqi_engine_ops dqi_engine_socket;
extern const dqi_engine_ops dqi_engine_xdp;
extern const dqi_engine_ops dqi_engine_dpdk;
extern const dqi_engine_ops dqi_engine_pcap;
extern const dqi_engine_ops dqi_engine_pcap_udp; // the same for sockets; not listed
extern const dqi_engine_ops dqi_engine_reorder;  // not listed: its interfaces are those of stages
// The engine of this name, or NULL; dqi_engine_at lists them.
const dqi_engine_ops *dqi_engine_find(const char *name);

// Posts an event to whoever listens to i's connections. Any thread; false: nobody does, or the ring is full.
bool dqi_iface_event(dq_iface *i, int kind, uint32_t conn, int code);
// Whether there is room for all events of n_conns connections, those that there are and one more: the end of
// none may be lost, so that a new one waits until the listener has read on. Any thread.
bool dqi_iface_can_tell(const dq_iface *i, uint32_t n_conns);

// ---- session ----------------------------------------------------------------------------------------------

#define DQI_MAX_IFACES  64
#define DQI_MAX_REGIONS 256
#define DQI_MAX_STAGES  1024
#define DQI_MAX_NOTES   256
#define DQI_MAX_WORKERS 256

typedef enum dqi_state { DQI_NEW, DQI_OPEN, DQI_STARTED, DQI_STOPPED, DQI_FINISHED } dqi_state;

struct dq_session {
    dq_session_conf conf;
    _Atomic dqi_state state; // control calls change it
    bool ending;             // dq_session_stop was called
    int64_t drain_until;     // session time until which it sends what was queued
    // clock
    int64_t start_ns, mono0_ns;
    _Atomic int64_t virtual_ns;
    // Receiving ends at one moment: what came before is delivered, what comes later belongs to nobody.
    // DQI_RECEIVING: it goes on; DQI_STOP_NOW: the moment is being taken.
    _Atomic int64_t stop_ns;
    int64_t rested_ns; // when receiving had ended and the last packet had left; 0: not yet
    // arena
    uint8_t *base;
    void *reserved; // the mapping that base lies in
    uint64_t arena_bytes;
    int fds[2]; // memfds: small pages, huge pages
    dq_region *regions[DQI_MAX_REGIONS];
    uint32_t n_regions;
    dq_iface *ifaces[DQI_MAX_IFACES];
    uint32_t n_ifaces;
    dqi_poller *workers[DQI_MAX_WORKERS];
    uint32_t n_workers;
    dq_stage *stages[DQI_MAX_STAGES];
    _Atomic uint32_t n_stages;
    dqi_spin notes_lock;
    char *notes[DQI_MAX_NOTES];
    uint32_t n_notes;
    dqi_burst_pool *picks; // descriptors of selections, of picks_cap packets
    uint32_t picks_cap;
    pthread_mutex_t control; // pipes and stages, against readers of the ledger
};

// Adds a line to the session's report. Any thread.
void dqi_note(dq_session *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int64_t dqi_mono_ns(void);
void dqi_clock_start(dq_session *s);

// Makes session times of one socket's stamps, which the kernel takes from the wall clock. That may be stepped
// at any time; session times never go back and are never ahead of the session's clock. Zeroed: new. Owner's
// thread.
typedef struct dqi_stamps {
    int64_t ahead, was; // of the session's clock: the wall clock, and before its last step
    int64_t now;        // session time of the last look
    int64_t last;       // session time that was given last
} dqi_stamps;
// Looks at both clocks: after the stamps were made, before dqi_stamps_time.
void dqi_stamps_look(dqi_stamps *t, const dq_session *s);
// The same with what they show. Pure.
void dqi_stamps_set(dqi_stamps *t, int64_t wall_ns, int64_t now_ns);
// The session time of a stamp made before the last look and, but for some microseconds, after the stamps
// before it.
int64_t dqi_stamps_time(dqi_stamps *t, int64_t stamp_ns);
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
// Adds to a counter with several writers (a transmit queue is sent to by tasks and stages alike).
static inline void dqi_add_shared(dqi_count *c, uint64_t n) {
    atomic_fetch_add_explicit(c, n, memory_order_relaxed);
}
static inline bool dqi_virtual(const dq_session *s) { return s->conf.virtual_clock != 0; }
static inline const uint8_t *dqi_burst_base(const dq_burst *b) { return b->session->base; }

#endif
