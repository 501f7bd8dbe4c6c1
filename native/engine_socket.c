// engine_socket.c: UDP and TCP interfaces; queues hold payloads.
//
// Everything is non-blocking and runs on the queues' pollers, whole batches a system call, straight between
// the kernel and packet buffers. A UDP receive queue has a socket of its own; TCP connections are dealt out
// to the queues in turn. A UDP server answers each packet that it forwards to the packet's own sender; what
// it makes itself goes to the remote address, or to who was heard last. Connection ids belong to TCP
// connections, and to the UDP peers that were connected to by hand; the interface's own UDP socket is
// connection 0. This file is the engine table; see socket_state.h for the parts and their threads.
#include "socket_state.h"

#include <errno.h>
#include <linux/sock_diag.h>
#include <string.h>
#include <unistd.h>

#define STARVED_NS   100000 // until a queue without free buffers looks again
#define FAST_BYTES   16384u // of a buffer for framed streams
#define FLUSH_ROUNDS 1024   // bursts thrown away by one flush; what comes meanwhile may stay

// ---- opening ----------------------------------------------------------------------------------------------

static int check_framing(dqi_sock *s, dq_diag *diag) {
    const dq_iface *i = s->iface;
    const dq_socket_conf *c = &i->conf.socket;
    if (c->framing == DQ_FRAMING_NONE) return DQ_OK;
    uint32_t n = c->framing_bytes, max = UINT32_MAX;
    bool prefix = c->framing == DQ_FRAMING_PREFIX;
    if (c->proto != DQ_PROTO_TCP)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "interface %s: framing is for tcp:// interfaces",
                        i->conf.name);
    if (prefix && n != 1 && n != 2 && n != 4 && n != 8)
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "interface %s: framing: a length prefix of %u bytes; hint: 1, 2, 4 or 8",
                        i->conf.name, n);
    for (uint32_t k = 0; k < i->n_rx; k++) {
        const dqi_sock_rx *r = i->rx[k]->engine;
        int err = dqi_region_share(r->region, diag);
        if (err != DQ_OK) return err;
        if (r->limit < max) max = r->limit;
    }
    if (!prefix && (n == 0 || n > max))
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "interface %s: framing: messages of %u bytes; hint: from 1 to the buffer size",
                        i->conf.name, n);
    s->framing = (dqi_framing){.kind = c->framing,
                               .width = prefix ? n : 0,
                               .fixed = prefix ? 0 : n,
                               .max_bytes = max,
                               .le = c->framing_le != 0,
                               .incl = c->framing_incl != 0};
    if (max < FAST_BYTES)
        dqi_note(i->session,
                 "interface %s: framed streams are read one buffer a system call; hint: buffers of %u bytes "
                 "are several times faster than %u",
                 i->conf.name, FAST_BYTES, max);
    return DQ_OK;
}

// Hands the interface's sockets to its queues and their reactors.
static int connect_queues(dqi_sock *s) {
    dq_iface *i = s->iface;
    int err = DQ_OK;
    for (uint32_t k = 0; k < i->n_rx && s->n_base > 0 && err == DQ_OK; k++) {
        dqi_sock_rx *r = i->rx[k]->engine;
        r->base = s->base[k];
        err = dqi_reactor_add(&r->reactor, r->base, DQI_CONN_OPEN);
    }
    for (uint32_t k = 0; k < i->n_tx && s->n_base > 0; k++)
        ((dqi_sock_tx *)i->tx[k]->engine)->base = s->base[k % s->n_base];
    if (s->listen_fd < 0 || err != DQ_OK) return err;
    dqi_reactor *r = i->n_rx ? &((dqi_sock_rx *)i->rx[0]->engine)->reactor : &s->idle;
    struct epoll_event e = {.events = EPOLLIN};
    return epoll_ctl(r->epfd, EPOLL_CTL_ADD, s->listen_fd, &e) == 0 ? DQ_OK : DQ_ESYS - errno;
}

