// TCP through the engine, over loopback, against plain sockets.
#include "poller.h"
#include "queue.h"
#include "socket_rig.h"

typedef struct server {
    rig r;
    dq_iface *i;
    dq_queue *rx, *tx;
    uint16_t port;
} server;

// A server with one queue each way; framing as in f (NULL: none).
// Opens and starts s with one receive and one transmit queue.
static void begin(server *s, const dq_iface_conf *c) {
    s->i = rig_iface(&s->r, c);
    s->rx = rig_rx(&s->r, s->i);
    s->tx = rig_tx(&s->r, s->i);
    rig_need(rig_open(&s->r) == DQ_OK, s->r.error);
    rig_listen(&s->r, s->i);
    rig_start(&s->r, &s->rx, 1);
    s->port = rig_port(s->i);
}

static server tcp_server(const char *host, uint32_t n_bufs, uint32_t buf_size, const dq_socket_conf *f) {
    server s = {.r = rig_new(n_bufs, buf_size)};
    dq_iface_conf c = rig_conf("tcp_server", DQ_PROTO_TCP, 1, host, 0, "", 0);
    if (f) {
        c.socket.framing = f->framing;
        c.socket.framing_bytes = f->framing_bytes;
        c.socket.framing_le = f->framing_le;
        c.socket.framing_incl = f->framing_incl;
    }
    begin(&s, &c);
    return s;
}

static uint64_t bytes_of(const rig *r, uint32_t conn) {
    uint64_t n = 0;
    for (uint32_t k = 0; k < r->n; k++)
        if (conn == 0 || r->packets[k].conn == conn) n += r->packets[k].len;
    return n;
}

// Compares the bytes of a connection's packets, one after the other, with want.
static void expect_stream(const rig *r, uint32_t conn, const uint8_t *want, uint64_t n) {
    uint64_t at = 0;
    for (uint32_t k = 0; k < r->n; k++) {
        const rig_packet *p = &r->packets[k];
        if (conn != 0 && p->conn != conn) continue;
        DQ_CHECK(at + p->len <= n);
        if (at + p->len <= n) DQ_EQ_BYTES(p->bytes, want + at, p->len);
        at += p->len;
    }
    DQ_EQ(at, n);
}

static uint8_t *noise(size_t n, uint64_t seed) {
    uint8_t *p = malloc(n);
    rig_need(p != NULL, "memory");
    for (size_t k = 0; k < n; k++)
        p[k] = (uint8_t)dq_rand(&seed);
    return p;
}

static uint32_t wait_connect(rig *r, uint32_t n) {
    rig_event e = {0};
    RIG_UNTIL(r, rig_events(r, DQ_EV_CONNECT, &e) == n);
    return e.conn;
}

static rig_event wait_disconnect(rig *r, uint32_t n) {
    rig_event e = {0};
    RIG_UNTIL(r, rig_events(r, DQ_EV_DISCONNECT, &e) == n);
    return e;
}

static void reset(int fd) {
    struct linger l = {.l_onoff = 1};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof l);
    close(fd);
}

static void streams_in_chunks(const char *host) {
    server s = tcp_server(host, 256, 4000, NULL);
    enum { N = 1 << 20 };
    uint8_t *want = noise(N, 1);
    int fd = peer_connect(SOCK_STREAM, host, s.port);
    char name[64];
    peer_name(fd, name, sizeof name);
    uint32_t conn = wait_connect(&s.r, 1);
    dq_conn_info info;
    DQ_EQ(dq_conn_read(s.i, conn, &info), DQ_OK);
    DQ_EQ_STR(info.peer, name);
    DQ_EQ(info.open, 1);
    DQ_CHECK(info.rx == s.rx && info.tx == s.tx);
    peer_write(&s.r, fd, want, N);
    RIG_UNTIL(&s.r, bytes_of(&s.r, 0) == N);
    expect_stream(&s.r, conn, want, N);
    for (uint32_t k = 0; k < s.r.n; k++)
        DQ_EQ_STR(s.r.packets[k].peer, name);
    DQ_EQ(rig_line(&s.r, s.rx).in_bytes, N);
    close(fd);
    rig_event e = wait_disconnect(&s.r, 1);
    DQ_EQ(e.conn, conn);
    DQ_EQ(e.code, DQ_OK);
    DQ_EQ(dq_conn_read(s.i, conn, &info), DQ_OK);
    DQ_EQ(info.open, 0);
    DQ_EQ_STR(info.peer, name);
    free(want);
    rig_close(&s.r);
}

static void streams_ipv4(void) { streams_in_chunks("127.0.0.1"); }

static void streams_ipv6(void) {
    if (has_ipv6()) streams_in_chunks("::1");
}

// A burst holds one connection's packets, whatever the time-out; all connections get their turn.
static void one_connection_a_burst(uint64_t timeout_us) {
    enum { CONNS = 20, N = 30000 };
    rig r = rig_new(256, 1000);
    r.timeout_us = timeout_us;
    dq_iface_conf c = rig_conf("many", DQ_PROTO_TCP, 1, "127.0.0.1", 0, "", 0);
    dq_iface *i = rig_iface(&r, &c);
    dq_queue *rx = rig_rx(&r, i);
    rig_need(rig_open(&r) == DQ_OK, r.error);
    rig_listen(&r, i);
    rig_start(&r, &rx, 1);
    int fds[CONNS];
    uint32_t conns[CONNS];
    uint8_t *want[CONNS];
    for (uint32_t k = 0; k < CONNS; k++) {
        fds[k] = peer_connect(SOCK_STREAM, "127.0.0.1", rig_port(i));
        conns[k] = wait_connect(&r, k + 1);
        want[k] = noise(N, k);
    }
    for (uint32_t at = 0; at < N; at += 1500)
        for (uint32_t k = 0; k < CONNS; k++)
            peer_write(&r, fds[k], want[k] + at, 1500);
    RIG_UNTIL(&r, bytes_of(&r, 0) == CONNS * N);
    for (uint32_t k = 0; k < CONNS; k++)
        expect_stream(&r, conns[k], want[k], N);
    for (uint32_t k = 1; k < r.n; k++)
        DQ_CHECK(r.packets[k].burst != r.packets[k - 1].burst || r.packets[k].conn == r.packets[k - 1].conn);
    for (uint32_t k = 0; k < CONNS; k++) {
        close(fds[k]);
        free(want[k]);
    }
    wait_disconnect(&r, CONNS);
    rig_close(&r);
}

static void one_connection_a_burst_at_once(void) { one_connection_a_burst(0); }
static void one_connection_a_burst_timed(void) { one_connection_a_burst(500); }

static void the_end_says_why(void) {
    server s = tcp_server("127.0.0.1", 64, 1000, NULL);
    int fd = peer_connect(SOCK_STREAM, "127.0.0.1", s.port);
    uint32_t first = wait_connect(&s.r, 1);
    peer_write(&s.r, fd, (const uint8_t *)"orderly", 7);
    close(fd);
    rig_event e = wait_disconnect(&s.r, 1);
    DQ_EQ(e.code, DQ_OK);
    DQ_EQ(bytes_of(&s.r, first), 7);
    fd = peer_connect(SOCK_STREAM, "127.0.0.1", s.port);
    uint32_t second = wait_connect(&s.r, 2);
    DQ_CHECK(second > first);
    peer_write(&s.r, fd, (const uint8_t *)"torn", 4);
    RIG_UNTIL(&s.r, bytes_of(&s.r, second) == 4);
    reset(fd);
    e = wait_disconnect(&s.r, 2);
    DQ_EQ(e.conn, second);
    DQ_EQ(e.code, DQ_ESYS - ECONNRESET);
    rig_close(&s.r);
}

