// waiter_test.c: the one place where a task waits: wake-ups, time-outs, fairness, direct queues that change
// hands.
#include "bed.h"

#include <pthread.h>
#include <sched.h>

static dq_waiter *new_waiter(void) {
    dq_diag d = {{0}};
    dq_waiter *w;
    bed_must(dq_waiter_new(&w, &d), &d, "waiter");
    return w;
}

static void pause_ns(long ns) { nanosleep(&(struct timespec){.tv_nsec = ns}, NULL); }

// ---- time-outs and wake-ups -------------------------------------------------------------------------------

static void time_outs(void) {
    static const int64_t ns[] = {0, 1, 10000, 100000, 5000000};
    dq_waiter *w = new_waiter();
    dq_event ev;
    for (size_t k = 0; k < sizeof ns / sizeof *ns; k++) {
        int64_t from = dqi_mono_ns();
        DQ_EQ(dq_wait(w, ns[k], &ev, 1), 0);
        DQ_CHECK(dqi_mono_ns() - from >= ns[k]);
    }
    dq_waiter_free(w);
    dq_waiter_free(NULL);
}

// A wake-up that comes before the wait ends that wait, and that one only.
static void woken_before(void) {
    dq_waiter *w = new_waiter();
    dq_event ev;
    dq_waiter_wake(w);
    dq_waiter_wake(w);
    DQ_EQ(dq_wait(w, -1, &ev, 1), 0);
    int64_t from = dqi_mono_ns();
    DQ_EQ(dq_wait(w, 2000000, &ev, 1), 0);
    DQ_CHECK(dqi_mono_ns() - from >= 2000000);
    dq_waiter_wake(w);
    DQ_EQ(dq_wait(w, INT64_MAX, &ev, 1), 0);
    dq_waiter_free(w);
}

typedef struct bell {
    dq_waiter *w;
    _Atomic int rung, received;
} bell;

enum { RINGS = 2000 };

// Rings again only when the last ring was seen: a lost one would hang the test.
static void *ring(void *arg) {
    bell *b = arg;
    for (int i = 1; i <= RINGS; i++) {
        if (i % 50 == 0) pause_ns(200000); // let it fall asleep
        atomic_store(&b->rung, i);
        dq_waiter_wake(b->w);
        while (atomic_load(&b->received) < i)
            sched_yield();
    }
    return NULL;
}

static void woken_from_another_thread(void) {
    bell b = {.w = new_waiter()};
    pthread_t t;
    dq_event ev;
    DQ_EQ(pthread_create(&t, NULL, ring, &b), 0);
    for (int i = 1; i <= RINGS; i++) {
        DQ_EQ(dq_wait(b.w, -1, &ev, 1), 0);
        DQ_EQ(atomic_load(&b.rung), i);
        atomic_store(&b.received, i);
    }
    pthread_join(t, NULL);
    dq_waiter_free(b.w);
}

// Packets that a worker brings end a wait without time-out.
static void woken_by_packets(void) {
    bed b;
    dq_event ev;
    bed_open(&b, (bed_conf){.mode = BED_WORKER, .timeout_us = 20});
    bed_tap_all(&b);
    for (int i = 0; i < 300; i++) {
        if (i % 30 == 0) pause_ns(500000); // workers asleep
        DQ_EQ(bed_send(&b, b.tx[0][0], 1, 100, 7), DQ_OK);
        if (i % 30 == 15) pause_ns(500000); // it lies there already
        DQ_EQ(dq_wait(b.w, -1, &ev, 1), 1);
        bed_note(&b, ev.tag, &ev.view);
        dq_burst_unref(ev.b);
    }
    bed_check_order(&b, 300);
    bed_close(&b);
}

// A wake-up among events is not lost, and does not lose them.
static void woken_with_events(void) {
    bed b;
    dq_event ev[8];
    bed_open(&b, (bed_conf){.mode = BED_DIRECT, .batch = 4});
    bed_tap_all(&b);
    DQ_EQ(bed_send(&b, b.tx[0][0], 4, 100, 7), DQ_OK);
    dq_waiter_wake(b.w);
    int n = dq_wait(b.w, -1, ev, 8);
    if (n == 0)
        n = dq_wait(b.w, -1, ev, 8);
    else
        DQ_EQ(dq_wait(b.w, -1, ev + 1, 7), 0);
    DQ_EQ(n, 1);
    dq_burst_unref(ev[0].b);
    bed_close(&b);
}

// ---- taps -------------------------------------------------------------------------------------------------

// A busy tap doesn't starve a quiet one, and no call hands over more than was asked for.
static void fairness(void) {
    bed b;
    dq_event ev[4];
    bed_open(&b, (bed_conf){.rx = 3, .batch = 4});
    const dq_rule rules[] = {bed_rule(1, 1, 0), bed_rule(2, 2, 1), bed_rule(3, 3, 2)};
    bed_rules(b.ifaces[0], rules, 3);
    bed_tap_all(&b);
    for (int i = 0; i < 50; i++)
        DQ_EQ(bed_send(&b, b.tx[0][0], 4, 100, 1), DQ_OK);
    for (int i = 0; i < 2; i++) {
        DQ_EQ(bed_send(&b, b.tx[0][0], 4, 100, 2), DQ_OK);
        DQ_EQ(bed_send(&b, b.tx[0][0], 4, 100, 3), DQ_OK);
    }
    bed_steps(&b, INT64_MAX, false);
    int seen[3] = {0}, calls = 0, total = 0;
    for (int n; (n = dq_wait(b.w, 0, ev, 2)) > 0; calls++) {
        DQ_CHECK(n <= 2);
        total += n;
        for (int k = 0; k < n; k++) {
            seen[ev[k].tag < 3 ? ev[k].tag : 0]++;
            dq_burst_unref(ev[k].b);
        }
        if (calls == 5) DQ_CHECK(seen[0] > 0 && seen[1] == 2 && seen[2] == 2);
    }
    DQ_EQ(total, 54);
    bed_close(&b);
}

