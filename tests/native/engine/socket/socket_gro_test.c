// UDP in runs that the kernel joins for a receive queue (UDP_GRO), and answers to them. The peers are plain
// sockets.
#include "core/peers.h"
#include "udp_rig.h"

#define RX_BUFS 2048
#define LEN_MAX 1400

static dq_region *more_memory(rig *r, const char *name, uint32_t n_bufs, uint32_t buf_size) {
    dq_region_conf mem = {.affinity = -1, .num_bufs = n_bufs, .buf_size = buf_size};
    dq_region *region = NULL;
    dq_diag d;
    snprintf(mem.name, sizeof mem.name, "%s", name);
    rig_need(dq_region_add(r->s, &mem, &region, &d) == DQ_OK, d.text);
    return region;
}

// A server whose receive region is its own, and whose transmit queue has another; not started yet.
static server new_server(uint32_t n_bufs, uint32_t buf_size, uint32_t batch, uint32_t max_payload,
                         const char *host) {
    server s = {.r = rig_new(n_bufs, buf_size)};
    dq_iface_conf c = rig_conf("server", DQ_PROTO_UDP, 1, host, 0, "", 0);
    c.socket.max_payload = max_payload;
    s.r.batch = batch;
    s.i = rig_iface(&s.r, &c);
    s.in = s.r.region;
    s.rx = rig_rx(&s.r, s.i);
    s.r.region = more_memory(&s.r, "out", 256, buf_size);
    s.tx = rig_tx(&s.r, s.i);
    rig_need(rig_open(&s.r) == DQ_OK, s.r.error);
    s.port = rig_port(s.i);
    return s;
}

static server joining_server(uint32_t n_bufs, uint32_t buf_size, uint32_t batch, uint32_t max_payload) {
    server s = new_server(n_bufs, buf_size, batch, max_payload, "127.0.0.1");
    rig_start(&s.r, &s.rx, 1);
    return s;
}

static dq_region_info info_of(const dq_region *r) {
    dq_region_info info;
    dq_region_read(r, &info);
    return info;
}

// Sends n datagrams of len bytes, the last of `last`, as one run.
static void send_run(int fd, uint32_t n, uint32_t len, uint32_t last, uint32_t first) {
    static uint8_t bytes[65536];
    char ctl[CMSG_SPACE(sizeof(uint16_t))] = {0};
    size_t total = (size_t)(n - 1) * len + last;
    uint16_t size = (uint16_t)len;
    rig_need(total <= 65507, "a run is too long");
    for (uint32_t k = 0; k < n; k++)
        rig_fill(bytes + (size_t)k * len, k == n - 1 ? last : len, first + k);
    struct iovec iov = {.iov_base = bytes, .iov_len = total};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = ctl, .msg_controllen = sizeof ctl};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    *c = (struct cmsghdr){
        .cmsg_level = IPPROTO_UDP, .cmsg_type = UDP_SEGMENT, .cmsg_len = CMSG_LEN(sizeof size)};
    memcpy(CMSG_DATA(c), &size, sizeof size);
    DQ_EQ(sendmsg(fd, &m, 0), total);
}

static void send_one(int fd, uint32_t len, uint32_t ordinal) {
    static uint8_t bytes[65536];
    rig_fill(bytes, len, ordinal);
    DQ_EQ(send(fd, bytes, len, 0), len);
}

// ---- receiving --------------------------------------------------------------------------------------------

