// pace_test.c: when packets leave: the pace in bits and in packets a second, changes of it, timed sends.
// Times are those of the virtual clock, exactly.
#include "bed_pace.h"

#include "pipeline/queue.h"

// ---- the pace ---------------------------------------------------------------------------------------------

static void exact_times(void) {
    static const struct {
        const char *name;
        double bps, pps, gap_ns;
        uint32_t len;
    } cases[] = {
        {"1000 packets/s", 0, 1000, 1e6, 100},
        {"3 Mpps", 0, 3e6, 1e3 / 3, 100},
        {"1 Gbit/s of 1000", 1e9, 0, 8000, 1000},
        {"40 Gbit/s of 1000", 40e9, 0, 200, 1000},
        {"10 Gbit/s of 64", 10e9, 0, 51.2, 64},
        {"the slower of both: bits", 1e9, 1e6, 8000, 1000},
        {"the slower of both: packets", 10e9, 1e5, 1e4, 1000},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        for (int template = 0; template <2; template ++) {
            bed b;
            dq_case = cases[k].name;
            bed_open(&b, (bed_conf){.batch = 32, .pace_bps = cases[k].bps, .template = template});
            bed_tap_all(&b);
            if (cases[k].pps > 0) dq_tx_pace(b.tx[0][0], cases[k].bps, cases[k].pps);
            dq_template *t = plain(cases[k].len);
            if (template)
                DQ_EQ(dq_tx_transmit(b.tx[0][0], t, 500), DQ_OK);
            else
                bed_stream(&b, b.tx[0][0], 500, 32, cases[k].len, 7);
            bed_steps(&b, INT64_MAX, true);
            bed_check_order(&b, 500);
            check_gaps(&b, 0, 500, T0, cases[k].gap_ns);
            dq_line l = bed_line(b.s, "port0", DQ_LINE_TX, NULL);
            DQ_CHECK(l.pace_bps == cases[k].bps && l.pace_pps == cases[k].pps);
            uint64_t gaps, most;
            dq_tx_accuracy m = timing_of(&b, &gaps, &most);
            DQ_EQ(gaps, 499);
            DQ_EQ(most, 0);
            DQ_CHECK(m.took_ns - m.wanted_ns + 2 <= 4 && m.overdue_ns == 0);
            bed_close(&b);
            dq_template_unref(t);
        }
    }
}

// Lengths differ: each packet pays for itself.
static void pays_by_length(void) {
    bed b;
    dq_burst *x;
    int64_t at = T0;
    bed_open(&b, (bed_conf){.batch = 32, .pace_bps = 1e9});
    bed_tap_all(&b);
    DQ_EQ(bed_make(&b, b.tx[0][0], 10, 100, 7, &x), DQ_OK);
    for (uint32_t i = 0; i < 10; i++)
        DQ_EQ(dq_burst_set_len(x, 0, i, 60 + 10 * i), DQ_OK);
    DQ_EQ(dq_tx_send(b.tx[0][0], x), DQ_OK);
    bed_steps(&b, INT64_MAX, true);
    DQ_EQ(b.n, 10);
    for (size_t i = 0; i < b.n; i++, at += b.got[i - 1].len * 8)
        DQ_EQ(b.got[i].ts, at);
    bed_close(&b);
}

// A queue that had nothing to send saves nothing up: the next packets keep their distance from the first.
static void no_credit_after_idle(void) {
    for (int template = 0; template <2; template ++) {
        bed b;
        bed_open(&b, (bed_conf){.batch = 32, .template = template});
        bed_tap_all(&b);
        dq_tx_pace(b.tx[0][0], 0, 1000);
        dq_template *t = plain(100);
        for (int round = 0; round < 3; round++) {
            int64_t from = T0 + round * INT64_C(10000000000);
            bed_steps(&b, from, true);
            if (template)
                DQ_EQ(dq_tx_transmit(b.tx[0][0], t, 20), DQ_OK);
            else
                bed_stream(&b, b.tx[0][0], 20, 20, 100, 7);
            bed_steps(&b, INT64_MAX, true);
            check_gaps(&b, 20 * (size_t)round, 20, from, 1e6);
        }
        bed_check_order(&b, 60);
        bed_close(&b);
        dq_template_unref(t);
    }
}