// An event has its source and its kind.
static void event_contents(void) {
    bed b;
    dq_event ev;
    bed_open(&b, (bed_conf){.batch = 4});
    dq_stage *st = bed_tap(&b, UINT64_C(0xfedcba9876543210), 4, DQ_POLICY_DROP);
    bed_pipe(b.rx[0][0], &st, 1);
    bed_start(&b);
    DQ_EQ(bed_send(&b, b.tx[0][0], 4, 100, 7), DQ_OK);
    bed_steps(&b, INT64_MAX, false);
    DQ_EQ(dq_wait(b.w, 0, &ev, 1), 1);
    DQ_EQ(ev.tag, UINT64_C(0xfedcba9876543210));
    DQ_EQ(ev.kind, DQ_EV_BURST);
    DQ_EQ(ev.code, 0);
    DQ_EQ(ev.conn, 0);
    DQ_EQ(ev.view.n, 4);
    DQ_EQ(ev.view.bytes, 400);
    DQ_EQ(ev.view.clock, DQ_CLOCK_VIRTUAL);
    DQ_CHECK(ev.view.queue == b.rx[0][0]);
    dq_burst_unref(ev.b);
    bed_close(&b);
}

// ---- direct queues ----------------------------------------------------------------------------------------

static void adoption(void) {
    bed b, w;
    dq_event ev;
    bed_open(&w, (bed_conf){.mode = BED_WORKER});
    DQ_EQ(dq_waiter_adopt(w.w, w.rx[0][0]), DQ_INVALID_PARAMETER);
    bed_start(&w);
    bed_close(&w);
    bed_open(&b, (bed_conf){.mode = BED_DIRECT, .batch = 4});
    DQ_EQ(dq_waiter_adopt(b.w, b.rx[0][0]), DQ_OK); // again
    bed_tap_all(&b);
    dq_waiter *other = new_waiter();
    DQ_EQ(dq_waiter_adopt(other, b.tx[0][0]), DQ_OK);
    DQ_EQ(dq_wait(b.w, 0, &ev, 1), 0);
    DQ_EQ(bed_send(&b, b.tx[0][0], 4, 100, 7), DQ_OK);
    DQ_EQ(dq_wait(other, 0, &ev, 1), 0); // it sends; the tap is the first's
    DQ_EQ(dq_wait(b.w, 0, &ev, 1), 1);
    dq_burst_unref(ev.b);
    dq_waiter_free(other); // its queue has no owner now, and can have one again
    DQ_EQ(bed_send(&b, b.tx[0][0], 4, 100, 7), DQ_OK);
    DQ_EQ(dq_waiter_adopt(b.w, b.tx[0][0]), DQ_OK);
    bed_until(&b, 4);
    bed_close(&b);
}

// A task that ends before its session takes its taps' feed along; nothing is hurt.
static void waiter_ends_first(void) {
    bed b;
    bed_open(&b, (bed_conf){.batch = 4});
    bed_tap_all(&b);
    DQ_EQ(bed_send(&b, b.tx[0][0], 4, 100, 7), DQ_OK);
    bed_steps(&b, INT64_MAX, false);
    dq_waiter_free(b.w);
    DQ_EQ(bed_send(&b, b.tx[0][0], 4, 100, 7), DQ_OK);
    bed_steps(&b, INT64_MAX, false);
    DQ_EQ(dq_session_stop(b.s, 0), 0);
    dq_session_finish(b.s);
    bed_check_ledger(b.s, true);
    DQ_EQ(dq_session_close(b.s), 0);
}

// A receive queue goes from hand to hand while a worker sends into it: nothing is lost, nothing overtakes.
static void hand_over_in_mid_traffic(void) {
    bed b;
    bed_open(&b, (bed_conf){.mode = BED_DIRECT, .tx_worker = true, .timeout_us = 20, .bufs = 512});
    dq_stage *st = bed_tap(&b, 1, 64, DQ_POLICY_WAIT);
    bed_pipe(b.rx[0][0], &st, 1);
    bed_start(&b);
    dq_waiter *others[2] = {new_waiter(), new_waiter()};
    dq_event ev;
    int64_t end = dqi_mono_ns() + BED_PATIENCE;
    for (int i = 0; (b.seq < 10000 || b.n < b.seq) && dqi_mono_ns() < end; i++) {
        if (b.seq < 10000) bed_send(&b, b.tx[0][0], 10, 100, 7);
        dq_waiter *w = others[i % 2];
        DQ_EQ(dq_waiter_adopt(w, b.rx[0][0]), DQ_OK);
        DQ_EQ(dq_wait(w, i % 8 == 0 ? 50000 : 0, &ev, 1), 0); // polls; the tap's events are b.w's
        bed_serve(&b, 0);
    }
    DQ_EQ(dq_waiter_adopt(b.w, b.rx[0][0]), DQ_OK);
    bed_check_order(&b, b.seq);
    bed_close(&b);
    dq_waiter_free(others[0]);
    dq_waiter_free(others[1]);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(time_outs);
    DQ_RUN(woken_before);
    DQ_RUN(woken_from_another_thread);
    DQ_RUN(woken_by_packets);
    DQ_RUN(woken_with_events);
    DQ_RUN(fairness);
    DQ_RUN(event_contents);
    DQ_RUN(adoption);
    DQ_RUN(waiter_ends_first);
    DQ_RUN(hand_over_in_mid_traffic);
    return dq_done();
}
