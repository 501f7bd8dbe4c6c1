// socket_reactor.c: event loop of one thread's connections: accept, connect, reconnect, read.
//
// epoll reports ready connections, so thousands of idle ones cost no more than a few, and the poller sleeps
// on a single descriptor. Ready connections are read in turn for a bounded time; the kernel moves those with
// more data to the end of its list. On an interface without receive queues the first transmit queue runs the
// reactor and discards received data.
#include "engine/socket/socket_conn.h"
#include "engine/socket/socket_packets.h"
#include "engine/socket/socket_state.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ACCEPTS  16                 // connections accepted in a turn
#define PAUSE_NS INT64_C(100000000) // pause of accepting when there is no room for a connection
#define SKIM     (1 << 20)          // bytes discarded at a time

int dqi_reactor_init(dqi_reactor *r, dqi_sock *s, dq_queue *q) {
    r->sock = s;
    r->queue = q;
    r->epfd = epoll_create1(EPOLL_CLOEXEC);
    return r->epfd < 0 ? DQ_ESYS - errno : DQ_OK;
}

void dqi_reactor_close(dqi_reactor *r) {
    if (r->sock && r->epfd >= 0) close(r->epfd);
    r->sock = NULL;
}

static int watch(dqi_reactor *r, int fd, uint32_t events, void *who) {
    struct epoll_event e = {.events = events, .data.ptr = who};
    if (epoll_ctl(r->epfd, EPOLL_CTL_ADD, fd, &e) == 0) return DQ_OK;
    if (errno == EEXIST && epoll_ctl(r->epfd, EPOLL_CTL_MOD, fd, &e) == 0) return DQ_OK;
    return DQ_ESYS - errno;
}

static uint32_t interest(int state) {
    if (state == DQI_CONN_ENDING) return 0; // only errors
    return state == DQI_CONN_OPEN ? EPOLLIN | EPOLLRDHUP : EPOLLOUT;
}

int dqi_reactor_add(dqi_reactor *r, dqi_sconn *c, int state) {
    if (dqi_sconn_id(c) != 0 && !c->watched) {
        c->watched = true;
        atomic_fetch_add(&r->n_conns, 1);
    }
    return watch(r, c->fd, interest(state), c);
}

// ---- connections without consumers ------------------------------------------------------------------------

// Stops reading a connection whose packets no pipe consumes: its data stays in the kernel, and TCP flow
// control slows the peer. Its end is still detected unless data is queued before it.
static void leave_unread(dqi_reactor *r, dqi_sconn *c) {
    char byte;
    bool udp = dqi_sock_is_udp(r->sock);
    ssize_t n = udp ? 1 : recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (n == 0) return dqi_ending_begin(c, DQ_OK);
    if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
        return dqi_sconn_end(c, DQ_ESYS - errno);
    if (n < 0) return;
    pthread_mutex_lock(&r->sock->conns.lock); // serializes with a close, which must be noticed
    if (!atomic_load(&c->conn.closing)) {
        epoll_ctl(r->epfd, EPOLL_CTL_DEL, c->fd, NULL);
        c->muted = true;
        r->n_muted++;
    }
    pthread_mutex_unlock(&r->sock->conns.lock);
}

static void listen_again(dqi_reactor *r, dqi_sconn *c) {
    if (!c || !c->muted || c->reactor != r) return;
    c->muted = false;
    r->n_muted--;
    if (dqi_sconn_state(c) == DQI_CONN_OPEN) watch(r, c->fd, interest(DQI_CONN_OPEN), c);
}

// After a change of the queue's pipes, watches muted connections again that may have a consumer now.
static void review_muted(dqi_sock_rx *q) {
    dqi_reactor *r = &q->reactor;
    if (r->pipes_seen == q->queue->rx.pipes_version) return;
    r->pipes_seen = q->queue->rx.pipes_version;
    if (r->n_muted == 0) return;
    pthread_mutex_lock(&q->sock->conns.lock);
    listen_again(r, q->base);
    for (uint32_t k = 0; k < DQI_CONNS && r->n_muted > 0; k++)
        listen_again(r, dqi_sconn_at(q->sock, k));
    pthread_mutex_unlock(&q->sock->conns.lock);
}

// ---- accepting --------------------------------------------------------------------------------------------

static bool out_of_room(int err) { return err == EMFILE || err == ENFILE || err == ENOBUFS || err == ENOMEM; }