static int check_conf(const dq_iface *i, dq_diag *diag) {
    const dq_socket_conf *c = &i->conf.socket;
    if (c->proto != DQ_PROTO_UDP && c->proto != DQ_PROTO_TCP)
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "interface %s: a socket needs an address such as udp://0.0.0.0:5000", i->conf.name);
    if (!c->server && !c->remote_host[0])
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "interface %s: a client needs a remote address",
                        i->conf.name);
    return DQ_OK;
}

static int open_queues(dqi_sock *s, dq_diag *diag) {
    int err = DQ_OK;
    for (uint32_t k = 0; k < s->iface->n_rx && err == DQ_OK; k++)
        err = dqi_sock_open_rx(s, k, diag);
    for (uint32_t k = 0; k < s->iface->n_tx && err == DQ_OK; k++)
        err = dqi_sock_open_tx(s, k, diag);
    if (err == DQ_OK && s->iface->n_rx == 0 && !dqi_sock_is_udp(s))
        err = dqi_reactor_init(&s->idle, s, s->iface->tx[0]);
    return err;
}

static int open_socket(dq_iface *i, dq_diag *diag) {
    int err = check_conf(i, diag);
    if (err != DQ_OK) return err;
    dqi_sock *s = calloc(1, sizeof *s);
    if (!s) return dqi_fail(diag, DQ_ESYS - ENOMEM, "interface %s: no memory", i->conf.name);
    i->engine = s;
    s->iface = i;
    s->listen_fd = -1;
    pthread_mutex_init(&s->lock, NULL);
    err = open_queues(s, diag);
    if (err == DQ_OK) err = check_framing(s, diag);
    if (err == DQ_OK) err = dqi_sock_bind(s, diag);
    if (err != DQ_OK) return err;
    err = connect_queues(s);
    return err == DQ_OK ? DQ_OK
                        : dqi_fail(diag, err, "interface %s: epoll: %s", i->conf.name, dq_err_name(err));
}

// ---- the end ----------------------------------------------------------------------------------------------

static void stop(dq_iface *i) {
    dqi_sock *s = i->engine;
    if (!s || dqi_sock_stopped(s)) return;
    s->stop_ns = dqi_sock_realtime_ns();
    atomic_store(&s->stopped, true);
    if (s->listen_fd >= 0) shutdown(s->listen_fd, SHUT_RD); // refuses new connections
    dqi_conn_kick(s);
}

static void free_conn(dqi_sconn *c) {
    if (!c) return;
    bool stream = dqi_conn_state(c) == DQI_CONN_OPEN && !dqi_sock_is_udp(c->sock);
    if (c->fd >= 0 && stream)
        dqi_conn_hang_up(c->fd);
    else if (c->fd >= 0)
        close(c->fd);
    dqi_bufs_free(c->sock->iface->session, &c->buf, 1);
    pthread_mutex_destroy(&c->tx_lock);
    free(c);
}

static void close_socket(dq_iface *i) {
    dqi_sock *s = i->engine;
    if (!s) return;
    stop(i);
    for (uint32_t k = 0; k < DQI_SOCK_CONNS; k++)
        free_conn(atomic_load(&s->table[k]));
    for (uint32_t k = 0; k < s->n_base; k++)
        free_conn(s->base[k]);
    if (s->listen_fd >= 0) close(s->listen_fd);
    for (uint32_t k = 0; k < i->n_rx; k++)
        dqi_sock_close_rx(i->rx[k]);
    for (uint32_t k = 0; k < i->n_tx; k++)
        dqi_sock_close_tx(i->tx[k]);
    dqi_reactor_close(&s->idle);
    pthread_mutex_destroy(&s->lock);
    free(s);
    i->engine = NULL;
}

// ---- packets ----------------------------------------------------------------------------------------------

// After the stop: datagrams that had come before it are still taken in, streams are left as they are.
static int rx_rest(dqi_sock_rx *r, dq_burst *b, uint32_t room) {
    if (b->n == 0) b->conn = 0;
    if (r->done || !r->base || b->conn != 0) return 0;
    int n = dqi_udp_read(r, r->base, b, room);
    r->done = n == 0 || b->ts[b->n - 1] >= r->sock->stop_ns;
    return n;
}

