// figures_test.c: histograms of burst sizes and waits, and what came of each flow.
#include "bed.h"
#include "core/histogram.h"
#include "pipeline/rx_count.h"

static void buckets(void) {
    uint64_t next = 0; // the smallest value that is in no bucket yet
    for (uint32_t k = 0; k < DQ_HISTOGRAM_BUCKETS; k++) {
        DQ_EQ(dqi_histogram_bucket(next), k);
        DQ_EQ(dqi_histogram_bucket(dq_histogram_most(k)), k);
        next = dq_histogram_most(k) + 1;
    }
    DQ_EQ(dqi_histogram_bucket(UINT64_MAX), DQ_HISTOGRAM_BUCKETS - 1);
}

static dq_histogram sizes_of(const bed *b) {
    static dq_histogram all[8];
    DQ_EQ(dq_histograms(b->s, NULL, 0), b->conf.rx);
    DQ_EQ(dq_histograms(b->s, all, 8), b->conf.rx);
    DQ_EQ(all[0].kind, DQ_HISTOGRAM_BURST_SIZE);
    return all[0];
}

static void burst_sizes(void) {
    BED_EACH_MODE(m) {
        bed b;
        bed_open(&b, (bed_conf){.mode = m, .batch = 48, .timeout_us = 1000000});
        bed_tap_all(&b);
        bed_stream(&b, b.tx[0][0], 96, 48, 100, 7);
        bed_until(&b, 96);
        bed_stream(&b, b.tx[0][0], 5, 5, 100, 7); // goes when the time is up, or at the stop
        bed_stop(&b);
        dq_histogram s = sizes_of(&b);
        DQ_EQ(s.n[dqi_histogram_bucket(47)], 2); // a size less one
        DQ_EQ(s.n[4], 1);
        DQ_EQ(s.sum, 2 * 47 + 4);
        bed_close(&b);
    }
}

// Packets of three flows, of which two share a burst's packets in turn, and of none.
static void flows_are_counted(void) {
    BED_EACH_MODE(m) {
        bed b;
        dq_flow_count c[8];
        bed_open(&b, (bed_conf){.mode = m, .rx = 2, .timeout_us = 100});
        const dq_rule rules[] = {bed_rule(5001, 11, 1), bed_rule(5002, 12, 1), bed_rule(5003, 13, 0)};
        bed_rules(b.ifaces[0], rules, 3);
        bed_tap_all(&b);
        DQ_EQ(dq_flow_counts(b.s, c, 8), 0);
        for (int round = 0; round < 50; round++)
            for (uint16_t port = 5000; port < 5004; port++)
                bed_stream(&b, b.tx[0][0], port - 4999, 5, 100 + port % 10, port);
        bed_until(&b, 50 * (1 + 2 + 3 + 4));
        DQ_EQ(dq_flow_counts(b.s, c, 2), 3);
        DQ_EQ(dq_flow_counts(b.s, c, 8), 3);
        for (int k = 0; k < 3; k++) {
            uint32_t i = c[k].flow_id - 10;
            DQ_EQ(c[k].queue_id, i == 3 ? 0 : 1);
            DQ_EQ(c[k].packets, 50 * (i + 1));
            DQ_EQ(c[k].bytes, 50 * (i + 1) * (100 + i));
        }
        bed_stop(&b);
        bed_close(&b);
    }
}

// What comes after DQ_FLOW_COUNTS flows is counted together, and what has a counter keeps it.
static void more_flows_than_counters(void) {
    bed b;
    dq_burst *x;
    static dq_flow_count c[DQ_FLOW_COUNTS + 1];
    bed_open(&b, (bed_conf){0});
    DQ_EQ(dq_tx_alloc(b.tx[0][0], 2, &x), DQ_OK);
    DQ_EQ(dq_burst_set_len(x, 0, -1, 90), DQ_OK);
    for (int round = 0; round < 3; round++)
        for (uint32_t id = 1; id <= DQ_FLOW_COUNTS + 100; id++) {
            x->flow[0] = 0;
            x->flow[1] = id << 12; // alike in their low bits
            dqi_flow_count(b.rx[0][0]->rx.flow_counts, x, 0, 180);
        }
    DQ_EQ(dq_flow_counts(b.s, c, DQ_FLOW_COUNTS + 1), DQ_FLOW_COUNTS + 1);
    for (uint32_t k = 0; k <= DQ_FLOW_COUNTS; k++) {
        DQ_EQ(c[k].packets, c[k].flow_id == 0 ? 300 : 3);
        DQ_EQ(c[k].bytes, c[k].packets * 90);
        DQ_CHECK(c[k].flow_id <= (uint32_t)DQ_FLOW_COUNTS << 12);
    }
    dq_burst_unref(x);
    bed_stop(&b);
    bed_close(&b);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(buckets);
    DQ_RUN(burst_sizes);
    DQ_RUN(flows_are_counted);
    DQ_RUN(more_flows_than_counters);
    return dq_done();
}
