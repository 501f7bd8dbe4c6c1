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

dqi_sconn *dqi_sconn_find(dqi_sock *s, uint32_t id) { return (dqi_sconn *)dqi_conn_look_up(&s->conns, id); }

dqi_sconn *dqi_sconn_new(dqi_sock *s, int pair) {
    uint32_t id = 0;
    bool fresh = false;
    pthread_mutex_lock(&s->conns.lock);
    dqi_sconn *c = (dqi_sconn *)dqi_conn_reserve(&s->conns, &id, &fresh);
    if (c) {
        if (fresh) pthread_mutex_init(&c->tx_lock, NULL);
        dqi_conn_place(&s->conns, &c->conn, pair);
        dq_queue *q = c->conn.rx;
        c->sock = s;
        c->reactor = q ? &((dqi_sock_rx *)q->engine)->reactor : dqi_sock_is_udp(s) ? NULL : &s->idle;
        c->fd = -1;
        c->from = (dqi_sockaddr){0};
        c->n_to = c->i_to = 0;
        c->cut = (dqi_cutter){0};
        c->buf = DQI_NO_BUF;
        c->taken = c->until = 0;
        c->ended = c->watched = c->muted = false;
        c->kernel_drops = c->quiet = 0;
        c->stamps = (dqi_stamps){0};
        atomic_store(&c->full, 0);
        atomic_store(&c->backlogged, 0);
        atomic_store(&c->moved, 0);
        dqi_conn_enter(&s->conns, &c->conn, id);
    }
    pthread_mutex_unlock(&s->conns.lock);
    return c;
}

void dqi_sconn_set_fd(dqi_sconn *c, int fd, const dqi_sockaddr *peer) {
    pthread_mutex_lock(&c->sock->conns.lock);
    if (c->fd >= 0) close(c->fd);
    c->fd = fd;
    c->conn.peer = *peer;
    pthread_mutex_unlock(&c->sock->conns.lock);
}

void dqi_sconn_kick(dqi_sock *s) {
    for (uint32_t k = 0; k < s->iface->n_tx; k++)
        dqi_queue_kick(s->iface->tx[k]);
}

void dqi_sconn_publish(dqi_sconn *c, int state) {
    dqi_sock *s = c->sock;
    if (state == DQI_CONN_OPEN) {
        pthread_mutex_lock(&s->conns.lock);
        socklen_t len = sizeof c->conn.local;
        getsockname(c->fd, &c->conn.local.sa, &len);
        pthread_mutex_unlock(&s->conns.lock);
        dqi_conn_opened(&s->conns, &c->conn);
        dqi_sconn_kick(s);
    }
    int err = c->reactor ? dqi_reactor_add(c->reactor, c, state) : DQ_OK;
    if (err != DQ_OK) dqi_sconn_end(c, err);
}

void dqi_sconn_give_up(dqi_sconn *c) {
    dqi_sock *s = c->sock;
    pthread_mutex_lock(&s->conns.lock);
    dqi_conn_take_back(&s->conns, &c->conn);
    pthread_mutex_unlock(&s->conns.lock);
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
    if (!c->conn.rx) return;
    dqi_sock_rx *r = c->conn.rx->engine;
    uint32_t left = dqi_cut_pending(&c->sock->framing, &c->cut);
    if (left > 0) {
        dqi_add(&c->conn.rx->c.in, 1);
        dqi_add(&c->conn.rx->c.in_bytes, left);
        dqi_drop(&c->conn.rx->c, DQ_DROP_BAD_FRAMING, 1);
    }
    dqi_bufs_free(c->conn.rx->session, &c->buf, 1);
    c->buf = DQI_NO_BUF;
    c->cut = (dqi_cutter){0};
    if (r->more != c) return;
    r->more = NULL;
    dqi_drop(&c->conn.rx->c, DQ_DROP_FLUSHED, dqi_tcp_forget(r));
}

// Removes c from the muted connections. Under sock->conns.lock.
static void unmute(dqi_sconn *c) {
    if (c->muted) c->reactor->n_muted--;
    c->muted = false;
}

void dqi_sconn_stop_reading(dqi_sconn *c) {
    dqi_sock *s = c->sock;
    drop_partial(c);
    pthread_mutex_lock(&s->conns.lock);
    unmute(c);
    dqi_conn_begin_end(&s->conns, &c->conn, atomic_load(&c->moved), dq_now(s->iface->session));
    dqi_reactor_add(c->reactor, c, DQI_CONN_ENDING);
    pthread_mutex_unlock(&s->conns.lock);
    dqi_iface_event(s->iface, DQ_EV_DISCONNECT, dqi_sconn_id(c), DQ_OK);
}