// ---- sending ----------------------------------------------------------------------------------------------

static void sends_in_order_under_back_pressure(void) {
    server s = tcp_server("127.0.0.1", 512, 3000, NULL);
    int fd = peer_connect(SOCK_STREAM, "127.0.0.1", s.port);
    uint32_t conn = wait_connect(&s.r, 1);
    int small = 4096;
    DQ_EQ(dq_conn_setsockopt(s.i, conn, SOL_SOCKET, SO_SNDBUF, &small, sizeof small), DQ_OK);
    enum { BURSTS = 60, PACKETS = 20, LEN = 2777 };
    uint8_t *got = malloc(BURSTS * PACKETS * LEN);
    size_t have = 0;
    for (uint32_t k = 0; k < BURSTS; k++) {
        dq_burst *b = rig_burst(&s.r, s.tx, PACKETS, LEN, k * PACKETS);
        DQ_EQ(dq_burst_redirect(b, k % 2 ? conn : 0, &b), DQ_OK);
        rig_send(&s.r, s.tx, b);
        if (k % 4 == 3 && k > 10) have += peer_read(&s.r, fd, got + have, 4 * PACKETS * LEN);
    }
    have += peer_read(&s.r, fd, got + have, BURSTS * PACKETS * LEN - have);
    DQ_EQ(have, BURSTS * PACKETS * LEN);
    for (uint32_t k = 0; k < BURSTS * PACKETS; k++) {
        rig_packet p = {.len = LEN, .bytes = got + (size_t)k * LEN};
        DQ_CHECK(rig_matches(&p, LEN, k));
    }
    RIG_UNTIL(&s.r, rig_line(&s.r, s.tx).held == 0);
    DQ_EQ(rig_line(&s.r, s.tx).out_bytes, BURSTS * PACKETS * LEN);
    free(got);
    close(fd);
    rig_close(&s.r);
}

// Data never reach another peer than the one that was named.
static void unknown_peers_get_nothing(void) {
    server s = tcp_server("127.0.0.1", 64, 1000, NULL);
    rig_send(&s.r, s.tx, rig_burst(&s.r, s.tx, 3, 10, 0));
    RIG_UNTIL(&s.r, rig_line(&s.r, s.tx).dropped[DQ_DROP_NO_PEER] == 3);
    int a = peer_connect(SOCK_STREAM, "127.0.0.1", s.port),
        b = peer_connect(SOCK_STREAM, "127.0.0.1", s.port);
    wait_connect(&s.r, 2);
    uint32_t first = s.r.events[0].conn;
    dq_burst *burst = rig_burst(&s.r, s.tx, 2, 10, 0);
    DQ_EQ(dq_burst_redirect(burst, first + 1000, &burst), DQ_OK);
    rig_send(&s.r, s.tx, burst);
    RIG_UNTIL(&s.r, rig_line(&s.r, s.tx).dropped[DQ_DROP_NO_PEER] == 5);
    reset(a);
    wait_disconnect(&s.r, 1);
    burst = rig_burst(&s.r, s.tx, 2, 10, 0);
    DQ_EQ(dq_burst_redirect(burst, first, &burst), DQ_OK);
    rig_send(&s.r, s.tx, burst);
    RIG_UNTIL(&s.r, rig_line(&s.r, s.tx).dropped[DQ_DROP_NO_PEER] == 7);
    rig_send(&s.r, s.tx, rig_burst(&s.r, s.tx, 1, 4, 9)); // unaddressed: to who is still there
    uint8_t got[8];
    DQ_EQ(peer_read(&s.r, b, got, 4), 4);
    DQ_EQ(got[0], 9);
    DQ_EQ(recv(b, got, sizeof got, MSG_DONTWAIT), -1);
    close(b);
    rig_close(&s.r);
}

static void a_peer_that_resets_harms_nobody(void) {
    server s = tcp_server("127.0.0.1", 256, 1000, NULL);
    int gone = peer_connect(SOCK_STREAM, "127.0.0.1", s.port);
    uint32_t conn = wait_connect(&s.r, 1);
    int stays = peer_connect(SOCK_STREAM, "127.0.0.1", s.port);
    uint32_t other = wait_connect(&s.r, 2);
    reset(gone);
    for (uint32_t k = 0; k < 10; k++) {
        dq_burst *b = rig_burst(&s.r, s.tx, 5, 900, 0);
        DQ_EQ(dq_burst_redirect(b, conn, &b), DQ_OK);
        rig_send(&s.r, s.tx, b);
    }
    wait_disconnect(&s.r, 1);
    dq_burst *b = rig_burst(&s.r, s.tx, 1, 3, 7);
    DQ_EQ(dq_burst_redirect(b, other, &b), DQ_OK);
    rig_send(&s.r, s.tx, b);
    uint8_t got[3];
    DQ_EQ(peer_read(&s.r, stays, got, 3), 3);
    DQ_EQ(got[0], 7);
    close(stays);
    rig_close(&s.r);
}

// Sends bursts of n packets of len bytes to conn until it is refused because its peer doesn't read; packets
// taken.
static uint32_t send_until_refused(server *s, uint32_t conn, uint32_t n, uint32_t len) {
    uint32_t taken = 0;
    for (int64_t end = rig_now_ms() + 30000; rig_now_ms() < end;) {
        dq_burst *b = rig_burst(&s->r, s->tx, n, len, taken);
        DQ_EQ(dq_burst_redirect(b, conn, &b), DQ_OK);
        int err = dq_tx_send(s->tx, b);
        if (err == DQ_OK) taken += n;
        rig_serve(&s->r, 0);
        if (err == DQ_OK) continue;
        DQ_EQ(err, DQ_NO_SPACE_AVAILABLE);
        dq_burst_unref(b);
        if (rig_line(&s->r, s->tx).extra[DQ_EXTRA_REFUSED] > 0) return taken;
    }
    dq_failed(__FILE__, __LINE__, "never refused");
    return taken;
}

