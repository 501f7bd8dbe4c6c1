// socket_reactor.c: one thread's connections: accepting, connecting, reconnecting, reading in turn.
//
// epoll says who is ready, so a queue with thousands of idle connections costs no more than one with a few,
// and its descriptor is all that the poller sleeps on. Ready connections are read one after the other, each
// for one bounded turn; the kernel puts those that have more at the end of its list. An interface without
// receive queues has no poller that would notice connections come and go: a thread of its own, the keeper,
// does, and throws away what it is sent.
#include "socket_state.h"
#include "poller.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define ACCEPTS  16                 // connections taken in a turn
#define PAUSE_NS INT64_C(100000000) // of accepting, when there is no room for a connection
#define SKIM     (1 << 20)          // bytes that the keeper throws away at a time

int dqi_reactor_init(dqi_reactor *r, dqi_sock *s, dq_queue *rx) {
    r->sock = s;
    r->rx = rx;
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

static uint32_t interest(int state) { return state == DQI_CONN_OPEN ? EPOLLIN | EPOLLRDHUP : EPOLLOUT; }

int dqi_reactor_add(dqi_reactor *r, dqi_sconn *c, int state) {
    if (dqi_conn_id(c) != 0 && !c->watched) {
        c->watched = true;
        atomic_fetch_add(&r->n_conns, 1);
    }
    return watch(r, c->fd, interest(state), c);
}

// ---- accepting --------------------------------------------------------------------------------------------

static bool out_of_room(int err) { return err == EMFILE || err == ENFILE || err == ENOBUFS || err == ENOMEM; }

// A listener that can't be served must not keep the poller awake.
static void pause_accepting(dqi_reactor *r) {
    r->paused_ns = dq_now(r->sock->iface->session) + PAUSE_NS;
    watch(r, r->sock->listen_fd, 0, NULL);
}

static void accept_some(dqi_reactor *r) {
    dqi_sock *s = r->sock;
    for (int k = 0; k < ACCEPTS; k++) {
        dqi_sconn *c = dqi_conn_new(s, -1);
        if (!c) return pause_accepting(r);
        dqi_sockaddr peer = {0};
        socklen_t len = sizeof peer;
        int fd = accept4(s->listen_fd, &peer.sa, &len, SOCK_NONBLOCK | SOCK_CLOEXEC), err = errno;
        if (fd >= 0) {
            dqi_addr_unmap(&peer);
            dqi_conn_set_fd(c, fd, &peer);
            dqi_conn_publish(c, DQI_CONN_OPEN);
            continue;
        }
        dqi_conn_give_up(c);
        if (out_of_room(err)) return pause_accepting(r);
        if (err == EAGAIN || err == EWOULDBLOCK) return;
    }
}

// ---- connecting -------------------------------------------------------------------------------------------

// The outcome of a connection that was being made: open, the next address, or the end.
static void finish_connect(dqi_sconn *c) {
    int err = 0;
    socklen_t len = sizeof err;
    if (atomic_load(&c->closing)) return dqi_conn_end(c, DQ_OK);
    if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &err, &len) != 0) err = errno;
    if (err == 0) return dqi_conn_publish(c, DQI_CONN_OPEN);
    int code = DQ_ESYS - err;
    if (c->i_to < c->n_to) code = dqi_conn_try(c);
    if (code == DQ_OK) code = watch(c->reactor, c->fd, EPOLLOUT, c);
    if (code != DQ_OK) dqi_conn_end(c, code);
}

static void start_primary(dqi_reactor *r, uint32_t k) {
    dqi_sock *s = r->sock;
    dqi_sconn *c = dqi_conn_new(s, (int)k);
    if (!c) {
        s->primary[k].due_ns = dq_now(s->iface->session) + PAUSE_NS;
        return;
    }
    c->primary = &s->primary[k];
    c->from = s->local;
    memcpy(c->to, s->remote, sizeof c->to);
    c->n_to = s->n_remote;
    int err = dqi_conn_try(c);
    atomic_store(&s->primary[k].conn, c);
    if (err == DQ_OK)
        dqi_conn_publish(c, DQI_CONN_CONNECTING);
    else
        dqi_conn_end(c, err);
}

// True when primary k is read by r.
static bool owns(const dqi_reactor *r, uint32_t k) {
    const dq_iface *i = r->sock->iface;
    return !r->rx || i->rx[k % i->n_rx] == r->rx;
}

