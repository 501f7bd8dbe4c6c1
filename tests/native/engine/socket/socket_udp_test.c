// UDP through the engine, over loopback, against plain sockets.
#include "udp_rig.h"

static void expect_text(rig *r, int fd, const char *want) {
    char buf[256] = "";
    peer_wait(r, fd);
    ssize_t n = recv(fd, buf, sizeof buf - 1, MSG_DONTWAIT);
    DQ_EQ(n, strlen(want));
    DQ_EQ_STR(buf, want);
}

// Sends a text from an engine queue, to connection conn.
static void tx_text(rig *r, dq_queue *q, uint32_t conn, const char *text) {
    dq_burst *b = rig_burst(r, q, 1, (uint32_t)strlen(text), 0);
    dq_view v;
    dq_burst_view(b, &v);
    memcpy(v.base + v.off[0][0], text, strlen(text));
    DQ_EQ(dq_burst_redirect(b, conn, &b), DQ_OK);
    rig_send(r, q, b);
}

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void receives_in_order(const char *listen_on, const char *send_to, const char *peer_shape) {
    server s = udp_server(listen_on, 512, 2048);
    int fd = peer_connect(SOCK_DGRAM, send_to, s.port);
    char name[64];
    peer_name(fd, name, sizeof name);
    int64_t t0 = now_ns();
    for (uint32_t k = 0; k < 500; k++) {
        uint8_t buf[1500];
        uint32_t len = k * 3;
        rig_fill(buf, len, k);
        DQ_EQ(send(fd, buf, len, 0), len);
        if (k % 100 == 99) RIG_UNTIL(&s.r, s.r.n == k + 1);
    }
    for (uint32_t k = 0; k < s.r.n; k++) {
        const rig_packet *p = &s.r.packets[k];
        DQ_CHECK(rig_matches(p, k * 3, k));
        DQ_EQ_STR(p->peer, name);
        DQ_EQ(p->conn, 0);
        DQ_CHECK(p->ts >= t0);
        DQ_CHECK(p->ts <= now_ns());
    }
    DQ_CHECK(strncmp(name, peer_shape, strlen(peer_shape)) == 0);
    dq_line l = rig_line(&s.r, s.rx);
    DQ_EQ(l.in, 500);
    DQ_EQ(l.in_bytes, 500 * 499 / 2 * 3);
    DQ_EQ(l.extra[DQ_EXTRA_KERNEL_DROPPED], 0);
    close(fd);
    rig_close(&s.r);
}

static void receives_ipv4(void) { receives_in_order("127.0.0.1", "127.0.0.1", "127.0.0.1:"); }

static void receives_ipv6(void) {
    if (has_ipv6()) receives_in_order("::1", "::1", "[::1]:");
}

static void one_server_for_both(void) {
    if (!has_ipv6()) return;
    receives_in_order("::", "127.0.0.1", "127.0.0.1:");
    receives_in_order("", "::1", "[::1]:");
    receives_in_order("::", "::1", "[::1]:");
}

static void receives_by_name(void) {
    server s = udp_server("localhost", 64, 256);
    dq_conn_info info;
    DQ_EQ(dq_conn_read(s.i, 0, &info), DQ_OK);
    DQ_EQ(info.open, 1);
    DQ_CHECK(rig_reports(&s.r, "localhost"));
    int fd = peer_connect(SOCK_DGRAM, info.local[0] == '[' ? "::1" : "127.0.0.1", s.port);
    send_text(fd, "hello");
    RIG_UNTIL(&s.r, s.r.n == 1);
    close(fd);
    rig_close(&s.r);
}

// What came of the peer that fd is; of "": of those without a counter.
static dq_peer_count count_of(const rig *r, int fd) {
    static dq_peer_count all[DQ_SOURCES + 1];
    char name[DQ_PEER_LEN] = "";
    if (fd >= 0) peer_name(fd, name, sizeof name);
    uint32_t n = dq_peer_counts(r->s, all, DQ_SOURCES + 1);
    DQ_CHECK(n <= DQ_SOURCES + 1);
    for (uint32_t k = 0; k < n; k++)
        if (strcmp(all[k].peer, name) == 0) return all[k];
    return (dq_peer_count){0};
}