void dqi_sconn_end(dqi_sconn *c, int code) {
    dqi_sock *s = c->sock;
    uint32_t id;
    bool was_open = dqi_sconn_takes(c), reported = dqi_sconn_state(c) == DQI_CONN_ENDING;
    drop_partial(c);
    pthread_mutex_lock(&s->conns.lock);
    pthread_mutex_lock(&c->tx_lock);
    int fd = c->fd;
    c->fd = -1;
    c->half_queue = NULL;
    c->half_bytes = 0;
    bool report = dqi_conn_ended(&s->conns, &c->conn, code, &id) && !reported;
    pthread_mutex_unlock(&c->tx_lock);
    unmute(c);
    if (c->watched) atomic_fetch_sub(&c->reactor->n_conns, 1);
    pthread_mutex_unlock(&s->conns.lock);
    if (fd >= 0 && was_open && !dqi_sock_is_udp(s))
        dqi_sconn_hang_up(fd);
    else if (fd >= 0)
        close(fd);
    if (report) dqi_iface_event(s->iface, DQ_EV_DISCONNECT, id, code);
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

int dqi_sock_conn_open(dq_iface *i, const dq_connect *asked, uint32_t *conn, dq_diag *diag) {
    dqi_sock *s = i->engine;
    dqi_sockaddr to[DQI_SOCK_ADDRS], from[2] = {0};
    int err = dqi_conn_check_client(i, diag), n_from = 0;
    if (err != DQ_OK) return err;
    int n = dqi_conn_addresses(i, asked->address, true, to, DQI_SOCK_ADDRS, diag);
    if (n > 0 && asked->local && asked->local[0])
        n_from = dqi_conn_addresses(i, asked->local, false, from, 2, diag);
    if (n < 0 || n_from < 0) return n < 0 ? n : n_from;
    dqi_sconn *c = dqi_sconn_new(s, -1);
    if (!c) return dqi_conn_full(i, diag);
    *conn = dqi_sconn_id(c);
    c->from = n_from > 0 ? from[n_from - 1] : (dqi_sockaddr){0};
    memcpy(c->to, to, (size_t)n * sizeof *to);
    c->n_to = n;
    err = dqi_sconn_try(c);
    if (err == DQ_OK) {
        dqi_sconn_publish(c, dqi_sock_is_udp(s) ? DQI_CONN_OPEN : DQI_CONN_CONNECTING);
        return DQ_OK;
    }
    dqi_sconn_give_up(c);
    return dqi_fail(diag, err, "interface %s: cannot connect to %s: %s", i->conf.name, asked->address,
                    dq_err_name(err));
}

int dqi_sock_conn_close(dq_iface *i, uint32_t conn) {
    dqi_sock *s = i->engine;
    pthread_mutex_lock(&s->conns.lock);
    dqi_sconn *c = (dqi_sconn *)dqi_conn_request_end(&s->conns, conn);
    if (c) {
        if (c->muted) dqi_reactor_add(c->reactor, c, DQI_CONN_OPEN);
        // Wakes the reactor, which ends it; data queued on a stream is sent first.
        bool drains = !dqi_sock_is_udp(s) && dqi_sconn_takes(c);
        if (c->fd >= 0) shutdown(c->fd, drains ? SHUT_RD : SHUT_RDWR);
        if (dqi_sconn_state(c) == DQI_CONN_ENDING) dqi_queue_kick(c->reactor->queue);
    }
    pthread_mutex_unlock(&s->conns.lock);
    if (c && !c->reactor) dqi_sconn_end(c, DQ_OK);
    return c ? DQ_OK : DQ_INVALID_PARAMETER;
}

// Returns the destination of a server's unaddressed packets: newest connection, else last sender, or empty.
static dqi_sockaddr unaddressed_peer(dqi_sock *s) {
    dqi_sconn *c = dqi_sconn_find(s, atomic_load(&s->conns.newest));
    if (c) return c->conn.peer;
    dqi_lock(&s->peer_lock);
    dqi_sockaddr peer = s->last_peer;
    dqi_unlock(&s->peer_lock);
    return peer;
}

// Fills in connection 0, the interface itself.
static void read_own(dqi_sock *s, dq_conn_info *out) {
    dqi_sockaddr local = s->n_base ? s->base[0]->conn.local : s->local;
    dqi_sockaddr peer = s->n_remote ? s->remote[0] : unaddressed_peer(s);
    const dqi_conn *c = s->n_primary ? atomic_load(&s->primary[0].conn) : NULL;
    if (c) {
        local = c->local;
        peer = c->peer;
    }
    dqi_addr_text(&local, out->local, sizeof out->local);
    dqi_addr_text(&peer, out->peer, sizeof out->peer);
    out->open = c ? dqi_conn_state_of(c) == DQI_CONN_OPEN : s->n_primary == 0;
    out->rx = s->iface->n_rx ? s->iface->rx[0] : NULL;
    out->tx = s->iface->n_tx ? s->iface->tx[0] : NULL;
}

int dqi_sock_conn_read(dq_iface *i, uint32_t conn, dq_conn_info *out) {
    dqi_sock *s = i->engine;
    pthread_mutex_lock(&s->conns.lock);
    dqi_sconn *c = dqi_sconn_find(s, conn);
    *out = (dq_conn_info){0};
    if (conn == 0) read_own(s, out);
    if (c) dqi_conn_describe(&c->conn, out);
    pthread_mutex_unlock(&s->conns.lock);
    return c || conn == 0 ? DQ_OK : DQ_INVALID_PARAMETER;
}
