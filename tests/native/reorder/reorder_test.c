// reorder_test.c: the reorder stage on numbered frames: what it hands over and what it counts.
// runtime/session/contract holds it to a model; here are time and ends.
#include "core/region.h"
#include "pipeline/session.h"
#include "reorder_rig.h"

static void in_order(void) {
    BED_EACH_MODE(m) {
        rig r;
        dq_reorder_conf c = usual();
        c.policy = DQ_POLICY_WAIT; // the test is slower than the stage
        rig_open(&r, (bed_conf){.mode = m, .timeout_us = 50}, c);
        rig_start(&r);
        rig_send_range(&r, 0, 100 * SLOTS);
        rig_until(&r, 100 * SLOTS);
        DQ_EQ(r.aggregates, 100);
        DQ_EQ(r.flags, 0);
        rig_stop(&r);
        dq_line l = blocks(&r), out = stage_line(&r.b, "blocks.aggregates");
        DQ_EQ(l.in, 100 * SLOTS);
        DQ_EQ(l.out, 100 * SLOTS);
        DQ_EQ(l.extra[DQ_EXTRA_BATCHES], 100);
        DQ_EQ(l.extra[DQ_EXTRA_EXPECTED], 100 * SLOTS);
        DQ_EQ(out.out, 100);
        rig_close(&r);
    }
}

// Holes, packets that come twice, behind the window, or without a number.
static void holes(void) {
    rig r;
    dq_reorder_conf c = usual();
    c.window = 2;
    rig_open(&r, (bed_conf){.batch = 32}, c);
    rig_start(&r);
    uint64_t some[] = {0, 1, 3, 3, 17, 16, 18, 33, 5, 2, 34, 49, 65, 19};
    rig_send(&r, some, sizeof some / sizeof *some, 7);
    rig_steps(&r, INT64_MAX);
    dq_line l = blocks(&r);
    DQ_EQ(r.aggregates, 3); // those of 33, 49 and 65 pushed one each
    DQ_EQ(r.flags, DQ_AGGREGATE_PUSHED | DQ_AGGREGATE_FIRST);
    DQ_EQ(l.dropped[DQ_DROP_DUPLICATE], 1);
    DQ_EQ(l.dropped[DQ_DROP_LATE], 3);
    DQ_EQ(l.extra[DQ_EXTRA_LATE], 3);
    DQ_EQ(l.out, 8);
    DQ_EQ(l.held, 2);
    DQ_EQ(l.extra[DQ_EXTRA_SKIPPED], 0);
    DQ_EQ(l.extra[DQ_EXTRA_EXPECTED], 35); // from 0 to 34
    DQ_EQ(l.extra[DQ_EXTRA_MISSING], 35 - 8);
    rig_close(&r);
    DQ_EQ(r.aggregates, 5);
    DQ_EQ(r.flags & DQ_AGGREGATE_STOPPED, DQ_AGGREGATE_STOPPED);
}

// Numbers that tell few batches apart: packets in order are placed, and a batch that is lost as a whole is
// one that is missing.
static void few_batches(void) {
    for (uint32_t bits = 6; bits <= 16; bits++) {
        rig r;
        dq_reorder_conf c = usual();
        c.seq_bits = bits;
        rig_open(&r, (bed_conf){.batch = 32}, c);
        rig_start(&r);
        for (uint64_t batch = 0; batch < 48; batch++) {
            if (batch % 5 != 3) rig_send_range(&r, batch * SLOTS, (batch + 1) * SLOTS);
            rig_steps(&r, INT64_MAX);
        }
        dq_line l = blocks(&r);
        DQ_EQ(r.aggregates, 39);
        DQ_EQ(r.flags, 0);
        DQ_EQ(l.out, 39 * SLOTS);
        DQ_EQ(l.extra[DQ_EXTRA_SKIPPED], 9);
        DQ_EQ(l.extra[DQ_EXTRA_MISSING], 9 * SLOTS);
        DQ_EQ(l.extra[DQ_EXTRA_RESYNCS], 0);
        rig_close(&r);
    }
}