// A short pause is not a way around the pace either.
static void pause_shorter_than_the_gap(void) {
    bed b;
    bed_open(&b, (bed_conf){.batch = 4});
    bed_tap_all(&b);
    dq_tx_pace(b.tx[0][0], 0, 1000);
    bed_stream(&b, b.tx[0][0], 1, 1, 100, 7);
    bed_steps(&b, T0 + 300000, true);
    bed_stream(&b, b.tx[0][0], 1, 1, 100, 7);
    bed_steps(&b, INT64_MAX, true);
    check_gaps(&b, 0, 2, T0, 1e6);
    bed_close(&b);
}

// ---- receive times ----------------------------------------------------------------------------------------

// Sends n packets that were received 1 ms after each other, the first at `ts`.
static void send_received(bed *b, uint32_t n, int64_t ts) {
    dq_burst *x;
    DQ_EQ(bed_make(b, b->tx[0][0], n, 100, 7, &x), DQ_OK);
    for (uint32_t i = 0; i < n; i++)
        x->ts[i] = ts == 0 ? 0 : ts + i * INT64_C(1000000);
    DQ_EQ(dq_tx_send(b->tx[0][0], x), DQ_OK);
}

// Twice as fast. What comes late leaves at once, and the next packets as if it hadn't, unless it is very
// late.
static void follows_receive_times(void) {
    const int64_t ms = 1000000, then = INT64_C(1500000000) * 1000 * ms;
    uint64_t gaps, most;
    bed b;
    bed_open(&b, (bed_conf){.batch = 32});
    bed_tap_all(&b);
    dq_tx_follow(b.tx[0][0], 2);
    send_received(&b, 10, then);
    bed_steps(&b, INT64_MAX, true);
    check_gaps(&b, 0, 10, T0, 0.5e6);
    timing_of(&b, &gaps, &most);
    DQ_EQ(gaps, 9);
    DQ_EQ(most, 0);

    bed_steps(&b, T0 + 12 * ms, true); // the next is due at 5 ms
    send_received(&b, 20, then + 10 * ms);
    bed_steps(&b, INT64_MAX, true);
    check_gaps(&b, 10, 15, T0 + 12 * ms, 0);
    check_gaps(&b, 24, 6, T0 + 12 * ms, 0.5e6);

    bed_steps(&b, T0 + 1000 * ms, true); // it would be due at 15 ms: 10 ms are caught up
    send_received(&b, 25, then + 30 * ms);
    bed_steps(&b, INT64_MAX, true);
    check_gaps(&b, 30, 21, T0 + 1000 * ms, 0);
    check_gaps(&b, 50, 5, T0 + 1000 * ms, 0.5e6);

    send_received(&b, 5, 0); // no times: nothing to follow
    bed_steps(&b, INT64_MAX, true);
    check_gaps(&b, 55, 5, T0 + 1002 * ms, 0);
    dq_line l = bed_line(b.s, "port0", DQ_LINE_TX, NULL);
    DQ_CHECK(l.pace_speed == 2 && l.pace_bps == 0 && l.pace_pps == 0);

    dq_tx_pace(b.tx[0][0], 0, 1000); // a pace again
    send_received(&b, 3, then);
    bed_steps(&b, INT64_MAX, true);
    check_gaps(&b, 61, 2, b.got[61].ts, 1e6);
    bed_check_order(&b, 63);
    bed_close(&b);
}

// ---- changes ----------------------------------------------------------------------------------------------

// A new pace holds from now on: also when the old one would have waited for hours.
static void changes_at_run_time(void) {
    static const struct {
        const char *name;
        double from, to;
        size_t before; // packets that have left half a second after the start
        double gap_ns;
    } cases[] = {{"faster", 1, 1000, 1, 1e6},
                 {"slower", 1000, 10, 501, 1e8},
                 {"from a crawl", 0.0001, 100, 1, 1e7},
                 {"from no limit", 0, 100, 0, 1e7}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        bed b;
        dq_case = cases[k].name;
        bed_open(&b, (bed_conf){.batch = 16, .bufs = 8192});
        bed_tap_all(&b);
        dq_tx_pace(b.tx[0][0], 0, cases[k].from);
        dq_template *t = plain(100);
        int64_t change = T0 + 500000000;
        if (cases[k].before > 0) {
            DQ_EQ(dq_tx_transmit(b.tx[0][0], t, 0), DQ_OK);
            bed_steps(&b, change, true);
            DQ_EQ(b.n, cases[k].before);
        } else { // no limit: a few, then the limit, then more
            bed_stream(&b, b.tx[0][0], 5, 5, 100, 7);
            bed_steps(&b, change, true);
        }
        size_t before = b.n;
        dq_tx_pace(b.tx[0][0], 0, cases[k].to);
        if (cases[k].before == 0) DQ_EQ(dq_tx_transmit(b.tx[0][0], t, 0), DQ_OK);
        bed_steps(&b, change + 1000000000, true);
        DQ_CHECK(b.n > before && b.got[before].ts <= change + (int64_t)cases[k].gap_ns + 1);
        check_gaps(&b, before, b.n - before, b.got[before].ts, cases[k].gap_ns);
        dq_tx_pace(b.tx[0][0], 0, 0); // not limited: all at once
        DQ_EQ(dq_tx_transmit(b.tx[0][0], t, 50), DQ_OK);
        before = b.n;
        bed_steps(&b, INT64_MAX, true);
        check_gaps(&b, before, 50, change + 1000000000, 0);
        bed_close(&b);
        dq_template_unref(t);
    }
}