static void runs_come_whole_and_in_order(void) {
    static const struct {
        const char *name;
        uint32_t n, len, last;
        uint32_t buf_size, batch;
    } cases[] = {{"full", 60, 1000, 1000, LEN_MAX, 256},
                 {"last shorter", 60, 1000, 1, LEN_MAX, 256},
                 {"small batch", 60, 1000, 999, LEN_MAX, 7},
                 {"two", 2, 1400, 1400, LEN_MAX, 64},
                 {"tiny", 64, 1, 1, LEN_MAX, 64},
                 {"tiny buffers", 64, 60, 7, 64, 64},
                 {"large", 7, 9000, 9000, 9000, 64},
                 {"larger", 2, 32000, 31000, 32000, 64},
                 {"whole buffers", 8, 8000, 8000, 66000, 64}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        uint32_t bytes = 4u << 20, sent = 0, rounds = 20, n = cases[c].n;
        server s = joining_server(bytes / cases[c].buf_size, cases[c].buf_size, cases[c].batch, 0);
        int fd = peer_connect(SOCK_DGRAM, "127.0.0.1", s.port);
        char name[64];
        peer_name(fd, name, sizeof name);
        for (uint32_t k = 0; k < rounds; k++, sent += n) {
            send_run(fd, n, cases[c].len, cases[c].last, sent);
            if (k % 5 == 4) RIG_UNTIL(&s.r, s.r.n == sent + n);
        }
        for (uint32_t k = 0; k < s.r.n; k++) {
            const rig_packet *p = &s.r.packets[k];
            if (!rig_matches(p, k % n == n - 1 ? cases[c].last : cases[c].len, k))
                dq_failed(__FILE__, __LINE__, cases[c].name);
            DQ_EQ_STR(p->peer, name);
        }
        dq_line l = rig_line(&s.r, s.rx);
        DQ_EQ(l.in, sent);
        DQ_EQ(l.in_bytes, rounds * ((uint64_t)(n - 1) * cases[c].len + cases[c].last));
        DQ_EQ(l.extra[DQ_EXTRA_KERNEL_DROPPED], 0);
        close(fd);
        rig_close(&s.r);
    }
}

// Joined and single datagrams of several peers, of all lengths, in a seeded random order.
static void mixed(const char *host) {
    enum { PEERS = 4, ROUNDS = 300 };
    server s = new_server(RX_BUFS, LEN_MAX, 32, 0, host);
    int fds[PEERS];
    char names[PEERS][64];
    uint32_t sent[PEERS] = {0}, seen[PEERS] = {0}, total = 0, rnd = 12345;
    static uint32_t lens[PEERS][ROUNDS * 64];
    rig_start(&s.r, &s.rx, 1);
    for (int k = 0; k < PEERS; k++) {
        fds[k] = peer_connect(SOCK_DGRAM, host, s.port);
        peer_name(fds[k], names[k], sizeof names[k]);
    }
    for (int round = 0; round < ROUNDS; round++) {
        rnd = rnd * 1664525 + 1013904223;
        uint32_t who = rnd >> 30, kind = rnd >> 28 & 3, len = (rnd >> 8) % LEN_MAX, n = 1, last;
        if (kind == 1) n = 2 + (rnd >> 20) % 3;
        if (kind == 2) n = 40;
        if (n > 1) len++;
        last = n > 1 ? 1 + (rnd >> 5) % len : len;
        if (n > 1)
            send_run(fds[who], n, len, last, sent[who]);
        else
            send_one(fds[who], len, sent[who]);
        for (uint32_t k = 0; k < n; k++)
            lens[who][sent[who]++] = k == n - 1 ? last : len;
        total += n;
        if (round % 16 == 0) RIG_UNTIL(&s.r, s.r.n == total);
    }
    RIG_UNTIL(&s.r, s.r.n == total);
    for (uint32_t k = 0; k < s.r.n; k++) {
        int who = 0;
        while (who < PEERS - 1 && strcmp(names[who], s.r.packets[k].peer) != 0)
            who++;
        DQ_EQ_STR(s.r.packets[k].peer, names[who]);
        DQ_CHECK(rig_matches(&s.r.packets[k], lens[who][seen[who]], seen[who]));
        seen[who]++;
    }
    for (int k = 0; k < PEERS; k++) {
        DQ_EQ(seen[k], sent[k]);
        close(fds[k]);
    }
    DQ_EQ(rig_line(&s.r, s.rx).in, total);
    rig_close(&s.r);
}

static void mixed_ipv4(void) { mixed("127.0.0.1"); }

static void mixed_ipv6(void) {
    if (has_ipv6()) mixed("::1");
}

static void all_lengths_come_alone(void) {
    server s = joining_server(64, 65507, 64, 0);
    int fd = peer_connect(SOCK_DGRAM, "127.0.0.1", s.port);
    static const uint32_t lens[] = {0, 1, 2, 63, 64, 1472, 1473, 9000, 32767, 32768, 65506, 65507, 0, 5};
    uint32_t n = sizeof lens / sizeof *lens;
    for (uint32_t k = 0; k < n; k++)
        send_one(fd, lens[k], k);
    RIG_UNTIL(&s.r, s.r.n == n);
    for (uint32_t k = 0; k < s.r.n; k++)
        DQ_CHECK(rig_matches(&s.r.packets[k], lens[k], k));
    close(fd);
    rig_close(&s.r);
}

