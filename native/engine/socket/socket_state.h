// socket_state.h: what the parts of the socket engine share.
//
// Threads: a connection is read, connected and ended by one thread, that of its reactor: the poller of the
// receive queue that it was given to, or, on a TCP interface without receive queues, that of the first
// transmit queue. Any transmit queue may send on it, one at a time (tx_lock). Locks, in this order:
// dqi_sock.lock (the table, set-up and tear-down, control calls), then a connection's tx_lock, which is taken
// once per system call. No lock per packet.
#ifndef DQI_SOCKET_STATE_H
#define DQI_SOCKET_STATE_H

#include <poll.h>

#include "core/clock.h"
#include "pipeline/conn_table.h"
#include "pipeline/iface.h"
#include "pipeline/queue.h"
#include "core/region.h"
#include "core/session.h"
#include "core/socket_addr.h"
#include "engine/socket/socket_framing.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#define DQI_SOCK_ADDRS  4  // addresses of a host that are tried
#define DQI_SOCK_OPTS   16 // options that are set on an interface for its connections to come
#define DQI_SOCK_GROUPS 256
#define DQI_SOCK_BATCH  256          // datagrams, or stream buffers, of a system call
#define DQI_SOCK_READ   (512u << 10) // bytes of a stream asked for in a call, where there are buffers
#define DQI_SOCK_IOVS   1024         // UIO_MAXIOV
#define DQI_SOCK_CTL    128 // bytes for a message's control messages: time, size, and one that a user asks for
#define DQI_SOCK_READY  64  // events taken from epoll at a time

typedef struct dqi_sock dqi_sock;
typedef struct dqi_sconn dqi_sconn;

#define DQI_GSO_NEVER 1 // of dqi_sconn.gso_refused: of no length

// A client's own connection of one queue pair, made again whenever it is lost.
typedef struct dqi_sprimary {
    _Atomic(dqi_sconn *) conn; // NULL: waiting for due_ns
    int64_t due_ns, wait_ns;   // session time of the next attempt; the pause after the next failure
    int64_t since_ns;          // when conn was established
    int last_err;              // told in the last event
    bool retired;              // closed by hand: not made again
} dqi_sprimary;

// The connections that one thread reads and keeps.
typedef struct dqi_reactor {
    dqi_sock *sock;
    dq_queue *queue; // whose poller's: a receive queue, or the first transmit queue where there is none
    int epfd;
    int64_t paused_ns; // session time until which accepting rests; 0: it doesn't
    int n_ready, at;
    struct epoll_event ready[DQI_SOCK_READY];
    _Atomic uint32_t n_conns; // watched, without the interface's own socket
    uint32_t n_muted, pipes_seen;
    dqi_sconn *ending; // the first of those, the others by next_ending
} dqi_reactor;

struct dqi_sconn {
    dqi_conn conn;        // first; id 0: an interface's own UDP socket
    _Atomic bool closing; // its end was asked for
    _Atomic bool broken;  // a send failed for good: its reactor will end it
    dqi_sock *sock;
    dqi_reactor *reactor; // NULL: none (UDP without receive queues)
    int fd;               // changes under sock->lock, while open also under tx_lock
    dqi_sockaddr local, peer;
    dq_queue *rx, *tx;
    dqi_sprimary *primary;                 // NULL: accepted, or opened by hand
    dqi_sockaddr from, to[DQI_SOCK_ADDRS]; // while connecting: addresses to try
    int n_to, i_to;
    bool watched;          // by the reactor
    bool muted;            // not in its epoll set: data waits and nobody wants it
    uint32_t kernel_drops; // UDP: as last read
    // UDP: from this length on the kernel refused to cut runs into datagrams; 0: it never did
    _Atomic uint32_t gso_refused;

    // receive, reactor's thread
    uint32_t quiet;    // UDP: reads in a row that brought nothing
    dqi_stamps stamps; // UDP
    dqi_cutter cut;
    uint32_t buf;   // that the cutter is in
    uint64_t taken; // TCP: bytes read from the socket
    uint64_t until; // TCP: and those of them that had come by the stop; known after it
    bool ended;     // nothing more comes, because of why
    int why;

    // ending, reactor's thread
    dqi_sconn *next_ending;
    int64_t ending_ns;     // session time at which it began, or bytes were last seen to go
    uint64_t ending_moved; // bytes that had gone by then
    bool marked;
    uint32_t mark[DQ_MAX_QUEUES]; // ends of the transmit queues' rings when the last was queued for it

    _Atomic uint32_t full;       // bit k: it has had its share of transmit queue k
    _Atomic uint32_t backlogged; // bit k: it has a backlog of transmit queue k
    _Atomic uint64_t moved;      // bytes that the kernel took; written under tx_lock

    // transmit, under tx_lock
    pthread_mutex_t tx_lock;
    dq_queue *half_queue; // that has a packet partly sent here, NULL: none has
    const dq_burst *half_burst;
    uint32_t half_at;    // packet half_at of half_burst
    uint64_t half_bytes; // how much of it
};