// A queue that waits for its pace, or for the time of a packet, holds up no other queue of its poller.
static void holds_nobody_up(void) {
    for (int timed = 0; timed < 2; timed++) {
        bed b;
        dq_burst *x;
        bed_case(__func__, BED_DIRECT);
        bed_open(&b, (bed_conf){.mode = BED_DIRECT, .tx = 2, .timeout_us = 50});
        bed_tap_all(&b);
        dq_template *t = plain(100);
        if (timed) {
            DQ_EQ(bed_make(&b, b.tx[0][0], 2, 100, 7, &x), DQ_OK);
            dq_burst_times(x)[1] = dq_now(b.s) + INT64_C(3600000000000);
            DQ_EQ(dq_tx_send(b.tx[0][0], x), DQ_OK);
        } else {
            dq_tx_pace(b.tx[0][0], 0, 1e-3);
            DQ_EQ(dq_tx_transmit(b.tx[0][0], t, 2), DQ_OK);
        }
        bed_stream(&b, b.tx[0][1], 1000, 32, 100, 7);
        bed_until(&b, 1001);
        DQ_EQ(b.n, 1001);
        DQ_EQ(bed_line(b.s, "port0", DQ_LINE_TX, "tx0").out, 1);
        dq_session_stop(b.s, 0);
        bed_close(&b);
        dq_template_unref(t);
    }
}

// ---- how it was kept --------------------------------------------------------------------------------------

static void buckets(void) {
    uint64_t before = 0;
    for (uint32_t k = 1; k < DQ_HISTOGRAM_BUCKETS; k++) {
        uint64_t most = dq_histogram_most(k);
        DQ_CHECK(most > before && most - before <= before / 16 + 1);
        before = most;
    }
    DQ_EQ(dq_histogram_most(31), 31);
    DQ_CHECK(before > INT64_C(128000000000));
}

// What is late shows as errors of gaps and of the rate; what the queue didn't have, a new transmission and a
// new pace do not count as errors of gaps.
static void late_shows(void) {
    bed b;
    uint64_t gaps, most;
    bed_open(&b, (bed_conf){.batch = 32});
    bed_tap_all(&b);
    dq_template *t = plain(100);
    DQ_EQ(dq_tx_accuracies(b.s, NULL, 0), 0);
    dq_tx_pace(b.tx[0][0], 0, 1e6);
    DQ_EQ(dq_tx_transmit(b.tx[0][0], t, 0), DQ_OK);
    bed_steps(&b, T0 + 9000, true);
    timing_of(&b, &gaps, &most);
    DQ_EQ(gaps, 9);
    dq_advance(b.s, T0 + 14000); // its poller had no core: packets 10 to 14 leave together
    dq_tx_accuracy m = timing_of(&b, &gaps, &most);
    DQ_EQ(m.overdue_ns, 4000);
    bed_steps(&b, T0 + 19000, true);
    m = timing_of(&b, &gaps, &most);
    DQ_EQ(b.n, 20);
    DQ_EQ(gaps, 19);
    DQ_CHECK(most >= 4000 && most < 4500);
    dq_histogram errors = tx_histogram(&b, DQ_HISTOGRAM_GAP_ERROR);
    DQ_EQ(errors.n[0], 9 + 5);
    DQ_EQ(errors.sum, 4000 + 4 * 1000); // packet 10 was 4 µs late, the four behind it came without their gaps
    DQ_EQ(m.wanted_ns, 19000);          // it has caught up
    DQ_EQ(m.took_ns, 19000);
    DQ_EQ(dq_tx_transmit(b.tx[0][0], t, 10), DQ_OK);
    bed_steps(&b, T0 + 1000000, true);
    dq_tx_pace(b.tx[0][0], 0, 1e3);
    bed_stream(&b, b.tx[0][0], 1, 1, 100, 7);
    bed_stream(&b, b.tx[0][0], 1, 1, 100, 7);
    bed_steps(&b, T0 + 9000000, true);
    m = timing_of(&b, &gaps, &most);
    DQ_EQ(gaps, 19 + 9 + 1);
    DQ_EQ(m.took_ns, 19000 + 9000 + 1000000);
    bed_stream(&b, b.tx[0][0], 1, 1, 100, 7); // the queue ran dry: the rate suffered, no gap did
    bed_steps(&b, INT64_MAX, true);
    m = timing_of(&b, &gaps, &most);
    DQ_EQ(gaps, 29);
    DQ_EQ(m.took_ns - m.wanted_ns, 6000000); // 7 ms where 1 was wanted
    bed_close(&b);
    dq_template_unref(t);
}

