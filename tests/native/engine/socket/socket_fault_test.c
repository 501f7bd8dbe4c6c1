// Sockets that another process breaks, on loopback: it is noticed, counted, costs next to nothing, and ends.
#include "core/ring.h"
#include "engine/socket/socket_state.h"
#include "pipeline/waiter.h"
#include "socket_rig.h"

// A server whose one receive queue a worker serves.
typedef struct server {
    rig r;
    dq_iface *i;
    dq_queue *rx, *tx;
    int fd, peer; // its own socket's; a client's
} server;

static server started(uint32_t n_bufs) {
    server s = {.r = rig_new(n_bufs, 256)};
    s.r.workers = 1;
    dq_iface_conf c = rig_conf("udp", DQ_PROTO_UDP, 1, "127.0.0.1", 0, "", 0);
    s.i = rig_iface(&s.r, &c);
    s.rx = rig_rx(&s.r, s.i);
    s.tx = rig_tx(&s.r, s.i);
    rig_need(rig_open(&s.r) == DQ_OK, s.r.error);
    rig_start(&s.r, &s.rx, 1);
    s.fd = ((dqi_sock *)s.i->engine)->base[0]->fd;
    s.peer = peer_connect(SOCK_DGRAM, "127.0.0.1", rig_port(s.i));
    return s;
}

static void done(server *s) {
    close(s->peer);
    rig_close(&s->r);
}

static void knock(server *s) {
    uint32_t had = s->r.n;
    DQ_EQ(send(s->peer, "knock", 5, 0), 5);
    RIG_UNTIL(&s->r, s->r.n == had + 1);
}

// How often direction dir met err; every error has to name its queue.
static uint64_t faults(const server *s, dq_dir dir, int err) {
    dq_queue_error f[16];
    uint32_t n = dq_queue_errors(s->r.s, f, 16);
    uint64_t times = 0;
    for (uint32_t k = 0; k < n && k < 16; k++) {
        DQ_CHECK(strcmp(f[k].name, "udp") == 0);
        DQ_CHECK(strcmp(f[k].queue, f[k].dir == DQ_RX ? "q0" : "q1") == 0);
        DQ_EQ(f[k].queue_id, f[k].dir == DQ_RX ? 0 : 1);
        if (f[k].dir == (int32_t)dir && f[k].err == err) times += f[k].n;
    }
    return times;
}

// It may look again every 10 ms, with a few system calls.
static void expect_rest(server *s) {
    int64_t began = rig_now_ms();
    uint64_t before = rig_line(&s->r, s->rx).extra[DQ_EXTRA_SYSCALLS];
    while (rig_now_ms() < began + 300)
        rig_serve(&s->r, 50);
    uint64_t calls = rig_line(&s->r, s->rx).extra[DQ_EXTRA_SYSCALLS] - before;
    DQ_CHECK(calls <= 8 * (uint64_t)(rig_now_ms() - began) / 10 + 8);
}

static void shut_down(uint32_t n_bufs, int how) {
    server s = started(n_bufs);
    knock(&s);
    DQ_EQ(faults(&s, DQ_RX, ESHUTDOWN), 0);
    if (shutdown(s.fd, how) != 0)
        DQ_EQ(errno, ENOTCONN); // Linux returns the error, and shuts it down all the same
    RIG_UNTIL(&s.r, faults(&s, DQ_RX, ESHUTDOWN) == 1);
    expect_rest(&s);
    DQ_EQ(faults(&s, DQ_RX, ESHUTDOWN), 1);
    knock(&s); // what comes is still received
    RIG_UNTIL(&s.r, faults(&s, DQ_RX, ESHUTDOWN) == 2);
    done(&s);
}

static void shut_down_under_it(void) {
    shut_down(64, SHUT_RD); // one by one
    shut_down(64, SHUT_RDWR);
    shut_down(8192, SHUT_RD); // joined datagrams
    shut_down(8192, SHUT_RDWR);
}

static void exchanged_and_given_back(void) {
    server s = started(64);
    knock(&s);
    int own = dup(s.fd), other = epoll_create1(EPOLL_CLOEXEC);
    rig_need(own >= 0 && other >= 0 && dup2(other, s.fd) == s.fd, "exchange");
    DQ_EQ(send(s.peer, "wake up", 7, 0), 7);
    RIG_UNTIL(&s.r, faults(&s, DQ_RX, ENOTSOCK) == 1);
    expect_rest(&s);
    rig_need(dup2(own, s.fd) == s.fd, "give back");
    RIG_UNTIL(&s.r, s.r.n == 2);
    for (int k = 0; k < 5; k++)
        knock(&s);
    DQ_EQ(faults(&s, DQ_RX, ENOTSOCK), 1);
    close(own);
    close(other);
    done(&s);
}

// Errors that a user has asked for wait in a queue of their own and keep the socket ready.
static void error_queue_is_emptied(void) {
    server s = started(64);
    int on = 1;
    uint16_t port = 0;
    DQ_EQ(dq_conn_setsockopt(s.i, 0, IPPROTO_IP, IP_RECVERR, &on, sizeof on), DQ_OK);
    socklen_t len;
    close(peer_bind(SOCK_DGRAM, "127.0.0.1", &port));
    struct sockaddr_in6 none = peer_address("127.0.0.1", port, &len);
    for (int k = 0; k < 3; k++)
        DQ_CHECK(sendto(s.fd, "x", 1, 0, (struct sockaddr *)&none, len) == 1 || errno == ECONNREFUSED);
    struct pollfd p = {.fd = s.fd};
    RIG_UNTIL(&s.r, poll(&p, 1, 0) == 0);
    expect_rest(&s);
    knock(&s);
    DQ_EQ(dq_queue_errors(s.r.s, NULL, 0), 0);
    done(&s);
}

