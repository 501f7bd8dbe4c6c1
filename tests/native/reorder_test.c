// reorder_test.c: the reorder stage on numbered frames: what it hands over, what it counts, and several
// threads that fill one window. runtime/session holds it to a model; here are threads, time and ends.
#include "bed_pipe.h"
#include "region.h"

#define SLOTS   16
#define LEN     (BED_MIN + 24)
#define PAYLOAD (LEN - BED_HEAD)

typedef struct rig {
    bed b;
    dq_stage *st;
    dq_queue *out;
    uint16_t port_of_slot[SLOTS]; // where the packets of a slot went
    uint64_t aggregates, packets, missing, last;
    uint32_t flags; // of all aggregates
    bool any_order; // the stream may be found at another place
    uint32_t skip;  // bytes of a payload that its slot lacks
    int32_t fill;   // as configured
    dq_burst *kept[64];
    uint32_t n_kept, keep; // so many are kept
} rig;

// The number behind the headers, 64 bits.
static dq_number number(void) {
    static const dq_insn insns[] = {{.op = DQ_OP_LOAD, .b = 64, .c = 8 * BED_HEAD}, {.op = DQ_OP_RET}};
    return (dq_number){insns, 2};
}

static dq_reorder_conf usual(void) {
    return (dq_reorder_conf){
        .seq = number(), .seq_bits = 64, .slots = SLOTS, .payload_offset = BED_HEAD, .fill = 0xee};
}

static void rig_open(rig *r, bed_conf c, dq_reorder_conf conf) {
    dq_diag d = {{0}};
    *r = (rig){0};
    for (int i = 0; i < SLOTS; i++)
        r->port_of_slot[i] = 7;
    c.more_bufs = c.more_bufs ? c.more_bufs : 32;
    c.more_size = SLOTS * PAYLOAD;
    bed_open(&r->b, c);
    r->fill = conf.fill;
    conf.region = r->b.more;
    bed_must(dq_stage_reorder(r->b.s, "blocks", &conf, &r->st, &r->out, &d), &d, "reorder");
}

static void rig_tap(rig *r) {
    dq_stage *tap = bed_tap(&r->b, 1, 64, DQ_POLICY_WAIT);
    bed_pipe(r->out, &tap, 1);
}

static void rig_start(rig *r) {
    rig_tap(r);
    for (uint32_t k = 0; k < r->b.conf.rx; k++)
        bed_pipe(r->b.rx[0][k], &r->st, 1);
    bed_start(&r->b);
}

// Each slot has the bytes of its packet, or the fill.
static void check_slots(const rig *r, const dq_aggregate *a, const uint8_t *data) {
    uint8_t want[LEN], gap[PAYLOAD];
    uint32_t present = 0, len = PAYLOAD - r->skip;
    memset(gap, 0xee, sizeof gap);
    for (uint32_t s = 0; s < SLOTS; s++) {
        bool is = a->present[0] >> s & 1;
        present += is;
        bed_frame(want, LEN, 1000, r->port_of_slot[s], a->ordinal * SLOTS + s);
        DQ_EQ_BYTES(data + s * len, is ? want + BED_HEAD + r->skip : gap, len);
    }
    DQ_EQ(a->present_cells, present);
}

static void check_aggregate(rig *r, const dq_event *ev) {
    const dq_aggregate *a = dq_burst_aggregate(ev->b);
    DQ_EQ(ev->view.n, 1);
    DQ_CHECK(ev->view.flags & DQ_BURST_REORDERED);
    if (!a) return;
    DQ_EQ(a->slots, SLOTS);
    DQ_EQ(a->slot_bytes, PAYLOAD - r->skip);
    DQ_EQ(ev->view.len[0][0], SLOTS * (PAYLOAD - r->skip));
    DQ_EQ(a->fill, r->fill);
    DQ_CHECK(r->any_order || r->aggregates == 0 || a->ordinal > r->last);
    check_slots(r, a, ev->view.base + ev->view.off[0][0]);
    r->last = a->ordinal;
    r->aggregates++;
    r->packets += a->packets;
    r->missing += a->cells - a->present_cells;
    r->flags |= a->flags;
}

static int rig_serve(rig *r, int64_t timeout_ns) {
    dq_event ev[16];
    int n = dq_wait(r->b.w, timeout_ns, ev, 16);
    for (int k = 0; k < n; k++) {
        check_aggregate(r, &ev[k]);
        if (r->n_kept < r->keep)
            r->kept[r->n_kept++] = ev[k].b;
        else
            dq_burst_unref(ev[k].b);
    }
    return n;
}