// A peer that doesn't read is refused more; the others of its queue go on. Then it reads, or resets.
static void one_that_does_not_read(int workers, bool resets) {
    enum { N = 8, LEN = 2777 };
    server s = {.r = rig_new(512, 3000)};
    s.r.workers = workers;
    dq_iface_conf c = rig_conf("two_peers", DQ_PROTO_TCP, 1, "127.0.0.1", 0, "", 0);
    begin(&s, &c);
    int slow = peer_connect(SOCK_STREAM, "127.0.0.1", rig_port(s.i)), small = 4096;
    uint32_t conn = wait_connect(&s.r, 1);
    DQ_EQ(dq_conn_setsockopt(s.i, conn, SOL_SOCKET, SO_SNDBUF, &small, sizeof small), DQ_OK);
    int quick = peer_connect(SOCK_STREAM, "127.0.0.1", rig_port(s.i));
    uint32_t other = wait_connect(&s.r, 2);
    uint32_t taken = send_until_refused(&s, conn, N, LEN);
    DQ_CHECK(taken > 0);
    uint8_t got[N * LEN];
    for (uint32_t k = 0; k < 50; k++) { // as many packets as the region has
        dq_burst *b = rig_burst(&s.r, s.tx, N, LEN, k * N);
        DQ_EQ(dq_burst_redirect(b, k % 2 ? other : 0, &b), DQ_OK);
        rig_send(&s.r, s.tx, b);
        DQ_EQ(peer_read(&s.r, quick, got, sizeof got), sizeof got);
        DQ_EQ(got[0], (uint8_t)(k * N));
    }
    dq_line l = rig_line(&s.r, s.tx);
    DQ_CHECK(l.held > 0);
    for (uint32_t k = 0; k < taken && !resets; k++) {
        DQ_EQ(peer_read(&s.r, slow, got, LEN), LEN);
        rig_packet p = {.len = LEN, .bytes = got};
        DQ_CHECK(rig_matches(&p, LEN, k));
    }
    if (resets) reset(slow);
    RIG_UNTIL(&s.r, rig_line(&s.r, s.tx).held == 0);
    l = rig_line(&s.r, s.tx);
    DQ_EQ(l.in, l.out + rig_dropped(&l));
    DQ_EQ(rig_dropped(&l), l.dropped[DQ_DROP_NO_PEER]);
    DQ_EQ(l.dropped[DQ_DROP_NO_PEER] > 0, resets);
    if (!resets) close(slow);
    close(quick);
    rig_close(&s.r);
}

static void a_slow_peer_direct(void) { one_that_does_not_read(0, false); }
static void a_slow_peer_with_workers(void) { one_that_does_not_read(1, false); }
static void a_slow_peer_that_resets(void) { one_that_does_not_read(0, true); }
static void a_slow_peer_that_resets_with_workers(void) { one_that_does_not_read(1, true); }

// However late the worker notices that a peer doesn't read, the others find descriptors and buffers.
static void a_slow_peer_that_is_noticed_late(void) {
    enum { N = 8, LEN = 2777 };
    server s = {.r = rig_new(512, 3000)};
    s.r.workers = 1;
    dq_iface_conf c = rig_conf("late", DQ_PROTO_TCP, 1, "127.0.0.1", 0, "", 0);
    begin(&s, &c);
    int slow = peer_connect(SOCK_STREAM, "127.0.0.1", rig_port(s.i)), small = 4096;
    uint32_t conn = wait_connect(&s.r, 1), taken = 0;
    DQ_EQ(dq_conn_setsockopt(s.i, conn, SOL_SOCKET, SO_SNDBUF, &small, sizeof small), DQ_OK);
    int quick = peer_connect(SOCK_STREAM, "127.0.0.1", rig_port(s.i));
    uint32_t other = wait_connect(&s.r, 2);
    for (int round = 0; round < 3; round++) {
        int err = DQ_OK;
        dqi_poller_hold(s.tx->poller); // it looks at nothing
        for (dq_burst *b = NULL; err == DQ_OK && dq_tx_alloc(s.tx, N, &b) == DQ_OK;) {
            DQ_EQ(dq_burst_set_len(b, 0, -1, LEN), DQ_OK);
            DQ_EQ(dq_burst_redirect(b, conn, &b), DQ_OK);
            err = dq_tx_send(s.tx, b);
            if (err == DQ_OK) taken += N;
            if (err != DQ_OK) dq_burst_unref(b);
        }
        DQ_EQ(err, DQ_NO_SPACE_AVAILABLE);
        dqi_poller_release(s.tx->poller);
        dq_burst *b = rig_burst(&s.r, s.tx, N, LEN, 0);
        DQ_EQ(dq_burst_redirect(b, other, &b), DQ_OK);
        rig_send(&s.r, s.tx, b);
        uint8_t got[N * LEN];
        DQ_EQ(peer_read(&s.r, quick, got, sizeof got), sizeof got);
    }
    reset(slow);
    RIG_UNTIL(&s.r, rig_line(&s.r, s.tx).held == 0);
    dq_line l = rig_line(&s.r, s.tx);
    DQ_EQ(l.in, taken + 3 * N);
    DQ_EQ(l.in, l.out + l.dropped[DQ_DROP_NO_PEER]);
    close(quick);
    rig_close(&s.r);
}

// What waits for a peer at the stop is counted.
static void a_slow_peer_at_the_stop(void) {
    server s = tcp_server("127.0.0.1", 512, 3000, NULL);
    int slow = peer_connect(SOCK_STREAM, "127.0.0.1", s.port), small = 4096;
    uint32_t conn = wait_connect(&s.r, 1);
    DQ_EQ(dq_conn_setsockopt(s.i, conn, SOL_SOCKET, SO_SNDBUF, &small, sizeof small), DQ_OK);
    uint32_t taken = send_until_refused(&s, conn, 8, 2777);
    while (dq_session_stop(s.r.s, 0) > 0)
        rig_serve(&s.r, 0);
    dq_session_finish(s.r.s);
    dq_line l = rig_line(&s.r, s.tx);
    DQ_EQ(l.in, taken);
    DQ_CHECK(l.dropped[DQ_DROP_STOPPED] > 0);
    DQ_EQ(l.out + l.dropped[DQ_DROP_STOPPED], taken);
    close(slow);
    rig_close(&s.r);
}

// A server whose received bursts go back to their own connections.
static server echo_server(int workers) {
    server s = {.r = rig_new(256, 500)};
    s.r.workers = workers;
    dq_iface_conf c = rig_conf("echo", DQ_PROTO_TCP, 1, "127.0.0.1", 0, "", 0);
    s.i = rig_iface(&s.r, &c);
    s.rx = rig_rx(&s.r, s.i);
    s.tx = rig_tx(&s.r, s.i);
    dq_diag d;
    dq_stage *forward;
    dq_pipe *pipe;
    rig_need(rig_open(&s.r) == DQ_OK, s.r.error);
    rig_need(dq_stage_forward(s.r.s, "back", s.tx, DQ_POLICY_WAIT, &forward, &d) == DQ_OK, d.text);
    rig_need(dq_pipe_add(s.rx, &forward, 1, 0, &pipe, &d) == DQ_OK, d.text);
    rig_start(&s.r, NULL, 0);
    return s;
}

static void echoes_to_each_connection(void) {
    server s = echo_server(0);
    int fds[4];
    for (int k = 0; k < 4; k++)
        fds[k] = peer_connect(SOCK_STREAM, "127.0.0.1", rig_port(s.i));
    for (uint64_t round = 0; round < 10; round++)
        for (uint64_t k = 0; k < 4; k++) {
            uint8_t *want = noise(5000, round * 4 + k), got[5000];
            peer_write(&s.r, fds[k], want, 5000);
            DQ_EQ(peer_read(&s.r, fds[k], got, 5000), 5000);
            DQ_EQ_BYTES(got, want, 5000);
            free(want);
        }
    for (int k = 0; k < 4; k++)
        close(fds[k]);
    rig_close(&s.r);
}

// ---- the end of one direction -----------------------------------------------------------------------------

