// socket_packets.h: packets: joined datagrams, UDP, TCP, backlogs.
#ifndef DQI_SOCKET_PACKETS_H
#define DQI_SOCKET_PACKETS_H

#include "engine/socket/socket_state.h"

// ---- socket_gro.c -----------------------------------------------------------------------------------------

// Requests super-buffers for the interface's regions unless other queues use them, or reports why not. Called
// before the open.
void dqi_gro_claim(dq_iface *i);
// Initializes the queue's part if it has super-buffers; the close frees a partial one. Control thread.
int dqi_gro_open(dqi_sock_rx *r);
void dqi_gro_start(dqi_sock_rx *r); // enables joined messages on its socket
void dqi_gro_close(dqi_sock_rx *r);
// Returns true if datagrams of the interface's own socket were read and not yet delivered.
static inline bool dqi_gro_waits(const dqi_sock_rx *r) { return r->at < r->n_read; }
// As dqi_udp_read. Queue's poller; never blocks.
int dqi_gro_read(dqi_sock_rx *r, dqi_sconn *c, dq_burst *b, uint32_t room);
// Discards the waiting datagrams; returns their number, counted as in.
uint64_t dqi_gro_discard(dqi_sock_rx *r);

// ---- socket_udp.c, socket_udp_send.c, socket_tcp.c: queue's poller; never block ---------------------------

// Fills the queue's stock of buffers up to n as far as the region has free ones; returns the stock's level.
uint32_t dqi_stock_fill(dqi_sock_rx *r, uint32_t n);
// Reads at most room datagrams of c into b; returns the packets added.
int dqi_udp_read(dqi_sock_rx *r, dqi_sconn *c, dq_burst *b, uint32_t room);
// Parses the control messages of a message read from c: stores its kernel timestamp (or c's last clock
// reading) in *ts, its destination in *to unless NULL. Returns the length of the datagrams that it consists
// of, 0: a single one.
uint32_t dqi_udp_parse(struct msghdr *m, dqi_sconn *c, int64_t *ts, dqi_target *to);
// Normalizes the sender's address to the form that packets carry.
void dqi_udp_settle_peer(const struct msghdr *m);
// Remembers the sender of b's last packet as the destination of a server's unaddressed packets.
void dqi_udp_remember_peer(dqi_sock_rx *r, const dq_burst *b);
// Reads c once into the first `want` messages. Returns their number; 0: the socket reported an error of an
// earlier datagram (counted in *soft), read again; negative: none now. A failure of the socket itself is
// counted and pauses the queue.
int dqi_udp_receive(dqi_sock_rx *r, dqi_sconn *c, uint32_t want, int *soft);
// Returns true for errors caused by earlier datagrams, which do not concern the socket itself. Pure.
bool dqi_udp_soft(int err);
#define DQI_UDP_LATE UINT32_MAX // msg_len of a message received after the stop
// Returns whether c may be read. Always true until the stop; then until no data from before it can be left,
// which sets `over`. Called before each read.
bool dqi_udp_wait_over(dqi_sock_rx *r, const dqi_sconn *c);
static inline bool dqi_udp_goes_on(dqi_sock_rx *r, const dqi_sconn *c) {
    return dqi_receives(r->queue->session) || dqi_udp_wait_over(r, c);
}
// Marks the messages among n read from c that were received after the stop. Called after each read.
void dqi_udp_mark_late(dqi_sock_rx *r, dqi_sconn *c, uint32_t n);
static inline void dqi_udp_sift(dqi_sock_rx *r, dqi_sconn *c, uint32_t n) {
    if (!dqi_receives(r->queue->session)) dqi_udp_mark_late(r, c, n);
}
// Discards the datagrams of c received before until_ns (session time) and some later ones, but none from
// after the stop; needs no buffers. Returns their number; counts them as in, not as dropped.
uint64_t dqi_udp_discard(dqi_sock_rx *r, dqi_sconn *c, int64_t until_ns);
// As dqi_udp_read, for chunks or messages of a stream; sets c->ended.
int dqi_tcp_read(dqi_sock_rx *r, dqi_sconn *c, dq_burst *b, uint32_t room);
// Records how many bytes c has received at the stop. Control thread, under conns.lock.
void dqi_tcp_stop(dqi_sconn *c);
// Discards packets read but not delivered; returns their number, counted as in, not as dropped.
uint64_t dqi_tcp_forget(dqi_sock_rx *r);
// As dqi_engine_ops.tx, on connection c with this id, without consuming the burst's reference. Also returns 0
// if the slot was reused.
int dqi_udp_send(dq_queue *q, dqi_sconn *c, uint32_t id, const dq_burst *b, uint32_t first, uint32_t n);
// *full: c accepts no more for now.
int dqi_tcp_send(dq_queue *q, dqi_sconn *c, uint32_t id, const dq_burst *b, uint32_t first, uint32_t n,
                 bool *full);

// ---- engine_socket.c --------------------------------------------------------------------------------------

// Returns the connection to which q sends b and its id; NULL: none now. Any thread; lock-free.
dqi_sconn *dqi_sock_target(const dq_queue *q, const dq_burst *b, uint32_t *id);
// As dqi_sock_target; also returns whether it can be sent on. Queue's poller.
dqi_way dqi_sock_route(const dq_queue *q, const dq_burst *b, dqi_sconn **c, uint32_t *id);
// As dqi_sock_route, for a connection id.
dqi_way dqi_sock_look_up(dqi_sock *s, uint32_t id, dqi_sconn **c);

// Adds a piece of len bytes to an iovec of n entries and returns the new number. Adjacent pieces are merged,
// because the kernel copies one long piece faster than many short ones.
static inline size_t dqi_iov_add(struct iovec *v, size_t n, uint8_t *at, size_t len) {
    if (n > 0 && (uint8_t *)v[n - 1].iov_base + v[n - 1].iov_len == at) {
        v[n - 1].iov_len += len;
        return n;
    }
    v[n] = (struct iovec){.iov_base = at, .iov_len = len};
    return n + 1;
}

// ---- socket_backlog.c: queue's poller; never block --------------------------------------------------------

int dqi_backlog_open(dqi_sock_tx *t, const dq_queue *q);
void dqi_backlog_close(dqi_sock_tx *t);
// Returns true if packets wait for connection id or, with own, for the client's own connection.
bool dqi_backlog_has(dqi_sock_tx *t, uint32_t id, bool own);
// Appends packets to the backlog of connection id (blocked_fd is its socket if that is full); with b's last
// packet it takes the caller's reference. Returns false, with nothing taken, if there is no room.
bool dqi_backlog_add(dq_queue *q, uint32_t id, bool own, dq_burst *b, uint32_t first, uint32_t n);
// Sends what the connections accept now; returns the work done.
int dqi_backlog_serve(dq_queue *q);
// Writes the descriptors on which backlogs wait, at most max; returns their number.
int dqi_backlog_arm(const dqi_sock_tx *t, struct pollfd *fds, int max);
// Drops all packets, counted as stopped.
void dqi_backlog_drop(dq_queue *q);
// See dqi_conn_ops.refuse. Any thread.
bool dqi_backlog_refuse(dq_queue *q, const dq_burst *b);

#endif