static void more_peers_than_counters(void) {
    server s = udp_server("127.0.0.1", 512, 256);
    enum { PEERS = DQ_SOURCES + 10 };
    int fds[PEERS];
    for (uint32_t k = 0; k < PEERS; k++) {
        fds[k] = peer_connect(SOCK_DGRAM, "127.0.0.1", s.port);
        send_text(fds[k], "hello");
        if (k == 3) send_text(fds[k], "again");
        if (k % 64 == 63) RIG_UNTIL(&s.r, s.r.n == k + 2);
    }
    RIG_UNTIL(&s.r, s.r.n == PEERS + 1);
    dq_peer_count third = count_of(&s.r, fds[3]), others = count_of(&s.r, -1);
    DQ_EQ_STR(third.name, "udp_server");
    DQ_EQ(third.packets, 2);
    DQ_EQ(third.bytes, 10);
    DQ_EQ(others.packets, PEERS - DQ_SOURCES);
    DQ_EQ(others.bytes, 5 * (PEERS - DQ_SOURCES));
    for (uint32_t k = 0; k < PEERS; k++)
        close(fds[k]);
    rig_close(&s.r);
}

// A forwarded burst goes back packet by packet to the sender of each.
static void answers_each_sender(void) {
    server s = {.r = rig_new(256, 256)};
    dq_iface_conf c = rig_conf("echo", DQ_PROTO_UDP, 1, has_ipv6() ? "::" : "127.0.0.1", 0, "", 0);
    s.i = rig_iface(&s.r, &c);
    s.rx = rig_rx(&s.r, s.i);
    s.tx = rig_tx(&s.r, s.i);
    rig_need(rig_open(&s.r) == DQ_OK, s.r.error);
    rig_echo(&s.r, s.rx, s.tx, DQ_POLICY_DROP);
    uint16_t port = rig_port(s.i);
    int fds[3] = {peer_connect(SOCK_DGRAM, "127.0.0.1", port), peer_connect(SOCK_DGRAM, "127.0.0.1", port),
                  peer_connect(SOCK_DGRAM, has_ipv6() ? "::1" : "127.0.0.1", port)};
    static const char *const texts[3] = {"one", "two, longer", "three"};
    for (int round = 0; round < 20; round++)
        for (int k = 0; k < 3; k++)
            send_text(fds[k], texts[k]);
    for (int round = 0; round < 20; round++)
        for (int k = 0; k < 3; k++)
            expect_text(&s.r, fds[k], texts[k]);
    for (int k = 0; k < 3; k++) {
        DQ_EQ(count_of(&s.r, fds[k]).packets, 20);
        DQ_EQ(count_of(&s.r, fds[k]).bytes, 20 * strlen(texts[k]));
        close(fds[k]);
    }
    rig_close(&s.r);
}

static void unaddressed_packets_go_to_the_last_peer(void) {
    server s = udp_server("127.0.0.1", 256, 256);
    tx_text(&s.r, s.tx, 0, "no peer yet");
    RIG_UNTIL(&s.r, rig_line(&s.r, s.tx).dropped[DQ_DROP_NO_PEER] == 1);
    int a = peer_connect(SOCK_DGRAM, "127.0.0.1", s.port), b = peer_connect(SOCK_DGRAM, "127.0.0.1", s.port);
    send_text(a, "a");
    RIG_UNTIL(&s.r, s.r.n == 1);
    tx_text(&s.r, s.tx, 0, "to a");
    expect_text(&s.r, a, "to a");
    send_text(b, "b");
    RIG_UNTIL(&s.r, s.r.n == 2);
    tx_text(&s.r, s.tx, 0, "to b");
    expect_text(&s.r, b, "to b");
    tx_text(&s.r, s.tx, 12345, "an unknown connection");
    RIG_UNTIL(&s.r, rig_line(&s.r, s.tx).dropped[DQ_DROP_NO_PEER] == 2);
    struct pollfd p[2] = {{.fd = a, .events = POLLIN}, {.fd = b, .events = POLLIN}};
    DQ_EQ(poll(p, 2, 0), 0);
    close(a);
    close(b);
    rig_close(&s.r);
}

