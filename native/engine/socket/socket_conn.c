// socket_conn.c: start and end of connections, and the control calls. conn_table.h implements the table.
#include "engine/socket/socket_conn.h"
#include "core/err.h"
#include "engine/socket/socket_open.h"
#include "engine/socket/socket_packets.h"
#include "engine/socket/socket_state.h"
#include "pipeline/dq_pipeline.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define MAX_WAIT_NS INT64_C(30000000000) // longest delay between two connection attempts

dqi_sconn *dqi_sconn_find(dqi_sock *s, uint32_t id) { return (dqi_sconn *)dqi_conn_look_up(&s->conns, id); }

// Assigns c to its queues and its reactor.
static void place(dqi_sconn *c, uint32_t pair) {
    dqi_sock *s = c->sock;
    const dq_iface *i = s->iface;
    c->rx = i->n_rx ? i->rx[pair % i->n_rx] : NULL;
    c->tx = i->n_tx ? i->tx[pair % i->n_tx] : NULL;
    c->reactor = c->rx ? &((dqi_sock_rx *)c->rx->engine)->reactor : dqi_sock_is_udp(s) ? NULL : &s->idle;
}

dqi_sconn *dqi_sconn_new(dqi_sock *s, int pair) {
    uint32_t id = 0;
    bool anew = false;
    pthread_mutex_lock(&s->lock);
    dqi_sconn *c = (dqi_sconn *)dqi_conn_reserve(&s->conns, &id, &anew);
    if (c) {
        if (anew) pthread_mutex_init(&c->tx_lock, NULL);
        c->sock = s;
        place(c, pair >= 0 ? (uint32_t)pair : s->n_made++);
        c->fd = -1;
        c->local = c->peer = c->from = (dqi_sockaddr){0};
        c->primary = NULL;
        c->n_to = c->i_to = 0;
        c->cut = (dqi_cutter){0};
        c->buf = DQI_NO_BUF;
        c->taken = c->until = 0;
        c->ended = c->watched = c->muted = false;
        c->kernel_drops = c->quiet = 0;
        c->stamps = (dqi_stamps){0};
        atomic_store(&c->closing, false);
        atomic_store(&c->broken, false);
        atomic_store(&c->full, 0);
        atomic_store(&c->backlogged, 0);
        atomic_store(&c->moved, 0);
        dqi_conn_enter(&s->conns, &c->conn, id);
    }
    pthread_mutex_unlock(&s->lock);
    return c;
}

void dqi_sconn_set_fd(dqi_sconn *c, int fd, const dqi_sockaddr *peer) {
    pthread_mutex_lock(&c->sock->lock);
    if (c->fd >= 0) close(c->fd);
    c->fd = fd;
    c->peer = *peer;
    pthread_mutex_unlock(&c->sock->lock);
}

void dqi_sconn_kick(dqi_sock *s) {
    for (uint32_t k = 0; k < s->iface->n_tx; k++)
        dqi_queue_kick(s->iface->tx[k]);
}

void dqi_sconn_publish(dqi_sconn *c, int state) {
    dqi_sock *s = c->sock;
    uint32_t id = dqi_sconn_id(c);
    if (state == DQI_CONN_OPEN) {
        pthread_mutex_lock(&s->lock);
        socklen_t len = sizeof c->local;
        getsockname(c->fd, &c->local.sa, &len);
        if (c->primary) c->primary->since_ns = dq_now(s->iface->session);
        if (c->primary) c->primary->last_err = 0;
        atomic_store(&c->conn.state, DQI_CONN_OPEN);
        atomic_store(&s->newest, id);
        pthread_mutex_unlock(&s->lock);
        dqi_iface_event(s->iface, DQ_EV_CONNECT, id, DQ_OK);
        dqi_sconn_kick(s);
    }
    int err = c->reactor ? dqi_reactor_add(c->reactor, c, state) : DQ_OK;
    if (err != DQ_OK) dqi_sconn_end(c, err);
}