// How long batches took, from their first packets on.
static void took(void) {
    rig r;
    dq_reorder_conf c = usual();
    c.timeout_ns = 5000000;
    rig_open(&r, (bed_conf){.timeout_us = 10}, c);
    rig_start(&r);
    rig_send_range(&r, 0, 3 * SLOTS + 1);
    rig_steps(&r, INT64_MAX);
    dq_histogram all[8], *s = NULL;
    uint32_t n = dq_histograms(r.b.s, all, 8);
    for (uint32_t k = 0; k < n && k < 8; k++)
        if (all[k].kind == DQ_HISTOGRAM_COMPLETION_TIME && strcmp(all[k].name, "blocks") == 0) s = &all[k];
    DQ_CHECK(s != NULL);
    uint64_t batches = 0, slow = 0;
    for (uint32_t k = 0; s && k < DQ_HISTOGRAM_BUCKETS; k++) {
        batches += s->n[k];
        if (dq_histogram_most(k) >= 5000000) slow += s->n[k];
    }
    DQ_EQ(batches, 4);
    DQ_EQ(slow, 1); // the one that waited for its time-out
    rig_close(&r);
}

// A batch is handed over when its time is up, counted from its first packet, though nothing more comes.
static void time_out(void) {
    BED_EACH_MODE(m) {
        rig r;
        dq_reorder_conf c = usual();
        c.timeout_ns = 5000000;
        rig_open(&r, (bed_conf){.mode = m, .timeout_us = 10}, c);
        rig_start(&r);
        rig_send_range(&r, 0, SLOTS + 3);
        if (m == BED_VIRTUAL) {
            rig_steps(&r, BED_START_NS + 5000000 - 1);
            DQ_EQ(r.packets, SLOTS);
        }
        rig_until(&r, SLOTS + 3);
        if (m == BED_VIRTUAL) DQ_CHECK(dq_now(r.b.s) < BED_START_NS + 5000000 + 100000);
        DQ_EQ(r.flags, DQ_AGGREGATE_TIMEOUT);
        DQ_EQ(blocks(&r).extra[DQ_EXTRA_TIMEOUTS], 1);
        DQ_EQ(blocks(&r).extra[DQ_EXTRA_MISSING], 0); // nothing came behind what lacks
        uint64_t late = SLOTS + 3;
        rig_send(&r, &late, 1, 7);
        if (m == BED_VIRTUAL) {
            rig_steps(&r, INT64_MAX);
            DQ_EQ(blocks(&r).dropped[DQ_DROP_LATE], 1);
        }
        rig_close(&r);
    }
}

// The time of a batch is that of its first packet: later ones do not move it.
static void time_is_fixed(void) {
    rig r;
    dq_reorder_conf c = usual();
    c.timeout_ns = 5000000;
    rig_open(&r, (bed_conf){.timeout_us = 10}, c);
    rig_start(&r);
    for (uint64_t k = 0; k < 3; k++) { // at 0, 2 and 4 ms
        rig_send(&r, &k, 1, 7);
        rig_steps(&r, BED_START_NS + 2000000 * (int64_t)(k + 1));
    }
    DQ_EQ(r.packets, 3); // at 5 ms
    DQ_EQ(r.flags, DQ_AGGREGATE_TIMEOUT | DQ_AGGREGATE_FIRST);
    rig_close(&r);
}

// Two batches, the second with holes.
static void send_two(rig *r) {
    uint64_t second[] = {SLOTS, SLOTS + 3, SLOTS + 2, SLOTS + 9};
    rig_send_range(r, 0, SLOTS);
    rig_send(r, second, 4, 7);
    rig_steps(r, INT64_MAX);
    rig_stop(r);
    DQ_EQ(r->aggregates, 2);
    DQ_EQ(r->packets, SLOTS + 4);
    DQ_EQ(r->missing, SLOTS - 4);
}

// The payload begins where the frame's headers end, or is a segment of its own, header-data split.
static void where_payloads_are(void) {
    rig r;
    dq_reorder_conf c = usual();
    c.payload_offset = 0;
    c.at_payload = 1;
    rig_open(&r, (bed_conf){0}, c);
    rig_start(&r);
    send_two(&r);
    rig_close(&r);
    c = usual();
    c.payload_offset = 0;
    c.segment = 1;
    rig_open(&r, (bed_conf){.rx_nseg = 2, .rx_size = {BED_HEAD + 8}}, c);
    r.skip = 8; // the number is in the first segment
    rig_start(&r);
    send_two(&r);
    rig_close(&r);
}

