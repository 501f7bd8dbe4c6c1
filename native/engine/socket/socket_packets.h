// socket_packets.h: packets: joined datagrams, UDP, TCP, what waits for a peer.
#ifndef DQI_SOCKET_PACKETS_H
#define DQI_SOCKET_PACKETS_H

#include "engine/socket/socket_state.h"

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

// ---- socket_udp.c, socket_udp_send.c, socket_tcp.c: the queue's poller; never block -----------------------

// Fills the queue's stock of buffers up to n, as far as the region has some; the stock's level.
uint32_t dqi_stock_fill(dqi_sock_rx *r, uint32_t n);
// Reads datagrams of c into b, at most room; packets added.
int dqi_udp_read(dqi_sock_rx *r, dqi_sconn *c, dq_burst *b, uint32_t room);
// What a message read from c says about itself: when the kernel got it (else c's last look at the clock) and
// the length of the datagrams that it consists of, 0: it is one. *to: where it was sent to; NULL: of no
// interest.
uint32_t dqi_udp_parse(struct msghdr *m, dqi_sconn *c, int64_t *ts, dqi_target *to);
// Makes the sender's address what packets carry.
void dqi_udp_settle_peer(const struct msghdr *m);
// A server's unaddressed packets go to whom the last packet of b is from.
void dqi_udp_remember_peer(dqi_sock_rx *r, const dq_burst *b);
// One read of c into the first `want` messages: how many came. 0: the socket told of what an earlier datagram
// met, *soft of which were taken; ask again. Negative: none now; where the socket itself is at fault that is
// counted and the queue rests.
int dqi_udp_receive(dqi_sock_rx *r, dqi_sconn *c, uint32_t want, int *soft);
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

// ---- socket_backlog.c: the queue's poller; never block ---------------------------------------------------

int dqi_backlog_open(dqi_sock_tx *t, const dq_queue *q);
void dqi_backlog_close(dqi_sock_tx *t);
// True when something waits for connection id, or, with own, for the client's own one.
bool dqi_backlog_has(dqi_sock_tx *t, uint32_t id, bool own);
// Puts packets into the backlog of connection id (whose socket, if it is that which is full, is in
// blocked_fd); with b's last packet it takes the caller's reference. False: no room, nothing taken.
bool dqi_backlog_add(dq_queue *q, uint32_t id, bool own, dq_burst *b, uint32_t first, uint32_t n);
// Sends what the connections take by now; work done.
int dqi_backlog_serve(dq_queue *q);
// The descriptors that the backlogs wait for; at most max, their number.
int dqi_backlog_arm(const dqi_sock_tx *t, struct pollfd *fds, int max);
// Drops everything, counted as stopped.
void dqi_backlog_drop(dq_queue *q);
// As dqi_conn_ops.refuse. Any thread.
bool dqi_backlog_refuse(dq_queue *q, const dq_burst *b);

#endif
