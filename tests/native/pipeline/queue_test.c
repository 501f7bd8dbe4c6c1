// queue_test.c: the contract of queues: statuses, who owns a burst after a send, when bursts are delivered,
// order and bytes from end to end, flush; on the virtual clock, in direct and in worker mode.
#include "bed.h"

#include <pthread.h>

static void alloc_limits(void) {
    bed b;
    dq_burst *x = NULL;
    bed_open(&b, (bed_conf){.batch = 32});
    static const struct {
        uint32_t n;
        int err;
    } cases[] = {{0, DQ_INVALID_PARAMETER},
                 {33, DQ_INVALID_PARAMETER},
                 {UINT32_MAX, DQ_INVALID_PARAMETER},
                 {1, DQ_OK},
                 {32, DQ_OK}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        DQ_EQ(dq_tx_alloc(b.tx[0][0], cases[k].n, &x), cases[k].err);
        if (cases[k].err == DQ_OK) dq_burst_unref(x);
    }
    DQ_EQ(dq_tx_alloc(b.rx[0][0], 1, &x), DQ_INVALID_PARAMETER);
    DQ_EQ(dq_tx_transmit(b.rx[0][0], NULL, 0), DQ_INVALID_PARAMETER);
    DQ_CHECK(dq_rx_flush(b.tx[0][0]) < 0);
    bed_start(&b);
    bed_close(&b);
}

// A refused send leaves the burst with the caller, as it was.
static void refused_sends(void) {
    bed b, other;
    dq_burst *x;
    dq_view v;
    bed_open(&b, (bed_conf){.bufs = 64, .rx_nseg = 2});
    bed_open(&other, (bed_conf){.bufs = 64});
    DQ_EQ(bed_make(&b, b.tx[0][0], 4, 100, 7, &x), DQ_OK);
    DQ_EQ(dq_tx_send(b.rx[0][0], x), DQ_INVALID_PARAMETER);
    DQ_EQ(dq_tx_send(other.tx[0][0], x), DQ_INVALID_PARAMETER); // another session's memory
    dq_burst_view(x, &v);
    DQ_EQ(v.n, 4);
    DQ_EQ(v.bytes, 400);
    DQ_EQ(bed_line(b.s, "port0", DQ_LINE_TX, NULL).in, 0);
    DQ_EQ(bed_line(other.s, "port0", DQ_LINE_TX, NULL).in, 0);
    dq_burst_unref(x);
    bed_start(&b);
    bed_close(&b);
    bed_start(&other);
    bed_close(&other);
}

// One burst sent as often as the ring takes it: each success holds one reference, the refusal none.
static void no_space(void) {
    bed b;
    dq_burst *x;
    uint64_t sent = 0;
    int err;
    bed_open(&b, (bed_conf){.bufs = 256, .tx_meta = 8, .batch = 4});
    DQ_EQ(bed_make(&b, b.tx[0][0], 4, 100, 7, &x), DQ_OK);
    for (;;) {
        dq_burst_ref(x);
        if ((err = dq_tx_send(b.tx[0][0], x)) != DQ_OK) break;
        if (++sent > 1000) break;
    }
    DQ_EQ(err, DQ_NO_SPACE_AVAILABLE);
    DQ_CHECK(sent >= 8);
    dq_burst_unref(x);
    dq_line l = bed_line(b.s, "port0", DQ_LINE_TX, NULL);
    DQ_EQ(l.in, 4 * sent);
    DQ_EQ(l.in_bytes, 400 * sent);
    DQ_EQ(l.bursts, sent);
    DQ_EQ(l.held, 4 * sent);
    bed_check_ledger(b.s, false);
    bed_tap_all(&b);
    bed_until(&b, 4 * sent);
    DQ_EQ(dq_tx_send(b.tx[0][0], x), DQ_OK); // the caller's last reference goes along
    bed_until(&b, 4 * sent + 4);
    bed_close(&b);
}

