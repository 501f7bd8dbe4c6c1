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
#include "core/socket_addr.h"
#include "engine/rdma/rdma_cq.h"
#include "engine/rdma/verbs_dl.h"
#include "pipeline/connection/conn.h"
#include "pipeline/connection/conn_table.h"
#include "pipeline/connection/dq_queue_pair.h"
#include "pipeline/connection/dq_rma.h"
#include "pipeline/dq_op.h"
#include "pipeline/engine.h"
#include "pipeline/iface.h"
#include "pipeline/queue.h"
#include "pipeline/session.h"

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
    uint32_t bytes;
    dqi_imm imm;
    uint32_t *got; // of an operation: receives the message's length; NULL
    uint8_t state;
    bool named; // named: of an operation
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
    uint8_t private_out[DQI_RDMA_PRIVATE], private_out_bytes;  // private data sent to the peer
    uint8_t private_in[DQ_MAX_PRIVATE_DATA], private_in_bytes; // private data received from the peer

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
// Returns the verbs' access flags for DQ_ACCESS_* of a region, with atomics where the device supports them.
int dqi_rdma_rights(const dqi_rdma_device *d, uint32_t access);
// Returns the local key of the region that contains this arena offset; 0: not registered.
uint32_t dqi_rdma_lkey(const dqi_rdma *r, uint64_t off);

#endif