static int rx(dq_queue *q, dq_burst **b, uint32_t room) {
    dqi_sock_rx *r = q->engine;
    (*b)->nseg = 1; // packets lie in the first region's buffers
    if (dqi_sock_stopped(r->sock)) return rx_rest(r, *b, room);
    r->starved = false;
    bool alone =
        r->base && (*b)->conn == 0 && atomic_load_explicit(&r->reactor.n_conns, memory_order_relaxed) == 0;
    int n = alone ? dqi_udp_read(r, r->base, *b, room) : dqi_reactor_rx(r, *b, room);
    if (r->starved) q->next_ns = dq_now(q->session) + STARVED_NS;
    return n;
}

enum { GO, WAIT, NOBODY };

// Whether a connection can be sent on.
static int judge(const dqi_sock *s, const dqi_sconn *c) {
    if (!c || atomic_load(&c->broken) || atomic_load(&c->closing)) return NOBODY;
    int state = dqi_conn_state(c);
    if (state == DQI_CONN_CONNECTING) return dqi_sock_stopped(s) ? NOBODY : WAIT;
    return state == DQI_CONN_OPEN ? GO : NOBODY;
}

// The interface's default peer: a client's own connection, a server's newest.
static int route_default(dq_queue *q, dqi_sconn **c, uint32_t *id) {
    dqi_sock_tx *t = q->engine;
    dqi_sock *s = t->sock;
    *c = t->base;
    if (*c) return GO;
    if (s->n_primary == 0) {
        *id = atomic_load(&s->newest);
        *c = dqi_conn_find(s, *id);
        return judge(s, *c);
    }
    dqi_sprimary *p = &s->primary[t->index % s->n_primary];
    *c = atomic_load(&p->conn);
    if (*c) *id = dqi_conn_id(*c);
    int verdict = judge(s, *c);
    return verdict == NOBODY && !dqi_sock_stopped(s) && !p->retired ? WAIT : verdict;
}

// Where b goes. The connection that a burst was received on means nothing on another interface.
static int route(dq_queue *q, const dq_burst *b, dqi_sconn **c, uint32_t *id) {
    dqi_sock *s = ((dqi_sock_tx *)q->engine)->sock;
    const dq_queue *from = b->queue;
    bool foreign = from && from->conf.dir == DQ_RX && from->iface != q->iface &&
                   b->conn >> DQI_SOCK_ID_BITS == from->iface->index;
    *id = foreign ? 0 : b->conn;
    if (*id == 0) return route_default(q, c, id);
    *c = dqi_conn_find(s, *id);
    return judge(s, *c);
}

static int tx(dq_queue *q, dq_burst *b, uint32_t first, uint32_t n) {
    dqi_sock_tx *t = q->engine;
    dqi_sconn *c = NULL;
    uint32_t id = 0;
    int sent = 0;
    t->blocked_fd = -1;
    switch (route(q, b, &c, &id)) {
    case GO:
        sent = dqi_sock_is_udp(t->sock) ? dqi_udp_send(q, c, id, b, first, n)
                                        : dqi_tcp_send(q, c, id, b, first, n);
        break;
    case NOBODY:
        dqi_drop(&q->c, DQ_DROP_NO_PEER, n);
        sent = (int)n;
    }
    if (sent > 0 && first + (uint32_t)sent == b->n) dq_burst_unref(b);
    return sent;
}

// The reactor that transmit queue q serves, or NULL.
static dqi_reactor *reactor_of(const dq_queue *q) {
    dqi_reactor *r = &((dqi_sock_tx *)q->engine)->sock->idle;
    return r->queue == q && !dqi_sock_stopped(r->sock) ? r : NULL;
}

static int reap(dq_queue *q) {
    dqi_reactor *r = reactor_of(q);
    return r ? dqi_reactor_reap(r) : 0;
}

static int arm_tx(dq_queue *q, struct pollfd *fds, int max) {
    const dqi_sock_tx *t = q->engine;
    const dqi_reactor *r = reactor_of(q);
    int n = 0;
    if (t->blocked_fd >= 0 && n < max) fds[n++] = (struct pollfd){.fd = t->blocked_fd, .events = POLLOUT};
    if (r && n < max) fds[n++] = (struct pollfd){.fd = r->epfd, .events = POLLIN};
    return n;
}

