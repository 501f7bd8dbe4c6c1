// rdma.h: state shared by the parts of the rdma engine.
//
// Threads: connection manager events and the setup and teardown of connections belong to one poller, the
// keeper's: that of the interface's first receive queue or, without one, of its first transmit queue. The
// poller of a connection's receive queue receives its messages; any transmit queue may send on it, and its
// own handles the completions. A connection's lock is held once per batch, and while its queue pair is
// removed; conns.lock (connection table, control calls) is taken before it.
#ifndef DQI_RDMA_H
#define DQI_RDMA_H

#include "core/atomics.h"
#include "core/burst.h"
#include "core/region.h"
#include "core/session.h"
#include "core/socket_addr.h"
#include "engine/rdma/rdma_cq.h"
#include "engine/rdma/verbs_dl.h"
#include "pipeline/conn.h"
#include "pipeline/dq_op.h"
#include "pipeline/dq_rma.h"
#include "pipeline/engine.h"
#include "pipeline/iface.h"
#include "pipeline/queue.h"

#include <poll.h>
#include <string.h>

#define DQI_RDMA_DEPTH      128u        // work requests of a connection, each way; a power of two
#define DQI_RDMA_SIGNAL     32          // send work requests per signaled completion, at most
#define DQI_RDMA_SEND       0x80000000u // flag in a work request's id: a send
#define DQI_RDMA_RESOLVE_MS 2000        // limit of address and route resolution
#define DQI_RDMA_RETRIES    7  // retries of an unanswered request; unlimited where the peer has no buffer
#define DQI_RDMA_RNR_TIMER  12 // 0.64 ms: RNR delay requested from peers
#define DQI_RDMA_END_NS     INT64_C(2000000000) // timeout for flushed requests at the end of a connection
#define DQI_RDMA_IDLE_NS    INT64_C(5000000000) // timeout of a closed connection whose peer does not read

#define DQI_RDMA_NOTE       0xffffffffu // immediate value of notes (rdma_lend.c)
#define DQI_RDMA_NOTE_BYTES 88
#define DQI_RDMA_REMOTES    64 // limit of memory names lent by a peer
#define DQI_RDMA_PRIVATE    48 // bytes of a client's private data

typedef struct dqi_rdma dqi_rdma;
typedef struct dqi_rdma_lease dqi_rdma_lease;
typedef struct dqi_rconn dqi_rconn;

// A device as used by a session: one protection domain, each region registered once.
typedef struct dqi_rdma_device {
    vb_context *verbs; // context of librdmacm, which opens each device once
    vb_pd *pd;
    vb_device_attr attr;
    vb_port_attr port;
    uint8_t port_num;
    uint32_t n_mrs;
    vb_mr *mrs[DQI_MAX_REGIONS]; // of the session's regions; NULL: not registered
    uint32_t users;              // number of interfaces
} dqi_rdma_device;

typedef struct dqi_rdma_queue {
    dqi_conn_tx conn; // must be first
    dqi_rdma *r;
    dq_queue *queue;
    dqi_rdma_cqs cqs;
    // receive
    uint32_t pipes_seen, conns_seen;
    bool starved;            // some connection has fewer buffers posted than its share
    bool over;               // after the stop: all earlier messages were received
    uint32_t buffers;        // for its connections, except the minimum of each
    _Atomic uint32_t posted; // by all of them
    int64_t look_ns;         // time of a starved queue's next check
    uint32_t ready_head, ready_tail;
    uint32_t ready[DQI_CONNS]; // ids of connections with messages, in turn
    // transmit
    _Atomic uint32_t n_waiting; // its connections with waiting bursts
    vb_send_wr wr[DQI_RDMA_DEPTH];
    vb_sge sge[DQI_RDMA_DEPTH * DQ_MAX_SEGS];
} dqi_rdma_queue;

// A posted send work request: one packet or one operation.
typedef struct dqi_rdma_sent {
    dq_queue *queue;
    dq_burst *b; // reference released with it; NULL
    dq_op *op;
    uint64_t bytes;
    bool packet, one_sided;
} dqi_rdma_sent;