// Gaps have what the buffers had, where nothing fills them.
static void gaps_are_kept(void) {
    rig r;
    dq_reorder_conf c = usual();
    c.fill = DQ_FILL_KEEP;
    rig_open(&r, (bed_conf){0}, c);
    const dq_region *region = r.b.more;
    for (uint32_t k = 0; k < region->conf.num_bufs; k++)
        memset(r.b.s->core.base + dqi_buf_off(region, region->first_id + k), 0xee, SLOTS * PAYLOAD);
    rig_start(&r);
    send_two(&r);
    rig_close(&r);
}

// A consumer that keeps aggregates costs packets, counted, and nothing else.
static void no_buffer(void) {
    rig r;
    rig_open(&r, (bed_conf){.more_bufs = 4}, usual());
    r.keep = 4;
    rig_start(&r);
    rig_send_range(&r, 0, 6 * SLOTS);
    rig_steps(&r, INT64_MAX);
    DQ_EQ(r.aggregates, 4);
    DQ_EQ(blocks(&r).dropped[DQ_DROP_NO_PACKET_BUFFER], 2 * SLOTS);
    bed_check_ledger(r.b.s, false);
    r.keep = 0;
    while (r.n_kept > 0)
        dq_burst_unref(r.kept[--r.n_kept]);
    rig_send_range(&r, 6 * SLOTS, 9 * SLOTS);
    rig_send_range(&r, 20 * SLOTS, 24 * SLOTS);
    rig_steps(&r, INT64_MAX);
    DQ_EQ(r.aggregates, 11);
    rig_close(&r);
}

static void nobody_reads(void) {
    rig r;
    rig_open(&r, (bed_conf){.more_bufs = 4}, usual());
    bed_pipe(r.b.rx[0][0], &r.st, 1);
    bed_start(&r.b);
    rig_send_range(&r, 0, 20 * SLOTS);
    rig_steps(&r, INT64_MAX);
    DQ_EQ(blocks(&r).dropped[DQ_DROP_NO_CONSUMER], 20 * SLOTS);
    rig_close(&r);
}

static void only_complete(void) {
    rig r;
    dq_reorder_conf c = usual();
    c.drop_incomplete = 1;
    rig_open(&r, (bed_conf){.batch = 64}, c);
    rig_start(&r);
    rig_send_range(&r, 0, 2 * SLOTS);
    rig_send_range(&r, 2 * SLOTS + 1, 4 * SLOTS);
    rig_close(&r);
    DQ_EQ(r.aggregates, 3);
    DQ_EQ(r.flags, 0);
}

// The stage's figures of what is not where the window is.
static void check_place(const rig *r, uint64_t resyncs, uint64_t outliers, uint64_t late,
                        uint64_t duplicates) {
    dq_line l = blocks(r);
    DQ_EQ(l.extra[DQ_EXTRA_RESYNCS], resyncs);
    DQ_EQ(l.extra[DQ_EXTRA_OUTLIERS], outliers);
    DQ_EQ(l.dropped[DQ_DROP_OUTLIER], outliers);
    DQ_EQ(l.dropped[DQ_DROP_LATE], late);
    DQ_EQ(l.dropped[DQ_DROP_DUPLICATE], duplicates);
}

// A sender that restarts, at a number far behind or far ahead, is found again, and no packet is lost. A wrong
// number moves nothing, wherever it is.
static void found_again(void) {
    rig r;
    rig_open(&r, (bed_conf){.batch = 32, .more_bufs = 64}, usual());
    rig_start(&r);
    const uint64_t wrong[] = {1u << 20, 1015 * SLOTS, 1060 * SLOTS, 3, 1009 * SLOTS + 1};
    rig_send_range(&r, 1000 * SLOTS, 1010 * SLOTS);
    for (uint64_t k = 0; k < 5; k++) {
        rig_send(&r, &wrong[k], 1, 7);
        rig_send_range(&r, (1010 + k) * SLOTS, (1011 + k) * SLOTS);
    }
    rig_steps(&r, INT64_MAX);
    DQ_EQ(r.aggregates, 15);
    DQ_EQ(r.flags, 0);
    check_place(&r, 0, 4, 0, 1);
    rig_send_range(&r, 5000 * SLOTS, 5010 * SLOTS);
    rig_steps(&r, INT64_MAX);
    check_place(&r, 1, 4, 0, 1);
    DQ_EQ(r.aggregates, 15 + 10);
    r.aggregates = 0; // order begins again
    rig_send_range(&r, 0, 10 * SLOTS);
    rig_stop(&r);
    check_place(&r, 2, 4, 0, 1);
    DQ_EQ(r.aggregates, 10);
    rig_close(&r);
}