// A peer that ends its stream and then reads gets all of its echo, and the end behind it.
static void echoes_the_tail(int workers) {
    enum { N = 1 << 20 };
    server s = echo_server(workers);
    uint8_t *want = noise(N, 3), *got = malloc(N);
    int fd = peer_connect(SOCK_STREAM, "127.0.0.1", rig_port(s.i));
    size_t sent = 0, have = 0;
    while (sent < N) {
        ssize_t k = send(fd, want + sent, N - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (k > 0) sent += (size_t)k;
        if (k <= 0) have += peer_read(&s.r, fd, got + have, sent - have < 1000 ? sent - have : 1000);
    }
    shutdown(fd, SHUT_WR);
    have += peer_read(&s.r, fd, got + have, N - have);
    DQ_EQ(have, N);
    DQ_EQ_BYTES(got, want, N);
    DQ_EQ(peer_read(&s.r, fd, got, 1), 0);
    dq_line l = rig_line(&s.r, s.tx);
    DQ_EQ(rig_dropped(&l), 0);
    DQ_EQ(l.out_bytes, N);
    close(fd);
    free(want);
    free(got);
    rig_close(&s.r);
}

static void echoes_the_tail_direct(void) { echoes_the_tail(0); }
static void echoes_the_tail_with_workers(void) { echoes_the_tail(1); }

// Who listens hears of the end of the peer's stream, and may still answer; its close ends the rest.
static void answers_after_the_end(void) {
    server s = tcp_server("127.0.0.1", 256, 1000, NULL);
    int fd = peer_connect(SOCK_STREAM, "127.0.0.1", s.port);
    uint32_t conn = wait_connect(&s.r, 1);
    peer_write(&s.r, fd, (const uint8_t *)"question", 8);
    shutdown(fd, SHUT_WR);
    rig_event e = wait_disconnect(&s.r, 1);
    DQ_EQ(e.conn, conn);
    DQ_EQ(e.code, DQ_OK);
    DQ_EQ(bytes_of(&s.r, conn), 8);
    dq_conn_info info;
    DQ_EQ(dq_conn_read(s.i, conn, &info), DQ_OK);
    DQ_EQ(info.open, 0);
    dq_burst *b = rig_burst(&s.r, s.tx, 50, 1000, 7);
    DQ_EQ(dq_burst_redirect(b, conn, &b), DQ_OK);
    rig_send(&s.r, s.tx, b);
    DQ_EQ(dq_conn_close(s.i, conn), DQ_OK);
    uint8_t got[50000];
    DQ_EQ(peer_read(&s.r, fd, got, sizeof got), sizeof got);
    DQ_EQ(got[0], 7);
    DQ_EQ(peer_read(&s.r, fd, got, 1), 0);
    DQ_EQ(rig_events(&s.r, DQ_EV_DISCONNECT, NULL), 1);
    DQ_EQ(dq_conn_close(s.i, conn), DQ_INVALID_PARAMETER);
    close(fd);
    rig_close(&s.r);
}

// What was sent goes before the close, also to a peer that is slow to read it.
static void a_close_lets_sends_go(int workers) {
    enum { BURSTS = 20, N = 8, LEN = 2777 };
    server s = {.r = rig_new(512, 3000)};
    s.r.workers = workers;
    dq_iface_conf c = rig_conf("closes", DQ_PROTO_TCP, 1, "127.0.0.1", 0, "", 0);
    begin(&s, &c);
    int fd = peer_connect(SOCK_STREAM, "127.0.0.1", rig_port(s.i)), small = 4096;
    uint32_t conn = wait_connect(&s.r, 1);
    DQ_EQ(dq_conn_setsockopt(s.i, conn, SOL_SOCKET, SO_SNDBUF, &small, sizeof small), DQ_OK);
    for (uint32_t k = 0; k < BURSTS; k++) {
        dq_burst *b = rig_burst(&s.r, s.tx, N, LEN, k * N);
        DQ_EQ(dq_burst_redirect(b, conn, &b), DQ_OK);
        rig_send(&s.r, s.tx, b);
    }
    DQ_EQ(dq_conn_close(s.i, conn), DQ_OK);
    DQ_EQ(wait_disconnect(&s.r, 1).conn, conn);
    for (uint32_t k = 0; k < BURSTS * N; k++) {
        uint8_t got[LEN];
        DQ_EQ(peer_read(&s.r, fd, got, LEN), LEN);
        rig_packet p = {.len = LEN, .bytes = got};
        DQ_CHECK(rig_matches(&p, LEN, k));
    }
    uint8_t more;
    DQ_EQ(peer_read(&s.r, fd, &more, 1), 0);
    dq_line l = rig_line(&s.r, s.tx);
    DQ_EQ(l.out, BURSTS * N);
    DQ_EQ(rig_dropped(&l), 0);
    DQ_EQ(rig_events(&s.r, DQ_EV_DISCONNECT, NULL), 1);
    close(fd);
    rig_close(&s.r);
}

static void a_close_lets_sends_go_direct(void) { a_close_lets_sends_go(0); }
static void a_close_lets_sends_go_with_workers(void) { a_close_lets_sends_go(1); }

// A peer that ends its stream, reads nothing and resets while answers wait for it: they are counted.
static void a_reset_while_ending(void) {
    server s = tcp_server("127.0.0.1", 512, 3000, NULL);
    int fd = peer_connect(SOCK_STREAM, "127.0.0.1", s.port), small = 4096;
    uint32_t conn = wait_connect(&s.r, 1);
    DQ_EQ(dq_conn_setsockopt(s.i, conn, SOL_SOCKET, SO_SNDBUF, &small, sizeof small), DQ_OK);
    uint32_t taken = send_until_refused(&s, conn, 8, 2777);
    shutdown(fd, SHUT_WR);
    wait_disconnect(&s.r, 1);
    DQ_CHECK(rig_line(&s.r, s.tx).held > 0);
    reset(fd);
    RIG_UNTIL(&s.r, rig_line(&s.r, s.tx).held == 0);
    dq_line l = rig_line(&s.r, s.tx);
    DQ_EQ(l.in, taken);
    DQ_CHECK(l.dropped[DQ_DROP_NO_PEER] > 0);
    DQ_EQ(l.in, l.out + l.dropped[DQ_DROP_NO_PEER]);
    rig_close(&s.r);
}

// ---- clients ----------------------------------------------------------------------------------------------

typedef struct client {
    rig r;
    dq_iface *i;
    dq_queue *rx, *tx;
} client;

static client tcp_client(const char *host, uint16_t port, bool with_rx, int workers) {
    client c = {.r = rig_new(256, 1000)};
    c.r.workers = workers;
    dq_iface_conf conf = rig_conf("tcp_client", DQ_PROTO_TCP, 0, "", 0, host, port);
    conf.socket.retry_connect_s = 1;
    c.i = rig_iface(&c.r, &conf);
    if (with_rx) c.rx = rig_rx(&c.r, c.i);
    c.tx = rig_tx(&c.r, c.i);
    rig_need(rig_open(&c.r) == DQ_OK, c.r.error);
    rig_listen(&c.r, c.i);
    rig_start(&c.r, &c.rx, with_rx ? 1 : 0);
    return c;
}

static int peer_accept(rig *r, int listener) {
    peer_wait(r, listener);
    int fd = accept(listener, NULL, NULL);
    rig_need(fd >= 0, "accept");
    return fd;
}

static void connects_sends_and_receives(int workers) {
    uint16_t port = 0;
    int listener = peer_bind(SOCK_STREAM, "127.0.0.1", &port);
    client c = tcp_client("127.0.0.1", port, true, workers);
    int fd = peer_accept(&c.r, listener);
    uint32_t conn = wait_connect(&c.r, 1);
    rig_send(&c.r, c.tx, rig_burst(&c.r, c.tx, 10, 100, 0));
    uint8_t got[1000];
    DQ_EQ(peer_read(&c.r, fd, got, 1000), 1000);
    for (uint32_t k = 0; k < 10; k++) {
        rig_packet p = {.len = 100, .bytes = got + (size_t)k * 100};
        DQ_CHECK(rig_matches(&p, 100, k));
    }
    peer_write(&c.r, fd, got, 1000);
    RIG_UNTIL(&c.r, bytes_of(&c.r, conn) == 1000);
    expect_stream(&c.r, conn, got, 1000);
    close(fd);
    close(listener);
    wait_disconnect(&c.r, 1);
    rig_close(&c.r);
}

static void client_direct(void) { connects_sends_and_receives(0); }
static void client_with_workers(void) { connects_sends_and_receives(1); }

// What is sent before there is a connection waits for it, and a lost connection is made again.
static void waits_and_reconnects(bool with_rx) {
    uint16_t port = 0;
    close(peer_bind(SOCK_STREAM, "127.0.0.1", &port));
    client c = tcp_client("127.0.0.1", port, with_rx, 0);
    rig_send(&c.r, c.tx, rig_burst(&c.r, c.tx, 4, 100, 0));
    rig_event e = wait_disconnect(&c.r, 1); // refused, told once
    DQ_EQ(e.conn, 0);
    DQ_EQ(e.code, DQ_ESYS - ECONNREFUSED);
    DQ_EQ(rig_line(&c.r, c.tx).out, 0);
    int listener = peer_bind(SOCK_STREAM, "127.0.0.1", &port);
    int fd = peer_accept(&c.r, listener);
    uint8_t got[400];
    DQ_EQ(peer_read(&c.r, fd, got, 400), 400);
    uint32_t first = wait_connect(&c.r, 1);
    reset(fd);
    e = wait_disconnect(&c.r, 2);
    DQ_EQ(e.conn, first);
    rig_send(&c.r, c.tx, rig_burst(&c.r, c.tx, 4, 100, 50));
    fd = peer_accept(&c.r, listener);
    DQ_EQ(peer_read(&c.r, fd, got, 400), 400);
    DQ_EQ(got[0], 50);
    DQ_CHECK(wait_connect(&c.r, 2) > first);
    DQ_EQ(rig_events(&c.r, DQ_EV_DISCONNECT, NULL), 2);
    RIG_UNTIL(&c.r, rig_line(&c.r, c.tx).held == 0);
    dq_line l = rig_line(&c.r, c.tx);
    DQ_EQ(l.out, 8);
    DQ_EQ(rig_dropped(&l), 0);
    close(fd);
    close(listener);
    rig_close(&c.r);
}

static void reconnects(void) { waits_and_reconnects(true); }
static void reconnects_without_receive_queues(void) { waits_and_reconnects(false); }

static int64_t mono_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

// A server that hangs up at once isn't called again before retry_connect_s is over. On a busy machine the
// connection may seem to have lasted: then the next one tells.
static void pauses_after_a_short_connection(void) {
    uint16_t port = 0;
    int listener = peer_bind(SOCK_STREAM, "127.0.0.1", &port);
    client c = tcp_client("127.0.0.1", port, true, 0);
    int64_t pause = 0;
    for (int round = 0; round < 6 && pause < 1000000000; round++) {
        int fd = peer_accept(&c.r, listener);
        int64_t from = mono_ns();
        reset(fd);
        peer_wait(&c.r, listener);
        pause = mono_ns() - from;
    }
    DQ_CHECK(pause >= 1000000000);
    close(listener);
    rig_close(&c.r);
}

// A server without receive queues hears of its connections all the same.
static void server_that_only_sends(void) {
    rig r = rig_new(64, 1000);
    dq_iface_conf conf = rig_conf("source", DQ_PROTO_TCP, 1, "127.0.0.1", 0, "", 0);
    dq_iface *i = rig_iface(&r, &conf);
    dq_queue *tx = rig_tx(&r, i);
    rig_need(rig_open(&r) == DQ_OK, r.error);
    rig_listen(&r, i);
    rig_start(&r, NULL, 0);
    int fd = peer_connect(SOCK_STREAM, "127.0.0.1", rig_port(i));
    uint32_t conn = wait_connect(&r, 1);
    uint8_t got[100] = {0};
    peer_write(&r, fd, got, 100); // nobody reads it
    dq_burst *b = rig_burst(&r, tx, 1, 100, 3);
    DQ_EQ(dq_burst_redirect(b, conn, &b), DQ_OK);
    rig_send(&r, tx, b);
    DQ_EQ(peer_read(&r, fd, got, 100), 100);
    DQ_EQ(got[0], 3);
    close(fd);
    DQ_EQ(wait_disconnect(&r, 1).conn, conn);
    rig_close(&r);
}

static void nobody_there_until_the_stop(void) {
    uint16_t port = 0;
    close(peer_bind(SOCK_STREAM, "127.0.0.1", &port));
    client c = tcp_client("127.0.0.1", port, true, 0);
    rig_send(&c.r, c.tx, rig_burst(&c.r, c.tx, 5, 10, 0));
    wait_disconnect(&c.r, 1);
    while (dq_session_stop(c.r.s, 0) > 0)
        rig_serve(&c.r, 0);
    dq_session_finish(c.r.s);
    dq_line l = rig_line(&c.r, c.tx);
    DQ_EQ(l.out, 0);
    DQ_EQ(rig_dropped(&l), 5);
    rig_close(&c.r);
}

static void opens_and_closes_by_hand(void) {
    uint16_t port = 0, other_port = 0, no_port = 0;
    int listener = peer_bind(SOCK_STREAM, "127.0.0.1", &port),
        other = peer_bind(SOCK_STREAM, "127.0.0.1", &other_port);
    close(peer_bind(SOCK_STREAM, "127.0.0.1", &no_port));
    client c = tcp_client("127.0.0.1", port, true, 0);
    int home = peer_accept(&c.r, listener);
    wait_connect(&c.r, 1);
    char address[64];
    uint32_t conn, refused;
    dq_diag d;
    snprintf(address, sizeof address, "localhost:%u", other_port); // ::1 first, where nobody listens
    DQ_EQ(dq_conn_open(c.i, address, "", &conn, &d), DQ_OK);
    dq_burst *b = rig_burst(&c.r, c.tx, 1, 5, 1);
    DQ_EQ(dq_burst_redirect(b, conn, &b), DQ_OK);
    rig_send(&c.r, c.tx, b); // waits for the connection
    int fd = peer_accept(&c.r, other);
    DQ_EQ(wait_connect(&c.r, 2), conn);
    uint8_t got[8];
    DQ_EQ(peer_read(&c.r, fd, got, 5), 5);
    DQ_EQ(recv(home, got, sizeof got, MSG_DONTWAIT), -1);
    peer_write(&c.r, fd, got, 5);
    RIG_UNTIL(&c.r, bytes_of(&c.r, conn) == 5);
    DQ_EQ(dq_conn_close(c.i, conn), DQ_OK);
    rig_event e = wait_disconnect(&c.r, 1);
    DQ_EQ(e.conn, conn);
    DQ_EQ(e.code, DQ_OK);
    DQ_EQ(peer_read(&c.r, fd, got, 1), 0);
    DQ_EQ(dq_conn_close(c.i, conn), DQ_INVALID_PARAMETER);
    snprintf(address, sizeof address, "127.0.0.1:%u", no_port);
    DQ_EQ(dq_conn_open(c.i, address, "127.0.0.1", &refused, &d), DQ_OK);
    e = wait_disconnect(&c.r, 2);
    DQ_EQ(e.conn, refused);
    DQ_EQ(e.code, DQ_ESYS - ECONNREFUSED);
    close(fd);
    close(home);
    close(listener);
    close(other);
    rig_close(&c.r);
}

// Options set on the interface reach the connections that are made later.
static void options_outlive_connections(void) {
    uint16_t port = 0;
    int listener = peer_bind(SOCK_STREAM, "127.0.0.1", &port);
    client c = tcp_client("127.0.0.1", port, true, 0);
    close(peer_accept(&c.r, listener));
    wait_disconnect(&c.r, 1);
    int small = 4096;
    DQ_EQ(dq_conn_setsockopt(c.i, 0, SOL_SOCKET, SO_SNDBUF, &small, sizeof small), DQ_OK);
    int fd = peer_accept(&c.r, listener);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    DQ_EQ(dq_conn_setsockopt(c.i, wait_connect(&c.r, 2), SOL_SOCKET, 9999, &small, sizeof small),
          DQ_ESYS - ENOPROTOOPT);
    for (uint32_t k = 0; k < 4; k++) // far more than such buffers take
        rig_send(&c.r, c.tx, rig_burst(&c.r, c.tx, 50, 1000, 0));
    for (int k = 0; k < 20; k++)
        rig_serve(&c.r, 1);
    DQ_CHECK(rig_line(&c.r, c.tx).held > 0);
    uint8_t got[50000];
    for (uint32_t k = 0; k < 4; k++)
        DQ_EQ(peer_read(&c.r, fd, got, sizeof got), sizeof got);
    close(fd);
    close(listener);
    rig_close(&c.r);
}

// ---- queues, framing, errors ------------------------------------------------------------------------------

static void connections_are_dealt_out(void) {
    rig r = rig_new(256, 500);
    r.workers = 1;
    dq_iface_conf c = rig_conf("dealt", DQ_PROTO_TCP, 1, "127.0.0.1", 0, "", 0);
    dq_iface *i = rig_iface(&r, &c);
    dq_queue *rx[2] = {rig_rx(&r, i), rig_rx(&r, i)}, *tx[2] = {rig_tx(&r, i), rig_tx(&r, i)};
    rig_need(rig_open(&r) == DQ_OK, r.error);
    rig_listen(&r, i);
    rig_start(&r, rx, 2);
    int fds[6];
    for (uint32_t k = 0; k < 6; k++) {
        fds[k] = peer_connect(SOCK_STREAM, "127.0.0.1", rig_port(i));
        uint32_t conn = wait_connect(&r, k + 1);
        dq_conn_info info;
        DQ_EQ(dq_conn_read(i, conn, &info), DQ_OK);
        DQ_CHECK(info.rx == rx[k % 2] && info.tx == tx[k % 2]);
        peer_write(&r, fds[k], (const uint8_t *)"x", 1);
        RIG_UNTIL(&r, r.n == k + 1);
        DQ_CHECK(r.packets[k].queue == rx[k % 2]);
        for (uint32_t q = 0; q < 2; q++) { // any queue may send on it
            dq_burst *b = rig_burst(&r, tx[q], 1, 4, 0);
            DQ_EQ(dq_burst_redirect(b, conn, &b), DQ_OK);
            rig_send(&r, tx[q], b);
        }
        uint8_t got[8];
        DQ_EQ(peer_read(&r, fds[k], got, 8), 8);
    }
    for (uint32_t k = 0; k < 6; k++)
        close(fds[k]);
    wait_disconnect(&r, 6);
    rig_close(&r);
}

// Two queues on two threads send on one connection: packets never mix, each queue's stay in order.
static void two_queues_send_on_one_connection(void) {
    enum { BURSTS = 25, PACKETS = 8, LEN = 2777 };
    rig r = rig_new(1024, 3000);
    r.workers = 1;
    dq_iface_conf c = rig_conf("two", DQ_PROTO_TCP, 1, "127.0.0.1", 0, "", 0);
    dq_iface *i = rig_iface(&r, &c);
    dq_queue *rx = rig_rx(&r, i), *tx[2] = {rig_tx(&r, i), rig_tx(&r, i)};
    rig_need(rig_open(&r) == DQ_OK, r.error);
    rig_listen(&r, i);
    rig_start(&r, &rx, 1);
    int fd = peer_connect(SOCK_STREAM, "127.0.0.1", rig_port(i)), small = 4096;
    uint32_t conn = wait_connect(&r, 1);
    DQ_EQ(dq_conn_setsockopt(i, conn, SOL_SOCKET, SO_SNDBUF, &small, sizeof small), DQ_OK);
    for (uint32_t k = 0; k < BURSTS * 2; k++) {
        dq_burst *b = rig_burst(&r, tx[k % 2], PACKETS, LEN, 0);
        dq_view v;
        dq_burst_view(b, &v);
        for (uint32_t p = 0; p < PACKETS; p++) {
            memset(v.base + v.off[0][p], (int)(k % 2), LEN);
            v.base[v.off[0][p]] = (uint8_t)(k / 2 * PACKETS + p);
        }
        DQ_EQ(dq_burst_redirect(b, conn, &b), DQ_OK);
        rig_send(&r, tx[k % 2], b);
    }
    uint32_t next[2] = {0};
    for (uint32_t k = 0; k < BURSTS * 2 * PACKETS; k++) {
        uint8_t got[LEN], want[LEN];
        DQ_EQ(peer_read(&r, fd, got, LEN), LEN);
        int q = got[LEN - 1] & 1;
        memset(want, q, LEN);
        want[0] = (uint8_t)next[q]++;
        DQ_EQ_BYTES(got, want, LEN);
    }
    close(fd);
    rig_close(&r);
}

static const struct {
    const char *name;
    dq_socket_conf conf;
    uint32_t buf_size, max; // longest message sent
} framings[] = {
    {"fixed", {.framing = DQ_FRAMING_FIXED, .framing_bytes = 300}, 1000, 300},
    {"fixed, a whole buffer", {.framing = DQ_FRAMING_FIXED, .framing_bytes = 1000}, 1000, 1000},
    {"prefix 1", {.framing = DQ_FRAMING_PREFIX, .framing_bytes = 1}, 300, 255},
    {"prefix 2, up to a whole buffer", {.framing = DQ_FRAMING_PREFIX, .framing_bytes = 2}, 1500, 1500},
    {"prefix 4, little endian",
     {.framing = DQ_FRAMING_PREFIX, .framing_bytes = 4, .framing_le = 1},
     4000,
     700},
    {"prefix 8, inclusive", {.framing = DQ_FRAMING_PREFIX, .framing_bytes = 8, .framing_incl = 1}, 1000, 900},
};

// The bytes of a message as they go over the wire; their number.
static uint32_t frame(const dq_socket_conf *f, const uint8_t *bytes, uint32_t len, uint8_t *out) {
    uint32_t w = f->framing == DQ_FRAMING_PREFIX ? f->framing_bytes : 0;
    uint64_t said = len + (f->framing_incl ? w : 0);
    for (uint32_t k = 0; k < w; k++)
        out[f->framing_le ? k : w - 1 - k] = (uint8_t)(said >> (8 * k));
    memcpy(out + w, bytes, len);
    return w + len;
}

static void receives_messages(void) {
    enum { MESSAGES = 500 };
    for (size_t t = 0; t < sizeof framings / sizeof *framings; t++) {
        const dq_socket_conf *f = &framings[t].conf;
        server s = tcp_server("127.0.0.1", 64, framings[t].buf_size, f);
        int fd = peer_connect(SOCK_STREAM, "127.0.0.1", s.port);
        uint64_t seed = t;
        uint32_t lens[MESSAGES];
        uint8_t *wire = malloc(MESSAGES * (8 + 1500)), *bytes = noise(1500, t);
        size_t n = 0;
        for (uint32_t k = 0; k < MESSAGES; k++) {
            lens[k] =
                f->framing == DQ_FRAMING_FIXED ? f->framing_bytes : dq_below(&seed, framings[t].max + 1);
            bytes[0] = (uint8_t)k;
            n += frame(f, bytes, lens[k], wire + n);
        }
        for (size_t at = 0; at < n;) {
            size_t some = 1 + dq_below(&seed, 4000);
            if (some > n - at) some = n - at;
            peer_write(&s.r, fd, wire + at, some);
            at += some;
            if (dq_below(&seed, 3) == 0) rig_serve(&s.r, 0);
        }
        RIG_UNTIL(&s.r, s.r.n == MESSAGES);
        for (uint32_t k = 0; k < s.r.n; k++) {
            bytes[0] = (uint8_t)k;
            DQ_EQ(s.r.packets[k].len, lens[k]);
            if (s.r.packets[k].len == lens[k]) DQ_EQ_BYTES(s.r.packets[k].bytes, bytes, lens[k]);
            DQ_CHECK(s.r.packets[k].peer[0] != 0);
        }
        free(wire);
        free(bytes);
        close(fd);
        DQ_EQ(wait_disconnect(&s.r, 1).code, DQ_OK);
        dq_line l = rig_line(&s.r, s.rx);
        DQ_EQ(rig_dropped(&l), 0);
        rig_close(&s.r);
    }
}

// Messages stay readable while others that lie in the same buffer come and go.
static void messages_are_held_with_their_buffer(void) {
    server s = tcp_server("127.0.0.1", 8, 1000, &framings[3].conf);
    int fd = peer_connect(SOCK_STREAM, "127.0.0.1", s.port);
    uint8_t bytes[100], wire[102];
    memset(bytes, 'a', sizeof bytes);
    s.r.hold = true;
    for (uint32_t k = 0; k < 30; k++) {
        bytes[0] = (uint8_t)k;
        peer_write(&s.r, fd, wire, frame(&framings[3].conf, bytes, 100, wire));
        if (k % 10 == 9) rig_serve(&s.r, 5);
    }
    // Eight buffers hold some of them; the rest stays with the kernel until buffers come back.
    rig_serve(&s.r, 5);
    rig_let_go(&s.r);
    RIG_UNTIL(&s.r, s.r.n == 30);
    for (uint32_t k = 0; k < s.r.n; k++)
        DQ_EQ(s.r.packets[k].bytes[0], k);
    close(fd);
    rig_close(&s.r);
}

static void bad_framing_ends_the_connection(void) {
    static const struct {
        const char *name;
        uint8_t bytes[16];
        uint32_t n, whole;
        int code;
    } cases[] = {
        {"too long", {0, 1, 'a', 0xff, 0xff, 'b'}, 6, 1, DQ_ESYS - EBADMSG},
        {"ends in a message", {0, 1, 'a', 0, 5, 'b'}, 6, 1, DQ_OK},
        {"ends in a prefix", {0, 1, 'a', 0}, 4, 1, DQ_OK},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        server s = tcp_server("127.0.0.1", 64, 1500, &framings[3].conf);
        int fd = peer_connect(SOCK_STREAM, "127.0.0.1", s.port);
        wait_connect(&s.r, 1);
        peer_write(&s.r, fd, cases[k].bytes, cases[k].n);
        shutdown(fd, SHUT_WR);
        rig_event e = wait_disconnect(&s.r, 1);
        RIG_UNTIL(&s.r, s.r.n >= cases[k].whole);
        if (e.code != cases[k].code || s.r.n != cases[k].whole) dq_failed(__FILE__, __LINE__, cases[k].name);
        dq_line l = rig_line(&s.r, s.rx);
        DQ_EQ(l.dropped[DQ_DROP_BAD_FRAMING], 1);
        DQ_EQ(l.in, cases[k].whole + 1);
        close(fd);
        rig_close(&s.r);
    }
}

static void sends_messages(void) {
    for (size_t t = 0; t < sizeof framings / sizeof *framings; t++) {
        const dq_socket_conf *f = &framings[t].conf;
        server s = tcp_server("127.0.0.1", 256, framings[t].buf_size, f);
        int fd = peer_connect(SOCK_STREAM, "127.0.0.1", s.port);
        wait_connect(&s.r, 1);
        uint32_t len = framings[t].max, n = 50;
        rig_send(&s.r, s.tx, rig_burst(&s.r, s.tx, n, len, 0));
        for (uint32_t k = 0; k < n; k++) {
            uint8_t bytes[1600], want[1600], got[1600];
            for (uint32_t j = 0; j < len; j++)
                bytes[j] = (uint8_t)(k + j * 7);
            uint32_t size = frame(f, bytes, len, want);
            DQ_EQ(peer_read(&s.r, fd, got, size), size);
            DQ_EQ_BYTES(got, want, size);
        }
        RIG_UNTIL(&s.r, rig_line(&s.r, s.tx).held == 0);
        DQ_EQ(rig_line(&s.r, s.tx).out_bytes, (uint64_t)n * len);
        close(fd);
        rig_close(&s.r);
    }
}

static void what_cannot_be_framed_is_counted(void) {
    server s = tcp_server("127.0.0.1", 64, 1000, &framings[0].conf);
    int fd = peer_connect(SOCK_STREAM, "127.0.0.1", s.port);
    wait_connect(&s.r, 1);
    dq_burst *b = rig_burst(&s.r, s.tx, 4, 300, 0);
    DQ_EQ(dq_burst_set_len(b, 0, 0, 299), DQ_OK);
    DQ_EQ(dq_burst_set_len(b, 0, 3, 301), DQ_OK);
    rig_send(&s.r, s.tx, b);
    uint8_t got[600];
    DQ_EQ(peer_read(&s.r, fd, got, 600), 600);
    RIG_UNTIL(&s.r, rig_line(&s.r, s.tx).held == 0);
    DQ_EQ(rig_line(&s.r, s.tx).dropped[DQ_DROP_SEND_ERROR], 2);
    close(fd);
    rig_close(&s.r);
}

static void streams_wait_for_buffers(void) {
    server s = tcp_server("127.0.0.1", 8, 1000, NULL);
    int fd = peer_connect(SOCK_STREAM, "127.0.0.1", s.port);
    uint8_t *want = noise(100000, 5);
    s.r.hold = true;
    size_t sent = 0;
    while (s.r.n < 8 && sent < 100000) {
        peer_write(&s.r, fd, want + sent, 1000);
        sent += 1000;
        rig_serve(&s.r, 1);
    }
    for (int k = 0; k < 5; k++)
        rig_serve(&s.r, 1);
    DQ_EQ(s.r.n, 8);
    rig_let_go(&s.r);
    peer_write(&s.r, fd, want + sent, 100000 - sent);
    RIG_UNTIL(&s.r, bytes_of(&s.r, 0) == 100000);
    expect_stream(&s.r, 0, want, 100000);
    dq_line l = rig_line(&s.r, s.rx);
    DQ_EQ(rig_dropped(&l), 0);
    free(want);
    close(fd);
    rig_close(&s.r);
}

// What had come by the stop is delivered, what a read brought beyond a burst too; what comes later is
// nobody's.
static void stop_takes_in_what_had_come(void) {
    enum { N = 200000 };
    rig r = rig_new(1024, 1000);
    r.batch = 4;
    dq_iface_conf c = rig_conf("stopped", DQ_PROTO_TCP, 1, "127.0.0.1", 0, "", 0);
    dq_iface *i = rig_iface(&r, &c);
    dq_queue *rx = rig_rx(&r, i);
    rig_need(rig_open(&r) == DQ_OK, r.error);
    rig_start(&r, &rx, 1);
    int fd = peer_connect(SOCK_STREAM, "127.0.0.1", rig_port(i));
    uint8_t *bytes = noise(N, 8);
    peer_write(&r, fd, bytes, N);
    for (int k = 0; k < 1000 && r.n == 0; k++)
        rig_serve(&r, 5);
    DQ_CHECK(r.n > 0 && bytes_of(&r, 0) < N);
    uint64_t left = dq_session_stop(r.s, 0);
    struct tcp_info info;
    socklen_t len = sizeof info;
    bool told = getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 &&
                len > 4; // not where the kernel is emulated
    if (told) DQ_EQ(send(fd, "too late", 8, 0), 8);
    for (; left > 0; left = dq_session_stop(r.s, 0))
        rig_serve(&r, 0);
    while (rig_serve(&r, 0)) {
    }
    dq_session_finish(r.s);
    dq_line l = rig_line(&r, rx);
    DQ_EQ(bytes_of(&r, 0), N);
    DQ_EQ(l.in_bytes, N);
    DQ_EQ(l.out, l.in);
    DQ_EQ(rig_dropped(&l), 0);
    free(bytes);
    close(fd);
    rig_close(&r);
}

static void tells_what_is_wrong_at_open(void) {
    uint16_t port = 0;
    int fd = peer_bind(SOCK_STREAM, "127.0.0.1", &port);
    static const struct {
        const char *name;
        dq_socket_conf f;
        bool taken;
        const char *want[2];
    } cases[] = {
        {"port in use",
         {0},
         true,
         {"interface bad: tcp://127.0.0.1:", "address already in use: another program"}},
        {"width",
         {.framing = DQ_FRAMING_PREFIX, .framing_bytes = 3},
         false,
         {"length prefix of 3 bytes", "1, 2, 4 or 8"}},
        {"message longer than a buffer",
         {.framing = DQ_FRAMING_FIXED, .framing_bytes = 257},
         false,
         {"messages of 257 bytes", "buffer size"}},
        {"no message", {.framing = DQ_FRAMING_FIXED}, false, {"messages of 0 bytes", "from 1"}},
        {"payload", {.max_payload = 300}, false, {"max_payload_size 300", "256 bytes of region mem"}},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        rig r = rig_new(64, 256);
        dq_iface_conf c = rig_conf("bad", DQ_PROTO_TCP, 1, "127.0.0.1", cases[k].taken ? port : 0, "", 0);
        c.socket.framing = cases[k].f.framing;
        c.socket.framing_bytes = cases[k].f.framing_bytes;
        c.socket.max_payload = cases[k].f.max_payload;
        rig_rx(&r, rig_iface(&r, &c));
        DQ_CHECK(rig_open(&r) < 0);
        for (int w = 0; w < 2; w++)
            if (!strstr(r.error, cases[k].want[w])) {
                fprintf(stderr, "%s: \"%s\" is not in \"%s\"\n", cases[k].name, cases[k].want[w], r.error);
                dq_failed(__FILE__, __LINE__, cases[k].name);
            }
        rig_abandon(&r);
    }
    close(fd);
}

static uint32_t open_files(void) {
    uint32_t n = 0;
    for (int fd = 0; fd < 1024; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

// Many short connections, some with a byte in them and some reset, leave nothing behind, and none of their
// ids comes back.
static void comes_and_goes(void) {
    server s = tcp_server("127.0.0.1", 64, 1000, NULL);
    uint32_t last = 0, before = open_files(), bytes = 0;
    for (uint32_t k = 1; k <= 1000; k++) {
        int fd = peer_connect(SOCK_STREAM, "127.0.0.1", s.port);
        if (k % 3 == 0) {
            peer_write(&s.r, fd, (const uint8_t *)"x", 1);
            RIG_UNTIL(&s.r, s.r.n == bytes + 1);
            bytes++;
        }
        if (k % 5 == 0)
            reset(fd);
        else
            close(fd);
        wait_disconnect(&s.r, 1);
        DQ_EQ(s.r.n_events, 2);
        DQ_EQ(s.r.events[0].kind, DQ_EV_CONNECT);
        DQ_CHECK(s.r.events[0].conn > last && s.r.events[1].conn == s.r.events[0].conn);
        last = s.r.events[0].conn;
        s.r.n_events = 0;
    }
    RIG_UNTIL(&s.r, open_files() == before);
    rig_close(&s.r);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(streams_ipv4);
    DQ_RUN(streams_ipv6);
    DQ_RUN(one_connection_a_burst_at_once);
    DQ_RUN(one_connection_a_burst_timed);
    DQ_RUN(the_end_says_why);
    DQ_RUN(sends_in_order_under_back_pressure);
    DQ_RUN(unknown_peers_get_nothing);
    DQ_RUN(a_peer_that_resets_harms_nobody);
    DQ_RUN(a_slow_peer_direct);
    DQ_RUN(a_slow_peer_with_workers);
    DQ_RUN(a_slow_peer_that_resets);
    DQ_RUN(a_slow_peer_that_resets_with_workers);
    DQ_RUN(a_slow_peer_that_is_noticed_late);
    DQ_RUN(a_slow_peer_at_the_stop);
    DQ_RUN(echoes_to_each_connection);
    DQ_RUN(echoes_the_tail_direct);
    DQ_RUN(echoes_the_tail_with_workers);
    DQ_RUN(answers_after_the_end);
    DQ_RUN(a_close_lets_sends_go_direct);
    DQ_RUN(a_close_lets_sends_go_with_workers);
    DQ_RUN(a_reset_while_ending);
    DQ_RUN(client_direct);
    DQ_RUN(client_with_workers);
    DQ_RUN(reconnects);
    DQ_RUN(reconnects_without_receive_queues);
    DQ_RUN(pauses_after_a_short_connection);
    DQ_RUN(server_that_only_sends);
    DQ_RUN(nobody_there_until_the_stop);
    DQ_RUN(opens_and_closes_by_hand);
    DQ_RUN(options_outlive_connections);
    DQ_RUN(connections_are_dealt_out);
    DQ_RUN(two_queues_send_on_one_connection);
    DQ_RUN(receives_messages);
    DQ_RUN(messages_are_held_with_their_buffer);
    DQ_RUN(bad_framing_ends_the_connection);
    DQ_RUN(sends_messages);
    DQ_RUN(what_cannot_be_framed_is_counted);
    DQ_RUN(streams_wait_for_buffers);
    DQ_RUN(stop_takes_in_what_had_come);
    DQ_RUN(tells_what_is_wrong_at_open);
    DQ_RUN(comes_and_goes);
    return dq_done();
}
