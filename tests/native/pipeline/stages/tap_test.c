// tap_test.c: taps that drop and taps that wait, what a stop makes of them, and queues that nothing reads.
#include "bed_pipe.h"

// Depth bursts wait, the rest is dropped for this tap alone.
static void tap_drops(void) {
    bed b;
    bed_open(&b, (bed_conf){.batch = 4});
    dq_stage *small = bed_tap(&b, 1, 8, DQ_POLICY_DROP), *big = bed_tap(&b, 2, 64, DQ_POLICY_DROP);
    bed_pipe(b.rx[0][0], &small, 1);
    bed_pipe(b.rx[0][0], &big, 1);
    bed_start(&b);
    for (int i = 0; i < 20; i++)
        DQ_EQ(bed_send(&b, b.tx[0][0], 4, 100, 7), DQ_OK);
    bed_steps(&b, INT64_MAX, false);
    bed_check_ledger(b.s, false);
    DQ_EQ(tap_line(&b, "tap1").held, 32);
    DQ_EQ(tap_line(&b, "tap1").dropped[DQ_DROP_BEHIND], 48);
    DQ_EQ(tap_line(&b, "tap2").held, 80);
    bed_steps(&b, INT64_MAX, true);
    check_tag(&b, 1, 32, 0, 1);
    check_tag(&b, 2, 80, 0, 1);
    bed_close(&b);
}

// A tap that waits stalls its queue, and loses nothing however long its task is away.
static void tap_waits(void) {
    BED_EACH_MODE(m) {
        bed b;
        bed_open(&b, (bed_conf){.mode = m, .batch = 8, .timeout_us = 50, .tx_meta = 64});
        dq_stage *st = bed_tap(&b, 1, 2, DQ_POLICY_WAIT);
        bed_pipe(b.rx[0][0], &st, 1);
        bed_start(&b);
        for (int i = 0; i < 40; i++)
            DQ_EQ(bed_send(&b, b.tx[0][0], 8, 100, 7), DQ_OK);
        if (m == BED_VIRTUAL) bed_steps(&b, INT64_MAX, false);
        int64_t end = dqi_mono_ns() + BED_PATIENCE;
        while (m == BED_WORKER && tap_line(&b, "tap1").held < 16 && dqi_mono_ns() < end)
            nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
        DQ_CHECK(tap_line(&b, "tap1").held <= 16);
        bed_until(&b, 320);
        bed_check_order(&b, 320);
        bed_close(&b);
    }
}

// The stop reports that packets wait for room; serving the tap lets all of them through, those still on the
// wire too.
static void stop_with_a_stalled_tap(void) {
    BED_EACH_MODE(m) {
        bed b;
        bed_open(&b,
                 (bed_conf){
                     .mode = m, .batch = 8, .timeout_us = 50, .tx_meta = 64, .wire = {.delay_ns = 2000000}});
        dq_stage *st = bed_tap(&b, 1, 2, DQ_POLICY_WAIT);
        bed_pipe(b.rx[0][0], &st, 1);
        bed_start(&b);
        for (int i = 0; i < 30; i++) {
            DQ_EQ(bed_send(&b, b.tx[0][0], 8, 100, 7), DQ_OK);
            if (m == BED_VIRTUAL) bed_steps(&b, dq_now(b.s) + 100000, false);
        }
        DQ_CHECK(dq_session_stop(b.s, 5000000000) > 0);
        bed_stop(&b);
        bed_check_order(&b, 240);
        bed_close(&b);
    }
}

