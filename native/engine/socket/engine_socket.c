// engine_socket.c: UDP and TCP interfaces; queues hold payloads.
//
// All operations are non-blocking and run on the queues' pollers, in batches per system call, directly
// between the kernel and packet buffers. Each UDP receive queue has its own socket; TCP connections are
// assigned to the queues in turn. A UDP server sends each forwarded packet to the packet's sender; its own
// packets go to the remote address or else to the last sender. Connection ids exist for TCP connections and
// for UDP peers connected explicitly; the interface's own UDP socket is connection 0. This file is the engine
// table; see socket_state.h for the parts and their threads.
#include "core/dq_burst.h"
#include "core/err.h"
#include "engine/socket/socket_conn.h"
#include "engine/socket/socket_open.h"
#include "engine/socket/socket_packets.h"
#include "engine/socket/socket_state.h"
#include "pipeline/engine.h"

#include <errno.h>
#include <linux/sock_diag.h>
#include <string.h>
#include <unistd.h>

#define STARVED_NS 100000 // polling interval of a queue without free buffers
#define FAST_BYTES 16384u // of a buffer for framed streams

// ---- open -------------------------------------------------------------------------------------------------

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
                        "interface %s: framing: %u is not a valid length of a prefix (expected 1, 2, 4 or 8)",
                        i->conf.name, n);
    for (uint32_t k = 0; k < i->n_rx; k++) {
        const dqi_sock_rx *r = i->rx[k]->engine;
        int err = dqi_region_share(r->region, diag);
        if (err != DQ_OK) return err;
        if (r->limit < max) max = r->limit;
    }
    if (!prefix && (n == 0 || n > max))
        return dqi_fail(
            diag, DQ_INVALID_PARAMETER,
            "interface %s: framing: %u is not a valid message length (expected 1 to the buffer size)",
            i->conf.name, n);
    s->framing = (dqi_framing){.kind = c->framing,
                               .width = prefix ? n : 0,
                               .fixed = prefix ? 0 : n,
                               .max_bytes = max,
                               .le = c->framing_le != 0,
                               .incl = c->framing_incl != 0};
    if (max < FAST_BYTES)
        dqi_note(i->session,
                 "interface %s: framed streams are read with one buffer per system call; hint: buffers of %u "
                 "bytes are several times faster than %u",
                 i->conf.name, FAST_BYTES, max);
    return DQ_OK;
}