// Pauses a listener that cannot be served, so that it does not keep the poller awake.
static void pause_accepting(dqi_reactor *r) {
    r->paused_ns = dq_now(r->sock->iface->session) + PAUSE_NS;
    watch(r, r->sock->listen_fd, 0, NULL);
}

static void accept_some(dqi_reactor *r) {
    dqi_sock *s = r->sock;
    for (int k = 0; k < ACCEPTS; k++) {
        dqi_sconn *c = dqi_sconn_new(s, -1);
        if (!c) return pause_accepting(r);
        dqi_sockaddr peer = {0};
        socklen_t len = sizeof peer;
        int fd = accept4(s->listen_fd, &peer.sa, &len, SOCK_NONBLOCK | SOCK_CLOEXEC), err = errno;
        if (fd >= 0) {
            dqi_addr_unmap(&peer);
            dqi_sconn_set_fd(c, fd, &peer);
            dqi_sconn_publish(c, DQI_CONN_OPEN);
            continue;
        }
        dqi_sconn_give_up(c);
        if (out_of_room(err)) return pause_accepting(r);
        if (err == EAGAIN || err == EWOULDBLOCK) return;
    }
}

// ---- connecting -------------------------------------------------------------------------------------------

// Handles the result of a connection attempt: open, the next address, or the end.
static void finish_connect(dqi_sconn *c) {
    int err = 0;
    socklen_t len = sizeof err;
    if (atomic_load(&c->conn.closing)) return dqi_sconn_end(c, DQ_OK);
    if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &err, &len) != 0) err = errno;
    if (err == 0) return dqi_sconn_publish(c, DQI_CONN_OPEN);
    int code = DQ_ESYS - err;
    if (c->i_to < c->n_to) code = dqi_sconn_try(c);
    if (code == DQ_OK) code = watch(c->reactor, c->fd, EPOLLOUT, c);
    if (code != DQ_OK) dqi_sconn_end(c, code);
}

static void start_primary(dqi_reactor *r, uint32_t k) {
    dqi_sock *s = r->sock;
    dqi_sconn *c = dqi_sconn_new(s, (int)k);
    if (!c) {
        s->primary[k].due_ns = dq_now(s->iface->session) + PAUSE_NS;
        return;
    }
    c->conn.redial = &s->primary[k];
    c->from = s->local;
    memcpy(c->to, s->remote, sizeof c->to);
    c->n_to = s->n_remote;
    int err = dqi_sconn_try(c);
    atomic_store(&s->primary[k].conn, &c->conn);
    if (err == DQ_OK)
        dqi_sconn_publish(c, DQI_CONN_CONNECTING);
    else
        dqi_sconn_end(c, err);
}

// Returns true if primary k is read by r.
static bool owns(const dqi_reactor *r, uint32_t k) {
    const dq_iface *i = r->sock->iface;
    return r->queue->conf.dir == DQ_TX || i->rx[k % i->n_rx] == r->queue;
}

// Starts the client connections that are due; returns the session time of the next, INT64_MAX: none.
static int64_t connect_due(dqi_reactor *r) {
    dqi_sock *s = r->sock;
    int64_t now = dq_now(s->iface->session), next = INT64_MAX;
    for (uint32_t k = 0; k < s->n_primary; k++) {
        dqi_redial *p = &s->primary[k];
        if (!owns(r, k) || p->retired || atomic_load(&p->conn)) continue;
        if (p->due_ns <= now) start_primary(r, k);
        if (!atomic_load(&p->conn) && p->due_ns < next) next = p->due_ns;
    }
    if (r->paused_ns == 0) return next;
    if (r->paused_ns <= now) {
        r->paused_ns = 0;
        watch(r, s->listen_fd, EPOLLIN, NULL);
        return next;
    }
    return r->paused_ns < next ? r->paused_ns : next;
}

// ---- turn of a receive queue ------------------------------------------------------------------------------

// Runs due timers and schedules the poller's next turn. Called last, because a turn sets timers and the
// poller may sleep right after it.
static void serve_timers(dqi_reactor *r) {
    if (r->ending) {
        int64_t due = dqi_ending_serve(r);
        if (due < r->queue->next_ns) r->queue->next_ns = due;
    }
    if (r->sock->n_primary == 0 && r->paused_ns == 0) return;
    int64_t due = connect_due(r);
    if (due < r->queue->next_ns) r->queue->next_ns = due;
}

