// reorder_sources_test.c: the reorder stage with several senders and several queues: figures of each sender,
// and threads that fill one window.
#include "reorder_rig.h"

// The figures of a source: a number, or which (dq_source_kind).
static dq_source_count source(const rig *r, uint64_t number, int which) {
    dq_source_count all[DQ_SOURCES + 2];
    uint32_t n = dq_source_counts(r->b.s, all, DQ_SOURCES + 2);
    DQ_CHECK(n <= DQ_SOURCES + 2);
    for (uint32_t k = 0; k < n; k++)
        if (all[k].which == which && (which != DQ_SOURCE_NUMBER || all[k].number == number)) {
            DQ_EQ_STR(all[k].name, "blocks");
            return all[k];
        }
    return (dq_source_count){0};
}

static void check_source(const dq_source_count *c, uint64_t packets, uint64_t missing, uint64_t late,
                         uint64_t duplicate) {
    DQ_EQ(c->packets, packets);
    DQ_EQ(c->missing, missing);
    DQ_EQ(c->late, late);
    DQ_EQ(c->duplicate, duplicate);
    DQ_EQ(c->dropped, 0);
}

// The last two bits of the number are the source: each has a quarter of the cells.
static const dq_insn low[] = {{.op = DQ_OP_LOAD, .b = 2, .c = 8 * BED_HEAD + 62}, {.op = DQ_OP_RET}};

static void by_source(void) {
    rig r;
    dq_reorder_conf c = usual();
    c.window = 1;
    c.source = (dq_number){low, 2};
    rig_open(&r, (bed_conf){.batch = 32}, c);
    rig_start(&r);
    for (uint64_t k = 0; k < 8 * SLOTS;
         k++) // 3 sends nothing at first, 2 not in batch 2, and batch 4 is lost
        if ((k % 4 != 3 || k >= 3 * SLOTS) && (k % 4 != 2 || k / SLOTS != 2) && k / SLOTS != 4)
            rig_send(&r, &k, 1, 7);
    uint64_t again[] = {7 * SLOTS - 1, 5, 7 * SLOTS - 3}; // a duplicate, one that is late, and a duplicate
    rig_send(&r, again, 3, 7);
    rig_steps(&r, INT64_MAX);
    const uint64_t full = 4, lost = 4; // cells a batch of each source; batch 4
    dq_source_count s[4], unknown = source(&r, 0, DQ_SOURCE_UNKNOWN);
    for (uint64_t k = 0; k < 4; k++)
        s[k] = source(&r, k, DQ_SOURCE_NUMBER);
    check_source(&s[0], 7 * full, lost, 0, 0);
    check_source(&s[1], 7 * full, lost, 1, 1);
    check_source(&s[2], 6 * full, lost + full, 0, 0);
    check_source(&s[3], 4 * full, lost, 0, 1);
    check_source(&unknown, 0, 3 * full, 0, 0); // of batches 0 to 2
    dq_line l = blocks(&r);
    DQ_EQ(l.extra[DQ_EXTRA_MISSING],
          s[0].missing + s[1].missing + s[2].missing + s[3].missing + unknown.missing);
    DQ_EQ(l.out, s[0].packets + s[1].packets + s[2].packets + s[3].packets);
    rig_close(&r);
}

// Packets with a wrong number are dropped of their source.
static void outliers(void) {
    rig r;
    dq_reorder_conf c = usual();
    c.source = (dq_number){low, 2};
    rig_open(&r, (bed_conf){.batch = 32}, c);
    rig_start(&r);
    uint64_t wrong[] = {100001, 100003, 100007};
    rig_send_range(&r, 0, 4 * SLOTS);
    rig_send(&r, wrong, 3, 7);
    rig_send_range(&r, 4 * SLOTS, 8 * SLOTS);
    rig_stop(&r);
    for (uint64_t k = 0; k < 4; k++) {
        dq_source_count s = source(&r, k, DQ_SOURCE_NUMBER);
        DQ_EQ(s.packets, 8 * SLOTS / 4);
        DQ_EQ(s.dropped, k == 1 ? 1 : k == 3 ? 2 : 0);
    }
    rig_close(&r);
}

// More sources than are counted share one line; packets without the field are another's.
static void many_sources(void) {
    static const dq_insn all[] = {{.op = DQ_OP_LOAD, .b = 64, .c = 8 * BED_HEAD}, {.op = DQ_OP_RET}};
    static const dq_insn none[] = {{.op = DQ_OP_LOAD, .b = 64, .c = 8 * LEN}, {.op = DQ_OP_RET}};
    for (int named = 0; named < 2; named++) {
        rig r;
        dq_reorder_conf c = usual();
        c.source = (dq_number){named ? all : none, 2};
        rig_open(&r, (bed_conf){.batch = 32}, c);
        rig_start(&r);
        rig_send_range(&r, 0, 32 * SLOTS);
        rig_steps(&r, INT64_MAX);
        dq_source_count one = source(&r, 7, DQ_SOURCE_NUMBER), others = source(&r, 0, DQ_SOURCE_OTHERS),
                        unknown = source(&r, 0, DQ_SOURCE_UNKNOWN);
        check_source(&one, named, 0, 0, 0);
        check_source(&others, named ? 32 * SLOTS - DQ_SOURCES : 0, 0, 0, 0);
        check_source(&unknown, named ? 0 : 32 * SLOTS, 0, 0, 0);
        rig_close(&r);
    }
}