// Virtual clock: until nothing is left to do before until_ns.
static void rig_steps(rig *r, int64_t until_ns) {
    for (;;) {
        if (rig_serve(r, 0) > 0 || dq_step(r->b.s) > 0) continue;
        int64_t next = dq_next_time(r->b.s);
        if (next == INT64_MAX || next > until_ns) break;
        dq_advance(r->b.s, next);
    }
    if (until_ns != INT64_MAX) dq_advance(r->b.s, until_ns);
}

static void rig_send(rig *r, const uint64_t *seqs, uint32_t n, uint16_t port) {
    dq_burst *b;
    dq_view v;
    int err, patience = 1000000;
    while ((err = dq_tx_alloc(r->b.tx[0][0], n, &b)) != DQ_OK && patience-- > 0)
        rig_serve(r, 100000);
    DQ_EQ(err, DQ_OK);
    dq_burst_view(b, &v);
    for (uint32_t i = 0; i < n; i++)
        bed_frame(bed_bytes(&v, 0, i), LEN, 1000, port, seqs[i]);
    DQ_EQ(dq_burst_set_len(b, 0, -1, LEN), DQ_OK);
    while ((err = dq_tx_send(r->b.tx[0][0], b)) != DQ_OK && patience-- > 0)
        rig_serve(r, 100000);
    DQ_EQ(err, DQ_OK);
}

// Numbers from .. to - 1, in bursts of 32.
static void rig_send_range(rig *r, uint64_t from, uint64_t to) {
    while (from < to) {
        uint64_t seqs[32];
        uint32_t n = 0;
        while (n < 32 && from < to)
            seqs[n++] = from++;
        rig_send(r, seqs, n, 7);
    }
}

// Ends the stream; what was open comes out.
static void rig_stop(rig *r) {
    int64_t end = dqi_mono_ns() + BED_PATIENCE;
    while (dq_session_stop(r->b.s, 10000000000) > 0 && dqi_mono_ns() < end)
        while (rig_serve(r, 0) > 0) {
        }
    while (rig_serve(r, 0) > 0) {
    }
    bed_check_ledger(r->b.s, false);
}

static void rig_close(rig *r) {
    rig_stop(r);
    while (r->n_kept > 0)
        dq_burst_unref(r->kept[--r->n_kept]);
    dq_session_finish(r->b.s);
    bed_check_ledger(r->b.s, true);
    DQ_EQ(dq_session_close(r->b.s), 0);
    dq_waiter_free(r->b.w);
}

static void rig_until(rig *r, uint64_t packets) {
    int64_t end = dqi_mono_ns() + BED_PATIENCE;
    if (r->b.conf.mode == BED_VIRTUAL) rig_steps(r, INT64_MAX);
    while (r->b.conf.mode != BED_VIRTUAL && r->packets < packets && dqi_mono_ns() < end)
        rig_serve(r, 20000000);
    DQ_EQ(r->packets, packets);
}

static dq_line blocks(const rig *r) { return stage_line(&r->b, "blocks"); }

// ---- cases ------------------------------------------------------------------------------------------------

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
    uint64_t some[] = {0, 1, 3, 3, 17, 16, 18, 33, 5, 2, 34, 100, 19};
    rig_send(&r, some, sizeof some / sizeof *some, 7);
    rig_steps(&r, INT64_MAX);
    dq_line l = blocks(&r);
    DQ_EQ(r.aggregates, 3); // 100 is in the sixth batch: it pushed all that was open, and 3 and 4 never began
    DQ_EQ(r.flags, DQ_AGGREGATE_PUSHED | DQ_AGGREGATE_FIRST);
    DQ_EQ(l.dropped[DQ_DROP_DUPLICATE], 1);
    DQ_EQ(l.dropped[DQ_DROP_LATE], 3);
    DQ_EQ(l.extra[DQ_EXTRA_LATE], 3);
    DQ_EQ(l.out, 8);
    DQ_EQ(l.held, 1);
    DQ_EQ(l.extra[DQ_EXTRA_SKIPPED], 2);
    // The first batch was joined in the middle; of the others 3 and 2 came.
    DQ_EQ(l.extra[DQ_EXTRA_EXPECTED], 3 + 4 * SLOTS);
    DQ_EQ(l.extra[DQ_EXTRA_MISSING], 4 * SLOTS - 5);
    rig_close(&r);
    DQ_EQ(r.aggregates, 4);
    DQ_EQ(r.flags & DQ_AGGREGATE_STOPPED, DQ_AGGREGATE_STOPPED);
}

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
    check_source(&unknown, 0, 2 * full, 0, 0); // of batches 1 and 2; the first one was joined in the middle
    dq_line l = blocks(&r);
    DQ_EQ(l.extra[DQ_EXTRA_MISSING],
          s[0].missing + s[1].missing + s[2].missing + s[3].missing + unknown.missing);
    DQ_EQ(l.out, s[0].packets + s[1].packets + s[2].packets + s[3].packets);
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