// A receive: buffers of each of the queue's regions, or an operation's memory. Parked: contains a message
// that is not yet delivered.
enum { DQI_RECV_EMPTY, DQI_RECV_POSTED, DQI_RECV_PARKED };
typedef struct dqi_rdma_recv {
    dq_op *op;
    uint32_t ids[DQ_MAX_SEGS];
    uint32_t bytes, imm;
    uint32_t *got; // of an operation: receives the message's length; NULL
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
    dqi_conn conn; // must be first
    dqi_rdma *r;
    _Atomic int32_t why;           // a status; DQ_OK: unknown
    bool flushing;                 // its queue pair accepts no more; posted requests are flushed
    bool gone;                     // ended by the peer
    bool ours;                     // its peer uses this engine: they exchange notes
    bool ready;                    // in the queue's list of connections with messages; queue's poller
    bool by_hand;                  // without connection manager; states are changed by rdma_pair.c
    _Atomic bool joined;           // by_hand: its peer is known, and the keeper opens it
    dq_queue_pair pair, pair_peer; // by_hand: both ends
    uint8_t given[DQI_RDMA_PRIVATE], given_bytes;    // private data sent to the peer
    uint8_t heard[DQ_MAX_PRIVATE_DATA], heard_bytes; // private data received from the peer

    cm_id *id;                      // used by the keeper
    _Atomic uint8_t wanted;         // bits of dq_dir: pollers that found it locked
    dqi_spin lock;                  // protects the fields below
    vb_qp *qp;                      // NULL: none
    dqi_rdma_cq *recv_cq, *send_cq; // of qp
    vb_ah *ah;                      // UD: the peer's address; NULL: not known yet
    uint32_t qpn, qkey;             // UD: of the peer
    uint32_t recv_head, recv_tail, n_posted, n_parked;
    dqi_rdma_recv *recv; // DQI_RDMA_DEPTH entries
    uint32_t sent_head, sent_tail, unsignalled;
    dqi_rdma_sent *sent; // DQI_RDMA_DEPTH entries
    uint32_t inline_bytes, sq_room;
    dqi_rdma_wait *waits; // a ring of waits_cap entries
    uint32_t waits_cap, wait_head, wait_tail;
    dq_remote *remotes; // memory lent by the peer: DQI_RDMA_REMOTES entries; NULL: none yet
    uint32_t n_remotes;
    _Atomic uint32_t waiting; // number of waiting packets
    _Atomic uint64_t done;    // completed work requests
};

