// TCP peers that don't read: they get no more, and the others of their queue continue.
#include "pipeline/poller.h"
#include "pipeline/queue.h"
#include "tcp_rig.h"

// A peer that doesn't read gets no more; the others of its queue continue. Then it reads, or resets.
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
        dqi_poller_hold(s.tx->poller); // it checks nothing
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

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(a_slow_peer_direct);
    DQ_RUN(a_slow_peer_with_workers);
    DQ_RUN(a_slow_peer_that_resets);
    DQ_RUN(a_slow_peer_that_resets_with_workers);
    DQ_RUN(a_slow_peer_that_is_noticed_late);
    DQ_RUN(a_slow_peer_at_the_stop);
    return dq_done();
}
