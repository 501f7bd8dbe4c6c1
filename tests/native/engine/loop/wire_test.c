// wire_test.c: the simulated wire: the same errors in every mode, accounts that add up, exact delay and rate
// on the virtual clock, reordering that ends.
#include "bed.h"

typedef struct faults {
    uint64_t lost, twice, swapped, broken, arrived;
} faults;

// Sends count packets through the wire in odd bursts; what the wire counts, and what a counter of our own
// counts.
static faults through(bed_mode m, uint64_t seed, dq_wire_conf wire, uint64_t count) {
    bed b;
    bed_open(&b,
             (bed_conf){
                 .mode = m, .seed = seed, .wire = wire, .bufs = 32768, .timeout_us = 100, .rx_size = {1000}});
    bed_tap_all(&b);
    bed_stream(&b, b.tx[0][0], count, 29, 100, 7);
    bed_stop(&b);
    dq_line w = bed_line(b.s, "port0", DQ_LINE_WIRE, NULL);
    faults f = {w.dropped[DQ_DROP_WIRE_LOSS], w.extra[DQ_EXTRA_DUPLICATED], w.extra[DQ_EXTRA_REORDERED],
                w.extra[DQ_EXTRA_CORRUPTED], b.n};
    DQ_EQ(w.held, 0);
    DQ_EQ(w.in, count + f.twice);
    DQ_EQ(w.out, b.n);
    DQ_EQ(f.arrived, count + f.twice - f.lost);
    uint64_t broken = 0, lost = count, back = 0, last = 0;
    uint8_t *seen = calloc(count, 1);
    for (size_t k = 0; seen && k < b.n; k++) {
        const bed_got *g = &b.got[k];
        if (!g->intact) broken++;
        if (!g->intact || g->seq >= count) continue;
        lost -= seen[g->seq]++ == 0;
        back += k > 0 && g->seq < last;
        last = g->seq;
    }
    free(seen);
    DQ_CHECK(broken >= f.broken && broken <= 2 * f.broken); // a broken packet may come twice
    DQ_CHECK(lost >= f.lost && lost <= f.lost + f.broken);
    DQ_CHECK((back > 0) == (f.swapped > 0));
    bed_close(&b);
    return f;
}

static void check_same(const faults *a, const faults *b) {
    DQ_EQ(a->lost, b->lost);
    DQ_EQ(a->twice, b->twice);
    DQ_EQ(a->swapped, b->swapped);
    DQ_EQ(a->broken, b->broken);
    DQ_EQ(a->arrived, b->arrived);
}

static void near(uint64_t got, double want) {
    DQ_CHECK((double)got > 0.7 * want && (double)got < 1.3 * want);
}

static void same_in_every_mode(void) {
    static const struct {
        const char *name;
        dq_wire_conf wire;
    } cases[] = {
        {"clean", {.delay_ns = 0}},    {"loss", {.loss = 0.1}},
        {"dup", {.dup = 0.1}},         {"reorder", {.reorder = 0.02}},
        {"corrupt", {.corrupt = 0.1}}, {"all", {.loss = 0.05, .dup = 0.05, .reorder = 0.02, .corrupt = 0.05}},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        faults f[BED_MODES];
        for (bed_mode m = BED_VIRTUAL; m < BED_MODES; m = (bed_mode)(m + 1)) {
            bed_case(cases[k].name, m);
            f[m] = through(m, 42, cases[k].wire, 8000);
            check_same(&f[m], &f[0]);
        }
        const dq_wire_conf *w = &cases[k].wire;
        if (w->loss > 0) near(f[0].lost, w->loss * 8000);
        if (w->dup > 0) near(f[0].twice, w->dup * 8000);
        if (w->reorder > 0) near(f[0].swapped, w->reorder * 8000);
        if (w->corrupt > 0) near(f[0].broken, w->corrupt * 8000);
        if (w->loss == 0) DQ_EQ(f[0].lost, 0);
        if (w->corrupt == 0) DQ_EQ(f[0].broken, 0);
    }
}

static void certain_faults(void) {
    faults all = through(BED_VIRTUAL, 1, (dq_wire_conf){.loss = 1}, 500);
    DQ_EQ(all.lost, 500);
    all = through(BED_VIRTUAL, 1, (dq_wire_conf){.dup = 1}, 500);
    DQ_EQ(all.arrived, 1000);
    all = through(BED_VIRTUAL, 1, (dq_wire_conf){.corrupt = 1}, 500);
    DQ_EQ(all.broken, 500);
    all = through(BED_VIRTUAL, 1, (dq_wire_conf){.reorder = 1}, 500);
    DQ_EQ(all.arrived, 500);
}