static void order_and_bytes(void) {
    BED_EACH_MODE(m) {
        for (uint32_t len = BED_MIN; len <= 1024; len = len * 4 > 1024 && len < 1024 ? 1024 : len * 4) {
            bed b;
            bed_open(&b, (bed_conf){.mode = m, .timeout_us = 100, .bufs = 512});
            bed_tap_all(&b);
            bed_stream(&b, b.tx[0][0], 5000, 37, len, 7);
            bed_until(&b, 5000);
            bed_check_order(&b, 5000);
            DQ_EQ(b.got[4999].len, len);
            DQ_EQ(b.shared, 0);
            bed_stop(&b);
            dq_line l = bed_line(b.s, "port0", DQ_LINE_RX, NULL);
            DQ_EQ(l.in, 5000);
            DQ_EQ(l.out_bytes, 5000ull * len);
            DQ_EQ(l.in_bytes, 5000ull * len);
            DQ_EQ(bed_line(b.s, "port0", DQ_LINE_TX, NULL).out_bytes, 5000ull * len);
            bed_close(&b);
        }
    }
}

// An empty burst is nothing to send, and does not get in the way of others.
static void empty_burst(void) {
    BED_EACH_MODE(m) {
        bed b;
        dq_burst *x;
        bed_open(&b, (bed_conf){.mode = m, .timeout_us = 100});
        bed_tap_all(&b);
        DQ_EQ(bed_make(&b, b.tx[0][0], 4, 100, 7, &x), DQ_OK);
        b.seq = 0;
        DQ_EQ(dq_burst_truncate(x, 0), DQ_OK);
        if (dq_tx_send(b.tx[0][0], x) != DQ_OK) dq_burst_unref(x);
        bed_stream(&b, b.tx[0][0], 10, 10, 100, 7);
        bed_until(&b, 10);
        bed_check_order(&b, 10);
        bed_close(&b);
    }
}

// Packets whose buffers went back before the send travel as empty ones; the others arrive whole.
static void partly_freed_burst(void) {
    BED_EACH_MODE(m) {
        bed b;
        dq_burst *x;
        bed_open(&b, (bed_conf){.mode = m, .timeout_us = 100});
        bed_tap_all(&b);
        DQ_EQ(bed_make(&b, b.tx[0][0], 6, 100, 7, &x), DQ_OK);
        DQ_EQ(dq_burst_free_packet(x, 0), DQ_OK);
        DQ_EQ(dq_burst_free_packet(x, 3), DQ_OK);
        DQ_EQ(dq_tx_send(b.tx[0][0], x), DQ_OK);
        bed_until(&b, 6);
        DQ_EQ(b.n, 6);
        for (size_t i = 0; i < b.n; i++) {
            bool freed = i == 0 || i == 3;
            DQ_EQ(b.got[i].len, freed ? 0 : 100);
            DQ_CHECK(freed || (b.got[i].intact && b.got[i].seq == i));
        }
        bed_close(&b);
    }
}

// ---- delivery ---------------------------------------------------------------------------------------------

// With a time-out: full bursts at once, the rest when the first of it is that old, neither sooner nor later.
static void timeout_delivers(void) {
    bed b;
    bed_open(&b, (bed_conf){.batch = 16, .timeout_us = 50});
    bed_tap_all(&b);
    DQ_EQ(bed_send(&b, b.tx[0][0], 16, 100, 7), DQ_OK);
    DQ_EQ(bed_send(&b, b.tx[0][0], 3, 100, 7), DQ_OK);
    bed_steps(&b, BED_START_NS, true);
    DQ_EQ(b.n, 16);
    DQ_EQ(b.bursts, 1);
    bed_steps(&b, BED_START_NS + 20000, true);
    DQ_EQ(bed_send(&b, b.tx[0][0], 2, 100, 7), DQ_OK);
    bed_steps(&b, BED_START_NS + 49999, true);
    DQ_EQ(b.n, 16);
    bed_steps(&b, BED_START_NS + 50000, true);
    DQ_EQ(b.n, 21);
    DQ_EQ(b.bursts, 2);
    DQ_EQ(bed_send(&b, b.tx[0][0], 1, 100, 7), DQ_OK); // the clock of the next one starts again
    bed_steps(&b, BED_START_NS + 99999, true);
    DQ_EQ(b.n, 21);
    bed_steps(&b, INT64_MAX, true);
    DQ_EQ(b.n, 22);
    DQ_EQ(b.got[21].seen_ns, BED_START_NS + 100000);
    bed_check_order(&b, 22);
    bed_close(&b);
}