// A client and a server in one session: batches both ways, replies reach the client.
static void client_and_server(void) {
    rig r = rig_new(4096, 512);
    uint16_t port = 0;
    close(peer_bind(SOCK_DGRAM, "127.0.0.1", &port));
    dq_iface_conf cc = rig_conf("client", DQ_PROTO_UDP, 0, "", 0, "127.0.0.1", port);
    dq_iface_conf sc = rig_conf("server", DQ_PROTO_UDP, 1, "127.0.0.1", port, "", 0);
    dq_iface *client = rig_iface(&r, &cc), *serving = rig_iface(&r, &sc);
    dq_queue *crx = rig_rx(&r, client), *ctx = rig_tx(&r, client);
    dq_queue *srx = rig_rx(&r, serving), *stx = rig_tx(&r, serving);
    rig_need(rig_open(&r) == DQ_OK, r.error);
    rig_start(&r, (dq_queue *[]){crx, srx}, 2);
    for (uint32_t k = 0; k < 20; k++)
        rig_send(&r, ctx, rig_burst(&r, ctx, 50, 400, 50 * k));
    RIG_UNTIL(&r, r.n == 1000);
    for (uint32_t k = 0; k < r.n; k++)
        DQ_CHECK(r.packets[k].queue == srx && rig_matches(&r.packets[k], 400, k));
    rig_send(&r, stx, rig_burst(&r, stx, 10, 33, 0));
    RIG_UNTIL(&r, r.n == 1010);
    for (uint32_t k = 1000; k < r.n; k++)
        DQ_CHECK(r.packets[k].queue == crx && rig_matches(&r.packets[k], 33, k - 1000));
    dq_line l = rig_line(&r, ctx);
    DQ_EQ(l.out, 1000);
    DQ_EQ(l.out_bytes, 400000);
    DQ_CHECK(l.extra[DQ_EXTRA_SYSCALLS] < 1000); // batches
    rig_close(&r);
}

static void a_port_that_nobody_has_harms_nothing(void) {
    rig r = rig_new(256, 256);
    uint16_t port = 0;
    close(peer_bind(SOCK_DGRAM, "127.0.0.1", &port));
    dq_iface_conf c = rig_conf("client", DQ_PROTO_UDP, 0, "", 0, "127.0.0.1", port);
    dq_iface *i = rig_iface(&r, &c);
    dq_queue *rx = rig_rx(&r, i), *tx = rig_tx(&r, i);
    rig_need(rig_open(&r) == DQ_OK, r.error);
    rig_start(&r, &rx, 1);
    for (int k = 0; k < 5; k++) {
        rig_send(&r, tx, rig_burst(&r, tx, 10, 10, 0));
        rig_serve(&r, 1);
    }
    RIG_UNTIL(&r, rig_line(&r, tx).held == 0);
    dq_line l = rig_line(&r, tx);
    DQ_EQ(l.out, 50);
    int fd = peer_bind(SOCK_DGRAM, "127.0.0.1", &port);
    tx_text(&r, tx, 0, "now");
    expect_text(&r, fd, "now");
    close(fd);
    rig_close(&r);
}

static void drops_what_is_too_long(void) {
    server s = udp_server("127.0.0.1", 256, 100);
    int fd = peer_connect(SOCK_DGRAM, "127.0.0.1", s.port);
    uint8_t buf[200] = {0};
    static const uint32_t lens[] = {100, 101, 1, 200, 100, 150, 0};
    for (int k = 0; k < 7; k++)
        DQ_EQ(send(fd, buf, lens[k], 0), lens[k]);
    RIG_UNTIL(&s.r, s.r.n == 4);
    dq_line l = rig_line(&s.r, s.rx);
    DQ_EQ(l.in, 7);
    DQ_EQ(l.dropped[DQ_DROP_TOO_LONG], 3);
    DQ_EQ(s.r.packets[0].len, 100);
    DQ_EQ(s.r.packets[3].len, 0);
    for (uint32_t k = 0; k < 1000; k++) { // its buffers are used again
        DQ_EQ(send(fd, buf, k % 2 ? 150 : 50, 0), k % 2 ? 150 : 50);
        if (k % 50 == 49) RIG_UNTIL(&s.r, s.r.n == 4 + (k + 1) / 2);
    }
    close(fd);
    rig_close(&s.r);
}