// Ends c after its packets in b are delivered: requests the delivery and gives c another turn.
static void end_after(dqi_sock_rx *r, dqi_sconn *c, const dq_burst *b, int why) {
    if (b->n > 0 && b->conn == dqi_sconn_id(c)) {
        r->queue->rx.deliver_now = true;
        r->more = c;
        return;
    }
    if (r->more == c) r->more = NULL;
    dqi_ending_begin(c, why);
}

// Runs one turn of an open connection. A burst holds packets of one connection: c waits while b has
// another's.
static int read_from(dqi_sock_rx *r, dqi_sconn *c, dq_burst *b, uint32_t room, bool *waits) {
    uint32_t id = dqi_sconn_id(c);
    if (!dqi_queue_wants(r->queue, id)) {
        leave_unread(&r->reactor, c);
        return 0;
    }
    *waits = b->n > 0 && b->conn != id;
    if (*waits) return 0;
    b->conn = id;
    if (dqi_sock_is_udp(r->sock)) return dqi_udp_read(r, c, b, room);
    int n = dqi_tcp_read(r, c, b, room);
    if (c->ended && n == 0) end_after(r, c, b, c->why);
    return n;
}

// Handles the readiness of connection c; returns the packets added to b.
static int serve(dqi_sock_rx *r, dqi_sconn *c, dq_burst *b, uint32_t room, bool *waits) {
    *waits = false;
    switch (dqi_sconn_state(c)) {
    case DQI_CONN_CONNECTING:
        finish_connect(c);
        return 0;
    case DQI_CONN_OPEN:
        if (!atomic_load(&c->conn.closing)) return read_from(r, c, b, room, waits);
        end_after(r, c, b, DQ_OK);
        return 0;
    case DQI_CONN_ENDING:
        dqi_ending_look(c);
    }
    return 0;
}

static void look(dqi_reactor *r) {
    r->at = 0;
    r->n_ready = epoll_wait(r->epfd, r->ready, DQI_SOCK_READY, 0);
    dqi_add(&r->queue->c.extra[DQ_EXTRA_SYSCALLS], 1);
}

static int turn(dqi_sock_rx *q, dq_burst *b, uint32_t room) {
    dqi_reactor *r = &q->reactor;
    bool waits = false;
    review_muted(q);
    bool wanted = q->more && dqi_queue_wants(q->queue, dqi_sconn_id(q->more));
    if (wanted) {
        int n = serve(q, q->more, b, room, &waits);
        if (n > 0 || waits || q->filled > 0) return n;
    } else if (q->filled > 0) {
        dqi_drop(&q->queue->c, DQ_DROP_FLUSHED, dqi_tcp_forget(q)); // no consumer is left
        q->more = NULL;
    }
    if (r->at >= r->n_ready) look(r);
    while (r->at < r->n_ready) {
        dqi_sconn *c = r->ready[r->at].data.ptr;
        if (!c) {
            r->at++;
            accept_some(r);
            continue;
        }
        int n = serve(q, c, b, room, &waits);
        if (waits) return 0;
        r->at++;
        if (n > 0) return n;
    }
    return 0;
}

int dqi_reactor_rx(dqi_sock_rx *q, dq_burst *b, uint32_t room) {
    int n = turn(q, b, room);
    serve_timers(&q->reactor);
    return n;
}

// ---- interface without receive queues ---------------------------------------------------------------------

// Discards received data, so that the end of the stream is seen.
static void skim(dqi_sconn *c) {
    int state = dqi_sconn_state(c);
    if (state == DQI_CONN_FREE) return;
    if (state == DQI_CONN_CONNECTING) return finish_connect(c);
    if (state == DQI_CONN_ENDING) return dqi_ending_look(c);
    ssize_t n = atomic_load(&c->conn.closing) ? 0 : recv(c->fd, NULL, SKIM, MSG_TRUNC | MSG_DONTWAIT);
    if (n == 0)
        dqi_ending_begin(c, DQ_OK);
    else if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
        dqi_sconn_end(c, DQ_ESYS - errno);
}

int dqi_reactor_reap(dqi_reactor *r) {
    look(r);
    for (; r->at < r->n_ready; r->at++) {
        dqi_sconn *c = r->ready[r->at].data.ptr;
        if (c)
            skim(c);
        else
            accept_some(r);
    }
    serve_timers(r);
    return r->n_ready > 0;
}