// Several wrong numbers that agree, of one board of four: the others' packets are more.
static void wrong_board(void) {
    rig r;
    rig_open(&r, (bed_conf){.batch = 32, .more_bufs = 64}, usual());
    rig_start(&r);
    for (uint64_t batch = 0; batch < 20; batch++)
        for (uint64_t board = 0; board < 4; board++) {
            uint64_t from = (batch + (board == 3 ? 1000 : 0)) * SLOTS + board * SLOTS / 4;
            rig_send_range(&r, from, from + SLOTS / 4);
        }
    rig_stop(&r);
    check_place(&r, 0, 20 * SLOTS / 4, 0, 0);
    DQ_EQ(r.aggregates, 20);
    DQ_EQ(blocks(&r).out, 20 * SLOTS * 3 / 4);
    rig_close(&r);
}

// A jump ahead over what was lost: the same stream, with that much missing.
static void jump_ahead(void) {
    rig r;
    rig_open(&r, (bed_conf){.batch = 32, .more_bufs = 64}, usual());
    rig_start(&r);
    rig_send_range(&r, 0, 3 * SLOTS + 1);
    rig_send_range(&r, 40 * SLOTS, 41 * SLOTS + 3);
    rig_stop(&r);
    check_place(&r, 0, 0, 0, 0);
    DQ_EQ(blocks(&r).out, 4 * SLOTS + 4);
    DQ_EQ(blocks(&r).extra[DQ_EXTRA_MISSING], 37 * SLOTS - 1);
    rig_close(&r);
}

// A sender that restarts after a silence near the place where it was: its first packets were there already.
// Two that come twice after one are not a restart.
static void restart_near(void) {
    rig r;
    rig_open(&r, (bed_conf){.batch = 32, .more_bufs = 64}, usual());
    rig_start(&r);
    r.any_order = true;
    for (int64_t k = 0; k < 3; k++) {
        rig_steps(&r, BED_START_NS + k * 1000000000);
        rig_send_range(&r, 0, 6 * SLOTS + 3);
    }
    rig_steps(&r, BED_START_NS + INT64_C(3000000000));
    rig_send_range(&r, 7, 9);
    rig_send_range(&r, 6 * SLOTS + 3, 9 * SLOTS);
    rig_stop(&r);
    check_place(&r, 2, 0, 0, 2);
    DQ_EQ(blocks(&r).out, 2 * (6 * SLOTS + 3) + 9 * SLOTS);
    DQ_EQ(blocks(&r).extra[DQ_EXTRA_MISSING], 0);
    rig_close(&r);
}

// The same where numbers have wrapped: order begins again with the batch of that number.
static void restart_wrapped(void) {
    rig r;
    dq_reorder_conf c = usual();
    c.seq_bits = 12;
    rig_open(&r, (bed_conf){.batch = 32, .more_bufs = 64}, c);
    rig_start(&r);
    for (uint64_t k = 0; k < 300; k += 10) {
        rig_send_range(&r, k * SLOTS, (k + 10) * SLOTS);
        rig_steps(&r, INT64_MAX);
    }
    DQ_EQ(r.last, 299);
    r.any_order = true;
    rig_steps(&r, BED_START_NS + 1000000000);
    rig_send_range(&r, 0, 10 * SLOTS);
    rig_stop(&r);
    check_place(&r, 1, 0, 0, 0);
    DQ_EQ(r.aggregates, 310);
    DQ_EQ(r.last, 9);
    rig_close(&r);
}

// Two paths bring the same packets, one in bursts behind the other: they come twice, and nothing restarted.
static void two_paths(void) {
    rig r;
    rig_open(&r, (bed_conf){.batch = 32, .more_bufs = 64}, usual());
    rig_start(&r);
    for (uint64_t k = 0; k < 40; k++) {
        rig_send_range(&r, 96 * k, 96 * (k + 1));
        rig_send_range(&r, 96 * k, 96 * (k + 1));
        rig_steps(&r, INT64_MAX);
    }
    rig_stop(&r);
    check_place(&r, 0, 0, 0, 40 * 96);
    DQ_EQ(blocks(&r).out, 40 * 96);
    rig_close(&r);
}

