// transmit_test.c: what a queue's own thread sends from a template: so many, without end, replaced, among
// other bursts.
#include "bed_pace.h"

static void transmit_counts(void) {
    BED_EACH_MODE(m) {
        bed b;
        bed_open(&b, (bed_conf){.mode = m, .timeout_us = 50, .bufs = 512, .template = true});
        bed_tap_all(&b);
        dq_template *t = plain(100);
        DQ_EQ(dq_tx_remaining(b.tx[0][0]), 0);
        DQ_EQ(dq_tx_transmit(b.tx[0][0], t, 10007), DQ_OK);
        bed_until(&b, 10007);
        int64_t end = dqi_mono_ns() + BED_PATIENCE; // the last may arrive before its sender has counted it
        while (dq_tx_remaining(b.tx[0][0]) > 0 && dqi_mono_ns() < end)
            bed_serve(&b, 100000);
        DQ_EQ(dq_tx_remaining(b.tx[0][0]), 0);
        bed_stop(&b);
        bed_check_order(&b, 10007);
        DQ_EQ(bed_line(b.s, "port0", DQ_LINE_TX, NULL).out, 10007);
        bed_close(&b);
        dq_template_unref(t);
    }
}

// A region with fewer buffers than a batch has packets makes bursts small, and stops nothing.
static void transmit_with_few_buffers(void) {
    BED_EACH_MODE(m) {
        bed b;
        bed_open(&b, (bed_conf){.mode = m, .timeout_us = 50, .bufs = 3, .rx_bufs = 512, .template = true});
        bed_tap_all(&b);
        dq_template *t = plain(100);
        DQ_EQ(dq_tx_transmit(b.tx[0][0], t, 100), DQ_OK);
        bed_until(&b, 100);
        bed_stop(&b);
        bed_check_order(&b, 100);
        bed_close(&b);
        dq_template_unref(t);
    }
}

// The stop ends one without end; all that was sent arrives.
static void transmit_without_end(void) {
    BED_EACH_MODE(m) {
        bed b;
        bed_open(&b, (bed_conf){.mode = m, .timeout_us = 50, .bufs = 512, .template = true});
        bed_tap_all(&b);
        dq_tx_pace(b.tx[0][0], 0, 1e6);
        dq_template *t = plain(100);
        DQ_EQ(dq_tx_transmit(b.tx[0][0], t, 0), DQ_OK);
        DQ_EQ(dq_tx_remaining(b.tx[0][0]), UINT64_MAX);
        if (m == BED_VIRTUAL)
            bed_steps(&b, T0 + 5000000, true);
        else
            bed_until(&b, 5000);
        DQ_CHECK(b.n >= 4900); // a last burst may not be full yet
        DQ_EQ(dq_tx_remaining(b.tx[0][0]), UINT64_MAX);
        bed_stop(&b);
        DQ_EQ(dq_tx_remaining(b.tx[0][0]), 0);
        bed_check_order(&b, bed_line(b.s, "port0", DQ_LINE_TX, NULL).in);
        bed_close(&b);
        dq_template_unref(t);
    }
}

// A new transmission takes the old one's place; none ends it.
static void transmit_replaces(void) {
    bed b;
    bed_open(&b, (bed_conf){.batch = 16});
    bed_tap_all(&b);
    dq_tx_pace(b.tx[0][0], 0, 1000);
    dq_template *small = plain(100), *large = plain(200);
    DQ_EQ(dq_tx_transmit(b.tx[0][0], small, 1000), DQ_OK);
    bed_steps(&b, T0 + 9500000, true);
    DQ_EQ(b.n, 10);
    DQ_EQ(dq_tx_remaining(b.tx[0][0]), 990);
    DQ_EQ(dq_tx_transmit(b.tx[0][0], large, 5), DQ_OK);
    DQ_EQ(dq_tx_remaining(b.tx[0][0]), 5);
    bed_steps(&b, INT64_MAX, true);
    DQ_EQ(b.n, 15);
    for (size_t k = 0; k < b.n; k++)
        DQ_EQ(b.got[k].len, k < 10 ? 100 : 200);
    check_gaps(&b, 0, 15, T0, 1e6); // the pace continues through the change
    DQ_EQ(dq_tx_transmit(b.tx[0][0], small, 0), DQ_OK);
    bed_steps(&b, dq_now(b.s) + 5000000, true);
    DQ_EQ(dq_tx_transmit(b.tx[0][0], NULL, 0), DQ_OK);
    DQ_EQ(dq_tx_remaining(b.tx[0][0]), 0);
    size_t n = b.n;
    bed_steps(&b, INT64_MAX, true);
    DQ_EQ(b.n, n);
    bed_close(&b);
    dq_template_unref(small);
    dq_template_unref(large);
}

// Packets that wait for the wire still are to be sent.
static void remaining_counts_what_is_not_sent(void) {
    bed b;
    uint64_t last = 100;
    bed_open(&b, (bed_conf){.batch = 64, .wire = {.rate_bps = 1000000}});
    bed_tap_all(&b);
    dq_template *t = plain(125); // 1 ms each
    DQ_EQ(dq_tx_transmit(b.tx[0][0], t, 100), DQ_OK);
    for (int ms = 1; ms < 110; ms++) {
        bed_steps(&b, T0 + ms * 1000000, true);
        uint64_t left = dq_tx_remaining(b.tx[0][0]);
        DQ_EQ(left, 100 - bed_line(b.s, "port0", DQ_LINE_TX, NULL).out);
        DQ_CHECK(left <= last);
        last = left;
    }
    DQ_EQ(last, 0);
    bed_close(&b);
    dq_template_unref(t);
}

// Bursts of the caller go between those of the transmission, and neither loses any.
static void send_during_a_transmission(void) {
    BED_EACH_MODE(m) {
        bed b;
        bed_open(&b, (bed_conf){.mode = m, .timeout_us = 50, .bufs = 1024});
        bed_tap_all(&b);
        dq_template *t = plain(200);
        DQ_EQ(dq_tx_transmit(b.tx[0][0], t, 3000), DQ_OK);
        bed_stream(&b, b.tx[0][0], 1000, 20, 100, 7);
        bed_until(&b, 4000);
        uint64_t next[2] = {0, 0};
        for (size_t k = 0; k < b.n; k++) {
            int which = b.got[k].len == 200;
            DQ_EQ(b.got[k].seq, next[which]);
            next[which]++;
        }
        DQ_EQ(next[0], 1000);
        DQ_EQ(next[1], 3000);
        bed_close(&b);
        dq_template_unref(t);
    }
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(transmit_counts);
    DQ_RUN(transmit_with_few_buffers);
    DQ_RUN(transmit_without_end);
    DQ_RUN(transmit_replaces);
    DQ_RUN(remaining_counts_what_is_not_sent);
    DQ_RUN(send_during_a_transmission);
    return dq_done();
}