// Without free buffers datagrams stay with the kernel, which counts what it has to drop.
static void kernel_keeps_what_has_no_buffer(void) {
    if (!rig_kernel_tells()) return;
    server s = udp_server("127.0.0.1", 16, 1400);
    int fd = peer_connect(SOCK_DGRAM, "127.0.0.1", s.port), small = 20000;
    DQ_EQ(dq_conn_setsockopt(s.i, 0, SOL_SOCKET, SO_RCVBUF, &small, sizeof small), DQ_OK);
    s.r.hold = true;
    uint8_t buf[1400] = {0};
    for (uint32_t k = 0; k < 16; k++) {
        memcpy(buf, &k, sizeof k);
        DQ_EQ(send(fd, buf, sizeof buf, 0), sizeof buf);
        rig_serve(&s.r, 1);
    }
    RIG_UNTIL(&s.r, s.r.n == 16);
    for (uint32_t k = 16; k < 200; k++) {
        memcpy(buf, &k, sizeof k);
        DQ_EQ(send(fd, buf, sizeof buf, 0), sizeof buf);
    }
    for (int k = 0; k < 5; k++)
        rig_serve(&s.r, 1);
    DQ_EQ(s.r.n, 16);
    uint64_t lost = rig_line(&s.r, s.rx).extra[DQ_EXTRA_KERNEL_DROPPED];
    DQ_CHECK(lost > 0 && lost < 184);
    rig_let_go(&s.r);
    RIG_UNTIL(&s.r, s.r.n == 200 - lost);
    for (uint32_t k = 0; k < s.r.n; k++) {
        uint32_t number;
        memcpy(&number, s.r.packets[k].bytes, sizeof number);
        DQ_EQ(number, k); // the kernel dropped the last ones
    }
    DQ_EQ(rig_line(&s.r, s.rx).in, 200 - lost);
    close(fd);
    rig_close(&s.r);
}

static void a_full_socket_delays(void) {
    rig r = rig_new(2048, 9000);
    uint16_t port = 0;
    int fd = peer_bind(SOCK_DGRAM, "127.0.0.1", &port);
    dq_iface_conf c = rig_conf("client", DQ_PROTO_UDP, 0, "", 0, "127.0.0.1", port);
    dq_iface *i = rig_iface(&r, &c);
    dq_queue *tx = rig_tx(&r, i);
    rig_need(rig_open(&r) == DQ_OK, r.error);
    rig_start(&r, NULL, 0);
    int small = 1, too_long = 0;
    DQ_EQ(dq_conn_setsockopt(i, 0, SOL_SOCKET, SO_SNDBUF, &small, sizeof small), DQ_OK);
    for (uint32_t k = 0; k < 10; k++)
        rig_send(&r, tx, rig_burst(&r, tx, 64, 1400, 0));
    uint8_t buf[2000];
    while (rig_line(&r, tx).held > 0 && too_long++ < 100000) {
        rig_serve(&r, 0);
        while (recv(fd, buf, sizeof buf, MSG_DONTWAIT) > 0) {
        }
    }
    DQ_EQ(rig_line(&r, tx).out, 640);
    close(fd);
    rig_close(&r);
}

static void what_the_system_refuses_is_counted(void) {
    rig r = rig_new(64, 70000);
    uint16_t port = 0;
    int fd = peer_bind(SOCK_DGRAM, "127.0.0.1", &port);
    dq_iface_conf c = rig_conf("client", DQ_PROTO_UDP, 0, "", 0, "127.0.0.1", port);
    c.socket.max_payload = 65507;
    dq_iface_conf any = c;
    any.socket.max_payload = 0;
    snprintf(any.name, sizeof any.name, "unlimited");
    dq_iface *i = rig_iface(&r, &c), *j = rig_iface(&r, &any);
    dq_queue *limited = rig_tx(&r, i), *tx = rig_tx(&r, j);
    rig_need(rig_open(&r) == DQ_OK, r.error);
    rig_start(&r, NULL, 0);
    dq_burst *b = rig_burst(&r, tx, 3, 10, 0);
    DQ_EQ(dq_burst_set_len(b, 0, 1, 65508), DQ_OK); // no UDP datagram is that long
    rig_send(&r, tx, b);
    RIG_UNTIL(&r, rig_line(&r, tx).held == 0);
    dq_line l = rig_line(&r, tx);
    DQ_EQ(l.out, 2);
    DQ_EQ(l.dropped[DQ_DROP_SEND_ERROR], 1);
    b = rig_burst(&r, limited, 3, 10, 0);
    DQ_EQ(dq_burst_set_len(b, 0, 0, 65508), DQ_OK);
    rig_send(&r, limited, b);
    RIG_UNTIL(&r, rig_line(&r, limited).held == 0);
    DQ_EQ(rig_line(&r, limited).dropped[DQ_DROP_TOO_LONG], 1);
    close(fd);
    rig_close(&r);
}

