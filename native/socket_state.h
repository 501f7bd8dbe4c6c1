// socket_state.h: what the parts of the socket engine share.
//
// Threads: a connection is read, connected and ended by one thread, that of its reactor: the poller of the
// receive queue that it was given to, or, on a TCP interface without receive queues, that of the first
// transmit queue. Any transmit queue may send on it, one at a time (tx_lock). Locks, in this order:
// dqi_sock.lock (the table, set-up and tear-down, control calls), then a connection's tx_lock, which is taken
// once per system call. No lock per packet. Slots of the table are never freed before the close, so a pointer
// to one stays good; the id tells whether it still is the same connection.
#ifndef DQI_SOCKET_STATE_H
#define DQI_SOCKET_STATE_H

#include <poll.h>

#include "clock.h"
#include "iface.h"
#include "queue.h"
#include "region.h"
#include "session.h"
#include "socket_addr.h"
#include "socket_framing.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#define DQI_SOCK_CONNS   4096u // connections of an interface at a time; a power of two
#define DQI_SOCK_ID_BITS 26    // of a connection id; above them stands the interface's index
#define DQI_SOCK_ADDRS   4     // addresses of a host that are tried
#define DQI_SOCK_OPTS    16    // options that are set on an interface for its connections to come
#define DQI_SOCK_GROUPS  256
#define DQI_SOCK_BATCH   256          // datagrams, or stream buffers, of a system call
#define DQI_SOCK_READ    (512u << 10) // bytes of a stream asked for in a call, where there are buffers
#define DQI_SOCK_IOVS    1024         // UIO_MAXIOV
#define DQI_SOCK_CTL     128 // bytes for a message's control messages: time, size, and one that a user asks for
#define DQI_SOCK_READY   64 // events taken from epoll at a time

typedef struct dqi_sock dqi_sock;
typedef struct dqi_sconn dqi_sconn;

#define DQI_GSO_NEVER 1 // of dqi_sconn.gso_refused: of no length

// ENDING: not read any more, while what is queued for it goes (socket_ending.c).
enum { DQI_CONN_FREE, DQI_CONN_CONNECTING, DQI_CONN_OPEN, DQI_CONN_ENDING };

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
    _Atomic uint32_t id; // 0: an interface's own UDP socket
    _Atomic int32_t state;
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

    _Atomic uint32_t full;  // bit k: it has had its share of transmit queue k
    _Atomic uint32_t laned; // bit k: it has a lane of transmit queue k
    _Atomic uint64_t moved; // bytes that the kernel took; written under tx_lock

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
    uint32_t next; // in the lane, or in the list of free ones
    bool own;      // goes to the client's own connection, whichever that is
} dqi_sock_wait;

// What waits for one connection.
typedef struct dqi_sock_lane {
    uint32_t id, head, tail, n;
    uint64_t packets;
    int fd;
    bool own; // some of it is
} dqi_sock_lane;

typedef struct dqi_sock_lanes {
    dqi_sock_wait *waits;
    dqi_sock_lane *lanes;
    uint32_t cap, free;       // waits; the first free one
    uint32_t n;               // lanes
    _Atomic uint32_t n_waits; // written by the queue's poller, as packets
    _Atomic uint64_t packets;
    uint64_t packets_cap;
} dqi_sock_lanes;