// Numbers from first on of 4 batches whose slots are those of one port, in disorder; `but` is left out.
static void send_share(rig *r, uint64_t first, uint32_t port, uint64_t but, uint64_t *state) {
    uint64_t seqs[4 * SLOTS];
    uint32_t n = 0;
    for (uint64_t k = 0; k < 4 * SLOTS; k++)
        if (k % SLOTS % 3 == port && first + k != but) seqs[n++] = first + k;
    for (uint32_t k = n; k-- > 1;) {
        uint32_t o = dq_below(state, k + 1);
        uint64_t t = seqs[k];
        seqs[k] = seqs[o];
        seqs[o] = t;
    }
    rig_send(r, seqs, n, (uint16_t)(7 + port));
}

// How queues of three workers feed the stage: by pipes, waiting for each other, or by a claim.
typedef enum feed { EAGER, WAITING, CLAIMED, FEEDS } feed;

static void feed_by(rig *r, feed how) {
    if (how != CLAIMED) {
        rig_start(r);
        return;
    }
    dq_diag d = {{0}};
    dq_stage *rest = counter(&r->b, "rest");
    for (uint32_t k = 0; k < 3; k++) {
        bed_must(dq_queue_claim(r->b.rx[0][k], &r->st, 1, &d), &d, "claim");
        bed_pipe(r->b.rx[0][k], &rest, 1);
    }
    rig_tap(r);
    bed_start(&r->b);
}

// Three queues of three workers fill one window: each slot's packets come by one of them. Packets of another
// flow pass.
static void many_fillers(void) {
    const uint64_t batches = 600;
    const uint32_t ids[] = {1, 2, 3};
    for (feed how = EAGER; how < FEEDS; how++) {
        rig r;
        dq_reorder_conf c = usual();
        c.window = 8;
        c.wait = how != EAGER;
        c.policy = DQ_POLICY_WAIT;
        c.timeout_ns = c.wait ? BED_PATIENCE : 0;
        c.flow_ids = ids;
        c.n_flow_ids = 3;
        c.source = (dq_number){low, 2};
        rig_open(&r, (bed_conf){.mode = BED_WORKER, .rx = 3, .batch = 32, .timeout_us = 20}, c);
        dq_rule rules[] = {bed_rule(7, 1, 0), bed_rule(8, 2, 1), bed_rule(9, 3, 2), bed_rule(10, 4, 2)};
        bed_rules(r.b.ifaces[0], rules, 4);
        for (uint16_t s = 0; s < SLOTS; s++)
            r.port_of_slot[s] = (uint16_t)(7 + s % 3);
        feed_by(&r, how);
        r.any_order = !c.wait; // a thread that falls far behind takes the window back
        uint64_t state = 1, first = 0;
        rig_send(&r, &first, 1, 7);
        while (blocks(&r).in == 0)
            nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
        for (uint64_t at = 0; at < batches; at += 4) {
            for (uint32_t port = 0; port < 3; port++)
                send_share(&r, at * SLOTS, port, first, &state);
            rig_send(&r, &at, 1, 10);
        }
        if (c.wait) rig_until(&r, batches * SLOTS);
        rig_stop(&r);
        dq_line l = blocks(&r);
        DQ_EQ(l.in, batches * SLOTS + batches / 4);
        DQ_EQ(l.dropped[DQ_DROP_DUPLICATE], 0);
        DQ_EQ(l.out, r.packets + batches / 4);
        if (how == CLAIMED) DQ_EQ(stage_line(&r.b, "rest").in, batches / 4);
        uint64_t packets = 0, late = 0, missing = source(&r, 0, DQ_SOURCE_UNKNOWN).missing;
        for (uint64_t k = 0; k < 4; k++) {
            dq_source_count s = source(&r, k, DQ_SOURCE_NUMBER);
            packets += s.packets;
            late += s.late;
            missing += s.missing;
        }
        DQ_EQ(packets, r.packets);
        DQ_EQ(late, l.dropped[DQ_DROP_LATE]);
        DQ_EQ(missing, l.extra[DQ_EXTRA_MISSING]);
        if (c.wait) {
            DQ_EQ(r.missing, 0);
            DQ_EQ(l.dropped[DQ_DROP_LATE], 0);
        }
        rig_close(&r);
    }
}

// Of two queues one is silent: the other waits for it until the batch's time is up.
static void waits_for_its_time(void) {
    rig r;
    dq_reorder_conf c = usual();
    c.window = 2;
    c.wait = 1;
    c.timeout_ns = 1000000;
    rig_open(&r, (bed_conf){.rx = 2, .batch = 64}, c);
    dq_rule rules[] = {bed_rule(7, 1, 0), bed_rule(8, 2, 1)};
    rules[1].order = 1;
    bed_rules(r.b.ifaces[0], rules, 2);
    rig_start(&r);
    uint64_t seqs[4 * SLOTS];
    uint32_t n = 0;
    for (uint64_t k = 0; k < 4 * SLOTS; k++)
        if (k % 2 == 0) seqs[n++] = k;
    rig_send(&r, seqs, n, 7);
    rig_steps(&r, BED_START_NS + 900000);
    DQ_EQ(r.aggregates, 0);
    bed_check_ledger(r.b.s, false);
    rig_steps(&r, INT64_MAX);
    DQ_EQ(r.aggregates, 4);
    DQ_EQ(blocks(&r).extra[DQ_EXTRA_TIMEOUTS], 4);
    rig_close(&r);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(by_source);
    DQ_RUN(outliers);
    DQ_RUN(many_sources);
    DQ_RUN(many_fillers);
    DQ_RUN(waits_for_its_time);
    return dq_done();
}
