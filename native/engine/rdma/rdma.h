// rdma.h: what the parts of the engine rdma share.
//
// Threads: the connection manager's events, and the making and ending of connections, belong to one poller,
// the keeper's: that of the interface's first receive queue, or, where it has none, of its first transmit
// queue. Messages of a connection are received by its receive queue's poller; any transmit queue may send on
// it, and its own reaps what has completed. A connection's lock is held once for a batch, and by whoever
// takes its queue pair away; dqi_rdma.lock (the table, control calls) comes before it.
#ifndef DQI_RDMA_H
#define DQI_RDMA_H

#include "core/atomics.h"
#include "core/burst.h"
#include "core/region.h"
#include "core/session.h"
#include "core/socket_addr.h"
#include "engine/rdma/rdma_cq.h"
#include "engine/rdma/verbs_dl.h"
#include "pipeline/conn_table.h"
#include "pipeline/dq_op.h"
#include "pipeline/dq_rma.h"
#include "pipeline/engine.h"
#include "pipeline/iface.h"
#include "pipeline/queue.h"

#include <poll.h>

#define DQI_RDMA_DEPTH     128u        // work requests of a connection, each way; a power of two
#define DQI_RDMA_SIGNAL    32          // a completion for so many work requests to send at least
#define DQI_RDMA_SEND      0x80000000u // of a work request's id: it was posted to send
#define DQI_RDMA_RETRIES   7  // of a request that isn't answered; without end where the peer has no buffer
#define DQI_RDMA_RNR_TIMER 12 // 0.64 ms until who found no buffer asks again
#define DQI_RDMA_END_NS    INT64_C(2000000000) // for what is flushed to come back, at the end of a connection
#define DQI_RDMA_IDLE_NS   INT64_C(5000000000) // until a closed connection whose peer takes nothing is ended

#define DQI_RDMA_NOTE       0xffffffffu // the immediate value of notes (rdma_lend.c)
#define DQI_RDMA_NOTE_BYTES 88
#define DQI_RDMA_REMOTES    64 // names that a peer lends
#define DQI_RDMA_PRIVATE    48 // bytes of private data that a client gives

typedef struct dqi_rdma dqi_rdma;
typedef struct dqi_rdma_lease dqi_rdma_lease;
typedef struct dqi_rconn dqi_rconn;

// A device as a session has it: one protection domain, each region registered once.
typedef struct dqi_rdma_device {
    vb_context *verbs; // librdmacm's, which opens each device once
    vb_pd *pd;
    vb_device_attr attr;
    vb_port_attr port;
    uint8_t port_num;
    uint32_t n_mrs;
    vb_mr *mrs[DQI_MAX_REGIONS]; // of the session's regions; NULL: the CPU can't reach it
    uint32_t users;              // interfaces
} dqi_rdma_device;

typedef struct dqi_rdma_queue {
    dqi_rdma *r;
    dq_queue *queue;
    dqi_rdma_cqs cqs;
    // receive
    uint32_t pipes_seen, conns_seen;
    bool starved;            // some connection has fewer buffers posted than it may have
    bool over;               // after the stop: all that had come was taken
    uint32_t buffers;        // for its connections, but for a few that each needs
    _Atomic uint32_t posted; // by all of them
    int64_t look_ns;         // when a starved queue looks again
    uint32_t ready_head, ready_tail;
    uint32_t ready[DQI_CONNS]; // ids of connections with messages, in turn
    // transmit
    _Atomic uint32_t settled;   // how far into the ring all bursts are with their connections, or dropped
    _Atomic uint32_t n_waiting; // connections of it with bursts that wait
    vb_send_wr wr[DQI_RDMA_DEPTH];
    vb_sge sge[DQI_RDMA_DEPTH * DQ_MAX_SEGS];
} dqi_rdma_queue;

// A work request that was posted to send: one packet, or one operation.
typedef struct dqi_rdma_sent {
    dq_queue *queue;
    dq_burst *b; // goes with it: a reference; NULL
    dq_op *op;
    uint64_t bytes;
    bool packet, one_sided;
} dqi_rdma_sent;