static void what_is_not_sent_says_why(void) {
    server s = started(64);
    knock(&s); // so that there is a peer to send to
    shutdown(s.fd, SHUT_WR);
    for (int k = 0; k < 3; k++)
        rig_send(&s.r, s.tx, rig_burst(&s.r, s.tx, 7, 20, 0));
    RIG_UNTIL(&s.r, rig_line(&s.r, s.tx).held == 0);
    DQ_EQ(rig_line(&s.r, s.tx).dropped[DQ_DROP_SEND_ERROR], 21);
    DQ_EQ(faults(&s, DQ_TX, EPIPE), 21);
    done(&s);
}

// The ring of events, made small, fills up while nothing looks: what does not fit waits outside, and of each
// connection that came the end is reported.
static void no_end_is_lost(void) {
    enum { RING = 256, CONNS = 400 };
    rig r = rig_new(64, 256);
    r.workers = 1;
    dq_iface_conf c = rig_conf("tcp", DQ_PROTO_TCP, 1, "127.0.0.1", 0, "", 0);
    dq_iface *i = rig_iface(&r, &c);
    dq_queue *rx = rig_rx(&r, i);
    rig_need(rig_open(&r) == DQ_OK, r.error);
    rig_listen(&r, i);
    dqi_ring *ring = &atomic_load(&i->events)->in.ring;
    dqi_ring_free(ring);
    rig_need(dqi_ring_init(ring, RING), "ring");
    rig_start(&r, &rx, 1);
    uint16_t port = rig_port(i);
    for (int k = 0; k < CONNS; k++)
        close(peer_connect(SOCK_STREAM, "127.0.0.1", port));
    // How full it gets depends on how many connections were open at once.
    struct pollfd nothing = {.fd = -1};
    for (int64_t end = rig_now_ms() + 3000;
         dqi_ring_level(ring) < RING - DQ_MAX_QUEUES - 4 && rig_now_ms() < end;)
        poll(&nothing, 1, 1);
    DQ_CHECK(dqi_ring_level(ring) >= RING / 2);
    uint32_t begun = 0, ended = 0;
    for (int64_t end = rig_now_ms() + 30000; ended < CONNS && rig_now_ms() < end;) {
        dq_event ev[16];
        int n = dq_wait(r.w, 50 * INT64_C(1000000), ev, 16);
        for (int k = 0; k < n; k++) {
            begun += ev[k].kind == DQ_EV_CONNECT;
            ended += ev[k].kind == DQ_EV_DISCONNECT;
        }
    }
    DQ_EQ(begun, CONNS);
    DQ_EQ(ended, CONNS);
    rig_close(&r);
}

// A listener that pauses reports when it resumes: its poller sleeps right after the turn that met the pause.
static void pause_has_an_end(void) {
    rig r = rig_new(64, 256);
    dq_iface_conf c = rig_conf("tcp", DQ_PROTO_TCP, 1, "127.0.0.1", 0, "", 0);
    dq_iface *i = rig_iface(&r, &c);
    dq_queue *rx = rig_rx(&r, i);
    rig_need(rig_open(&r) == DQ_OK, r.error);
    rig_listen(&r, i);
    dqi_ring *ring = &atomic_load(&i->events)->in.ring;
    dqi_ring_free(ring);
    rig_need(dqi_ring_init(ring, DQ_MAX_QUEUES), "ring"); // too small for any connection
    rig_start(&r, &rx, 1);
    int peer = peer_connect(SOCK_STREAM, "127.0.0.1", rig_port(i));
    dqi_reactor *waits = &((dqi_sock_rx *)rx->engine)->reactor;
    for (int k = 0; k < 1000 && waits->paused_ns == 0; k++)
        dqi_queue_poll(rx);
    DQ_CHECK(waits->paused_ns > 0);
    DQ_EQ(rx->next_ns, waits->paused_ns);
    close(peer);
    rig_close(&r);
}

static void kinds_are_bounded(void) {
    dqi_queue_error f[DQI_QUEUE_ERRORS] = {0};
    for (int round = 0; round < 2; round++)
        for (int err = 1; err <= 10; err++)
            dqi_queue_error_add(f, err, (uint64_t)err);
    for (int k = 0; k < DQI_QUEUE_ERRORS - 1; k++) {
        DQ_EQ(atomic_load(&f[k].err), k + 1);
        DQ_EQ(dqi_get(&f[k].n), 2 * (k + 1));
    }
    DQ_EQ(atomic_load(&f[DQI_QUEUE_ERRORS - 1].err), DQ_OTHER_ERRORS);
    DQ_EQ(dqi_get(&f[DQI_QUEUE_ERRORS - 1].n), 2 * (6 + 7 + 8 + 9 + 10));
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(shut_down_under_it);
    DQ_RUN(exchanged_and_given_back);
    DQ_RUN(error_queue_is_emptied);
    DQ_RUN(what_is_not_sent_says_why);
    DQ_RUN(no_end_is_lost);
    DQ_RUN(pause_has_an_end);
    DQ_RUN(kinds_are_bounded);
    return dq_done();
}