static void what_is_too_long_is_counted(void) {
    server s = joining_server(RX_BUFS, LEN_MAX, 64, 500);
    int fd = peer_connect(SOCK_DGRAM, "127.0.0.1", s.port);
    for (int round = 0; round < 4; round++) { // read narrow first, wide later
        send_run(fd, 50, 600, 500, 0);        // 49 too long
        send_run(fd, 50, 500, 1, 0);
        send_one(fd, 501, 0);
        send_one(fd, 500, 0);
        send_one(fd, 20000, 0);
        RIG_UNTIL(&s.r, s.r.n == 52 * (round + 1u));
        RIG_UNTIL(&s.r, rig_line(&s.r, s.rx).in == 103 * (round + 1u));
    }
    DQ_EQ(rig_line(&s.r, s.rx).dropped[DQ_DROP_TOO_LONG], 4 * 51);
    for (uint32_t k = 0; k < s.r.n; k++)
        DQ_CHECK(s.r.packets[k].len <= 500);
    close(fd);
    rig_close(&s.r);
}

// When all super-buffers are held, datagrams stay with the kernel and come when there are some again.
static void held_buffers_delay(void) {
    server s = joining_server(600, LEN_MAX, 64, 0);
    int fd = peer_connect(SOCK_DGRAM, "127.0.0.1", s.port);
    uint32_t n = 0;
    s.r.hold = true;
    for (; n < 46 * 40; n += 46)
        send_run(fd, 46, 1400, 1400, n);
    for (int k = 0; k < 50; k++)
        rig_serve(&s.r, 1);
    DQ_CHECK(s.r.n > 0 && s.r.n < n);
    DQ_CHECK(info_of(s.in).free_bufs < 100);
    rig_let_go(&s.r);
    RIG_UNTIL(&s.r, s.r.n == n);
    for (uint32_t k = 0; k < s.r.n; k++)
        DQ_CHECK(rig_matches(&s.r.packets[k], 1400, k));
    DQ_EQ(rig_line(&s.r, s.rx).in, n);
    close(fd);
    rig_close(&s.r);
}

// Small datagrams don't take a super-buffer each.
static void single_datagrams_share(void) {
    server s = joining_server(RX_BUFS, LEN_MAX, 64, 0);
    int fd = peer_connect(SOCK_DGRAM, "127.0.0.1", s.port);
    s.r.hold = true;
    for (uint32_t k = 0; k < 200; k++) {
        send_one(fd, 100, k);
        RIG_UNTIL(&s.r, s.r.n == k + 1);
    }
    dq_region_info in = info_of(s.in);
    DQ_CHECK(in.group > 1);
    DQ_CHECK(in.free_bufs + 200 + 3 * in.group >= RX_BUFS);
    for (uint32_t k = 0; k < s.r.n; k++)
        DQ_CHECK(rig_matches(&s.r.packets[k], 100, k));
    rig_let_go(&s.r);
    close(fd);
    rig_close(&s.r);
}

static void keeping_a_little_copies_it(void) {
    enum { ROUNDS = 300 };
    server s = joining_server(RX_BUFS, LEN_MAX, 256, 0);
    int fd = peer_connect(SOCK_DGRAM, "127.0.0.1", s.port);
    char name[64], peer[64];
    dq_burst *kept[ROUNDS];
    peer_name(fd, name, sizeof name);
    for (uint32_t k = 0; k < ROUNDS; k++) {
        send_run(fd, 40, 1000, 1000, k);
        dq_event ev = {0};
        RIG_UNTIL(&s.r, dq_wait(s.r.w, 1000000, &ev, 1) == 1);
        DQ_EQ(ev.view.n, 40);
        uint32_t one[] = {k % 40};
        dq_burst *all, *pick;
        DQ_EQ(dq_burst_pick(ev.b, one, 1, &pick), DQ_OK);
        dq_burst_compact(ev.b, &all);
        DQ_CHECK(all == ev.b); // most of it: no copy
        dq_burst_unref(all);
        dq_burst_compact(pick, &kept[k]);
        DQ_CHECK(kept[k] != pick);
    }
    dq_region_info in = info_of(s.in);
    DQ_CHECK(in.free_bufs + ROUNDS + 8 * in.group >= RX_BUFS);
    for (uint32_t k = 0; k < ROUNDS; k++) {
        dq_view v;
        dq_burst_view(kept[k], &v);
        rig_packet p = {.len = v.len[0][0], .bytes = v.base + v.off[0][0]};
        DQ_EQ(v.n, 1);
        DQ_EQ(v.bytes, 1000);
        DQ_CHECK(rig_matches(&p, 1000, k + k % 40));
        DQ_CHECK(v.queue == s.rx && v.ts[0] > 0);
        dq_burst_peer(kept[k], 0, peer, sizeof peer);
        DQ_EQ_STR(peer, name);
        DQ_EQ(dq_burst_set_len(kept[k], 0, 0, 999), DQ_OK);
        DQ_EQ(dq_burst_set_len(kept[k], 0, 0, 1001), DQ_INVALID_PARAMETER);
        dq_burst_unref(kept[k]);
    }
    close(fd);
    rig_close(&s.r);
}