// A receive queue.
typedef struct dqi_sock_rx {
    dqi_sock *sock;
    dq_queue *queue;
    dq_region *region;
    uint32_t limit;    // bytes of a packet
    uint32_t n_bursts; // that the queue has
    dqi_sconn *base;   // UDP: the interface's own socket
    dqi_reactor reactor;
    dqi_sconn *more; // has complete messages, or its end, still to be delivered
    uint64_t filled; // TCP: bytes in buffers on top of the stock, of the connection `more`
    bool starved;    // no free buffer at the last poll: the kernel keeps the data
    // after the stop
    uint32_t rest;     // the connection that is read to its end: the interface's own, then the table's
    bool over;         // that one has nothing more from before the stop
    bool late;         // UDP: the last read brought datagrams from after it
    int64_t looked_ns; // UDP: the wall clock just before the last read, of what was there; 0: none yet
    int64_t rest_ns;   // UDP: session time until which a socket that doesn't work is left alone; 0: all do
    uint32_t n_stock, cap_stock;
    uint32_t stock[DQI_SOCK_BATCH]; // free buffers at hand; UDP: stock[k] is what message k is read into
    uint8_t bin;                    // takes the first byte of what is thrown away
    struct iovec *iov;
    struct mmsghdr *msgs; // UDP
    uint8_t *ctl;         // UDP: room for control messages

    // super-buffers (socket_gro.c)
    bool gro;                                            // the stock has those
    bool wide;                                           // the next read gives each message one
    bool across;                                         // the last read did
    uint32_t used;                                       // buffers of the stock that were read into, not wide
    uint32_t each, mean;                                 // datagrams of a message, and bytes, about
    uint32_t at, n_read;                                 // messages read and not delivered yet
    uint32_t pos;                                        // bytes of msgs[at] that were
    uint32_t bufs[DQI_SOCK_BATCH], size[DQI_SOCK_BATCH]; // of each message: buffer, datagram length
    int64_t ts[DQI_SOCK_BATCH];
    dqi_spare aside; // takes datagrams that have to be copied
    uint8_t *spill;
} dqi_sock_rx;

// Packets first .. first + n of a burst that wait for their connection.
typedef struct dqi_sock_wait {
    dq_burst *b; // a reference
    uint32_t first, n;
    uint32_t next; // in the backlog, or in the list of free ones
    bool own;      // goes to the client's own connection, whichever that is
} dqi_sock_wait;

// What waits for one connection.
typedef struct dqi_backlog {
    uint32_t id, head, tail, n;
    uint64_t packets;
    int fd;
    bool own; // some of it is
} dqi_backlog;

typedef struct dqi_backlogs {
    dqi_sock_wait *waits;
    dqi_backlog *backlogs;
    uint32_t cap, free;       // waits; the first free one
    uint32_t n;               // backlogs
    _Atomic uint32_t n_waits; // written by the queue's poller, as packets
    _Atomic uint64_t packets;
    uint64_t packets_cap;
} dqi_backlogs;

// A transmit queue.
typedef struct dqi_sock_tx {
    dqi_sock *sock;
    uint32_t index;
    dqi_sconn *base; // UDP
    int blocked_fd;  // the socket that was full, -1: none
    // How far into the ring all bursts have been sent, dropped, or put into backlogs; written by the poller.
    _Atomic uint32_t settled;
    uint32_t stays; // TCP server: the connection that has a part of the queue's first packet, 0: none
    struct iovec *iov;
    struct mmsghdr *msgs;  // UDP
    uint32_t *runs;        // UDP: packets of each message
    uint8_t *ctl;          // UDP: room for control messages
    dqi_sockaddr *names;   // UDP
    uint8_t (*prefix)[8];  // TCP
    dqi_backlogs backlogs; // TCP
} dqi_sock_tx;

// Whether a burst can go where it is to go: now, later, or never.
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

// An interface.
struct dqi_sock {
    dq_iface *iface;
    dqi_framing framing;
    _Atomic bool stopped;
    unsigned nic; // index of the network interface for multicast; 0: the kernel's choice
    dqi_sockaddr local, remote[DQI_SOCK_ADDRS];
    int n_remote;

    pthread_mutex_t lock;
    dqi_conn_table conns; // of dqi_sconn
    uint32_t n_made;
    _Atomic uint32_t newest;        // TCP server: the connection that unaddressed packets go to, 0: none
    dqi_sconn *base[DQ_MAX_QUEUES]; // UDP: one a receive queue
    uint32_t n_base;
    int listen_fd;
    dqi_sprimary primary[DQ_MAX_QUEUES];
    uint32_t n_primary;
    dqi_sock_opt opts[DQI_SOCK_OPTS];
    uint32_t n_opts;
    bool told; // what kernel buffers it got
    dqi_sock_group groups[DQI_SOCK_GROUPS];
    uint32_t n_groups;

    dqi_reactor idle; // TCP without receive queues: what comes is thrown away

    dqi_spin peer_lock;
    dqi_sockaddr last_peer; // UDP server
};

static inline bool dqi_sock_is_udp(const dqi_sock *s) { return s->iface->conf.socket.proto == DQ_PROTO_UDP; }
static inline bool dqi_sock_stopped(const dqi_sock *s) {
    return atomic_load_explicit(&s->stopped, memory_order_acquire);
}
// Connection k < DQI_CONNS of the table, which may be free, or NULL.
static inline dqi_sconn *dqi_sconn_at(const dqi_sock *s, uint32_t k) {
    return (dqi_sconn *)dqi_conn_at(&s->conns, k);
}
static inline int dqi_conn_state(const dqi_sconn *c) { return dqi_conn_state_of(&c->conn); }
// True when it may be sent on.
static inline bool dqi_conn_takes(const dqi_sconn *c) {
    int state = dqi_conn_state(c);
    return state == DQI_CONN_OPEN || state == DQI_CONN_ENDING;
}
static inline uint32_t dqi_conn_id(const dqi_sconn *c) { return dqi_conn_id_of(&c->conn); }

extern const dqi_engine_ops dqi_engine_socket;

#endif
