// The end of one direction of a TCP connection: the other continues until all of it has left.
#include "tcp_rig.h"

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

// A listener is notified of the end of the peer's stream, and may still answer; its close ends the rest.
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

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(echoes_the_tail_direct);
    DQ_RUN(echoes_the_tail_with_workers);
    DQ_RUN(answers_after_the_end);
    DQ_RUN(a_close_lets_sends_go_direct);
    DQ_RUN(a_close_lets_sends_go_with_workers);
    DQ_RUN(a_reset_while_ending);
    return dq_done();
}