// Assigns the interface's sockets to its queues and their reactors.
static int connect_queues(dqi_sock *s) {
    dq_iface *i = s->iface;
    int err = DQ_OK;
    for (uint32_t k = 0; k < i->n_rx && s->n_base > 0 && err == DQ_OK; k++) {
        dqi_sock_rx *r = i->rx[k]->engine;
        r->base = s->base[k];
        dqi_gro_start(r);
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
        err = dqi_sock_open_tx(s, s->iface->tx[k], k, diag);
    if (err == DQ_OK && s->iface->n_rx == 0 && !dqi_sock_is_udp(s))
        err = dqi_reactor_init(&s->idle, s, s->iface->tx[0]);
    return err;
}

static int open_socket(dq_iface *i, dq_diag *diag) {
    int err = check_conf(i, diag);
    if (err != DQ_OK) return err;
    dqi_sock *s = calloc(1, sizeof *s);
    if (!s) return dqi_fail(diag, DQ_ESYS - ENOMEM, "interface %s: no memory", i->conf.name);
    dqi_conn_table_init(&s->conns, i, sizeof(dqi_sconn));
    i->engine = s;
    s->iface = i;
    s->listen_fd = -1;
    err = open_queues(s, diag);
    if (err == DQ_OK) err = check_framing(s, diag);
    if (err == DQ_OK) err = dqi_sock_bind(s, diag);
    if (err != DQ_OK) return err;
    err = connect_queues(s);
    return err == DQ_OK ? DQ_OK
                        : dqi_fail(diag, err, "interface %s: cannot create an epoll instance: %s",
                                   i->conf.name, dq_err_name(err));
}

// Reports which packets could not be sent in runs.
static void note_refused(const dqi_sock *s) {
    for (uint32_t k = 0; k < s->n_base; k++) {
        uint32_t from = atomic_load(&s->base[k]->gso_refused);
        if (from == 0) continue;
        if (from == DQI_GSO_NEVER)
            dqi_note(s->iface->session,
                     "interface %s: packets were sent one by one: its network device does not segment runs "
                     "of packets",
                     s->iface->conf.name);
        else
            dqi_note(s->iface->session,
                     "interface %s: packets of %u bytes and more were sent one by one; hint: packets shorter "
                     "than the path's MTU are sent in runs, several times faster",
                     s->iface->conf.name, from);
        return;
    }
}

// ---- kernel counters --------------------------------------------------------------------------------------

// Returns the datagrams that the kernel dropped on c's socket since the last call.
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
    if (!s || !dqi_sock_is_udp(s) || dqi_sock_stopped(s)) return;
    pthread_mutex_lock(&s->conns.lock);
    for (uint32_t k = 0; k < i->n_rx; k++) {
        dqi_sock_rx *r = i->rx[k]->engine;
        if (!r || !r->base) continue;
        uint32_t n = new_drops(r->base);
        dqi_add(&r->queue->c.extra[DQ_EXTRA_KERNEL_DROPPED], n);
        if (r->gro) dqi_add(&r->queue->c.extra[DQ_EXTRA_KERNEL_DROPPED_SUPER], n);
    }
    for (uint32_t k = 0; k < DQI_CONNS && s->conns.n > 0; k++) {
        dqi_sconn *c = dqi_sconn_at(s, k);
        if (c && c->conn.rx) dqi_add(&c->conn.rx->c.extra[DQ_EXTRA_KERNEL_DROPPED], new_drops(c));
    }
    pthread_mutex_unlock(&s->conns.lock);
}

// ---- stop and close ---------------------------------------------------------------------------------------

// Records the position of each stream at the stop.
static void take_down(dqi_sock *s) {
    pthread_mutex_lock(&s->conns.lock);
    for (uint32_t k = 0; k < DQI_CONNS && s->conns.n > 0; k++) {
        dqi_sconn *c = dqi_sconn_at(s, k);
        if (c && dqi_sconn_state(c) == DQI_CONN_OPEN) dqi_tcp_stop(c);
    }
    pthread_mutex_unlock(&s->conns.lock);
}

static void stop(dq_iface *i) {
    dqi_sock *s = i->engine;
    if (!s || dqi_sock_stopped(s)) return;
    refresh(i);
    if (!dqi_sock_is_udp(s)) take_down(s);
    atomic_store(&s->stopped, true);
    if (s->listen_fd >= 0) shutdown(s->listen_fd, SHUT_RD); // rejects new connections
    note_refused(s);
    dqi_sconn_kick(s);
}

static void free_conn(dqi_sconn *c) {
    if (!c) return;
    bool stream = dqi_sconn_takes(c) && !dqi_sock_is_udp(c->sock);
    if (c->fd >= 0 && stream)
        dqi_sconn_hang_up(c->fd);
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
    for (uint32_t k = 0; k < DQI_CONNS; k++)
        free_conn(dqi_sconn_at(s, k));
    for (uint32_t k = 0; k < s->n_base; k++)
        free_conn(s->base[k]);
    if (s->listen_fd >= 0) close(s->listen_fd);
    for (uint32_t k = 0; k < i->n_rx; k++)
        dqi_sock_close_rx(i->rx[k]);
    for (uint32_t k = 0; k < i->n_tx; k++)
        dqi_sock_close_tx(i->tx[k]);
    dqi_reactor_close(&s->idle);
    pthread_mutex_destroy(&s->conns.lock);
    free(s);
    i->engine = NULL;
}

// ---- packets ----------------------------------------------------------------------------------------------

