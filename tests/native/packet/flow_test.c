// flow_test.c: flows of the loop engine: match to queue and id, RSS, isolation, rules replaced in
// mid-traffic.
#include "bed.h"

#include <pthread.h>

static uint64_t total_dropped(const dq_session *s, int reason) {
    dq_line l[64];
    uint64_t sum = 0;
    uint32_t n = dq_ledger(s, l, 64);
    for (uint32_t k = 0; k < n && k < 64; k++)
        sum += l[k].dropped[reason];
    return sum;
}

static size_t count_tag(const bed *b, uint64_t tag) {
    size_t n = 0;
    for (size_t k = 0; k < b->n; k++)
        n += b->got[k].tag == tag;
    return n;
}

static void flows(void) {
    BED_EACH_MODE(m) {
        for (int isolation = 0; isolation < 2; isolation++) {
            bed b;
            bed_open(&b, (bed_conf){.mode = m, .rx = 4, .timeout_us = 100, .isolation = isolation});
            const dq_rule rules[] = {bed_rule(5001, 11, 1), bed_rule(5002, 12, 3), bed_rule(5003, 13, 1),
                                     bed_rule(5002, 99, 2)};
            bed_rules(b.ifaces[0], rules, 4);
            bed_tap_all(&b);
            for (int round = 0; round < 50; round++)
                for (uint16_t port = 5000; port < 5004; port++)
                    bed_stream(&b, b.tx[0][0], 5, 5, 100, port);
            bed_until(&b, isolation ? 750 : 1000);
            bed_stop(&b);
            DQ_EQ(b.n, isolation ? 750 : 1000);
            for (size_t k = 0; k < b.n; k++) {
                static const uint64_t queue[] = {0, 1, 3, 1};
                static const uint32_t flow[] = {0, 11, 12, 13};
                uint16_t p = b.got[k].dport - 5000;
                if (p > 3) p = 0;
                DQ_EQ(b.got[k].tag, queue[p]);
                DQ_EQ(b.got[k].flow, flow[p]);
                DQ_CHECK(b.got[k].intact);
            }
            DQ_EQ(total_dropped(b.s, DQ_DROP_NO_FLOW), isolation ? 250 : 0);
            bed_close(&b);
        }
    }
}

// One burst whose packets go four ways arrives as four, each in order.
static void one_burst_four_ways(void) {
    BED_EACH_MODE(m) {
        bed b;
        dq_burst *x;
        dq_view v;
        bed_open(&b, (bed_conf){.mode = m, .rx = 4, .timeout_us = 100, .isolation = true});
        const dq_rule rules[] = {bed_rule(1, 1, 0), bed_rule(2, 2, 1), bed_rule(3, 3, 2), bed_rule(4, 4, 3)};
        bed_rules(b.ifaces[0], rules, 4);
        bed_tap_all(&b);
        DQ_EQ(dq_tx_alloc(b.tx[0][0], 64, &x), DQ_OK);
        dq_burst_view(x, &v);
        for (uint32_t i = 0; i < 64; i++)
            bed_frame(bed_bytes(&v, 0, i), 90, 1, (uint16_t)(1 + i * 7 % 5),
                      i); // every fifth port has no rule
        DQ_EQ(dq_burst_set_len(x, 0, -1, 90), DQ_OK);
        DQ_EQ(dq_tx_send(b.tx[0][0], x), DQ_OK);
        uint32_t matched = 0;
        for (uint32_t i = 0; i < 64; i++)
            matched += i * 7 % 5 != 4;
        bed_until(&b, matched);
        bed_stop(&b);
        DQ_EQ(b.n, matched);
        int64_t last[4] = {-1, -1, -1, -1};
        for (size_t k = 0; k < b.n; k++) {
            const bed_got *g = &b.got[k];
            DQ_CHECK(g->intact && g->tag < 4 && g->dport == g->tag + 1 && g->flow == g->dport);
            DQ_CHECK((int64_t)g->seq > last[g->tag & 3]);
            last[g->tag & 3] = (int64_t)g->seq;
        }
        DQ_EQ(total_dropped(b.s, DQ_DROP_NO_FLOW), 64 - matched);
        bed_close(&b);
    }
}

// RSS keeps a tuple on its queue and uses all of them.
static void rss(void) {
    BED_EACH_MODE(m) {
        bed b;
        bed_open(&b, (bed_conf){.mode = m, .rx = 4, .timeout_us = 100});
        dq_rule rule = {.match = {.set = DQ_MATCH_IP_PROTO, .ip_proto = 17},
                        .flow_id = 5,
                        .n_queues = 4,
                        .rss = 1,
                        .queues = {0, 1, 2, 3}};
        bed_rules(b.ifaces[0], &rule, 1);
        bed_tap_all(&b);
        for (int round = 0; round < 8; round++)
            for (uint16_t port = 0; port < 64; port++)
                bed_stream(&b, b.tx[0][0], 2, 2, 100, port);
        bed_until(&b, 1024);
        bed_stop(&b);
        DQ_EQ(b.n, 1024);
        uint64_t queue[64];
        memset(queue, 0xff, sizeof queue);
        for (size_t k = 0; k < b.n; k++) {
            uint16_t p = b.got[k].dport & 63;
            if (queue[p] == UINT64_MAX) queue[p] = b.got[k].tag;
            DQ_EQ(b.got[k].tag, queue[p]);
            DQ_EQ(b.got[k].flow, 5);
        }
        for (uint64_t q = 0; q < 4; q++)
            DQ_CHECK(count_tag(&b, q) >= 96); // of 256 on average
        bed_close(&b);
    }
}