// A pipe goes while a burst is stalled in it: the burst leaves it, and the queue continues.
static void remove_a_stalled_pipe(void) {
    for (int others = 0; others < 4; others++) { // a pipe before it, after it
        bed b;
        bed_open(&b, (bed_conf){.batch = 4});
        dq_stage *full = bed_tap(&b, 1, 2, DQ_POLICY_WAIT), *first = bed_tap(&b, 2, 64, DQ_POLICY_DROP),
                 *last = bed_tap(&b, 3, 64, DQ_POLICY_DROP);
        if (others & 1) bed_pipe(b.rx[0][0], &first, 1);
        dq_pipe *p = bed_pipe(b.rx[0][0], &full, 1);
        if (others & 2) bed_pipe(b.rx[0][0], &last, 1);
        bed_start(&b);
        for (int i = 0; i < 6; i++)
            DQ_EQ(bed_send(&b, b.tx[0][0], 4, 100, 7), DQ_OK);
        bed_steps(&b, INT64_MAX, false);
        dq_pipe_remove(p);
        bed_steps(&b, INT64_MAX, false);
        bed_check_ledger(b.s, false);
        DQ_EQ(tap_line(&b, "tap1").in, 8);
        bed_steps(&b, INT64_MAX, true);
        check_tag(&b, 1, 8, 0, 1);
        if (others & 1) check_tag(&b, 2, 24, 0, 1);
        if (others & 2) check_tag(&b, 3, 24, 0, 1);
        dq_line l = bed_line(b.s, "port0", DQ_LINE_RX, NULL);
        DQ_EQ(l.out, others ? 24 : 12); // two wait in the tap, one was stalled; what came then has no reader
        DQ_EQ(l.held, others ? 0 : 12);
        bed_close(&b);
    }
}

// What nothing took when the session ends is counted as stopped.
static void finish_drops(void) {
    BED_EACH_MODE(m) {
        bed b;
        bed_open(&b, (bed_conf){.mode = m, .batch = 4, .timeout_us = 50});
        dq_stage *st = bed_tap(&b, 1, 4, DQ_POLICY_WAIT);
        bed_pipe(b.rx[0][0], &st, 1);
        bed_start(&b);
        for (int i = 0; i < 10; i++)
            DQ_EQ(bed_send(&b, b.tx[0][0], 4, 100, 7), DQ_OK);
        DQ_CHECK(dq_session_stop(b.s, 1000000000) > 0);
        bed_check_ledger(b.s, false);
        dq_session_finish(b.s);
        dq_session_finish(b.s);
        bed_check_ledger(b.s, true);
        DQ_EQ(tap_line(&b, "tap1").dropped[DQ_DROP_STOPPED] +
                  bed_line(b.s, "port0", DQ_LINE_RX, NULL).dropped[DQ_DROP_STOPPED],
              40);
        DQ_EQ(dq_session_close(b.s), 0);
        dq_waiter_free(b.w);
    }
}

// A queue that nothing reads keeps a few batches for what comes, and refuses the rest: senders continue.
static void nobody_reads(void) {
    BED_EACH_MODE(m) {
        bed b;
        bed_open(&b, (bed_conf){.mode = m, .timeout_us = 50});
        bed_start(&b);
        bed_stream(&b, b.tx[0][0], 20000, 50, 100, 7);
        int64_t end = dqi_mono_ns() + BED_PATIENCE;
        while (bed_line(b.s, "port0", DQ_LINE_TX, NULL).held > 0 && dqi_mono_ns() < end)
            m == BED_VIRTUAL ? bed_steps(&b, INT64_MAX, true) : (void)bed_serve(&b, 1000000);
        bed_check_ledger(b.s, false);
        uint64_t kept = bed_line(b.s, "port0", DQ_LINE_RX, NULL).held;
        DQ_CHECK(kept > 0 && kept <= 5000);
        DQ_EQ(bed_line(b.s, "port0", DQ_LINE_WIRE, NULL).dropped[DQ_DROP_QUEUE_FULL], 20000 - kept);
        dq_stage *st = bed_tap(&b, 1, 64, DQ_POLICY_WAIT); // a reader comes, and finds the first ones
        bed_pipe(b.rx[0][0], &st, 1);
        bed_until(&b, kept);
        bed_check_order(&b, kept);
        bed_close(&b);
    }
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(tap_drops);
    DQ_RUN(tap_waits);
    DQ_RUN(stop_with_a_stalled_tap);
    DQ_RUN(remove_a_stalled_pipe);
    DQ_RUN(finish_drops);
    DQ_RUN(nobody_reads);
    return dq_done();
}