// Schedules the next poll of q where a ready descriptor must not trigger one.
static void look_later(dq_queue *q) {
    dqi_sock_rx *r = q->engine;
    if (!r->starved && r->rest_ns == 0) return;
    int64_t now = dq_now(q->session), due = r->starved ? now + STARVED_NS : r->rest_ns;
    if (r->rest_ns <= now) r->rest_ns = 0;
    if (due < q->next_ns) q->next_ns = due;
}

// Returns the connection that is read to its end after the stop; NULL: all are finished.
static dqi_sconn *rest_of(dqi_sock_rx *r) {
    if (r->more) return r->more;
    for (; r->rest <= DQI_CONNS; r->rest++) {
        dqi_sconn *c = r->rest == 0 ? r->base : dqi_sconn_at(r->sock, r->rest - 1);
        bool open = c && (c == r->base || (c->conn.rx == r->queue && dqi_sconn_state(c) == DQI_CONN_OPEN));
        if (open && dqi_queue_wants(r->queue, dqi_sconn_id(c))) return c;
    }
    return NULL;
}

// Proceeds to the next connection.
static void rest_ends(dqi_sock_rx *r) {
    r->rest += r->more == NULL;
    r->more = NULL;
    r->over = false;
}

// After the stop, receives what arrived before it, one connection after the other. The end of a connection
// posts no event then.
static int rx_rest(dq_queue *q, dq_burst *b, uint32_t room) {
    dqi_sock_rx *r = q->engine;
    dqi_sconn *c;
    int n = 0;
    while (room > 0 && n == 0 && (c = rest_of(r)) != NULL) {
        uint32_t id = dqi_sconn_id(c);
        q->rx.deliver_now = b->n > 0 && b->conn != id;
        if (q->rx.deliver_now) break;
        b->conn = id;
        r->starved = r->late = false;
        bool udp = dqi_sock_is_udp(r->sock);
        n = udp ? dqi_udp_read(r, c, b, room) : dqi_tcp_read(r, c, b, room);
        if (n > 0) break;
        q->rx.blocked = r->starved;
        if (!r->starved && (udp ? r->over && !dqi_gro_waits(r) : true)) {
            rest_ends(r);
            continue;
        }
        int64_t again = r->late ? 0 : dqi_stop_time(q->session) + DQI_ON_WAY_NS;
        look_later(q);
        if (!r->starved && again < q->next_ns) q->next_ns = again;
        break;
    }
    return n;
}

static int rx(dq_queue *q, dq_burst **b, uint32_t room) {
    dqi_sock_rx *r = q->engine;
    (*b)->nseg = 1; // packets are in buffers of the first region
    if (dqi_sock_stopped(r->sock)) return rx_rest(q, *b, room);
    r->starved = false;
    if (dqi_gro_waits(r) && room > 0) {
        if ((*b)->n > 0 && (*b)->conn != 0) { // packets of another connection are delivered first
            q->rx.deliver_now = true;
            return 0;
        }
        (*b)->conn = 0;
        int k = dqi_udp_read(r, r->base, *b, room);
        look_later(q);
        return k;
    }
    bool alone =
        r->base && (*b)->conn == 0 && atomic_load_explicit(&r->reactor.n_conns, memory_order_relaxed) == 0;
    int n = alone ? dqi_udp_read(r, r->base, *b, room) : dqi_reactor_rx(r, *b, room);
    look_later(q);
    return n;
}

// Returns whether a connection can be sent on.
static dqi_way judge(const dqi_sock *s, const dqi_sconn *c) {
    if (!c || atomic_load(&c->conn.broken)) return DQI_WAY_NONE;
    if (dqi_sconn_state(c) == DQI_CONN_CONNECTING)
        return dqi_sock_stopped(s) || atomic_load(&c->conn.closing) ? DQI_WAY_NONE : DQI_WAY_LATER;
    return dqi_sconn_takes(c) ? DQI_WAY_OPEN : DQI_WAY_NONE;
}

dqi_way dqi_sock_look_up(dqi_sock *s, uint32_t id, dqi_sconn **c) {
    *c = dqi_sconn_find(s, id);
    return judge(s, *c);
}