static void drop_all_and_allow(void) {
    BED_EACH_MODE(m) {
        bed b;
        dq_diag d;
        bed_open(&b, (bed_conf){.mode = m, .timeout_us = 100});
        bed_tap_all(&b);
        bed_stream(&b, b.tx[0][0], 100, 10, 100, 7);
        bed_until(&b, 100);
        DQ_EQ(dq_iface_drop_all(b.ifaces[0], true, &d), DQ_OK);
        bed_stream(&b, b.tx[0][0], 50, 10, 100, 7);
        int64_t end = dqi_mono_ns() + BED_PATIENCE;
        while (bed_line(b.s, "port0", DQ_LINE_WIRE, NULL).in < 150 && dqi_mono_ns() < end)
            m == BED_VIRTUAL ? bed_steps(&b, INT64_MAX, true) : (void)bed_serve(&b, 100000);
        DQ_EQ(dq_iface_drop_all(b.ifaces[0], false, &d), DQ_OK);
        b.seq = 100;
        bed_stream(&b, b.tx[0][0], 100, 10, 100, 7);
        bed_until(&b, 200);
        bed_check_order(&b, 200);
        DQ_EQ(total_dropped(b.s, DQ_DROP_DROP_ALL), 50);
        bed_close(&b);
    }
}

static void rules_refused(void) {
    bed b;
    dq_diag d = {{0}};
    bed_open(&b, (bed_conf){.rx = 2});
    const dq_rule good = bed_rule(7, 1, 1), nowhere = bed_rule(7, 1, 2);
    dq_rule both = {.match = {.set = DQ_MATCH_UDP_DST | DQ_MATCH_TCP_DST}, .n_queues = 1};
    bed_rules(b.ifaces[0], &good, 1);
    DQ_EQ(bed_change(b.ifaces[0], NULL, 0, &nowhere, 1, &d), DQ_INVALID_PARAMETER);
    DQ_CHECK(strstr(d.text, "2") != NULL); // the queue that is not there
    DQ_EQ(bed_change(b.ifaces[0], NULL, 0, &both, 1, &d), DQ_INVALID_PARAMETER);
    bed_tap_all(&b); // the refused ones changed nothing
    DQ_EQ(bed_send(&b, b.tx[0][0], 4, 100, 7), DQ_OK);
    bed_stop(&b);
    DQ_EQ(count_tag(&b, 1), 4);
    bed_close(&b);
}

// ---- rules in mid-traffic ---------------------------------------------------------------------------------

static bed *busy;
static _Atomic bool enough;

static void *replace_rules(void *arg) {
    dq_rule rules[2][3] = {{bed_rule(7, 1, 0), bed_rule(8, 2, 1), bed_rule(9, 3, 2)},
                           {bed_rule(9, 103, 0), bed_rule(7, 101, 1), bed_rule(8, 102, 2)}};
    uint64_t orders[2][3] = {{0, 1, 2}, {3, 4, 5}};
    dq_diag d;
    (void)arg;
    for (int k = 0; k < 6; k++)
        rules[k / 3][k % 3].order = orders[k / 3][k % 3];
    for (int i = 1; !atomic_load(&enough); i++) { // the first are there
        DQ_EQ(bed_change(busy->ifaces[0], orders[(i + 1) % 2], 3, rules[i % 2], 3, &d), DQ_OK);
        nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    }
    return NULL;
}

// Every packet meets the old rules or the new ones, none is lost, and none falls between the two.
static void rules_replaced(void) {
    for (int m = BED_DIRECT; m < BED_MODES; m++) {
        bed b;
        pthread_t t;
        bed_case(__func__, (bed_mode)m);
        bed_open(
            &b, (bed_conf){.mode = (bed_mode)m, .rx = 3, .timeout_us = 100, .isolation = true, .bufs = 2048});
        const dq_rule first[] = {bed_rule(7, 1, 0), bed_rule(8, 2, 1), bed_rule(9, 3, 2)};
        bed_rules(b.ifaces[0], first, 3);
        bed_tap_all(&b);
        busy = &b;
        enough = false;
        DQ_EQ(pthread_create(&t, NULL, replace_rules, NULL), 0);
        for (int i = 0; i < 300; i++)
            for (uint16_t port = 7; port < 10; port++)
                bed_stream(&b, b.tx[0][0], 20, 20, 100, port);
        bed_until(&b, 18000);
        atomic_store(&enough, true);
        pthread_join(t, NULL);
        bed_stop(&b);
        DQ_EQ(b.n, 18000);
        DQ_EQ(total_dropped(b.s, DQ_DROP_NO_FLOW), 0);
        for (size_t k = 0; k < b.n; k++) {
            const bed_got *g = &b.got[k];
            bool old = g->flow == g->dport - 6u && g->tag == g->dport - 7u;
            bool new = g->flow == g->dport + 94u && g->tag == (g->dport - 6u) % 3;
            DQ_CHECK(g->intact && old != new);
        }
        bed_close(&b);
    }
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(flows);
    DQ_RUN(one_burst_four_ways);
    DQ_RUN(rss);
    DQ_RUN(drop_all_and_allow);
    DQ_RUN(rules_refused);
    DQ_RUN(rules_replaced);
    return dq_done();
}