// A transmit queue.
typedef struct dqi_sock_tx {
    dqi_sock *sock;
    uint32_t index;
    dqi_sconn *base; // UDP
    int blocked_fd;  // the socket that was full, -1: none
    // How far into the ring all bursts have been sent, dropped, or put into lanes; written by the poller.
    _Atomic uint32_t settled;
    uint32_t stays; // TCP server: the connection that has a part of the queue's first packet, 0: none
    struct iovec *iov;
    struct mmsghdr *msgs; // UDP
    uint32_t *runs;       // UDP: packets of each message
    uint8_t *ctl;         // UDP: room for control messages
    dqi_sockaddr *names;  // UDP
    uint8_t (*prefix)[8]; // TCP
    dqi_sock_lanes lanes; // TCP
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
    _Atomic(dqi_sconn *) table[DQI_SOCK_CONNS];
    uint32_t seq, n_made;
    _Atomic uint32_t n_conns;
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
static inline int dqi_conn_state(const dqi_sconn *c) {
    return atomic_load_explicit(&c->state, memory_order_acquire);
}
// True when it may be sent on.
static inline bool dqi_conn_takes(const dqi_sconn *c) {
    int state = dqi_conn_state(c);
    return state == DQI_CONN_OPEN || state == DQI_CONN_ENDING;
}
static inline uint32_t dqi_conn_id(const dqi_sconn *c) {
    return atomic_load_explicit(&c->id, memory_order_acquire);
}

// ---- socket_option.c: control threads, or a reactor's for a new connection --------------------------------

// A non-blocking socket of this family for the interface, its options set; or -errno.
int dqi_sock_new_fd(dqi_sock *s, int family);
// The setsockopt of the engine table.
// Has the kernel tell of each datagram where it was sent to, where the sockets take what goes to any address.
// For captures alone: it costs a control message each. Control thread.
void dqi_sock_captured(dq_iface *i);
int dqi_sock_set_option(dq_iface *i, uint32_t conn, int level, int option, const void *v, uint32_t len);

// ---- socket_open.c: control thread, may block -------------------------------------------------------------

// Resolves the addresses and makes the sockets that exist from the open on.
int dqi_sock_bind(dqi_sock *s, dq_diag *diag);
// A UDP socket from `from` (family 0: any) to `to`; or -errno. reuse: SO_REUSEPORT or 0.
int dqi_udp_connect(dqi_sock *s, const dqi_sockaddr *from, const dqi_sockaddr *to, int reuse);
// Binds fd, an IPv6 one for IPv4 too; 0 or -errno.
int dqi_sock_bind_fd(int fd, const dqi_sockaddr *a);

// ---- socket_queue.c: control thread -----------------------------------------------------------------------

// The k-th queue's own part, into q->engine; on failure the close takes back what was made.
int dqi_sock_open_rx(dqi_sock *s, uint32_t k, dq_diag *diag);
int dqi_sock_open_tx(dqi_sock *s, uint32_t k, dq_diag *diag);
void dqi_sock_close_rx(dq_queue *q);
void dqi_sock_close_tx(dq_queue *q);

// ---- socket_conn.c ----------------------------------------------------------------------------------------

// A connecting slot with a new id that belongs to the pair-th receive and transmit queue (modulo their
// numbers; -1: each pair in turn). NULL: the table is full, or the listener far behind with events. The
// caller fills it in and publishes it, or gives it up. Any thread.
dqi_sconn *dqi_conn_new(dqi_sock *s, int pair);
// An open connection gets its event; the reactor watches it from now on. Any thread.
void dqi_conn_publish(dqi_sconn *c, int state);
// Gives c its socket, in place of the one it had. Any thread.
void dqi_conn_set_fd(dqi_sconn *c, int fd, const dqi_sockaddr *peer);
// Frees a slot that was not published. Any thread.
void dqi_conn_give_up(dqi_sconn *c);
// The connection of this id, in whatever state, or NULL. Any thread; no lock.
dqi_sconn *dqi_conn_find(dqi_sock *s, uint32_t id);
// Ends a connection: socket closed, event posted unless it was, slot free. Reactor's thread.
void dqi_conn_end(dqi_sconn *c, int code);
// An open connection ends for its receive queue: event posted, read no more. Reactor's thread.
void dqi_conn_stop_reading(dqi_sconn *c);
// Starts connecting to the next of c->to: DQ_OK, or the last system error when none is left. Reactor's
// thread, or before the connection is published.
int dqi_conn_try(dqi_sconn *c);
// Tells the interface's transmit queues that connections came or went. Any thread.
void dqi_conn_kick(dqi_sock *s);
int dqi_sock_conn_open(dq_iface *i, const char *address, const char *local, uint32_t *conn, dq_diag *diag);
int dqi_sock_conn_close(dq_iface *i, uint32_t conn);
int dqi_sock_conn_read(dq_iface *i, uint32_t conn, dq_conn_info *out);
// Closes a connected socket so that the peer gets all that was sent, even where it sent what nobody read.
void dqi_conn_hang_up(int fd);

// ---- socket_reactor.c -------------------------------------------------------------------------------------

int dqi_reactor_init(dqi_reactor *r, dqi_sock *s, dq_queue *q);
void dqi_reactor_close(dqi_reactor *r);
// Watches c (readable, or connected) from now on. Any thread. DQ_OK or a system error.
int dqi_reactor_add(dqi_reactor *r, dqi_sconn *c, int state);
// One turn of a receive queue: accepts, connects, ends and reads; packets added to b. Reactor's thread; never
// blocks.
int dqi_reactor_rx(dqi_sock_rx *r, dq_burst *b, uint32_t room);
// One turn of the first transmit queue of an interface without receive queues: accepts, connects, ends, and
// throws away what is sent to it; work done. Queue's poller; never blocks.
int dqi_reactor_reap(dqi_reactor *r);

// ---- socket_ending.c: reactor's thread; never block -------------------------------------------------------

// An open connection is read no more, because of code (DQ_OK: its stream ended, or its end was asked for).
// Sends that it can still take go first; then, or else at once, it ends.
void dqi_ending_begin(dqi_sconn *c, int code);
// Ends those that are through; session time of the next look, INT64_MAX: none.
int64_t dqi_ending_serve(dqi_reactor *r);
// An ending connection's socket has something to say: whether it is broken.
void dqi_ending_look(dqi_sconn *c);

// ---- socket_gro.c -----------------------------------------------------------------------------------------

// Asks for super-buffers for the interface's regions, where nobody else uses them; or says why not. Before
// the open.
void dqi_gro_claim(dq_iface *i);
// The queue's part, if it got them; on failure the close takes back what was made. Control thread.
int dqi_gro_open(dqi_sock_rx *r);
void dqi_gro_start(dqi_sock_rx *r); // its socket gives joined messages from now on
void dqi_gro_close(dqi_sock_rx *r);
// True when datagrams of the interface's own socket were read and not delivered yet.
static inline bool dqi_gro_waits(const dqi_sock_rx *r) { return r->at < r->n_read; }
// As dqi_udp_read. Queue's poller; never blocks.
int dqi_gro_read(dqi_sock_rx *r, dqi_sconn *c, dq_burst *b, uint32_t room);
// Throws away what waits; datagrams, counted as in.
uint64_t dqi_gro_discard(dqi_sock_rx *r);

// ---- socket_udp.c, socket_udp_send.c, socket_tcp.c: the queue's poller; never block
// ------------------------------------------

// Fills the queue's stock of buffers up to n, as far as the region has some; the stock's level.
uint32_t dqi_stock_fill(dqi_sock_rx *r, uint32_t n);
// Reads datagrams of c into b, at most room; packets added.
int dqi_udp_read(dqi_sock_rx *r, dqi_sconn *c, dq_burst *b, uint32_t room);
// What a message read from c says about itself: when the kernel got it (else c's last look at the clock) and
// the length of the datagrams that it consists of, 0: it is one.
uint32_t dqi_udp_parse(struct msghdr *m, dqi_sconn *c, int64_t *ts);
// Makes the sender's address what packets carry.
void dqi_udp_settle_peer(const struct msghdr *m);
// A server's unaddressed packets go to whom the last packet of b is from.
void dqi_udp_remember_peer(dqi_sock_rx *r, const dq_burst *b);
// A read of c brought nothing, because of err: where the socket itself is at fault that is counted and the
// queue rests.
void dqi_udp_brought_none(dqi_sock_rx *r, dqi_sconn *c, int err);
// What an earlier datagram met on its way; says nothing about this socket. Pure.
bool dqi_udp_soft(int err);
#define DQI_UDP_LATE UINT32_MAX // msg_len of a message that came after the stop
// Whether c may be read: always, until the stop; then as long as it may have something from before it, which
// sets `over`. Before each read.
bool dqi_udp_wait_over(dqi_sock_rx *r, const dqi_sconn *c);
static inline bool dqi_udp_goes_on(dqi_sock_rx *r, const dqi_sconn *c) {
    return dqi_receives(r->queue->session) || dqi_udp_wait_over(r, c);
}
// Marks those of n messages read from c that came after the stop. After each read.
void dqi_udp_mark_late(dqi_sock_rx *r, dqi_sconn *c, uint32_t n);
static inline void dqi_udp_sift(dqi_sock_rx *r, dqi_sconn *c, uint32_t n) {
    if (!dqi_receives(r->queue->session)) dqi_udp_mark_late(r, c, n);
}
// Throws away the datagrams of c that came before until_ns (session time), and some of those behind them, but
// none from after the stop; needs no buffers. Their number; counts them as in, not as dropped.
uint64_t dqi_udp_discard(dqi_sock_rx *r, dqi_sconn *c, int64_t until_ns);
// The same as dqi_udp_read for a stream's chunks, or messages; sets c->ended.
int dqi_tcp_read(dqi_sock_rx *r, dqi_sconn *c, dq_burst *b, uint32_t room);
// Takes down what has come on c: the stop. Control thread, under the interface's lock.
void dqi_tcp_stop(dqi_sconn *c);
// Forgets the packets that were read and not delivered; their number, counted as in, not as dropped.
uint64_t dqi_tcp_forget(dqi_sock_rx *r);
// As dqi_engine_ops.tx, on connection c (whose id is `id`), and without the burst's reference. 0 also where c
// is another one by now.
int dqi_udp_send(dq_queue *q, dqi_sconn *c, uint32_t id, const dq_burst *b, uint32_t first, uint32_t n);
// *full: c takes no more now.
int dqi_tcp_send(dq_queue *q, dqi_sconn *c, uint32_t id, const dq_burst *b, uint32_t first, uint32_t n,
                 bool *full);

// ---- engine_socket.c --------------------------------------------------------------------------------------

// The connection, and its id, that b goes to when q sends it; NULL: none now. Any thread; no lock.
dqi_sconn *dqi_sock_target(const dq_queue *q, const dq_burst *b, uint32_t *id);
// The same, and whether it can be sent on. Queue's poller.
dqi_way dqi_sock_route(const dq_queue *q, const dq_burst *b, dqi_sconn **c, uint32_t *id);
// The same for a connection's id.
dqi_way dqi_sock_look_up(dqi_sock *s, uint32_t id, dqi_sconn **c);

// Adds a piece of len bytes to the n of a list; one that begins where the last ends makes that longer: the
// kernel copies one long piece faster than many short ones. How many there are then.
static inline size_t dqi_iov_add(struct iovec *v, size_t n, uint8_t *at, size_t len) {
    if (n > 0 && (uint8_t *)v[n - 1].iov_base + v[n - 1].iov_len == at) {
        v[n - 1].iov_len += len;
        return n;
    }
    v[n] = (struct iovec){.iov_base = at, .iov_len = len};
    return n + 1;
}

// ---- socket_lanes.c: the queue's poller; never block ------------------------------------------------------

int dqi_sock_lanes_open(dqi_sock_tx *t, const dq_queue *q);
void dqi_sock_lanes_close(dqi_sock_tx *t);
// True when something waits for connection id, or, with own, for the client's own one.
bool dqi_sock_lanes_has(dqi_sock_tx *t, uint32_t id, bool own);
// Puts packets into the lane of connection id (whose socket, if it is that which is full, is in blocked_fd);
// with b's last packet it takes the caller's reference.
// False: no room, nothing taken.
bool dqi_sock_lanes_add(dq_queue *q, uint32_t id, bool own, dq_burst *b, uint32_t first, uint32_t n);
// Sends what the connections take by now; work done.
int dqi_sock_lanes_serve(dq_queue *q);
// The descriptors that the lanes wait for; at most max, their number.
int dqi_sock_lanes_arm(const dqi_sock_tx *t, struct pollfd *fds, int max);
// Drops everything, counted as stopped.
void dqi_sock_lanes_drop(dq_queue *q);
// As dqi_engine_ops.refuse. Any thread.
bool dqi_sock_lanes_refuse(dq_queue *q, const dq_burst *b);

// ---- socket_multicast.c -----------------------------------------------------------------------------------

int dqi_sock_multicast(dq_iface *i, const char *group, const char *source, bool join, dq_diag *diag);
// Joins the group that the interface is bound to, if it is one.
int dqi_sock_join_own(dqi_sock *s, dq_diag *diag);
// Chooses the network interface by the configuration, and sends multicast through it.
void dqi_sock_choose_nic(dqi_sock *s);
void dqi_sock_multicast_out(dqi_sock *s, int fd, int family);

extern const dqi_engine_ops dqi_engine_socket;

#endif