// ---- timed send -------------------------------------------------------------------------------------------

static void set_times(dq_burst *x, const int64_t *at, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        dq_burst_times(x)[i] = at[i] ? T0 + at[i] : 0;
}

// Packets leave at their times, in order; a time that has passed is now, and one behind another waits for it.
static void timed_send(void) {
    static const int64_t at[] = {0, 1000, 1000, 5000, 4000, 0, 777777, 777778};
    static const int64_t want[] = {0, 1000, 1000, 5000, 5000, 5000, 777777, 777778};
    bed b;
    dq_burst *x;
    bed_open(&b, (bed_conf){.batch = 8});
    bed_tap_all(&b);
    DQ_EQ(bed_make(&b, b.tx[0][0], 8, 100, 7, &x), DQ_OK);
    set_times(x, at, 8);
    DQ_EQ(dq_tx_send(b.tx[0][0], x), DQ_OK);
    DQ_EQ(bed_send(&b, b.tx[0][0], 2, 100, 7), DQ_OK); // comes after them
    bed_steps(&b, INT64_MAX, true);
    bed_check_order(&b, 10);
    for (size_t k = 0; k < 10; k++)
        DQ_EQ(b.got[k].ts, T0 + want[k < 8 ? k : 7]);
    bed_steps(&b, T0 + 10000000, true); // all times past
    DQ_EQ(bed_make(&b, b.tx[0][0], 8, 100, 7, &x), DQ_OK);
    set_times(x, at, 8);
    DQ_EQ(dq_tx_send(b.tx[0][0], x), DQ_OK);
    bed_steps(&b, INT64_MAX, true);
    for (size_t k = 10; k < b.n; k++)
        DQ_EQ(b.got[k].ts, T0 + 10000000);
    DQ_EQ(b.n, 18);
    uint64_t gaps, most, n = 0;
    timing_of(&b, &gaps, &most);
    dq_histogram late = tx_histogram(&b, DQ_HISTOGRAM_TIME_ERROR);
    for (uint32_t k = 1; k < DQ_HISTOGRAM_BUCKETS; k++)
        n += late.n[k];
    DQ_EQ(late.n[0], 5); // 6 of the first burst have a time, and one of them waited behind another
    DQ_EQ(n, 1 + 6);
    DQ_EQ(gaps, 0);
    dq_line l = bed_line(b.s, "port0", DQ_LINE_TX, NULL);
    DQ_EQ(l.extra[DQ_EXTRA_TIMED], 12);
    DQ_EQ(l.extra[DQ_EXTRA_LATE], 6);
    bed_close(&b);
}

// Times that a received burst once had as a sent one are gone: it is forwarded at once.
static void times_end_at_the_receiver(void) {
    for (int copy = 0; copy < 2; copy++) {
        bed b;
        dq_burst *x;
        dq_event ev;
        static const int64_t at[] = {5000, 5000, 5000, 5000};
        bed_open(&b, (bed_conf){.batch = 4, .rx_size = {copy ? 512 : 0}});
        bed_tap_all(&b);
        DQ_EQ(bed_make(&b, b.tx[0][0], 4, 100, 7, &x), DQ_OK);
        set_times(x, at, 4);
        DQ_EQ(dq_tx_send(b.tx[0][0], x), DQ_OK);
        bed_steps(&b, INT64_MAX, false);
        DQ_EQ(dq_wait(b.w, 0, &ev, 1), 1);
        for (uint32_t i = 0; i < 4; i++) {
            DQ_EQ(dq_burst_times(ev.b)[i], 0);
            DQ_EQ(ev.view.ts[i], T0 + 5000);
        }
        dq_burst_unref(ev.b);
        bed_close(&b);
    }
}

