// TCP servers, over loopback, against plain sockets: streams both ways, queues, the stop.
#include "tcp_rig.h"

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

// A server without receive queues is notified of its connections all the same.
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
    peer_write(&r, fd, got, 100); // nothing reads it
    dq_burst *b = rig_burst(&r, tx, 1, 100, 3);
    DQ_EQ(dq_burst_redirect(b, conn, &b), DQ_OK);
    rig_send(&r, tx, b);
    DQ_EQ(peer_read(&r, fd, got, 100), 100);
    DQ_EQ(got[0], 3);
    close(fd);
    DQ_EQ(wait_disconnect(&r, 1).conn, conn);
    rig_close(&r);
}

// ---- queues, the stop, errors -----------------------------------------------------------------------------

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
// of no buffer.
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
    bool reported = getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 &&
                    len > 4; // not where the kernel is emulated
    if (reported) DQ_EQ(send(fd, "too late", 8, 0), 8);
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
         {"3 is not a valid length of a prefix", "expected 1, 2, 4 or 8"}},
        {"message longer than a buffer",
         {.framing = DQ_FRAMING_FIXED, .framing_bytes = 257},
         false,
         {"257 is not a valid message length", "buffer size"}},
        {"no message",
         {.framing = DQ_FRAMING_FIXED},
         false,
         {"0 is not a valid message length", "expected 1"}},
        {"payload", {.max_payload = 300}, false, {"max_payload_size 300", "256 bytes of region mem"}},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        rig r = rig_new(64, 256);
        dq_iface_conf c = rig_conf("bad", DQ_PROTO_TCP, 1, "127.0.0.1", cases[k].taken ? port : 0, "", 0);
        c.socket.framing = cases[k].f.framing;
        c.socket.framing_bytes = cases[k].f.framing_bytes;
        c.socket.max_payload = cases[k].f.max_payload;
        rig_rx(&r, rig_iface(&r, &c));
        rig_open_fails(&r, cases[k].name, cases[k].want, 2);
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
    DQ_RUN(echoes_to_each_connection);
    DQ_RUN(server_that_only_sends);
    DQ_RUN(connections_are_dealt_out);
    DQ_RUN(two_queues_send_on_one_connection);
    DQ_RUN(streams_wait_for_buffers);
    DQ_RUN(stop_takes_in_what_had_come);
    DQ_RUN(tells_what_is_wrong_at_open);
    DQ_RUN(comes_and_goes);
    return dq_done();
}
