// TCP clients: connecting, connecting again, and connections that are opened by hand.
#include "tcp_rig.h"

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
    rig_event e = wait_disconnect(&c.r, 1); // refused, reported once
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
// connection may seem to have lasted: then the next one reports it.
static void pauses_after_a_short_connection(void) {
    uint16_t port = 0;
    int listener = peer_bind(SOCK_STREAM, "127.0.0.1", &port);
    client c = tcp_client("127.0.0.1", port, true, 0);
    int64_t pause = 0;
    for (uint32_t round = 0; round < 6 && pause < 1000000000; round++) {
        int fd = peer_accept(&c.r, listener);
        wait_connect(&c.r, round + 1); // else it would be an attempt that failed
        int64_t from = mono_ns();
        reset(fd);
        peer_wait(&c.r, listener);
        pause = mono_ns() - from;
    }
    DQ_CHECK(pause >= 1000000000);
    close(listener);
    rig_close(&c.r);
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
    snprintf(address, sizeof address, "localhost:%u", other_port); // ::1 first, where nothing listens
    DQ_EQ(dq_conn_open(c.i, &(dq_connect){.address = address, .local = ""}, &conn, &d), DQ_OK);
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
    DQ_EQ(dq_conn_open(c.i, &(dq_connect){.address = address, .local = "127.0.0.1"}, &refused, &d), DQ_OK);
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

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(client_direct);
    DQ_RUN(client_with_workers);
    DQ_RUN(reconnects);
    DQ_RUN(reconnects_without_receive_queues);
    DQ_RUN(pauses_after_a_short_connection);
    DQ_RUN(nobody_there_until_the_stop);
    DQ_RUN(opens_and_closes_by_hand);
    DQ_RUN(options_outlive_connections);
    return dq_done();
}