// A socket of both families gets IPv4 from mapped addresses; the frames that writers make up are IPv4 all the
// same.
static void mapped_senders_are_ipv4(void) {
    if (!has_ipv6()) return;
    server s = new_server(RX_BUFS, LEN_MAX, 32, 0, "::");
    rig_start(&s.r, &s.rx, 1);
    int fd = peer_connect(SOCK_DGRAM, "127.0.0.1", s.port);
    send_run(fd, 20, 1000, 1000, 0);
    dq_event ev = {0};
    RIG_UNTIL(&s.r, dq_wait(s.r.w, 1000000, &ev, 1) == 1);
    for (uint32_t k = 0; k < ev.view.n; k++)
        DQ_EQ(dqi_burst_peer_addr(ev.b, k)->sa.sa_family, AF_INET);
    dq_burst_unref(ev.b);
    close(fd);
    rig_close(&s.r);
}

// A run that is only partly delivered is thrown away with the rest, and counted.
static void flush_and_stop_count_datagrams(void) {
    rig_kernel_tells(); // stamps from the start on: what has none may be taken for too late
    server s = joining_server(RX_BUFS, LEN_MAX, 10, 0);
    int fd = peer_connect(SOCK_DGRAM, "127.0.0.1", s.port);
    send_run(fd, 60, 1000, 1000, 0);
    RIG_UNTIL(&s.r, s.r.n >= 10);
    send_run(fd, 60, 1000, 1000, 60);
    uint32_t got = s.r.n;
    int64_t flushed = dq_rx_flush(s.rx);
    while (rig_serve(&s.r, 0)) {
    }
    DQ_EQ(flushed + s.r.n, 120);
    DQ_CHECK(s.r.n < 120 && s.r.n >= got);
    DQ_EQ(rig_line(&s.r, s.rx).in, 120);
    DQ_EQ(rig_line(&s.r, s.rx).in_bytes, 120000);
    send_run(fd, 60, 1000, 1000, 0);
    send_run(fd, 60, 1000, 1000, 60);
    got = s.r.n;
    RIG_UNTIL(&s.r, s.r.n >= got + 10);
    while (dq_session_stop(s.r.s, INT64_C(30000000000)) > 0)
        rig_serve(&s.r, 0);
    while (rig_serve(&s.r, 0)) {
    }
    DQ_EQ(s.r.n, got + 120);
    close(fd);
    rig_close(&s.r);
}

// Nor does it count anything twice where the last look before the stop had found no buffer, and the stop
// finds some.
static void stop_after_a_shortage(void) {
    rig_kernel_tells();
    enum { ROUND = 40, LOOKS = 5, MOST = 1200 }; // a round fits any socket's buffer
    server s = joining_server(600, LEN_MAX, 64, 0);
    int fd = peer_connect(SOCK_DGRAM, "127.0.0.1", s.port);
    uint32_t sent = 0;
    s.r.hold = true;
    while (s.r.n == sent && sent < MOST) {
        for (uint32_t k = 0; k < ROUND; k++)
            send_one(fd, 100, sent++);
        for (int k = 0; k < LOOKS; k++)
            rig_serve(&s.r, 1);
    }
    DQ_CHECK(s.r.n < sent); // the rest waits for buffers
    rig_let_go(&s.r);
    while (s.r.n <= sent && dq_session_stop(s.r.s, INT64_C(30000000000)) > 0)
        rig_serve(&s.r, 0);
    while (s.r.n <= sent && rig_serve(&s.r, 0)) {
    }
    dq_line l = rig_line(&s.r, s.rx);
    DQ_EQ(s.r.n, sent);
    DQ_EQ(l.in, sent);
    DQ_EQ(l.in_bytes, sent * 100);
    for (uint32_t k = 0; k < s.r.n; k++)
        DQ_CHECK(rig_matches(&s.r.packets[k], 100, k));
    close(fd);
    rig_close(&s.r);
}