// How long batches took, from their first packets on.
static void took(void) {
    rig r;
    dq_reorder_conf c = usual();
    c.timeout_ns = 5000000;
    rig_open(&r, (bed_conf){.timeout_us = 10}, c);
    rig_start(&r);
    rig_send_range(&r, 0, 3 * SLOTS + 1);
    rig_steps(&r, INT64_MAX);
    dq_spread all[8], *s = NULL;
    uint32_t n = dq_spreads(r.b.s, all, 8);
    for (uint32_t k = 0; k < n && k < 8; k++)
        if (all[k].kind == DQ_SPREAD_COMPLETION && strcmp(all[k].name, "blocks") == 0) s = &all[k];
    DQ_CHECK(s != NULL);
    uint64_t batches = 0, slow = 0;
    for (uint32_t k = 0; s && k < DQ_SPREAD_BUCKETS; k++) {
        batches += s->n[k];
        if (dq_spread_most(k) >= 5000000) slow += s->n[k];
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
        DQ_EQ(blocks(&r).extra[DQ_EXTRA_MISSING], SLOTS - 3);
        uint64_t late = SLOTS + 3;
        rig_send(&r, &late, 1, 7);
        if (m == BED_VIRTUAL) {
            rig_steps(&r, INT64_MAX);
            DQ_EQ(blocks(&r).dropped[DQ_DROP_LATE], 1);
        }
        rig_close(&r);
    }
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
        memset(r.b.s->base + dqi_buf_off(region, region->first_id + k), 0xee, SLOTS * PAYLOAD);
    rig_start(&r);
    send_two(&r);
    rig_close(&r);
}

// Whoever keeps aggregates costs packets, counted, and nothing else.
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

// A sender that starts anew, at a number far behind or far ahead, is found again; one wrong number is not
// believed.
static void found_again(void) {
    rig r;
    rig_open(&r, (bed_conf){.batch = 32, .more_bufs = 64}, usual());
    rig_start(&r);
    uint64_t lost = 1u << 20;
    rig_send_range(&r, 1000 * SLOTS, 1010 * SLOTS);
    rig_send(&r, &lost, 1, 7);
    rig_send_range(&r, 1010 * SLOTS, 1011 * SLOTS);
    rig_steps(&r, INT64_MAX);
    DQ_EQ(r.aggregates, 11);
    DQ_EQ(blocks(&r).extra[DQ_EXTRA_RESYNCS], 0);
    DQ_EQ(blocks(&r).dropped[DQ_DROP_TOO_EARLY], 1);
    rig_send_range(&r, 5000 * SLOTS, 5010 * SLOTS);
    rig_steps(&r, INT64_MAX);
    DQ_EQ(blocks(&r).extra[DQ_EXTRA_RESYNCS], 1);
    DQ_EQ(blocks(&r).dropped[DQ_DROP_TOO_EARLY], 1 + 7);
    DQ_EQ(r.aggregates, 11 + 10); // the first of them without the 7
    r.aggregates = 0;             // order begins anew
    rig_send_range(&r, 0, 10 * SLOTS);
    rig_stop(&r);
    DQ_EQ(blocks(&r).extra[DQ_EXTRA_RESYNCS], 2);
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
    refused("tell two batches apart", c, r.b.more, r.b.s);
    c.seq_bits = 6;
    c.window = 3;
    refused("half of what the numbers tell apart", c, r.b.more, r.b.s);
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
    DQ_CHECK(strstr(d.text, "its own aggregates") != NULL);
    rig_start(&r);
    rig_close(&r);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(in_order);
    DQ_RUN(holes);
    DQ_RUN(by_source);
    DQ_RUN(many_sources);
    DQ_RUN(took);
    DQ_RUN(time_out);
    DQ_RUN(where_payloads_are);
    DQ_RUN(gaps_are_kept);
    DQ_RUN(no_buffer);
    DQ_RUN(nobody_reads);
    DQ_RUN(only_complete);
    DQ_RUN(found_again);
    DQ_RUN(other_flows);
    DQ_RUN(many_fillers);
    DQ_RUN(large_batches);
    DQ_RUN(waits_for_its_time);
    DQ_RUN(misuse);
    return dq_done();
}