void dqi_sconn_give_up(dqi_sconn *c) {
    dqi_sock *s = c->sock;
    pthread_mutex_lock(&s->lock);
    s->n_made--;
    dqi_conn_take_back(&s->conns, &c->conn);
    pthread_mutex_unlock(&s->lock);
}

// ---- the end ----------------------------------------------------------------------------------------------

void dqi_sconn_hang_up(int fd) {
    // Closing with unread bytes resets the connection and discards data that the peer has not read yet.
    shutdown(fd, SHUT_WR);
    for (int k = 0; k < 64 && recv(fd, NULL, 1 << 20, MSG_TRUNC | MSG_DONTWAIT) > 0; k++) {
    }
    close(fd);
}

// Drops an incomplete message at the end of its stream.
static void drop_partial(dqi_sconn *c) {
    if (!c->rx) return;
    dqi_sock_rx *r = c->rx->engine;
    uint32_t left = dqi_cut_pending(&c->sock->framing, &c->cut);
    if (left > 0) {
        dqi_add(&c->rx->c.in, 1);
        dqi_add(&c->rx->c.in_bytes, left);
        dqi_drop(&c->rx->c, DQ_DROP_BAD_FRAMING, 1);
    }
    dqi_bufs_free(c->rx->session, &c->buf, 1);
    c->buf = DQI_NO_BUF;
    c->cut = (dqi_cutter){0};
    if (r->more != c) return;
    r->more = NULL;
    dqi_drop(&c->rx->c, DQ_DROP_FLUSHED, dqi_tcp_forget(r));
}

// Schedules the client's next attempt: at once after a lasting connection, else after a doubling delay.
static void schedule(dqi_sconn *c, bool was_open) {
    dqi_sprimary *p = c->primary;
    int64_t now = dq_now(c->sock->iface->session), first = c->sock->iface->conf.socket.retry_connect_s;
    first = (first > 0 ? first : 1) * INT64_C(1000000000);
    atomic_store(&p->conn, NULL);
    p->retired = p->retired || atomic_load(&c->closing);
    if (was_open) {
        p->due_ns = now - p->since_ns >= first ? now : now + first;
        p->wait_ns = first;
    } else {
        p->due_ns = now + p->wait_ns;
        if (p->wait_ns < MAX_WAIT_NS)
            p->wait_ns = 2 * p->wait_ns < MAX_WAIT_NS ? 2 * p->wait_ns : MAX_WAIT_NS;
    }
}

// Removes c from the muted connections. Under sock->lock.
static void unmute(dqi_sconn *c) {
    if (c->muted) c->reactor->n_muted--;
    c->muted = false;
}

void dqi_sconn_stop_reading(dqi_sconn *c) {
    dqi_sock *s = c->sock;
    uint32_t id = dqi_sconn_id(c);
    drop_partial(c);
    pthread_mutex_lock(&s->lock);
    unmute(c);
    atomic_store(&c->conn.state, DQI_CONN_ENDING);
    if (atomic_load(&s->newest) == id) atomic_store(&s->newest, dqi_conn_newest(&s->conns));
    dqi_reactor_add(c->reactor, c, DQI_CONN_ENDING);
    pthread_mutex_unlock(&s->lock);
    dqi_iface_event(s->iface, DQ_EV_DISCONNECT, id, DQ_OK);
}

void dqi_sconn_end(dqi_sconn *c, int code) {
    dqi_sock *s = c->sock;
    uint32_t id = dqi_sconn_id(c);
    bool was_open = dqi_sconn_takes(c), tell = dqi_sconn_state(c) != DQI_CONN_ENDING;
    drop_partial(c);
    pthread_mutex_lock(&s->lock);
    pthread_mutex_lock(&c->tx_lock);
    int fd = c->fd;
    c->fd = -1;
    c->half_queue = NULL;
    c->half_bytes = 0;
    dqi_conn_leave(&s->conns, &c->conn);
    pthread_mutex_unlock(&c->tx_lock);
    unmute(c);
    if (c->watched) atomic_fetch_sub(&c->reactor->n_conns, 1);
    if (atomic_load(&s->newest) == id) atomic_store(&s->newest, dqi_conn_newest(&s->conns));
    if (c->primary) schedule(c, was_open);
    if (c->primary && !was_open) { // an unreachable server is reported once
        tell = c->primary->last_err != code;
        c->primary->last_err = code;
        id = 0;
    }
    pthread_mutex_unlock(&s->lock);
    if (fd >= 0 && was_open && !dqi_sock_is_udp(s))
        dqi_sconn_hang_up(fd);
    else if (fd >= 0)
        close(fd);
    if (tell) dqi_iface_event(s->iface, DQ_EV_DISCONNECT, id, code);
    dqi_sconn_kick(s);
}