// Returns the client's own connection of queue q.
static dqi_redial *primary_of(const dq_queue *q) {
    const dqi_sock_tx *t = q->engine;
    return t->sock->n_primary ? &t->sock->primary[t->index % t->sock->n_primary] : NULL;
}

dqi_sconn *dqi_sock_target(const dq_queue *q, const dq_burst *b, uint32_t *id) {
    const dqi_sock_tx *t = q->engine;
    dqi_redial *p = primary_of(q);
    *id = dqi_conn_named(q, b);
    if (*id == 0 && t->base) return t->base;
    if (*id == 0 && p) {
        dqi_sconn *c = (dqi_sconn *)atomic_load(&p->conn);
        *id = c ? dqi_sconn_id(c) : 0;
        return c;
    }
    if (*id == 0) *id = atomic_load(&t->sock->conns.newest);
    return dqi_sconn_find(t->sock, *id);
}

dqi_way dqi_sock_route(const dq_queue *q, const dq_burst *b, dqi_sconn **c, uint32_t *id) {
    const dqi_sock_tx *t = q->engine;
    const dqi_redial *p = dqi_conn_named(q, b) == 0 ? primary_of(q) : NULL;
    *c = dqi_sock_target(q, b, id);
    if (*c && *c == t->base) return DQI_WAY_OPEN;
    dqi_way way = judge(t->sock, *c);
    bool again = p && !dqi_sock_stopped(t->sock) && !p->retired; // it will be reconnected
    return way == DQI_WAY_NONE && again ? DQI_WAY_LATER : way;
}

// Routes the queue's first burst. A partly sent packet for a server's newest connection stays with its
// connection even if a newer one appears.
static dqi_way route_first(const dq_queue *q, const dq_burst *b, dqi_sconn **c, uint32_t *id) {
    const dqi_sock_tx *t = q->engine;
    bool bound = t->stays != 0 && !primary_of(q) && dqi_conn_named(q, b) == 0;
    if (bound && dqi_sock_look_up(t->sock, *id = t->stays, c) == DQI_WAY_OPEN) return DQI_WAY_OPEN;
    return dqi_sock_route(q, b, c, id);
}

// Sends on a stream, behind its backlog. What a full socket does not accept is moved to a backlog, except for
// a transmission, which is endless and stays in place. *kept: a backlog took b's reference.
static int send_on_stream(dq_queue *q, dqi_sconn *c, uint32_t id, dq_burst *b, uint32_t first, uint32_t n,
                          bool *kept) {
    dqi_sock_tx *t = q->engine;
    bool own = t->sock->n_primary > 0 && dqi_conn_named(q, b) == 0, full = dqi_backlog_has(t, id, own);
    uint32_t sent = full ? 0 : (uint32_t)dqi_tcp_send(q, c, id, b, first, n, &full);
    if (!full || sent == n || q->tx.made || !dqi_backlog_add(q, id, own, b, first + sent, n - sent))
        return (int)sent;
    *kept = first + n == b->n;
    t->blocked_fd = -1; // the backlog waits for it
    return (int)n;
}

static int tx(dq_queue *q, dq_burst *b, uint32_t first, uint32_t n) {
    dqi_sock_tx *t = q->engine;
    dqi_sconn *c = NULL;
    uint32_t id = 0;
    int sent = 0;
    bool kept = false;
    t->blocked_fd = -1;
    switch (route_first(q, b, &c, &id)) {
    case DQI_WAY_OPEN:
        sent = dqi_sock_is_udp(t->sock) ? dqi_udp_send(q, c, id, b, first, n)
                                        : send_on_stream(q, c, id, b, first, n, &kept);
        break;
    case DQI_WAY_LATER:
        break;
    case DQI_WAY_NONE:
        dqi_drop(&q->c, DQ_DROP_NO_PEER, n);
        sent = (int)n;
    }
    if (!kept && sent > 0 && first + (uint32_t)sent == b->n) dq_burst_unref(b);
    return sent;
}