static void tells_what_is_wrong_at_open(void) {
    uint16_t port = 0;
    int fd = peer_bind(SOCK_DGRAM, "127.0.0.1", &port);
    static const struct {
        const char *name, *local, *remote;
        int server, taken, framing, queues;
        const char *want[3];
    } cases[] = {
        {"port in use",
         "127.0.0.1",
         "",
         1,
         1,
         0,
         1,
         {"interface bad: udp://127.0.0.1:", "address already in use", "another program"}},
        {"port in use, two queues",
         "127.0.0.1",
         "",
         1,
         1,
         0,
         2,
         {"interface bad: udp://127.0.0.1:", "already in use", "another port"}},
        {"not our address",
         "198.51.100.77",
         "",
         1,
         0,
         0,
         1,
         {"udp://198.51.100.77:0", "cannot assign", "no network interface"}},
        {"no such name", "no such host", "", 1, 0, 0, 1, {"interface bad", "no such host", "hint"}},
        {"client to nowhere", "", "", 0, 0, 0, 1, {"interface bad", "needs a remote address", ""}},
        {"families", "127.0.0.1", "::1", 0, 0, 0, 1, {"interface bad", "IPv4", "IPv6"}},
        {"framing", "127.0.0.1", "", 1, 0, 1, 1, {"interface bad", "framing", "tcp://"}},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        rig r = rig_new(64, 256);
        dq_iface_conf c = rig_conf("bad", DQ_PROTO_UDP, cases[k].server, cases[k].local,
                                   cases[k].taken ? port : 0, cases[k].remote, 9);
        c.socket.framing = cases[k].framing;
        dq_iface *i = rig_iface(&r, &c);
        for (int n = 0; n < cases[k].queues; n++)
            rig_rx(&r, i);
        rig_open_fails(&r, cases[k].name, cases[k].want, 3);
    }
    close(fd);
}

// Several queues share a port; each peer's packets stay in order on one of them.
static void several_queues_share_a_port(void) {
    int fds[16];
    rig r = wide_server(2048, 256, fds, 16);
    for (uint8_t n = 0; n < 50; n++) {
        for (uint8_t k = 0; k < 16; k++) {
            uint8_t text[2] = {k, n};
            DQ_EQ(send(fds[k], text, 2, 0), 2);
        }
        RIG_UNTIL(&r, r.n == (n + 1u) * 16);
    }
    dq_queue *home[16] = {0};
    uint8_t next[16] = {0};
    bool spread = false;
    for (uint32_t k = 0; k < r.n; k++) {
        uint8_t from = r.packets[k].bytes[0];
        if (!home[from]) home[from] = r.packets[k].queue;
        DQ_CHECK(home[from] == r.packets[k].queue);
        DQ_EQ(r.packets[k].bytes[1], next[from]++);
        spread = spread || home[from] != home[r.packets[0].bytes[0]];
    }
    DQ_CHECK(spread);
    for (int k = 0; k < 16; k++)
        close(fds[k]);
    rig_close(&r);
}