// A receive: buffers of each of the queue's regions, or an operation's memory. Parked: a message has come and
// waits to be taken.
enum { DQI_RECV_EMPTY, DQI_RECV_POSTED, DQI_RECV_PARKED };
typedef struct dqi_rdma_recv {
    dq_op *op;
    uint32_t ids[DQ_MAX_SEGS];
    uint32_t bytes, imm;
    uint32_t *got; // of an operation: gets the message's length; NULL
    uint8_t state;
    bool has_imm, named; // named: of an operation
} dqi_rdma_recv;

// Packets first .. first + n of a burst that wait for room in their connection.
typedef struct dqi_rdma_wait {
    dq_queue *queue;
    dq_burst *b; // a reference
    uint32_t first, n;
} dqi_rdma_wait;

struct dqi_rconn {
    dqi_conn conn; // first
    dqi_rdma *r;
    dq_queue *rx, *tx;
    dqi_sockaddr local, peer;
    _Atomic bool closing;          // its end was asked for
    _Atomic bool broken;           // it failed: its queue pair is in error
    _Atomic int32_t why;           // a status; DQ_OK: none is known
    bool primary;                  // a client's own, made again whenever it is lost
    bool flushing;                 // its queue pair takes no more: what was posted comes back
    bool gone;                     // the peer has ended it
    bool ours;                     // its peer is of our kind: they exchange notes
    bool ready;                    // in its queue's list of those that have messages; queue's poller
    bool by_hand;                  // no connection manager: its queue pair is stepped by rdma_pair.c
    _Atomic bool joined;           // and its peer is known: the keeper opens it
    dq_queue_pair pair, pair_peer; // its ends, then
    int64_t ending_ns;             // since when it ends, or last did something
    uint64_t ending_done;
    uint32_t mark[DQ_MAX_QUEUES];                    // ends of the transmit queues' rings then
    uint8_t given[DQI_RDMA_PRIVATE], given_bytes;    // private data, for the peer
    uint8_t heard[DQ_MAX_PRIVATE_DATA], heard_bytes; // and the peer's

    cm_id *id;                      // keeper's
    _Atomic uint8_t wanted;         // bits of dq_dir: the poller that found it locked
    dqi_spin lock;                  // of what follows
    vb_qp *qp;                      // NULL: none (any more)
    dqi_rdma_cq *recv_cq, *send_cq; // of it
    vb_ah *ah;                      // UD: where its peer is; NULL: it has not been heard yet
    uint32_t qpn, qkey;             // UD: of the peer
    uint32_t recv_head, recv_tail, n_posted, n_parked;
    dqi_rdma_recv *recv; // DQI_RDMA_DEPTH
    uint32_t sent_head, sent_tail, unsignalled;
    dqi_rdma_sent *sent; // DQI_RDMA_DEPTH
    uint32_t inline_bytes, sq_room;
    dqi_rdma_wait *waits; // a ring of waits_cap
    uint32_t waits_cap, wait_head, wait_tail;
    dq_remote *remotes; // what the peer lends: DQI_RDMA_REMOTES; NULL: nothing yet
    uint32_t n_remotes;
    _Atomic uint32_t waiting; // packets of them
    _Atomic uint64_t done;    // work requests that completed
};

struct dqi_rdma {
    dq_iface *iface;
    dqi_rdma_device *device;
    dq_queue *keeper;
    _Atomic bool stopped;
    dqi_sockaddr local, remote;
    cm_channel *channel;
    cm_id *listener; // of a server; a client's holds its address
    pthread_mutex_t lock;
    pthread_mutex_t dialling; // librdmacm is about to return from a call whose event may have come already
    dqi_conn_table conns;     // of dqi_rconn
    uint32_t n_made;
    _Atomic uint32_t newest;    // the connection that unaddressed packets go to, 0: none
    _Atomic uint32_t version;   // grows with every change of the open connections
    _Atomic bool attention;     // some connection wants the keeper
    int64_t looked_ns, next_ns; // keeper's: of the last look at events; when something is due
    dqi_rdma_lease *leases;     // under lock
    // a client's own connection
    bool dials, retired;
    int64_t dial_ns, wait_ns, since_ns;
    int32_t last_err;
};