static void seed_decides(void) {
    dq_wire_conf wire = {.loss = 0.1, .dup = 0.1};
    faults a = through(BED_VIRTUAL, 1, wire, 3000), again = through(BED_VIRTUAL, 1, wire, 3000),
           other = through(BED_VIRTUAL, 2, wire, 3000);
    check_same(&a, &again);
    DQ_CHECK(a.lost != other.lost || a.twice != other.twice);
}

// Each transmit queue has a wire of its own; what they lose differs, and each adds up.
static void wires_differ(void) {
    bed b;
    uint64_t lost[2][64], n[2] = {0, 0};
    bed_open(&b, (bed_conf){.tx = 2, .seed = 3, .wire = {.loss = 0.05}});
    bed_tap_all(&b);
    for (int q = 0; q < 2; q++) {
        size_t before = b.n;
        uint64_t next = b.seq = 0;
        bed_stream(&b, b.tx[0][q], 500, 10, 100, 7);
        bed_steps(&b, INT64_MAX, true);
        for (size_t k = before; k < b.n; k++, next++)
            for (; next < b.got[k].seq && n[q] < 64; next++)
                lost[q][n[q]++] = next;
        DQ_CHECK(n[q] > 5 && n[q] < 64);
    }
    DQ_CHECK(n[0] != n[1] || memcmp(lost[0], lost[1], n[0] * sizeof lost[0][0]) != 0);
    bed_close(&b);
}

// A packet that another still reads is not changed under its eyes: the wire corrupts a copy.
static void faults_spare_other_readers(void) {
    bed b;
    dq_burst *x;
    dq_view v;
    uint8_t want[100];
    bed_open(&b, (bed_conf){.wire = {.corrupt = 1}});
    bed_tap_all(&b);
    DQ_EQ(bed_make(&b, b.tx[0][0], 5, 100, 7, &x), DQ_OK);
    dq_burst_ref(x);
    DQ_EQ(dq_tx_send(b.tx[0][0], x), DQ_OK);
    bed_steps(&b, INT64_MAX, true);
    DQ_EQ(b.n, 5);
    dq_burst_view(x, &v);
    for (uint32_t i = 0; i < 5; i++) {
        DQ_CHECK(!b.got[i].intact);
        bed_frame(want, 100, 1000, 7, i);
        DQ_EQ_BYTES(bed_bytes(&v, 0, i), want, 100);
    }
    dq_burst_unref(x);
    bed_close(&b);
}

// ---- time -------------------------------------------------------------------------------------------------

// Nothing is handed over before the time that it bears, and times on one queue never go back.
static void check_times(const bed *b) {
    for (size_t k = 0; k < b->n; k++) {
        DQ_CHECK(b->got[k].ts <= b->got[k].seen_ns);
        DQ_CHECK(k == 0 || b->got[k].ts >= b->got[k - 1].ts);
    }
}

static void delay(void) {
    bed b;
    bed_open(&b, (bed_conf){.wire = {.delay_ns = 123456}});
    bed_tap_all(&b);
    for (int i = 0; i < 5; i++) {
        DQ_EQ(bed_send(&b, b.tx[0][0], 3, 100, 7), DQ_OK);
        bed_steps(&b, BED_START_NS + 1000 * (i + 1), true);
    }
    DQ_EQ(b.n, 0);
    bed_check_ledger(b.s, false);
    bed_steps(&b, INT64_MAX, true);
    bed_check_order(&b, 15);
    for (size_t k = 0; k < 15; k++) {
        int64_t sent = BED_START_NS + 1000 * (int64_t)(k / 3);
        DQ_EQ(b.got[k].ts, sent + 123456);
        DQ_EQ(b.got[k].seen_ns, sent + 123456);
    }
    bed_close(&b);
}

