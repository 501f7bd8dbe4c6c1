// socket_state.h: state shared by the parts of the socket engine.
//
// Threads: a connection is read, connected and ended by the thread of its reactor: the poller of its receive
// queue or, on a TCP interface without receive queues, that of the first transmit queue. Any transmit queue
// may send on it, one at a time (tx_lock). Lock order: conns.lock (connection table, setup and teardown,
// control calls), then a connection's tx_lock, taken once per system call. There is no lock per packet.
#ifndef DQI_SOCKET_STATE_H
#define DQI_SOCKET_STATE_H

#include <poll.h>

#include "core/clock.h"
#include "core/region.h"
#include "core/socket_addr.h"
#include "engine/socket/socket_framing.h"
#include "pipeline/connection/conn.h"
#include "pipeline/connection/conn_table.h"
#include "pipeline/iface.h"
#include "pipeline/queue.h"
#include "pipeline/session.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#define DQI_SOCK_ADDRS  4  // addresses of a host to try
#define DQI_SOCK_OPTS   16 // options stored for an interface's future connections
#define DQI_SOCK_GROUPS 256
#define DQI_SOCK_BATCH  256          // datagrams or stream buffers of one system call
#define DQI_SOCK_READ   (512u << 10) // bytes of a stream to read in one call, given enough buffers
#define DQI_SOCK_IOVS   1024         // UIO_MAXIOV
#define DQI_SOCK_CTL    128 // bytes for a message's control messages: time, size, and one enabled by a user
#define DQI_SOCK_READY  64  // events fetched from epoll at a time

typedef struct dqi_sock dqi_sock;
typedef struct dqi_sconn dqi_sconn;

#define DQI_GSO_NEVER 1 // value of dqi_sconn.gso_refused: segmentation always fails

// Connections managed by one thread.
typedef struct dqi_reactor {
    dqi_sock *sock;
    dq_queue *queue; // a receive queue, or the first transmit queue if there is none; its poller runs the
                     // reactor
    int epfd;
    int64_t paused_ns; // session time until which accepting pauses; 0: not paused
    int n_ready, at;
    struct epoll_event ready[DQI_SOCK_READY];
    _Atomic uint32_t n_conns; // watched, without the interface's own socket
    uint32_t n_muted, pipes_seen;
    dqi_sconn *ending; // list of ending connections, linked by next_ending
} dqi_reactor;

struct dqi_sconn {
    dqi_conn conn; // must be first; id 0: an interface's own UDP socket
    dqi_sock *sock;
    dqi_reactor *reactor;                  // NULL: none (UDP without receive queues)
    int fd;                                // written under sock->conns.lock, while open also under tx_lock
    dqi_sockaddr from, to[DQI_SOCK_ADDRS]; // while connecting: addresses to try
    int n_to, i_to;
    bool watched;          // by the reactor
    bool muted;            // removed from epoll: unread data and no consumer
    uint32_t kernel_drops; // UDP: kernel drops at the last reading
    // UDP: minimum datagram length for which the kernel rejected segmentation; 0: none
    _Atomic uint32_t gso_refused;

    // receive, reactor's thread
    uint32_t quiet;    // UDP: consecutive reads without data
    dqi_stamps stamps; // UDP
    dqi_cutter cut;
    uint32_t buf;   // buffer of the cutter
    uint64_t taken; // TCP: bytes read from the socket
    uint64_t until; // TCP: value of `taken` at which everything received before the stop is read
    bool ended;     // no more data, for the reason `why`
    int why;

    // ending, reactor's thread
    dqi_sconn *next_ending;
    bool marked; // conn.mark contains the positions of the last packets for it

    _Atomic uint32_t full;       // bit k: has used up its share of transmit queue k
    _Atomic uint32_t backlogged; // bit k: has a backlog in transmit queue k
    _Atomic uint64_t moved;      // bytes accepted by the kernel; written under tx_lock

    // transmit, under tx_lock
    pthread_mutex_t tx_lock;
    dq_queue *half_queue; // queue with a partly sent packet; NULL: none
    const dq_burst *half_burst;
    uint32_t half_at;    // index of that packet in half_burst
    uint64_t half_bytes; // bytes of it already sent
};