// Both hold: neither before its time nor faster than the pace.
static void timed_and_paced(void) {
    static const int64_t at[] = {10000, 10000, 10000, 500000};
    static const int64_t want[] = {10000, 110000, 210000, 500000};
    bed b;
    dq_burst *x;
    bed_open(&b, (bed_conf){.batch = 4});
    bed_tap_all(&b);
    dq_tx_pace(b.tx[0][0], 0, 1e4);
    DQ_EQ(bed_make(&b, b.tx[0][0], 4, 100, 7, &x), DQ_OK);
    set_times(x, at, 4);
    DQ_EQ(dq_tx_send(b.tx[0][0], x), DQ_OK);
    bed_steps(&b, INT64_MAX, true);
    DQ_EQ(b.n, 4);
    for (size_t k = 0; k < b.n; k++)
        DQ_EQ(b.got[k].ts, T0 + want[k]);
    bed_close(&b);
}

// On the real clock: not before its time.
static void timed_on_the_real_clock(void) {
    for (int m = BED_DIRECT; m < BED_MODES; m++) {
        bed b;
        dq_burst *x;
        bed_case(__func__, (bed_mode)m);
        bed_open(&b, (bed_conf){.mode = (bed_mode)m, .timeout_us = 50});
        bed_tap_all(&b);
        DQ_EQ(bed_make(&b, b.tx[0][0], 4, 100, 7, &x), DQ_OK);
        int64_t now = dq_now(b.s);
        for (uint32_t i = 0; i < 4; i++)
            dq_burst_times(x)[i] = now + 2000000 * (i + 1);
        DQ_EQ(dq_tx_send(b.tx[0][0], x), DQ_OK);
        bed_until(&b, 4);
        bed_check_order(&b, 4);
        for (size_t k = 0; k < b.n; k++)
            DQ_CHECK(b.got[k].ts >= now + 2000000 * (int64_t)(k + 1));
        bed_close(&b);
    }
}

// ---- late -------------------------------------------------------------------------------------------------

// A poll that comes late makes up for 10 ms, whatever was missed; each packet costs according to its length.
static void catches_up_a_little(void) {
    static const struct {
        int64_t late_ns;
        uint32_t equal, unequal; // packets that may leave: of 1000 bytes, and of 1000 and 500 in turns
    } cases[] = {{0, 1, 1},          {999999, 1, 1},     {1000000, 2, 2},      {5000000, 6, 7},
                 {10000000, 11, 14}, {10000001, 11, 14}, {1000000000, 11, 14}, {3600000000000, 11, 14}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        bed b;
        dq_burst *x;
        bed_open(&b, (bed_conf){.batch = 64, .pace_bps = 8e6}); // a byte a microsecond
        bed_start(&b);
        dq_queue *q = b.tx[0][0];
        DQ_EQ(bed_make(&b, q, 60, 1000, 7, &x), DQ_OK);
        for (uint32_t i = 1; i < 60; i += 2)
            DQ_EQ(dq_burst_set_len(x, 0, i, 500), DQ_OK);
        DQ_EQ(dqi_pace_allow(q, T0, 1000, 1u << 20), 1); // the pace begins
        DQ_EQ(dqi_pace_allow(q, T0 + cases[k].late_ns, 1000, 1u << 20), cases[k].equal);
        DQ_EQ(dqi_pace_count(q, T0 + cases[k].late_ns, x, 0, 60), cases[k].unequal);
        dq_tx_pace(q, 0, 0);
        dq_burst_unref(x);
        bed_close(&b);
    }
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(exact_times);
    DQ_RUN(pays_by_length);
    DQ_RUN(no_credit_after_idle);
    DQ_RUN(pause_shorter_than_the_gap);
    DQ_RUN(follows_receive_times);
    DQ_RUN(changes_at_run_time);
    DQ_RUN(holds_nobody_up);
    DQ_RUN(buckets);
    DQ_RUN(late_shows);
    DQ_RUN(timed_send);
    DQ_RUN(times_end_at_the_receiver);
    DQ_RUN(timed_and_paced);
    DQ_RUN(timed_on_the_real_clock);
    DQ_RUN(catches_up_a_little);
    return dq_done();
}