struct dqi_rdma {
    dq_iface *iface;
    dqi_rdma_device *device;
    dq_queue *keeper;
    _Atomic bool stopped;
    dqi_sockaddr local, remote;
    cm_channel *channel;
    cm_id *listener;            // of a server; a client's holds its address
    pthread_mutex_t dialling;   // held during calls of librdmacm whose event may arrive before they return
    dqi_conn_table conns;       // elements are dqi_rconn
    _Atomic uint32_t version;   // incremented by every change of the open connections
    _Atomic bool attention;     // some connection needs the keeper
    int64_t looked_ns, next_ns; // keeper: last check for events; next due time
    dqi_rdma_lease *leases;     // under conns.lock
    bool dials;                 // a client with a connection of its own
    dqi_redial own;
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
#define DQI_RDMA_GRH  40          // bytes of a datagram's global routing header in front of the message
#define DQI_RDMA_QKEY 0x01234567u // of all UD queue pairs of the connection manager
static inline int dqi_rdma_transport(const dqi_rdma *r) { return r->iface->conf.socket.roce.transport; }
static inline bool dqi_rdma_is_ud(const dqi_rdma *r) { return dqi_rdma_transport(r) == DQ_TRANSPORT_UD; }
static inline void dqi_rconn_lock(dqi_rconn *c) { dqi_lock(&c->lock); }
static inline dqi_sockaddr dqi_rdma_address(const struct sockaddr_storage *s) {
    dqi_sockaddr a = {0};
    memcpy(&a, s, sizeof a);
    return a;
}
// Returns the entry of a send work request, and of a group of waiting packets. Under the connection's lock.
static inline dqi_rdma_sent *dqi_rconn_sent_at(dqi_rconn *c, uint32_t k) {
    return &c->sent[k % DQI_RDMA_DEPTH];
}
static inline dqi_rdma_wait *dqi_rconn_wait_at(dqi_rconn *c, uint32_t k) {
    return &c->waits[k & (c->waits_cap - 1)];
}
// Returns the send work requests in flight on the connection's queue pair. Under its lock.
static inline uint32_t dqi_rconn_sending(const dqi_rconn *c) { return c->sent_tail - c->sent_head; }

// ---- rdma_device.c: control thread ------------------------------------------------------------------------

// Opens the device of a bound id and registers all regions of the session.
int dqi_rdma_device_open(dqi_rdma *r, vb_context *verbs, uint8_t port, dq_diag *diag);
void dqi_rdma_device_close(dqi_rdma *r);
// Returns the largest ibv_mtu value of at most this many bytes.
int dqi_rdma_mtu(int bytes);
// Sets fd to non-blocking mode. Returns DQ_OK or a system error.
int dqi_rdma_nonblocking(int fd);
// Returns the local key of the region that contains this arena offset; 0: not registered.
uint32_t dqi_rdma_lkey(const dqi_rdma *r, uint64_t off);

// ---- rdma_wake.c: any thread ------------------------------------------------------------------------------

// Unlocks and wakes pollers that found it locked, because posting to a device may take long.
void dqi_rconn_unlock(dqi_rconn *c);
// Tries to lock for q, one of its two queues; on false, the unlock wakes q's poller.
bool dqi_rconn_try_lock(dqi_rconn *c, const dq_queue *q);
// Wakes the keeper to check connections.
void dqi_rdma_wake(dqi_rdma *r);
// Wakes the pollers of all queues, after a connection was opened or ended.
void dqi_rdma_kick_all(const dqi_rdma *r);
// Records that its queue pair is in error for an unknown reason; the keeper ends the connection.
void dqi_rconn_in_error(dqi_rconn *c);
// Records the status of a failed completion or post as the reason of the end, replacing earlier ones:
// failures caused by it may be seen first on other completion queues, as a device event, or as the peer's
// disconnect.
void dqi_rconn_break(dqi_rconn *c, int status);
// Handles a flushed work request: unless a flush was requested, the queue pair is in error. Under its lock.
void dqi_rconn_flushed(dqi_rconn *c);

// ---- rdma_flight.c: under the connection's lock -----------------------------------------------------------

// Settles a completed work request.
void dqi_rdma_settle(dqi_rdma_sent *w, bool ok, dq_reason why, const char *words);
// Records n more posted work requests and wakes the poller for their completions if none were in flight.
void dqi_rconn_posted(dqi_rconn *c, uint32_t n);
// Handles a completion of sends and operations up to this one. Called by its queue's poller.
void dqi_rconn_sent_done(dqi_rconn *c, const vb_wc *wc);
// Appends the packets to those waiting in the connection; false: no memory.
bool dqi_rconn_add_wait(dqi_rconn *c, dq_queue *q, dq_burst *b, uint32_t first, uint32_t n);
// Removes n packets from the first waiting entry.
void dqi_rconn_advance(dqi_rconn *c, uint32_t n);
// Drop the waiting packets, and the requests in flight, because of `why`.
void dqi_rconn_drop_waits(dqi_rconn *c, dq_reason why);
void dqi_rconn_drop_sent(dqi_rconn *c, dq_reason why, const char *words);

// ---- rdma_recv.c: the receive queue's poller --------------------------------------------------------------

// Sets the limit of posted buffers of the queue: its share of half the region. Control thread.
void dqi_rdma_share_buffers(dqi_rdma_queue *x);
// Posts buffers for every connection of the queue that has a consumer.
void dqi_rdma_review(dqi_rdma_queue *x);
// Posts buffers for a new connection. Keeper's thread.
void dqi_rconn_post_recv(dqi_rconn *c);
// Delivers at most room messages into b; b NULL: the queue has no regions. Returns their number.
int dqi_rdma_take(dqi_rdma_queue *x, dq_burst *b, uint32_t room);
// Handles send and receive completions; returns their number. Queue's poller.
uint32_t dqi_rdma_drain(dqi_rdma_queue *x);
// Drops posted and parked receives. Under the connection's lock.
void dqi_rconn_drop_recv(dqi_rconn *c);

// ---- rdma_qp.c: keeper's thread, or the control thread for connections without connection manager ---------

// Creates the connection's queue pair.
int dqi_rconn_make_qp(dqi_rconn *c);
// Moves its queue pair to a state, with attributes of the connection manager or of both ends.
int dqi_rconn_step(dqi_rconn *c, int state);
// Moves its queue pair to the state in which it receives and sends.
int dqi_rconn_make_ready(dqi_rconn *c);
// Returns the path to the peer of a connection without connection manager.
vb_ah_attr dqi_rconn_path(const dqi_rconn *c);
// Stores the address of a datagram peer.
int dqi_rconn_meet(dqi_rconn *c, vb_ah_attr at, uint32_t qpn, uint32_t qkey);
// Moves its queue pair to the error state, which flushes all posted requests; notifies the peer.
void dqi_rconn_stop_qp(dqi_rconn *c);
// Frees its queue pair and the peer's address.
void dqi_rconn_drop_qp(dqi_rconn *c);

// ---- rdma_resolve.c ---------------------------------------------------------------------------------------

// Binds the interface's address and, for a server, listens; the bound id is r->listener. Control thread.
int dqi_rdma_bind(dqi_rdma *r, dq_diag *diag);
// Starts connecting; returns DQ_OK or an error. Control thread or the keeper's.
int dqi_rdma_dial(dqi_rconn *c, const dqi_sockaddr *from, const dqi_sockaddr *to);
// Waits for such a call to return, as librdmacm writes to its id after the event is delivered.
void dqi_rdma_await_dial(dqi_rdma *r);

// ---- rdma_conn.c ------------------------------------------------------------------------------------------

// Reserves a connecting slot with queues; NULL: no room. Any thread.
dqi_rconn *dqi_rconn_new(dqi_rdma *r);
// Frees a slot whose connection was never reported.
void dqi_rconn_give_up(dqi_rconn *c);
// Marks it open. Keeper's thread.
void dqi_rconn_opened(dqi_rconn *c);
// Frees all resources of a connection, even with requests in flight: at the close, or after a timeout.
void dqi_rconn_destroy(dqi_rconn *c);

// ---- rdma_end.c: keeper's thread --------------------------------------------------------------------------

// Starts the end of the connection with code; it is freed once its requests complete.
void dqi_rconn_end(dqi_rconn *c, int code);
// Advances ending connections; returns the session time of the next check.
int64_t dqi_rconn_ending_serve(dqi_rdma *r);

// ---- rdma_cm.c: keeper's thread ---------------------------------------------------------------------------

// Handles connection manager events, starts and ends connections. Never blocks for long.
void dqi_rdma_serve(dqi_rdma *r);
// Rejects pending connection requests at the end. Control thread.
void dqi_rdma_refuse_rest(dqi_rdma *r);

// ---- rdma_control.c: control thread -----------------------------------------------------------------------

int dqi_rconn_open_op(dq_iface *i, const dq_connect *to, uint32_t *conn, dq_diag *diag);
int dqi_rconn_close_op(dq_iface *i, uint32_t conn);
int dqi_rconn_read_op(dq_iface *i, uint32_t conn, dq_conn_info *out);

// ---- rdma_send.c: the transmit queue's poller -------------------------------------------------------------

int dqi_rdma_tx(dq_queue *q, dq_burst *b, uint32_t first, uint32_t n);
// Handles completions and sends waiting packets; returns the work done.
int dqi_rdma_reap(dq_queue *q);
// See dqi_conn_ops.refuse. Any thread.
bool dqi_rdma_refuse(dq_queue *q, const dq_burst *b);
// Ends connections with requests in flight, after the pollers have ended. Control thread.
void dqi_rdma_drop_rest(dq_queue *q);

#endif