// Connections made by hand have ids; their packets come under them, and answers go to them alone.
static void connects_by_hand(void) {
    rig r = rig_new(512, 256);
    uint16_t port = 0, other_port = 0;
    int home = peer_bind(SOCK_DGRAM, "127.0.0.1", &port),
        other = peer_bind(SOCK_DGRAM, "127.0.0.1", &other_port);
    dq_iface_conf c = rig_conf("client", DQ_PROTO_UDP, 0, "", 0, "127.0.0.1", port);
    dq_iface *i = rig_iface(&r, &c);
    dq_queue *rx = rig_rx(&r, i), *tx = rig_tx(&r, i);
    rig_need(rig_open(&r) == DQ_OK, r.error);
    rig_listen(&r, i);
    rig_start(&r, &rx, 1);
    char address[64];
    uint32_t conn = 0;
    dq_diag d;
    snprintf(address, sizeof address, "udp://127.0.0.1:%u", other_port);
    DQ_EQ(dq_conn_open(i, &(dq_connect){.address = address, .local = ""}, &conn, &d), DQ_OK);
    DQ_CHECK(conn != 0);
    RIG_UNTIL(&r, rig_events(&r, DQ_EV_CONNECT, NULL) == 1);
    dq_conn_info info;
    DQ_EQ(dq_conn_read(i, conn, &info), DQ_OK);
    DQ_EQ(info.open, 1);
    DQ_EQ_STR(info.peer, address + 6);
    DQ_CHECK(info.rx == rx && info.tx == tx);
    tx_text(&r, tx, conn, "to the other");
    tx_text(&r, tx, 0, "home");
    char buf[64] = "";
    struct sockaddr_in from;
    socklen_t len = sizeof from;
    peer_wait(&r, other);
    DQ_EQ(recvfrom(other, buf, sizeof buf, 0, (struct sockaddr *)&from, &len), 12);
    DQ_EQ_STR(buf, "to the other");
    expect_text(&r, home, "home");
    DQ_EQ(sendto(other, "back", 4, 0, (struct sockaddr *)&from, len), 4);
    RIG_UNTIL(&r, r.n == 1);
    DQ_EQ(r.packets[0].conn, conn);
    DQ_EQ_STR(r.packets[0].peer, address + 6);
    DQ_EQ(dq_conn_close(i, conn), DQ_OK);
    RIG_UNTIL(&r, rig_events(&r, DQ_EV_DISCONNECT, NULL) == 1);
    DQ_EQ(dq_conn_close(i, conn), DQ_INVALID_PARAMETER);
    DQ_EQ(dq_conn_read(i, conn, &info), DQ_OK);
    DQ_EQ(info.open, 0);
    tx_text(&r, tx, conn, "too late");
    RIG_UNTIL(&r, rig_line(&r, tx).dropped[DQ_DROP_NO_PEER] == 1);
    DQ_EQ(dq_conn_open(i, &(dq_connect){.address = "no address", .local = ""}, &conn, &d),
          DQ_INVALID_PARAMETER);
    DQ_EQ(dq_conn_open(i, &(dq_connect){.address = "tcp://127.0.0.1:1", .local = ""}, &conn, &d),
          DQ_INVALID_PARAMETER);
    close(home);
    close(other);
    rig_close(&r);
}

static void setsockopt_passes_through(void) {
    server s = udp_server("127.0.0.1", 64, 256);
    int tos = 0x20, bad = 1;
    DQ_EQ(dq_conn_setsockopt(s.i, 0, IPPROTO_IP, IP_TOS, &tos, sizeof tos), DQ_OK);
    DQ_EQ(dq_conn_setsockopt(s.i, 0, IPPROTO_IP, IP_TTL, &bad, 1),
          DQ_OK); // one byte is a length that IP_TTL takes
    DQ_EQ(dq_conn_setsockopt(s.i, 0, IPPROTO_IP, 9999, &bad, sizeof bad), DQ_ESYS - ENOPROTOOPT);
    DQ_EQ(dq_conn_setsockopt(s.i, 77, IPPROTO_IP, IP_TOS, &tos, sizeof tos), DQ_INVALID_PARAMETER);
    rig_close(&s.r);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(receives_ipv4);
    DQ_RUN(receives_ipv6);
    DQ_RUN(one_server_for_both);
    DQ_RUN(receives_by_name);
    DQ_RUN(answers_each_sender);
    DQ_RUN(more_peers_than_counters);
    DQ_RUN(unaddressed_packets_go_to_the_last_peer);
    DQ_RUN(client_and_server);
    DQ_RUN(a_port_that_nobody_has_harms_nothing);
    DQ_RUN(drops_what_is_too_long);
    DQ_RUN(kernel_keeps_what_has_no_buffer);
    DQ_RUN(a_full_socket_delays);
    DQ_RUN(what_the_system_refuses_is_counted);
    DQ_RUN(tells_what_is_wrong_at_open);
    DQ_RUN(several_queues_share_a_port);
    DQ_RUN(connects_by_hand);
    DQ_RUN(setsockopt_passes_through);
    return dq_done();
}