extern const dqi_engine_ops dqi_engine_rdma;

static inline dqi_rconn *dqi_rconn_at(const dqi_rdma *r, uint32_t k) {
    return (dqi_rconn *)dqi_conn_at(&r->conns, k);
}
static inline uint32_t dqi_rconn_id(const dqi_rconn *c) { return dqi_conn_id_of(&c->conn); }
static inline int dqi_rconn_state(const dqi_rconn *c) { return dqi_conn_state_of(&c->conn); }
static inline dqi_rconn *dqi_rconn_find(const dqi_rdma *r, uint32_t id) {
    return (dqi_rconn *)dqi_conn_look_up(&r->conns, id);
}
static inline bool dqi_rdma_stopped(const dqi_rdma *r) {
    return atomic_load_explicit(&r->stopped, memory_order_acquire);
}
static inline dqi_rdma_queue *dqi_rdma_queue_of(const dq_queue *q) { return q->engine; }
#define DQI_RDMA_GRH  40          // bytes of a datagram's global routing header, which lie before the message
#define DQI_RDMA_QKEY 0x01234567u // of all UD queue pairs of the connection manager
static inline int dqi_rdma_transport(const dqi_rdma *r) { return r->iface->conf.socket.roce.transport; }
static inline bool dqi_rdma_is_ud(const dqi_rdma *r) { return dqi_rdma_transport(r) == DQ_TRANSPORT_UD; }
static inline void dqi_rconn_lock(dqi_rconn *c) { dqi_lock(&c->lock); }
// Wakes whoever found it locked: the device may take long to be told of what is posted.
void dqi_rconn_unlock(dqi_rconn *c);
// Of q, one of its two: false: somebody else has it, and q's poller is woken at the end of that.
bool dqi_rconn_try_lock(dqi_rconn *c, const dq_queue *q);
// Of a connection's queue pair: the work requests that are under way. Under its lock.
static inline uint32_t dqi_rconn_sending(const dqi_rconn *c) { return c->sent_tail - c->sent_head; }

// ---- rdma_device.c: control thread ------------------------------------------------------------------------

// The device behind a bound id, with all regions of the session registered.
int dqi_rdma_device_open(dqi_rdma *r, vb_context *verbs, uint8_t port, dq_diag *diag);
void dqi_rdma_device_close(dqi_rdma *r);
// The number of a packet's bytes that stands for at most so many: an ibv_mtu.
int dqi_rdma_mtu(int bytes);
// Makes reads of fd return at once. DQ_OK or a system error.
int dqi_rdma_nonblocking(int fd);
// The local key of this arena offset, in the region that has it; 0: it isn't registered.
uint32_t dqi_rdma_lkey(const dqi_rdma *r, uint64_t off);

// ---- rdma_cm.c: keeper's thread ---------------------------------------------------------------------------

// Takes the connection manager's events, makes and ends connections. Never blocks for long.
void dqi_rdma_serve(dqi_rdma *r);
// Binds the interface's address, and listens; the id of what was bound.
int dqi_rdma_bind(dqi_rdma *r, dq_diag *diag);
// Refuses those who asked and were not heard, at the end.
void dqi_rdma_refuse_rest(dqi_rdma *r);
// Begins to connect; DQ_OK or an error. Control thread, or the keeper's.
int dqi_rdma_dial(dqi_rconn *c, const dqi_sockaddr *from, const dqi_sockaddr *to);
// Waits until no such call is under way: librdmacm writes into its id after the event is here.
void dqi_rdma_await_dial(dqi_rdma *r);

// ---- rdma_conn.c ------------------------------------------------------------------------------------------