// Other flows pass, those in one burst with the stage's too.
static void other_flows(void) {
    rig r;
    dq_reorder_conf c = usual();
    const uint32_t ids[] = {3, 5};
    c.flow_ids = ids;
    c.n_flow_ids = 2;
    rig_open(&r, (bed_conf){.batch = 64}, c);
    dq_rule rules[] = {bed_rule(7, 5, 0), bed_rule(8, 6, 0)};
    rules[1].order = 1;
    bed_rules(r.b.ifaces[0], rules, 2);
    dq_stage *rest = counter(&r.b, "rest"), *chain[] = {r.st, rest};
    rig_tap(&r);
    bed_pipe(r.b.rx[0][0], chain, 2);
    bed_start(&r.b);
    for (uint64_t k = 0; k < 4 * SLOTS; k++) {
        rig_send(&r, &k, 1, 7);
        rig_send(&r, &k, 1, 8);
    }
    rig_steps(&r, INT64_MAX);
    DQ_EQ(r.aggregates, 4);
    DQ_EQ(stage_line(&r.b, "rest").in, 4 * SLOTS);
    DQ_EQ(blocks(&r).out, 8 * SLOTS);
    rig_close(&r);
}

// The bytes of a slot of a large batch: those of its packet, or zeros.
static void check_large(const uint8_t *data, uint32_t slot, uint32_t len, bool is) {
    uint8_t want[BED_HEAD + 1200] = {0};
    if (is) bed_frame(want, BED_HEAD + len, 1000, 7, slot);
    DQ_EQ_BYTES(data + (size_t)slot * len, want + BED_HEAD, len);
}

// A batch that no cache holds, in slots at odd places: copies go past the caches. Of two packets with one
// number in a burst, and in two, the second is a duplicate.
static void large_batches(void) {
    enum { LARGE = 1001, SENT = 150, COUNT = (4 << 20) / LARGE + 1 };
    bed b;
    dq_diag d = {{0}};
    dq_stage *st;
    dq_queue *out;
    dq_event ev;
    bed_open(&b, (bed_conf){.batch = 64, .buf_size = 1200, .more_bufs = 1, .more_size = COUNT * LARGE});
    dq_reorder_conf c = usual();
    c.region = b.more;
    c.slots = COUNT;
    c.slot_bytes = LARGE;
    c.fill = 0;
    bed_must(dq_stage_reorder(b.s, "blocks", &c, &st, &out, &d), &d, "reorder");
    dq_stage *tap = bed_tap(&b, 1, 64, DQ_POLICY_WAIT);
    bed_pipe(out, &tap, 1);
    bed_pipe(b.rx[0][0], &st, 1);
    bed_start(&b);
    for (uint32_t k = 0; k < SENT; k++) {
        b.seq = k % 50 == 49 ? k - 1 : k;
        DQ_EQ(bed_send(&b, b.tx[0][0], 1, BED_HEAD + LARGE, 7), DQ_OK);
    }
    b.seq = 0;
    DQ_EQ(bed_send(&b, b.tx[0][0], 1, BED_HEAD + LARGE, 7), DQ_OK);
    while (dq_step(b.s) > 0) {
    }
    dq_session_stop(b.s, 0);
    DQ_EQ(dq_wait(b.w, 0, &ev, 1), 1);
    for (uint32_t k = 0; k < SENT + 10; k++)
        check_large(ev.view.base + ev.view.off[0][0], k, LARGE, k < SENT && k % 50 != 49);
    DQ_EQ(stage_line(&b, "blocks").dropped[DQ_DROP_DUPLICATE], 4);
    dq_burst_unref(ev.b);
    bed_close(&b);
}