// Returns the reactor run by transmit queue q, or NULL.
static dqi_reactor *reactor_of(const dq_queue *q) {
    dqi_reactor *r = &((dqi_sock_tx *)q->engine)->sock->idle;
    return r->queue == q && !dqi_sock_stopped(r->sock) ? r : NULL;
}

static int reap(dq_queue *q) {
    dqi_reactor *r = reactor_of(q);
    dqi_conn_settle(q);
    int work = r ? dqi_reactor_reap(r) : 0;
    return work + dqi_backlog_serve(q);
}

static int arm_tx(dq_queue *q, struct pollfd *fds, int max) {
    const dqi_sock_tx *t = q->engine;
    const dqi_reactor *r = reactor_of(q);
    int n = 0;
    if (t->blocked_fd >= 0 && n < max) fds[n++] = (struct pollfd){.fd = t->blocked_fd, .events = POLLOUT};
    if (r && n < max) fds[n++] = (struct pollfd){.fd = r->epfd, .events = POLLIN};
    return n + dqi_backlog_arm(t, fds + n, max - n);
}

static int arm(dq_queue *q, struct pollfd *fds, int max) {
    if (q->conf.dir == DQ_TX) return arm_tx(q, fds, max);
    const dqi_sock_rx *r = q->engine;
    bool unread = q->rx.n_pipes == 0 && dqi_sock_is_udp(r->sock);
    if (max < 1 || r->starved || r->rest_ns > 0 || unread || dqi_sock_stopped(r->sock)) return 0;
    fds[0] = (struct pollfd){.fd = r->reactor.epfd, .events = POLLIN};
    return 1;
}

// Discards the datagrams waiting in the sockets of queue q.
static int64_t flush_datagrams(dq_queue *q) {
    dqi_sock_rx *r = q->engine;
    dqi_sock *s = r->sock;
    int64_t until = dqi_sock_stopped(s) ? INT64_MAX : dq_now(q->session);
    uint64_t n = dqi_udp_discard(r, r->base, until);
    for (uint32_t k = 0; k < DQI_CONNS && atomic_load(&r->reactor.n_conns) > 0; k++) {
        dqi_sconn *c = dqi_sconn_at(s, k);
        if (c && c->conn.rx == q && dqi_sconn_state(c) == DQI_CONN_OPEN) n += dqi_udp_discard(r, c, until);
    }
    return (int64_t)n;
}

// After the stop, data without a consumer stays in the kernel.
static int64_t flush(dq_queue *q) {
    dqi_sock_rx *r = q->engine;
    bool unread = dqi_sock_stopped(r->sock) && !atomic_load(&q->rx.consumed);
    int64_t n = 0;
    if (!unread) n = r->base ? flush_datagrams(q) : dqi_conn_flush(q, rx);
    n += (int64_t)(r->base ? dqi_gro_discard(r) : dqi_tcp_forget(r)); // read already
    dqi_drop(&q->c, q->session->state < DQI_STOPPED ? DQ_DROP_FLUSHED : DQ_DROP_STOPPED, (uint64_t)n);
    return n;
}

static const dqi_link_ops links = {.multicast = dqi_sock_multicast};

static const dqi_conn_ops conns = {
    .open = dqi_sock_conn_open,
    .close = dqi_sock_conn_close,
    .read = dqi_sock_conn_read,
    .setsockopt = dqi_sock_set_option,
    .refuse = dqi_backlog_refuse,
    .captured = dqi_sock_captured,
};

const dqi_engine_ops dqi_engine_socket = {
    .name = "socket",
    .payload = true,
    .copies = true,
    .align = 64,
    .claim = dqi_gro_claim,
    .open = open_socket,
    .queue_open = dqi_sock_queue_open,
    .queue_deletable = dqi_sock_queue_deletable,
    .stop = stop,
    .close = close_socket,
    .rx = rx,
    .tx = tx,
    .reap = reap,
    .drop_rest = dqi_backlog_drop,
    .arm = arm,
    .flush = flush,
    .refresh = refresh,
    .link = &links,
    .conns = &conns,
};