static void several_queues_share_a_region(void) {
    int fds[8];
    rig r = wide_server(4096, LEN_MAX, fds, 8);
    uint32_t n = 0, next[8] = {0};
    for (uint32_t round = 0; round < 20; round++)
        for (uint32_t k = 0; k < 8; k++, n += 40)
            send_run(fds[k], 40, 1000, 1000, k * 32 + round * 40);
    RIG_UNTIL(&r, r.n == n);
    for (uint32_t k = 0; k < r.n; k++) {
        bool known = false;
        for (uint32_t who = 0; who < 8 && !known; who++) {
            char name[64];
            peer_name(fds[who], name, sizeof name);
            known = strcmp(name, r.packets[k].peer) == 0;
            if (known) DQ_CHECK(rig_matches(&r.packets[k], 1000, who * 32 + next[who]++));
        }
        DQ_CHECK(known);
    }
    for (int k = 0; k < 8; k++)
        close(fds[k]);
    rig_close(&r);
}

static void where_it_does_not_fit_the_report_says_so(void) {
    server s = joining_server(100, LEN_MAX, 64, 0); // under 8 super-buffers
    DQ_EQ(info_of(s.in).group, 1);
    DQ_CHECK(rig_reports(&s.r, "100 buffers are too few"));
    rig_close(&s.r);
    rig r = rig_new(RX_BUFS, LEN_MAX);
    dq_iface_conf c = rig_conf("server", DQ_PROTO_UDP, 1, "127.0.0.1", 0, "", 0);
    dq_iface *i = rig_iface(&r, &c);
    rig_rx(&r, i);
    rig_tx(&r, i);
    rig_need(rig_open(&r) == DQ_OK, r.error);
    DQ_EQ(info_of(r.region).group, 1);
    DQ_CHECK(rig_reports(&r, "because queue q1 of interface server also uses region mem"));
    rig_abandon(&r);
    s = joining_server(RX_BUFS, LEN_MAX, 64, 0);
    DQ_CHECK(info_of(s.in).group > 1);
    DQ_CHECK(rig_reports(&s.r, "2048 buffers of 1400 bytes are 48 super-buffers"));
    rig_close(&s.r);
}

// ---- answers ----------------------------------------------------------------------------------------------

// Answers to joined datagrams go back as runs, to their senders.
static void echoes_runs(void) {
    server s = new_server(RX_BUFS, LEN_MAX, 256, 0, "127.0.0.1");
    rig_echo(&s.r, s.rx, s.tx, DQ_POLICY_DROP);
    int fds[3];
    uint8_t bytes[2048];
    for (int k = 0; k < 3; k++)
        fds[k] = peer_connect(SOCK_DGRAM, "127.0.0.1", s.port);
    for (uint32_t round = 0; round < 20; round++) {
        for (uint32_t k = 0; k < 3; k++) {
            send_run(fds[k], 20, 700 + k, 3, round * 20 + 50 * k);
            send_one(fds[k], 40, 1);
        }
        for (uint32_t j = 0; j < 21; j++)
            for (uint32_t k = 0; k < 3; k++) {
                peer_wait(&s.r, fds[k]);
                rig_packet p = {.len = (uint32_t)recv(fds[k], bytes, sizeof bytes, 0), .bytes = bytes};
                DQ_CHECK(rig_matches(&p,
                                     j == 20   ? 40
                                     : j == 19 ? 3
                                               : 700 + k,
                                     j == 20 ? 1 : round * 20 + 50 * k + j));
            }
    }
    dq_line l = rig_line(&s.r, s.tx);
    DQ_EQ(l.out, 3 * 20 * 21);
    DQ_CHECK(l.extra[DQ_EXTRA_SYSCALLS] < 3 * 20 * 21 / 4);
    for (int k = 0; k < 3; k++)
        close(fds[k]);
    rig_close(&s.r);
}

