// reorder_rig.h: a reorder stage fed with numbered frames, whose aggregates are checked byte by byte as they
// come.
#ifndef REORDER_RIG_H
#define REORDER_RIG_H

#include "bed_pipe.h"

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
static inline dq_number number(void) {
    static const dq_insn insns[] = {{.op = DQ_OP_LOAD, .b = 64, .c = 8 * BED_HEAD}, {.op = DQ_OP_RET}};
    return (dq_number){insns, 2};
}

static inline dq_reorder_conf usual(void) {
    return (dq_reorder_conf){
        .seq = number(), .seq_bits = 64, .slots = SLOTS, .payload_offset = BED_HEAD, .fill = 0xee};
}

static inline void rig_open(rig *r, bed_conf c, dq_reorder_conf conf) {
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

static inline void rig_tap(rig *r) {
    dq_stage *tap = bed_tap(&r->b, 1, 64, DQ_POLICY_WAIT);
    bed_pipe(r->out, &tap, 1);
}

static inline void rig_start(rig *r) {
    rig_tap(r);
    for (uint32_t k = 0; k < r->b.conf.rx; k++)
        bed_pipe(r->b.rx[0][k], &r->st, 1);
    bed_start(&r->b);
}

// Each slot has the bytes of its packet, or the fill.
static inline void check_slots(const rig *r, const dq_aggregate *a, const uint8_t *data) {
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

static inline void check_aggregate(rig *r, const dq_event *ev) {
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

static inline int rig_serve(rig *r, int64_t timeout_ns) {
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
static inline void rig_steps(rig *r, int64_t until_ns) {
    for (;;) {
        if (rig_serve(r, 0) > 0 || dq_step(r->b.s) > 0) continue;
        int64_t next = dq_next_time(r->b.s);
        if (next == INT64_MAX || next > until_ns) break;
        dq_advance(r->b.s, next);
    }
    if (until_ns != INT64_MAX) dq_advance(r->b.s, until_ns);
}

static inline void rig_send(rig *r, const uint64_t *seqs, uint32_t n, uint16_t port) {
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
static inline void rig_send_range(rig *r, uint64_t from, uint64_t to) {
    while (from < to) {
        uint64_t seqs[32];
        uint32_t n = 0;
        while (n < 32 && from < to)
            seqs[n++] = from++;
        rig_send(r, seqs, n, 7);
    }
}

// Ends the stream; what was open comes out.
static inline void rig_stop(rig *r) {
    int64_t end = dqi_mono_ns() + BED_PATIENCE;
    while (dq_session_stop(r->b.s, 10000000000) > 0 && dqi_mono_ns() < end)
        while (rig_serve(r, 0) > 0) {
        }
    while (rig_serve(r, 0) > 0) {
    }
    bed_check_ledger(r->b.s, false);
}

static inline void rig_close(rig *r) {
    rig_stop(r);
    while (r->n_kept > 0)
        dq_burst_unref(r->kept[--r->n_kept]);
    dq_session_finish(r->b.s);
    bed_check_ledger(r->b.s, true);
    DQ_EQ(dq_session_close(r->b.s), 0);
    dq_waiter_free(r->b.w);
}

static inline void rig_until(rig *r, uint64_t packets) {
    int64_t end = dqi_mono_ns() + BED_PATIENCE;
    if (r->b.conf.mode == BED_VIRTUAL) rig_steps(r, INT64_MAX);
    while (r->b.conf.mode != BED_VIRTUAL && r->packets < packets && dqi_mono_ns() < end)
        rig_serve(r, 20000000);
    DQ_EQ(r->packets, packets);
}

static inline dq_line blocks(const rig *r) { return stage_line(&r->b, "blocks"); }

#endif