static int arm(dq_queue *q, struct pollfd *fds, int max) {
    if (q->conf.dir == DQ_TX) return arm_tx(q, fds, max);
    const dqi_sock_rx *r = q->engine;
    bool unread = q->n_pipes == 0 && dqi_sock_is_udp(r->sock);
    if (max < 1 || r->starved || unread || dqi_sock_stopped(r->sock)) return 0;
    fds[0] = (struct pollfd){.fd = r->reactor.epfd, .events = POLLIN};
    return 1;
}

// What waits in the sockets that queue q reads.
static int64_t flush_datagrams(dq_queue *q) {
    dqi_sock_rx *r = q->engine;
    dqi_sock *s = r->sock;
    int64_t until = dqi_sock_stopped(s) ? s->stop_ns : dqi_sock_realtime_ns();
    uint64_t n = dqi_udp_discard(r, r->base, until);
    for (uint32_t k = 0; k < DQI_SOCK_CONNS && atomic_load(&r->reactor.n_conns) > 0; k++) {
        dqi_sconn *c = atomic_load(&s->table[k]);
        if (c && c->rx == q && dqi_conn_state(c) == DQI_CONN_OPEN) n += dqi_udp_discard(r, c, until);
    }
    return (int64_t)n;
}

static int64_t flush_streams(dq_queue *q) {
    int64_t n = 0;
    bool more = true;
    for (int round = 0; round < FLUSH_ROUNDS && more; round++) {
        dq_burst *b = dqi_burst_get(q->bursts);
        if (!b) break;
        int k = rx(q, &b, q->conf.batch_size);
        more = k > 0;
        n += k;
        dq_burst_unref(b);
    }
    return n;
}

static int64_t flush(dq_queue *q) {
    const dqi_sock_rx *r = q->engine;
    int64_t n = r->base ? flush_datagrams(q) : flush_streams(q);
    dqi_drop(&q->c, q->session->state < DQI_STOPPED ? DQ_DROP_FLUSHED : DQ_DROP_STOPPED, (uint64_t)n);
    return n;
}

// ---- the kernel's counters --------------------------------------------------------------------------------

// Datagrams that the kernel dropped on c's socket since the last look.
static uint32_t new_drops(dqi_sconn *c) {
    uint32_t info[SK_MEMINFO_VARS] = {0};
    socklen_t len = sizeof info;
    if (c->fd < 0 || getsockopt(c->fd, SOL_SOCKET, SO_MEMINFO, info, &len) != 0) return 0;
    uint32_t n = info[SK_MEMINFO_DROPS] - c->kernel_drops;
    c->kernel_drops = info[SK_MEMINFO_DROPS];
    return n;
}

static void refresh(dq_iface *i) {
    dqi_sock *s = i->engine;
    if (!s || !dqi_sock_is_udp(s)) return;
    pthread_mutex_lock(&s->lock);
    for (uint32_t k = 0; k < i->n_rx; k++) {
        dqi_sock_rx *r = i->rx[k]->engine;
        if (r && r->base) dqi_add(&r->queue->c.extra[DQ_EXTRA_KERNEL_DROPPED], new_drops(r->base));
    }
    for (uint32_t k = 0; k < DQI_SOCK_CONNS && s->n_conns > 0; k++) {
        dqi_sconn *c = atomic_load(&s->table[k]);
        if (c && c->rx) dqi_add(&c->rx->c.extra[DQ_EXTRA_KERNEL_DROPPED], new_drops(c));
    }
    pthread_mutex_unlock(&s->lock);
}

const dqi_engine_ops dqi_engine_socket = {
    .name = "socket",
    .payload = true,
    .align = 64,
    .open = open_socket,
    .stop = stop,
    .close = close_socket,
    .rx = rx,
    .tx = tx,
    .reap = reap,
    .arm = arm,
    .flush = flush,
    .refresh = refresh,
    .multicast = dqi_sock_multicast,
    .conn_open = dqi_sock_conn_open,
    .conn_close = dqi_sock_conn_close,
    .conn_read = dqi_sock_conn_read,
    .conn_setsockopt = dqi_sock_set_option,
};