// At 1 Gbit/s a packet of 1000 bytes takes 8 us: the k-th has arrived whole after k + 1 of them.
static void rate(void) {
    static const uint32_t sizes[] = {1000, 125, 64};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        bed b;
        bed_open(&b, (bed_conf){.wire = {.rate_bps = 1000000000, .delay_ns = 5000}});
        bed_tap_all(&b);
        bed_stream(&b, b.tx[0][0], 200, 50, sizes[s], 7);
        bed_steps(&b, INT64_MAX, true);
        bed_check_order(&b, 200);
        for (size_t k = 0; k < b.n; k++)
            DQ_EQ(b.got[k].ts, BED_START_NS + (int64_t)(k + 1) * sizes[s] * 8 + 5000);
        check_times(&b);
        int64_t idle = dq_now(b.s) + 1000000; // an idle wire saves nothing up
        bed_steps(&b, idle, true);
        bed_stream(&b, b.tx[0][0], 2, 2, sizes[s], 7);
        bed_steps(&b, INT64_MAX, true);
        DQ_EQ(b.got[200].ts, idle + sizes[s] * 8 + 5000);
        DQ_EQ(b.got[201].ts, idle + 2 * sizes[s] * 8 + 5000);
        bed_close(&b);
    }
}

// Two queues of one interface share its wire's rate.
static void rate_is_the_interfaces(void) {
    bed b;
    bed_open(&b, (bed_conf){.tx = 2, .wire = {.rate_bps = 1000000000}});
    bed_tap_all(&b);
    for (int i = 0; i < 4; i++)
        for (int q = 0; q < 2; q++)
            DQ_EQ(bed_send(&b, b.tx[0][q], 25, 1000, 7), DQ_OK);
    bed_steps(&b, INT64_MAX, true);
    DQ_EQ(b.n, 200);
    int64_t last = 0;
    for (size_t k = 0; k < b.n; k++)
        if (b.got[k].ts > last) last = b.got[k].ts;
    DQ_EQ(last, BED_START_NS + 200 * 8000);
    bed_close(&b);
}

static void reorder_ends_when_idle(void) {
    BED_EACH_MODE(m) {
        bed b;
        bed_open(&b, (bed_conf){.mode = m, .wire = {.reorder = 1}, .timeout_us = 100});
        bed_tap_all(&b);
        DQ_EQ(bed_send(&b, b.tx[0][0], 3, 100, 7), DQ_OK); // all are kept back, and nothing follows
        bed_until(&b, 3);
        DQ_EQ(b.n, 3);
        DQ_EQ(bed_line(b.s, "port0", DQ_LINE_WIRE, NULL).held, 0);
        bed_close(&b);
    }
}

static void reorder_keeps_times(void) {
    static const dq_wire_conf wires[] = {
        {.reorder = 0.2},
        {.reorder = 0.2, .delay_ns = 20000},
        {.reorder = 0.2, .dup = 0.2, .rate_bps = 1000000000, .delay_ns = 3000}};
    for (size_t k = 0; k < sizeof wires / sizeof *wires; k++) {
        bed b;
        bed_open(&b, (bed_conf){.wire = wires[k], .timeout_us = 1});
        bed_tap_all(&b);
        for (int i = 0; i < 200; i++) {
            DQ_EQ(bed_send(&b, b.tx[0][0], 2, 100, 7), DQ_OK);
            bed_steps(&b, dq_now(b.s) + 1500, true);
        }
        bed_steps(&b, INT64_MAX, true);
        DQ_CHECK(b.n >= 400);
        check_times(&b);
        bed_close(&b);
    }
}

// A session that ends while packets are kept back or under way still accounts for each.
static void stop_with_packets_under_way(void) {
    static const dq_wire_conf wires[] = {{.reorder = 1}, {.delay_ns = 3600000000000}, {.rate_bps = 1000}};
    BED_EACH_MODE(m) {
        for (size_t k = 0; k < sizeof wires / sizeof *wires; k++) {
            bed b;
            bed_open(&b, (bed_conf){.mode = m, .wire = wires[k], .timeout_us = 100});
            bed_tap_all(&b);
            for (int i = 0; i < 5; i++)
                DQ_EQ(bed_send(&b, b.tx[0][0], 3, 100, 7), DQ_OK);
            DQ_EQ(dq_session_stop(b.s, 0), 0);
            bed_check_ledger(b.s, false);
            dq_session_finish(b.s);
            bed_check_ledger(b.s, true);
            DQ_EQ(dq_session_close(b.s), 0);
            dq_waiter_free(b.w);
            free(b.got);
        }
    }
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(same_in_every_mode);
    DQ_RUN(certain_faults);
    DQ_RUN(seed_decides);
    DQ_RUN(wires_differ);
    DQ_RUN(faults_spare_other_readers);
    DQ_RUN(delay);
    DQ_RUN(rate);
    DQ_RUN(rate_is_the_interfaces);
    DQ_RUN(reorder_ends_when_idle);
    DQ_RUN(reorder_keeps_times);
    DQ_RUN(stop_with_packets_under_way);
    return dq_done();
}