// Without one: full bursts only, and the rest at the stop; on the virtual clock and by a worker.
static void only_full_bursts(void) {
    for (int worker = 0; worker < 2; worker++) {
        bed b;
        bed_case(__func__, worker ? BED_WORKER : BED_VIRTUAL);
        bed_open(&b, (bed_conf){.mode = worker ? BED_WORKER : BED_VIRTUAL, .batch = 16, .only_full = true});
        bed_tap_all(&b);
        for (int i = 0; i < 7; i++)
            DQ_EQ(bed_send(&b, b.tx[0][0], 5, 100, 7), DQ_OK);
        bed_until(&b, 32);
        for (int i = 0; i < 20; i++) // time alone brings no more
            worker ? (void)bed_serve(&b, 1000000) : bed_steps(&b, dq_now(b.s) + 1000000000, true);
        DQ_EQ(b.n, 32);
        DQ_EQ(b.bursts, 2);
        bed_stop(&b);
        DQ_EQ(b.n, 35);
        DQ_EQ(b.bursts, 3);
        bed_check_order(&b, 35);
        bed_close(&b);
    }
}

// In direct mode one wait hands over what is there.
static void direct_delivers_at_once(void) {
    bed b;
    bed_open(&b, (bed_conf){.mode = BED_DIRECT, .batch = 16});
    bed_tap_all(&b);
    for (size_t n = 1; n < 10; n++) {
        DQ_EQ(bed_send(&b, b.tx[0][0], 1, 100, 7), DQ_OK);
        DQ_EQ(bed_serve(&b, 0), 1);
        DQ_EQ(b.n, n);
    }
    bed_check_order(&b, 9);
    bed_close(&b);
}

// ---- what a full receiver does ----------------------------------------------------------------------------

// All descriptors are with the task: packets wait on the wire, and come when one returns.
static void receiver_without_descriptors(void) {
    BED_EACH_MODE(m) {
        bed b;
        dq_event ev[8];
        bed_open(&b,
                 (bed_conf){
                     .mode = m, .batch = 4, .rx_meta = 4, .tx_meta = 4, .rx_size = {1000}, .timeout_us = 10});
        bed_tap_all(&b);
        int held = 0;
        int64_t end = dqi_mono_ns() + BED_PATIENCE;
        while (held < 4 && dqi_mono_ns() < end) {
            bed_send(&b, b.tx[0][0], 4, 100, 7);
            if (m == BED_VIRTUAL) bed_steps(&b, dq_now(b.s) + 100000, false);
            held += dq_wait(b.w, 1000000, ev + held, 4 - held);
        }
        DQ_EQ(held, 4);
        bed_send(&b, b.tx[0][0], 4, 100, 7);
        if (m == BED_VIRTUAL) bed_steps(&b, INT64_MAX, false); // nothing is due: time doesn't run away
        for (int k = 0; k < held; k++) {
            bed_note(&b, 0, &ev[k].view);
            dq_burst_unref(ev[k].b);
        }
        bed_until(&b, b.seq);
        bed_check_order(&b, b.seq);
        bed_close(&b);
    }
}

static void flush(void) {
    BED_EACH_MODE(m) {
        bed b;
        bed_open(&b, (bed_conf){.mode = m, .batch = 16, .timeout_us = 1000000000, .wire = {.delay_ns = 0}});
        bed_tap_all(&b);
        DQ_EQ(bed_send(&b, b.tx[0][0], 10, 100, 7), DQ_OK);
        int64_t n = 0, end = dqi_mono_ns() + BED_PATIENCE;
        while (n < 10 && dqi_mono_ns() < end) {
            if (m == BED_VIRTUAL) bed_steps(&b, dq_now(b.s) + 1000, true);
            if (m == BED_DIRECT) bed_serve(&b, 0);
            int64_t k = dq_rx_flush(b.rx[0][0]);
            DQ_CHECK(k >= 0);
            n += k;
        }
        DQ_EQ(n, 10);
        DQ_EQ(dq_rx_flush(b.rx[0][0]), 0);
        b.seq = 0;
        bed_stream(&b, b.tx[0][0], 16, 16, 100, 7);
        bed_until(&b, 16);
        bed_check_order(&b, 16);
        bed_stop(&b);
        dq_line l = bed_line(b.s, "port0", DQ_LINE_RX, NULL);
        DQ_EQ(l.in, 26);
        DQ_EQ(l.in_bytes, 2600);
        DQ_EQ(l.dropped[DQ_DROP_FLUSHED], 10);
        bed_close(&b);
    }
}