// Receive queue.
typedef struct dqi_sock_rx {
    dqi_sock *sock;
    dq_queue *queue;
    dq_region *region;
    uint32_t limit;    // bytes of a packet
    uint32_t n_bursts; // bursts of the queue
    dqi_sconn *base;   // UDP: the interface's own socket
    dqi_reactor reactor;
    dqi_sconn *more; // has complete messages or its end left to deliver
    uint64_t filled; // TCP: bytes of connection `more` in buffers at the top of the stock
    bool starved;    // no free buffer at the last poll: data stays in the kernel
    // after the stop
    uint32_t rest;     // connection being read to its end: 0 the interface's own, then the table's
    bool over;         // that connection has no data from before the stop left
    bool late;         // UDP: the last read returned datagrams from after the stop
    int64_t looked_ns; // UDP: wall clock before the last read of available data; 0: none yet
    int64_t rest_ns;   // UDP: session time until which a failing socket is not read; 0: none fails
    uint32_t n_stock, cap_stock;
    uint32_t stock[DQI_SOCK_BATCH]; // free buffers in reserve; UDP: stock[k] is the buffer of message k
    uint8_t bin;                    // target for discarded bytes
    struct iovec *iov;
    struct mmsghdr *msgs; // UDP
    uint8_t *ctl;         // UDP: space for control messages

    // super-buffers (socket_gro.c)
    bool gro;                                            // the stock consists of super-buffers
    bool wide;                                           // the next read uses one per message
    bool across;                                         // the last read used one per message
    uint32_t used;                                       // used buffers of the stock (narrow reads)
    uint32_t each, mean;                                 // estimates: datagrams and bytes per message
    uint32_t at, n_read;                                 // messages read and not yet delivered: [at, n_read)
    uint32_t pos;                                        // delivered bytes of msgs[at]
    uint32_t bufs[DQI_SOCK_BATCH], size[DQI_SOCK_BATCH]; // for each message: buffer and datagram length
    int64_t ts[DQI_SOCK_BATCH];
    dqi_spare aside; // receives copied datagrams
    uint8_t *spill;
} dqi_sock_rx;

// Packets first .. first + n of a burst in a backlog.
typedef struct dqi_sock_wait {
    dq_burst *b; // a reference
    uint32_t first, n;
    uint32_t next; // in the backlog or the free list
    bool own;      // for the client's own connection, whichever that is
} dqi_sock_wait;

// Backlog of one connection.
typedef struct dqi_backlog {
    uint32_t id, head, tail, n;
    uint64_t packets;
    int fd;
    bool own; // some of its packets are
} dqi_backlog;

typedef struct dqi_backlogs {
    dqi_sock_wait *waits;
    dqi_backlog *backlogs;
    uint32_t cap, free;       // size of waits; first free entry
    uint32_t n;               // backlogs
    _Atomic uint32_t n_waits; // written by the queue's poller, as is packets
    _Atomic uint64_t packets;
    uint64_t packets_cap;
} dqi_backlogs;

// Transmit queue.
typedef struct dqi_sock_tx {
    dqi_conn_tx conn; // must be first
    dqi_sock *sock;
    uint32_t index;
    dqi_sconn *base; // UDP
    int blocked_fd;  // socket that was full; -1: none
    uint32_t stays;  // TCP server: connection with a part of the queue's first packet; 0: none
    struct iovec *iov;
    struct mmsghdr *msgs;  // UDP
    uint32_t *runs;        // UDP: packets of each message
    uint8_t *ctl;          // UDP: space for control messages
    dqi_sockaddr *names;   // UDP
    uint8_t (*prefix)[8];  // TCP
    dqi_backlogs backlogs; // TCP
} dqi_sock_tx;

// Whether a burst can be sent to its destination: now, later, or never.
typedef enum dqi_way { DQI_WAY_OPEN, DQI_WAY_LATER, DQI_WAY_NONE } dqi_way;

typedef struct dqi_sock_opt {
    int level, name;
    uint32_t len;
    uint8_t value[64];
} dqi_sock_opt;

typedef struct dqi_sock_group {
    dqi_sockaddr group, source; // source: family 0 = any
    dqi_sconn *base;
    bool own; // joined because the interface is bound to it
} dqi_sock_group;

// Interface.
struct dqi_sock {
    dq_iface *iface;
    dqi_framing framing;
    _Atomic bool stopped;
    unsigned nic; // network interface index for multicast; 0: selected by the kernel
    dqi_sockaddr local, remote[DQI_SOCK_ADDRS];
    int n_remote;

    dqi_conn_table conns;           // elements are dqi_sconn
    dqi_sconn *base[DQ_MAX_QUEUES]; // UDP: one per receive queue
    uint32_t n_base;
    int listen_fd;
    dqi_redial primary[DQ_MAX_QUEUES];
    uint32_t n_primary;
    dqi_sock_opt opts[DQI_SOCK_OPTS];
    uint32_t n_opts;
    bool sizes_reported; // kernel buffer sizes were reported
    dqi_sock_group groups[DQI_SOCK_GROUPS];
    uint32_t n_groups;

    dqi_reactor idle; // TCP without receive queues: received data is discarded

    dqi_spin peer_lock;
    dqi_sockaddr last_peer; // UDP server
};

static inline bool dqi_sock_is_udp(const dqi_sock *s) { return s->iface->conf.socket.proto == DQ_PROTO_UDP; }
static inline bool dqi_sock_stopped(const dqi_sock *s) {
    return atomic_load_explicit(&s->stopped, memory_order_acquire);
}
// Returns connection k < DQI_CONNS of the table, possibly free, or NULL.
static inline dqi_sconn *dqi_sconn_at(const dqi_sock *s, uint32_t k) {
    return (dqi_sconn *)dqi_conn_at(&s->conns, k);
}
static inline int dqi_sconn_state(const dqi_sconn *c) { return dqi_conn_state_of(&c->conn); }
static inline bool dqi_sconn_takes(const dqi_sconn *c) { return dqi_conn_takes(&c->conn); }
static inline uint32_t dqi_sconn_id(const dqi_sconn *c) { return dqi_conn_id_of(&c->conn); }

extern const dqi_engine_ops dqi_engine_socket;

#endif