// A connecting slot with queues, not in the table yet. NULL: there is no room. Any thread.
dqi_rconn *dqi_rconn_new(dqi_rdma *r);
// Frees a slot whose connection nobody has heard of.
void dqi_rconn_give_up(dqi_rconn *c);
// Its queue pair, for the id. Keeper's thread.
int dqi_rconn_make_qp(dqi_rconn *c);
// Moves its queue pair to a state, as the connection manager says. Keeper's thread.
int dqi_rconn_step(dqi_rconn *c, int state);
// Its queue pair gives back all that was posted, and takes no more; its peer hears of it.
void dqi_rconn_stop_qp(dqi_rconn *c);
// It is open. Keeper's thread.
void dqi_rconn_opened(dqi_rconn *c);
// Ends because of code, once what it has under way has come back. Keeper's thread.
void dqi_rconn_end(dqi_rconn *c, int code);
// Goes on with those that end; session time of the next look. Keeper's thread.
int64_t dqi_rconn_ending_serve(dqi_rdma *r);
// Frees all that a connection has, whatever is under way: at the close, or when it took too long.
void dqi_rconn_destroy(dqi_rconn *c);
// Its queue pair is in error, for a reason that nothing has said yet: the keeper will end it.
void dqi_rconn_in_error(dqi_rconn *c);
// A completion or a post failed with this status. It is the reason of the end, whatever was seen before it:
// what it made fail behind it comes on other completion queues, as an event of the device, or as the peer's
// goodbye.
void dqi_rconn_break(dqi_rconn *c, int status);
// A work request came back flushed: if nobody asked for that, its queue pair is in error. Under its lock.
void dqi_rconn_flushed(dqi_rconn *c);
// Wakes the keeper, which looks at connections. Any thread.
void dqi_rdma_wake(dqi_rdma *r);
int dqi_rconn_open_op(dq_iface *i, const dq_connect *to, uint32_t *conn, dq_diag *diag);
int dqi_rconn_close_op(dq_iface *i, uint32_t conn);
int dqi_rconn_read_op(dq_iface *i, uint32_t conn, dq_conn_info *out);

// ---- rdma_recv.c: the receive queue's poller --------------------------------------------------------------

// Settles how many buffers the queue may have posted: its part of half the region. Control thread.
void dqi_rdma_share_buffers(dqi_rdma_queue *x);
// Posts buffers for every connection of the queue that is read.
void dqi_rdma_review(dqi_rdma_queue *x);
// The same for one connection: at its beginning, by the keeper's thread.
void dqi_rconn_post_recv(dqi_rconn *c);
// Messages, at most room, into b; b NULL: the queue has no regions. Their number.
int dqi_rdma_take(dqi_rdma_queue *x, dq_burst *b, uint32_t room);
// Takes completions of either kind; how many. Queue's poller.
uint32_t dqi_rdma_drain(dqi_rdma_queue *x);
// A receive has ended. Under the connection's lock, as what follows.
void dqi_rconn_recv_done(dqi_rconn *c, const vb_wc *wc);
// What was posted, or waits to be taken, comes to nothing.
void dqi_rconn_drop_recv(dqi_rconn *c);
// Where a message lies.
uint8_t *dqi_recv_bytes(const dqi_rconn *c, const dqi_rdma_recv *v);

// ---- rdma_send.c ------------------------------------------------------------------------------------------

int dqi_rdma_tx(dq_queue *q, dq_burst *b, uint32_t first, uint32_t n);
// Takes completions, and sends what waited; work done. Queue's poller.
int dqi_rdma_reap(dq_queue *q);
bool dqi_rdma_refuse(dq_queue *q, const dq_burst *b);
void dqi_rdma_drop_rest(dq_queue *q);
// Completions of sends and operations: all up to this one. Whoever polls its queue.
void dqi_rconn_sent_done(dqi_rconn *c, const vb_wc *wc);
// So many more work requests are posted: whoever polls for them is woken where it didn't wait for any. Under
// its lock.
void dqi_rconn_posted(dqi_rconn *c, uint32_t n);
// What waits, or is under way, comes to nothing because of `why`. Under its lock.
void dqi_rconn_drop_waits(dqi_rconn *c, dq_reason why);
void dqi_rconn_drop_sent(dqi_rconn *c, dq_reason why, const char *words);

#endif