int64_t dqi_reactor_connect(dqi_reactor *r) {
    dqi_sock *s = r->sock;
    int64_t now = dq_now(s->iface->session), next = INT64_MAX;
    for (uint32_t k = 0; k < s->n_primary; k++) {
        dqi_sprimary *p = &s->primary[k];
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

// ---- a receive queue's turn -------------------------------------------------------------------------------

static bool has_timers(const dqi_reactor *r) { return r->sock->n_primary > 0 || r->paused_ns != 0; }

// One turn of an open connection. A burst holds one connection's packets: c waits while b has another's.
static int read_from(dqi_sock_rx *r, dqi_sconn *c, dq_burst *b, uint32_t room, bool *waits) {
    uint32_t id = dqi_conn_id(c);
    *waits = b->n > 0 && b->conn != id;
    if (*waits) return 0;
    b->conn = id;
    if (dqi_sock_is_udp(r->sock)) return dqi_udp_read(r, c, b, room);
    int n = dqi_tcp_read(r, c, b, room);
    if (c->ended && n == 0) dqi_conn_end(c, c->why);
    return n;
}

// Does what connection c is ready for; packets added to b.
static int serve(dqi_sock_rx *r, dqi_sconn *c, dq_burst *b, uint32_t room, bool *waits) {
    *waits = false;
    switch (dqi_conn_state(c)) {
    case DQI_CONN_CONNECTING:
        finish_connect(c);
        return 0;
    case DQI_CONN_OPEN:
        if (!atomic_load(&c->closing)) return read_from(r, c, b, room, waits);
        dqi_conn_end(c, DQ_OK);
    }
    return 0;
}

static void look(dqi_reactor *r) {
    r->at = 0;
    r->n_ready = epoll_wait(r->epfd, r->ready, DQI_SOCK_READY, 0);
    if (r->rx) dqi_add(&r->rx->c.extra[DQ_EXTRA_SYSCALLS], 1);
}

int dqi_reactor_rx(dqi_sock_rx *q, dq_burst *b, uint32_t room) {
    dqi_reactor *r = &q->reactor;
    bool waits = false;
    if (has_timers(r)) {
        int64_t due = dqi_reactor_connect(r);
        if (due < q->queue->next_ns) q->queue->next_ns = due;
    }
    if (q->more) {
        int n = serve(q, q->more, b, room, &waits);
        if (n > 0 || waits) return n;
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

// ---- the keeper -------------------------------------------------------------------------------------------

// Nobody reads what comes: it is thrown away, so that the end of the stream is seen.
static void keep(dqi_sconn *c) {
    int state = dqi_conn_state(c);
    if (state == DQI_CONN_FREE) return;
    if (state == DQI_CONN_CONNECTING) return finish_connect(c);
    ssize_t n = atomic_load(&c->closing) ? 0 : recv(c->fd, NULL, SKIM, MSG_TRUNC | MSG_DONTWAIT);
    if (n == 0)
        dqi_conn_end(c, DQ_OK);
    else if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
        dqi_conn_end(c, DQ_ESYS - errno);
}

// For epoll_wait: -1 is for ever.
static int milliseconds_to(const dqi_sock *s, int64_t due_ns) {
    if (due_ns == INT64_MAX) return -1;
    int64_t left = due_ns - dq_now(s->iface->session);
    return left > 0 ? (int)(left / 1000000) + 1 : 0;
}

static void *keeper(void *arg) {
    dqi_sock *s = arg;
    dqi_reactor *r = &s->keeper;
    while (!dqi_sock_stopped(s)) {
        r->n_ready =
            epoll_wait(r->epfd, r->ready, DQI_SOCK_READY, milliseconds_to(s, dqi_reactor_connect(r)));
        for (int k = 0; k < r->n_ready && !dqi_sock_stopped(s); k++) {
            dqi_sconn *c = r->ready[k].data.ptr;
            if (c == (void *)&s->keeper_wake) continue;
            if (c)
                keep(c);
            else
                accept_some(r);
        }
    }
    return NULL;
}

int dqi_keeper_start(dqi_sock *s, dq_diag *diag) {
    s->keeper_wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int err =
        s->keeper_wake < 0 ? DQ_ESYS - errno : watch(&s->keeper, s->keeper_wake, EPOLLIN, &s->keeper_wake);
    if (err == DQ_OK) err = dqi_thread_start(&s->keeper_thread, keeper, s);
    s->keeping = err == DQ_OK;
    return err == DQ_OK ? DQ_OK
                        : dqi_fail(diag, err, "interface %s: thread for its connections: %s",
                                   s->iface->conf.name, dq_err_name(err));
}

void dqi_keeper_stop(dqi_sock *s) {
    uint64_t one = 1;
    if (s->keeping) {
        while (write(s->keeper_wake, &one, sizeof one) < 0 && errno == EINTR) {
        }
        pthread_join(s->keeper_thread, NULL);
    }
    s->keeping = false;
    if (s->keeper_wake >= 0) close(s->keeper_wake);
    s->keeper_wake = -1;
}