// ---- connecting -------------------------------------------------------------------------------------------

static int start_connect(dqi_sock *s, const dqi_sockaddr *from, const dqi_sockaddr *to) {
    dqi_sockaddr local;
    if (dqi_sock_is_udp(s)) return dqi_udp_connect(s, from, to, 0);
    int on = 1, err = 0, fd = dqi_sock_new_fd(s, to->sa.sa_family);
    if (fd < 0) return fd;
    if (from->sa.sa_family != AF_UNSPEC) {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on); // its old connection may linger
        err = dqi_addr_fit(from, to->sa.sa_family, &local) ? dqi_sock_bind_fd(fd, &local) : -EAFNOSUPPORT;
    }
    if (err == 0 && connect(fd, &to->sa, dqi_addr_len(to)) != 0 && errno != EINPROGRESS) err = -errno;
    if (err == 0) return fd;
    close(fd);
    return err;
}

int dqi_sconn_try(dqi_sconn *c) {
    int fd = -ECONNREFUSED;
    while (c->i_to < c->n_to) {
        const dqi_sockaddr *to = &c->to[c->i_to++];
        fd = start_connect(c->sock, &c->from, to);
        if (fd < 0) continue;
        dqi_sconn_set_fd(c, fd, to);
        return DQ_OK;
    }
    return DQ_ESYS + fd;
}

// Resolves "host:port" into at most max addresses in *out. Returns their number, or a negative error.
static int addresses(dqi_sock *s, const char *text, bool need_port, dqi_sockaddr *out, int max,
                     dq_diag *diag) {
    char host[256];
    int32_t port;
    dq_proto proto;
    const char *why = "", *name = s->iface->conf.name, *mine = dqi_sock_is_udp(s) ? "udp" : "tcp";
    if (!dqi_addr_split(text, host, sizeof host, &port, &proto) || (need_port && (port <= 0 || !host[0])))
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "interface %s: '%s' is not an address; hint: \"host:port\" or \"[IPv6]:port\"", name,
                        text);
    if (proto != DQ_PROTO_NONE && proto != (dq_proto)s->iface->conf.socket.proto)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "interface %s: '%s': this interface speaks %s", name,
                        text, mine);
    int n = dqi_addr_resolve(host, port > 0 ? (uint16_t)port : 0, out, max, &why);
    if (n < 0)
        return dqi_fail(diag, n,
                        "interface %s: %s: %s; hint: write the address in digits, or correct the name", name,
                        text, why);
    return n;
}

int dqi_sock_conn_open(dq_iface *i, const dq_connect *asked, uint32_t *conn, dq_diag *diag) {
    dqi_sock *s = i->engine;
    dqi_sockaddr to[DQI_SOCK_ADDRS], from[2] = {0};
    if (i->conf.socket.server)
        return dqi_fail(diag, DQ_NOT_SUPPORTED,
                        "interface %s: a server waits for its peers; hint: connect from a client",
                        i->conf.name);
    int n = addresses(s, asked->address, true, to, DQI_SOCK_ADDRS, diag);
    int n_from =
        n > 0 && asked->local && asked->local[0] ? addresses(s, asked->local, false, from, 2, diag) : 0;
    if (n < 0 || n_from < 0) return n < 0 ? n : n_from;
    dqi_sconn *c = dqi_sconn_new(s, -1);
    if (!c)
        return dqi_fail(
            diag, DQ_NO_SPACE_AVAILABLE,
            "interface %s: it has %u connections, or as many have come and gone unseen; hint: close "
            "some, and let the connection handlers run",
            i->conf.name, DQI_CONNS);
    *conn = dqi_sconn_id(c);
    c->from = n_from > 0 ? from[n_from - 1] : (dqi_sockaddr){0};
    memcpy(c->to, to, (size_t)n * sizeof *to);
    c->n_to = n;
    int err = dqi_sconn_try(c);
    if (err == DQ_OK) {
        dqi_sconn_publish(c, dqi_sock_is_udp(s) ? DQI_CONN_OPEN : DQI_CONN_CONNECTING);
        return DQ_OK;
    }
    dqi_sconn_give_up(c);
    return dqi_fail(diag, err, "interface %s: connection to %s: %s", i->conf.name, asked->address,
                    dq_err_name(err));
}