// What has arrived but is not yet polled counts, too.
static void flush_before_the_poll(void) {
    bed b;
    bed_open(&b, (bed_conf){.batch = 16, .wire = {.delay_ns = 1000000}});
    bed_tap_all(&b);
    DQ_EQ(bed_send(&b, b.tx[0][0], 10, 100, 7), DQ_OK);
    bed_steps(&b, BED_START_NS, true);
    bed_check_ledger(b.s, false);
    DQ_EQ(dq_rx_flush(b.rx[0][0]), 10);
    bed_steps(&b, INT64_MAX, true);
    DQ_EQ(b.n, 0);
    DQ_EQ(bed_line(b.s, "port0", DQ_LINE_RX, NULL).in_bytes, 1000);
    bed_close(&b);
}

// ---- several senders, and a reader of the ledger ----------------------------------------------------------

static bed *crowd;
static _Atomic int senders;
static _Atomic uint64_t accepted;

static void *send_some(void *arg) {
    for (int i = 0; i < 3000; i++) {
        dq_burst *x;
        if (dq_tx_alloc(crowd->tx[0][0], 1 + (uint32_t)(uintptr_t)arg, &x) != DQ_OK) continue;
        uint32_t n = x->n;
        DQ_EQ(dq_burst_set_len(x, 0, -1, 64), DQ_OK);
        if (dq_tx_send(crowd->tx[0][0], x) == DQ_OK)
            atomic_fetch_add(&accepted, n);
        else
            dq_burst_unref(x);
    }
    atomic_fetch_sub(&senders, 1);
    return NULL;
}

// No figure of any line ever goes back while packets flow.
static void check_monotone(const dq_session *s, dq_line *last) {
    dq_line now[16];
    uint32_t n = dq_ledger(s, now, 16);
    DQ_CHECK(n <= 16);
    for (uint32_t k = 0; k < n && k < 16; k++) {
        DQ_CHECK(now[k].in >= last[k].in && now[k].out >= last[k].out && now[k].in_bytes >= last[k].in_bytes);
        DQ_CHECK(now[k].out_bytes >= last[k].out_bytes && now[k].bursts >= last[k].bursts);
        DQ_CHECK(now[k].held < 1000000);
        last[k] = now[k];
    }
}

static void many_senders(void) {
    for (int m = BED_DIRECT; m < BED_MODES; m++) {
        bed b;
        pthread_t t[3];
        dq_line last[16] = {0};
        bed_case(__func__, (bed_mode)m);
        bed_open(&b, (bed_conf){.mode = (bed_mode)m, .bufs = 256, .tx_meta = 16, .timeout_us = 50});
        bed_tap_all(&b);
        crowd = &b;
        accepted = 0;
        senders = 3;
        for (uintptr_t i = 0; i < 3; i++)
            DQ_EQ(pthread_create(&t[i], NULL, send_some, (void *)i), 0);
        while (atomic_load(&senders) > 0) {
            bed_serve(&b, 100000);
            check_monotone(b.s, last);
        }
        for (int i = 0; i < 3; i++)
            pthread_join(t[i], NULL);
        bed_until(&b, accepted);
        DQ_EQ(b.n, accepted);
        bed_stop(&b);
        DQ_EQ(bed_line(b.s, "port0", DQ_LINE_TX, NULL).in, accepted);
        bed_close(&b);
    }
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(alloc_limits);
    DQ_RUN(refused_sends);
    DQ_RUN(no_space);
    DQ_RUN(order_and_bytes);
    DQ_RUN(empty_burst);
    DQ_RUN(partly_freed_burst);
    DQ_RUN(timeout_delivers);
    DQ_RUN(only_full_bursts);
    DQ_RUN(direct_delivers_at_once);
    DQ_RUN(receiver_without_descriptors);
    DQ_RUN(flush);
    DQ_RUN(flush_before_the_poll);
    DQ_RUN(many_senders);
    return dq_done();
}