// A ring: a batch goes to the buffer of its number, whatever was opened before, which takes packets again
// when its last aggregate is freed. Numbers past the ring have no
// place.
static void ring(void) {
    enum { BUFS = 8, ALL = BUFS * SLOTS };
    rig r;
    dq_reorder_conf c = usual();
    c.seq_bits = 7;
    c.slot_bytes = PAYLOAD;
    c.ring = 1;
    c.timeout_ns = 5000000;
    rig_open(&r, (bed_conf){.batch = 32, .more_bufs = BUFS}, c);
    r.keep = BUFS;
    rig_start(&r);
    rig_send_range(&r, 0, 8);
    rig_send_range(&r, 2 * SLOTS, 2 * SLOTS + 8);
    rig_send_range(&r, SLOTS, 2 * SLOTS);
    rig_steps(&r, BED_START_NS + 4000000);
    rig_send_range(&r, 8, SLOTS);
    rig_send_range(&r, 2 * SLOTS + 8, 3 * SLOTS);
    rig_send_range(&r, 3 * SLOTS, ALL);
    rig_steps(&r, INT64_MAX);
    DQ_EQ(r.aggregates, BUFS);
    DQ_EQ(r.flags, 0);
    for (uint32_t k = 0; k < r.n_kept; k++) {
        dq_view v;
        dq_burst_view(r.kept[k], &v);
        DQ_CHECK(v.flags & DQ_BURST_DIRECT_PLACED);
        DQ_EQ((uint64_t)(v.base + v.off[0][0] - r.b.more->base),
              dqi_buf_off(r.b.more, r.b.more->first_id + k));
    }
    uint64_t past[] = {ALL, ALL + 1};
    rig_send(&r, past, 2, 7);
    rig_send_range(&r, 0, SLOTS); // its buffer is kept
    rig_steps(&r, INT64_MAX);
    DQ_EQ(r.aggregates, BUFS);
    DQ_EQ(blocks(&r).dropped[DQ_DROP_BAD_PLACE], 2);
    DQ_EQ(blocks(&r).dropped[DQ_DROP_NO_PACKET_BUFFER], SLOTS);
    rig_close(&r);
}

static void refused(const char *why, dq_reorder_conf c, dq_region *region, dq_session *s) {
    dq_diag d = {{0}};
    dq_stage *st = NULL;
    dq_queue *q = NULL;
    c.region = region;
    DQ_EQ(dq_stage_reorder(s, "bad", &c, &st, &q, &d), DQ_INVALID_PARAMETER);
    if (!strstr(d.text, why)) {
        fprintf(stderr, "%s: %s\n", why, d.text);
        DQ_CHECK(false);
    }
}

static void misuse(void) {
    rig r;
    dq_diag d = {{0}};
    rig_open(&r, (bed_conf){0}, usual());
    dq_reorder_conf c = usual();
    c.slots = 1u << 20;
    refused("don't fit", c, r.b.more, r.b.s);
    c = usual();
    c.batch = number();
    refused("sequence number, or both", c, r.b.more, r.b.s);
    c = usual();
    c.seq_bits = 4;
    refused("at least 4 batches apart, not 1", c, r.b.more, r.b.s);
    c.slots = 17;
    refused("at least 4 batches apart, not 0", c, r.b.more, r.b.s);
    c.slots = SLOTS;
    c.seq_bits = 6;
    c.window = 3;
    refused("half of what the numbers tell apart", c, r.b.more, r.b.s);
    c = usual();
    c.seq_bits = 7;
    c.ring = 1;
    refused("must count the 32 buffers", c, r.b.more, r.b.s);
    c = usual();
    c.offset = number();
    refused("slot_bytes", c, r.b.more, r.b.s);
    c = usual();
    c.wait = 1;
    refused("give a timeout", c, r.b.more, r.b.s);
    c = usual();
    c.slots = 2;
    c.policy = DQ_POLICY_WAIT;
    refused("policy \"wait\" would wait for ever", c, r.b.in[0], r.b.s);
    refused("packets of blocks may have all buffers", c, r.b.more, r.b.s);
    dq_pipe *p;
    DQ_EQ(dq_pipe_add(r.out, &r.st, 1, 0, &p, &d), DQ_INVALID_PARAMETER);
    DQ_CHECK(strstr(d.text, "a stage cannot consume its own output") != NULL);
    rig_start(&r);
    rig_close(&r);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(in_order);
    DQ_RUN(holes);
    DQ_RUN(few_batches);
    DQ_RUN(took);
    DQ_RUN(time_out);
    DQ_RUN(time_is_fixed);
    DQ_RUN(where_payloads_are);
    DQ_RUN(gaps_are_kept);
    DQ_RUN(no_buffer);
    DQ_RUN(nobody_reads);
    DQ_RUN(only_complete);
    DQ_RUN(found_again);
    DQ_RUN(wrong_board);
    DQ_RUN(jump_ahead);
    DQ_RUN(restart_near);
    DQ_RUN(restart_wrapped);
    DQ_RUN(two_paths);
    DQ_RUN(other_flows);
    DQ_RUN(large_batches);
    DQ_RUN(ring);
    DQ_RUN(misuse);
    return dq_done();
}