int dqi_sock_conn_close(dq_iface *i, uint32_t conn) {
    dqi_sock *s = i->engine;
    pthread_mutex_lock(&s->lock);
    dqi_sconn *c = dqi_sconn_find(s, conn);
    bool live = c && dqi_sconn_state(c) != DQI_CONN_FREE && !atomic_load(&c->closing);
    if (live) {
        atomic_store(&c->closing, true);
        if (c->muted) dqi_reactor_add(c->reactor, c, DQI_CONN_OPEN);
        // Wakes the reactor, which ends it; data queued on a stream is sent first.
        bool drains = !dqi_sock_is_udp(s) && dqi_sconn_takes(c);
        if (c->fd >= 0) shutdown(c->fd, drains ? SHUT_RD : SHUT_RDWR);
        if (dqi_sconn_state(c) == DQI_CONN_ENDING) dqi_queue_kick(c->reactor->queue);
    }
    pthread_mutex_unlock(&s->lock);
    if (live && !c->reactor) dqi_sconn_end(c, DQ_OK);
    return live ? DQ_OK : DQ_INVALID_PARAMETER;
}

// Returns the destination of a server's unaddressed packets: newest connection, else last sender, or empty.
static dqi_sockaddr heard(dqi_sock *s) {
    dqi_sconn *c = dqi_sconn_find(s, atomic_load(&s->newest));
    if (c) return c->peer;
    dqi_lock(&s->peer_lock);
    dqi_sockaddr peer = s->last_peer;
    dqi_unlock(&s->peer_lock);
    return peer;
}

// Fills in connection 0, the interface itself.
static void read_own(dqi_sock *s, dq_conn_info *out) {
    dqi_sockaddr local = s->n_base ? s->base[0]->local : s->local;
    dqi_sockaddr peer = s->n_remote ? s->remote[0] : heard(s);
    dqi_sconn *c = s->n_primary ? atomic_load(&s->primary[0].conn) : NULL;
    if (c) {
        local = c->local;
        peer = c->peer;
    }
    dqi_addr_text(&local, out->local, sizeof out->local);
    dqi_addr_text(&peer, out->peer, sizeof out->peer);
    out->open = c ? dqi_sconn_state(c) == DQI_CONN_OPEN : s->n_primary == 0;
    out->rx = s->iface->n_rx ? s->iface->rx[0] : NULL;
    out->tx = s->iface->n_tx ? s->iface->tx[0] : NULL;
}

int dqi_sock_conn_read(dq_iface *i, uint32_t conn, dq_conn_info *out) {
    dqi_sock *s = i->engine;
    pthread_mutex_lock(&s->lock);
    dqi_sconn *c = dqi_sconn_find(s, conn);
    *out = (dq_conn_info){0};
    if (conn == 0) read_own(s, out);
    if (c) {
        dqi_addr_text(&c->local, out->local, sizeof out->local);
        dqi_addr_text(&c->peer, out->peer, sizeof out->peer);
        out->open = dqi_sconn_state(c) == DQI_CONN_OPEN && !atomic_load(&c->closing);
        out->rx = c->rx;
        out->tx = c->tx;
    }
    pthread_mutex_unlock(&s->lock);
    return c || conn == 0 ? DQ_OK : DQ_INVALID_PARAMETER;
}