// Answers of one length, to several peers in turns, are not a run to the first of them.
static void answers_of_one_length(void) {
    enum { PEERS = 3, ROUNDS = 20 };
    server s = new_server(RX_BUFS, LEN_MAX, 256, 0, "127.0.0.1");
    rig_echo(&s.r, s.rx, s.tx, DQ_POLICY_DROP);
    int fds[PEERS];
    uint8_t bytes[2048];
    for (int k = 0; k < PEERS; k++)
        fds[k] = peer_connect(SOCK_DGRAM, "127.0.0.1", s.port);
    for (uint32_t round = 0; round < ROUNDS; round++) // they lie in the socket together, nothing reads yet
        for (uint32_t k = 0; k < PEERS; k++)
            send_one(fds[k], 500, 100 * k + round);
    for (uint32_t round = 0; round < ROUNDS; round++)
        for (uint32_t k = 0; k < PEERS; k++) {
            peer_wait(&s.r, fds[k]);
            rig_packet p = {.len = (uint32_t)recv(fds[k], bytes, sizeof bytes, MSG_DONTWAIT), .bytes = bytes};
            DQ_CHECK(rig_matches(&p, 500, 100 * k + round));
        }
    DQ_EQ(rig_line(&s.r, s.tx).out, PEERS * ROUNDS);
    for (int k = 0; k < PEERS; k++)
        close(fds[k]);
    rig_close(&s.r);
}

// What a server sends of itself goes to who sent the last run; IPv4 has its own form at an IPv6 socket too.
static void last_sender_is_remembered(void) {
    server s = new_server(RX_BUFS, LEN_MAX, 256, 0, "::");
    rig_start(&s.r, &s.rx, 1);
    for (uint32_t round = 0; round < 3; round++) {
        int fd = peer_connect(SOCK_DGRAM, "127.0.0.1", s.port);
        char name[64];
        uint8_t bytes[200];
        peer_name(fd, name, sizeof name);
        send_run(fd, 20, 700, 700, 20 * round);
        RIG_UNTIL(&s.r, s.r.n == 20 * (round + 1));
        for (uint32_t k = 20 * round; k < s.r.n; k++)
            DQ_EQ_STR(s.r.packets[k].peer, name);
        rig_send(&s.r, s.tx, rig_burst(&s.r, s.tx, 1, 100, round));
        peer_wait(&s.r, fd);
        rig_packet p = {.len = (uint32_t)recv(fd, bytes, sizeof bytes, MSG_DONTWAIT), .bytes = bytes};
        DQ_CHECK(rig_matches(&p, 100, round));
        close(fd);
    }
    rig_close(&s.r);
}

// Three runs that are read together, 2 ms apart by the kernel's stamps, which it makes a while after a socket
// asked for them. False: they have one time.
static bool three_times(server *s, int fd, uint32_t first) {
    bool apart = true;
    for (uint32_t k = 0; k < 3; k++) {
        send_run(fd, 10, 700, 700, first + 10 * k);
        usleep(2000);
    }
    RIG_UNTIL(&s->r, s->r.n == first + 30);
    for (uint32_t k = first + 1; k < s->r.n; k++) {
        int64_t gap = s->r.packets[k].ts - s->r.packets[k - 1].ts;
        apart = apart && (k % 10 == 0 ? gap >= 1000000 : gap == 0);
    }
    return apart;
}

static void runs_keep_their_times(void) {
    if (!rig_kernel_tells()) return;
    server s = joining_server(RX_BUFS, LEN_MAX, 256, 0);
    int fd = peer_connect(SOCK_DGRAM, "127.0.0.1", s.port);
    uint32_t first = 0;
    while (!three_times(&s, fd, first) && first < 30 * 200)
        first += 30;
    DQ_CHECK(first < 30 * 200);
    close(fd);
    rig_close(&s.r);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    need_runs();
    DQ_RUN(runs_come_whole_and_in_order);
    DQ_RUN(mixed_ipv4);
    DQ_RUN(mixed_ipv6);
    DQ_RUN(all_lengths_come_alone);
    DQ_RUN(what_is_too_long_is_counted);
    DQ_RUN(held_buffers_delay);
    DQ_RUN(single_datagrams_share);
    DQ_RUN(keeping_a_little_copies_it);
    DQ_RUN(mapped_senders_are_ipv4);
    DQ_RUN(flush_and_stop_count_datagrams);
    DQ_RUN(stop_after_a_shortage);
    DQ_RUN(several_queues_share_a_region);
    DQ_RUN(where_it_does_not_fit_the_report_says_so);
    DQ_RUN(echoes_runs);
    DQ_RUN(answers_of_one_length);
    DQ_RUN(last_sender_is_remembered);
    DQ_RUN(runs_keep_their_times);
    return dq_done();
}
