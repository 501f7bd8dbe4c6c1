// heaps_test.c: the heaps stage on pieces of any length, in any order and by two pollers at once, against a
// model that knows which bytes were sent; and what it counts.
#include "bed_pipe.h"
#include "reorder/dq_reorder.h"

enum { HEAPS = 60, MOST = 6000, HEAD = BED_HEAD + 16, PIECE = 900, FILL = 0x5a };

typedef struct piece {
    uint64_t id;
    uint32_t size, at, len;
} piece;

typedef struct rig {
    bed b;
    dq_stage *st;
    dq_queue *out;
    uint64_t base;         // heap k has the id base + 3 * k
    uint32_t sizes[HEAPS]; // of the model, as the next two
    uint8_t sent[HEAPS][MOST];
    bool came[HEAPS];
    uint64_t heaps, missing, packets;
    uint32_t flags;
    dq_burst *kept[8];
    uint32_t n_kept, keep;
} rig;

static uint8_t byte_of(uint64_t id, uint32_t at) { return (uint8_t)(id * 31 + at * 7 + (at >> 8)); }

#define NUMBER(name, width, byte)                                                                            \
    static const dq_insn name[] = {{.op = DQ_OP_LOAD, .b = width, .c = 8 * (BED_HEAD + (byte))},             \
                                   {.op = DQ_OP_RET}}
NUMBER(id_of, 64, 0);
NUMBER(size_of, 32, 8);
NUMBER(offset_of, 32, 12);

static dq_heaps_conf usual(void) {
    return (dq_heaps_conf){.id = {id_of, 2},
                           .size = {size_of, 2},
                           .offset = {offset_of, 2},
                           .payload_offset = HEAD,
                           .window = HEAPS + 2,
                           .fill = FILL};
}

static void rig_open(rig *r, bed_conf c, dq_heaps_conf conf) {
    dq_diag d = {{0}};
    *r = (rig){.base = UINT64_C(1) << 40};
    c.more_bufs = c.more_bufs ? c.more_bufs : 2 * HEAPS;
    c.more_size = MOST;
    bed_open(&r->b, c);
    conf.region = r->b.more;
    bed_must(dq_stage_heaps(r->b.s, "heaps", &conf, &r->st, &r->out, &d), &d, "heaps");
    dq_rule rules[] = {bed_rule(7, 1, 0), bed_rule(8, 2, (uint16_t)(c.rx > 1))};
    bed_rules(r->b.ifaces[0], rules, 2);
    dq_stage *tap = bed_tap(&r->b, 1, 64, DQ_POLICY_WAIT);
    bed_pipe(r->out, &tap, 1);
    for (uint32_t k = 0; k < r->b.conf.rx; k++)
        bed_pipe(r->b.rx[0][k], &r->st, 1);
    bed_start(&r->b);
}

// A heap's bytes are those that were sent, the others the fill; its bits say which.
static void check_heap(rig *r, const dq_event *ev) {
    const dq_aggregate *a = dq_burst_aggregate(ev->b);
    const uint8_t *data = ev->view.base + ev->view.off[0][0];
    uint64_t k = (a->batch_id - r->base) / 3;
    uint32_t wrong = 0, there = 0;
    r->heaps++;
    r->packets += a->packets;
    r->missing += a->cells - a->present_cells;
    r->flags |= a->flags;
    DQ_CHECK(k < HEAPS && a->batch_id == r->base + 3 * k && !r->came[k]);
    if (k >= HEAPS) return;
    r->came[k] = true;
    DQ_EQ(a->slot_bytes, r->sizes[k]);
    DQ_EQ(ev->view.len[0][0], r->sizes[k]);
    for (uint32_t i = 0; i < r->sizes[k]; i++) {
        bool is = a->present[i / 64] >> i % 64 & 1;
        there += is;
        wrong += is != r->sent[k][i] || data[i] != (is ? byte_of(a->batch_id, i) : FILL);
    }
    DQ_EQ(wrong, 0);
    DQ_EQ(a->present_cells, there);
}

static int rig_serve(rig *r, int64_t timeout_ns) {
    dq_event ev[16];
    int n = dq_wait(r->b.w, timeout_ns, ev, 16);
    for (int k = 0; k < n; k++) {
        check_heap(r, &ev[k]);
        if (r->n_kept < r->keep)
            r->kept[r->n_kept++] = ev[k].b;
        else
            dq_burst_unref(ev[k].b);
    }
    return n;
}

static void rig_steps(rig *r) {
    while (r->b.conf.mode == BED_VIRTUAL) {
        if (rig_serve(r, 0) > 0 || dq_step(r->b.s) > 0) continue;
        int64_t next = dq_next_time(r->b.s);
        if (next == INT64_MAX) break;
        dq_advance(r->b.s, next);
    }
}

// Sends n pieces to a port; those that the model is to know are noted in it.
static void rig_send(rig *r, const piece *pieces, uint32_t n, uint16_t port) {
    dq_burst *b;
    dq_view v;
    int err, patience = 1000000;
    while ((err = dq_tx_alloc(r->b.tx[0][0], n, &b)) != DQ_OK && patience-- > 0)
        rig_serve(r, 100000);
    DQ_EQ(err, DQ_OK);
    dq_burst_view(b, &v);
    for (uint32_t i = 0; i < n; i++) {
        const piece *p = &pieces[i];
        uint8_t *to = bed_bytes(&v, 0, i);
        bed_frame(to, HEAD + p->len < BED_MIN ? BED_MIN : HEAD + p->len, 1000, port, p->id);
        for (int k = 0; k < 4; k++) {
            to[BED_HEAD + 8 + k] = (uint8_t)(p->size >> (24 - 8 * k));
            to[BED_HEAD + 12 + k] = (uint8_t)(p->at >> (24 - 8 * k));
        }
        for (uint32_t k = 0; k < p->len; k++)
            to[HEAD + k] = byte_of(p->id, p->at + k);
        DQ_EQ(dq_burst_set_len(b, 0, (int32_t)i, HEAD + p->len), DQ_OK);
    }
    while ((err = dq_tx_send(r->b.tx[0][0], b)) != DQ_OK && patience-- > 0)
        rig_serve(r, 100000);
    DQ_EQ(err, DQ_OK);
}

static void rig_close(rig *r) {
    int64_t end = dqi_mono_ns() + BED_PATIENCE;
    while (dq_session_stop(r->b.s, 10000000000) > 0 && dqi_mono_ns() < end)
        while (rig_serve(r, 0) > 0) {
        }
    while (rig_serve(r, 0) > 0) {
    }
    while (r->n_kept > 0)
        dq_burst_unref(r->kept[--r->n_kept]);
    dq_session_finish(r->b.s);
    bed_check_ledger(r->b.s, true);
    DQ_EQ(dq_session_close(r->b.s), 0);
    dq_waiter_free(r->b.w);
}

// A piece changes places with one of the `near` before it.
static void shuffle(piece *p, uint32_t n, uint32_t near, uint64_t *seed) {
    for (uint32_t i = n; i > 1; i--) {
        uint32_t k = i <= near ? dq_below(seed, i) : i - 1 - dq_below(seed, near);
        piece other = p[i - 1];
        p[i - 1] = p[k];
        p[k] = other;
    }
}

// The pieces of random heaps, of which one in `lost` is left out (0: none); the model knows the others.
static uint32_t cut(rig *r, piece *out, uint32_t lost, uint64_t *seed) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < HEAPS; k++) {
        r->sizes[k] = 1 + dq_below(seed, MOST);
        for (uint32_t at = 0, len; at < r->sizes[k]; at += len) {
            uint32_t rest = r->sizes[k] - at;
            len = 1 + dq_below(seed, rest < PIECE ? rest : PIECE);
            if (at > 0 && lost && dq_below(seed, lost) == 0) continue;
            memset(r->sent[k] + at, 1, len);
            out[n++] = (piece){r->base + 3 * k, r->sizes[k], at, len};
        }
    }
    return n;
}

// Whole heaps and such with holes, by two pollers: every piece in any order, and heaps one behind the other.
static void any_order(void) {
    static piece pieces[HEAPS * MOST];
    BED_EACH_MODE(m) {
        for (uint32_t k = 0; k < 4; k++) {
            uint32_t lost = k % 2 ? 7 : 0;
            static rig r;
            uint64_t seed = 17 + m;
            dq_heaps_conf c = usual();
            c.policy = DQ_POLICY_WAIT;
            rig_open(&r, (bed_conf){.mode = m, .rx = 2, .batch = 32, .timeout_us = 20}, c);
            uint32_t n = cut(&r, pieces, lost, &seed), each;
            shuffle(pieces, n, k < 2 ? n : 10, &seed);
            for (uint32_t i = 0; i < n; i += each) {
                each = 1 + dq_below(&seed, n - i < 32 ? n - i : 32);
                rig_send(&r, pieces + i, each, dq_below(&seed, 2) ? 7 : 8);
                rig_serve(&r, 0);
            }
            rig_steps(&r);
            rig_close(&r);
            DQ_EQ(r.heaps, HEAPS);
            DQ_EQ(r.packets, n);
            DQ_EQ(r.missing > 0, lost > 0);
            DQ_EQ(r.flags & ~(uint32_t)DQ_AGGREGATE_STOPPED, 0);
        }
    }
}

static dq_line line(const rig *r) { return stage_line(&r->b, "heaps"); }

// What can't be is counted by its reason, and changes no byte.
static void lies(void) {
    static rig r;
    rig_open(&r, (bed_conf){.batch = 32}, usual());
    uint64_t a = r.base, b = r.base + 3;
    r.sizes[0] = 100;
    r.sizes[1] = 40;
    memset(r.sent[0] + 10, 1, 20);
    memset(r.sent[0] + 60, 1, 40);
    memset(r.sent[1], 1, 40);
    const piece all[] = {
        {a, 100, 10, 20},        {a, 100, 10, 20},          {a, 100, 12, 5},  {a, 100, 0, 11},
        {a, 100, 29, 2},         {a, 100, 81, 20},          {a, 100, 101, 0}, {a, 99, 40, 5},
        {a, 100, 60, 40},        {a, 100, UINT32_MAX, 20},  {b, 40, 0, 40},   {b, 40, 0, 40},
        {b + 3, MOST + 1, 0, 9}, {b + 6, UINT32_MAX, 0, 9}, {a, 100, 100, 0}};
    rig_send(&r, all, sizeof all / sizeof *all, 7);
    rig_steps(&r);
    dq_line l = line(&r);
    DQ_EQ(l.dropped[DQ_DROP_DUPLICATE], 3);
    DQ_EQ(l.dropped[DQ_DROP_OVERLAP], 2);
    DQ_EQ(l.dropped[DQ_DROP_PAST_END], 3);
    DQ_EQ(l.dropped[DQ_DROP_SIZE_CHANGED], 1);
    DQ_EQ(l.dropped[DQ_DROP_TOO_LONG], 2);
    rig_close(&r);
    DQ_EQ(r.heaps, 2);
    DQ_EQ(r.missing, 40);
}

// The heap that has been without a packet for longest makes room; what comes for it later is late. A time-out
// counts from the first packet.
static void closing(void) {
    static rig r;
    dq_heaps_conf c = usual();
    c.window = 2;
    c.timeout_ns = 5000000;
    rig_open(&r, (bed_conf){.batch = 32, .timeout_us = 10}, c);
    for (uint32_t k = 0; k < 3; k++) {
        r.sizes[k] = 10;
        memset(r.sent[k], 1, 5);
    }
    memset(r.sent[0] + 5, 1, 3);
    const uint64_t a = r.base;
    const piece all[] = {
        {a, 10, 0, 5}, {a + 3, 10, 0, 5}, {a, 10, 5, 3}, {a + 6, 10, 0, 5}, {a + 3, 10, 5, 5}};
    rig_send(&r, all, 5, 7);
    rig_steps(&r); // to the time-outs of the first and the third
    DQ_EQ(r.heaps, 3);
    DQ_EQ(r.flags, DQ_AGGREGATE_PUSHED | DQ_AGGREGATE_TIMEOUT);
    dq_line l = line(&r);
    DQ_EQ(l.dropped[DQ_DROP_LATE], 1);
    DQ_EQ(l.extra[DQ_EXTRA_PUSHED], 1);
    DQ_EQ(l.extra[DQ_EXTRA_TIMEOUTS], 2);
    DQ_EQ(l.extra[DQ_EXTRA_MISSING], 2); // the others are the last two that began
    DQ_EQ(l.extra[DQ_EXTRA_EXPECTED], 8 + 5 + 5 + 2);
    rig_close(&r);
}

// A consumer that keeps heaps costs packets, counted, and nothing else.
static void no_buffer(void) {
    static rig r;
    dq_heaps_conf c = usual();
    c.window = 2;
    rig_open(&r, (bed_conf){.more_bufs = 4}, c);
    r.keep = 4;
    for (uint32_t k = 0; k < 8; k++) {
        r.sizes[k] = 50;
        memset(r.sent[k], 1, 50);
        rig_send(&r, &(piece){r.base + 3 * k, 50, 0, 50}, 1, 7);
        rig_steps(&r);
        if (k == 5) {
            DQ_EQ(line(&r).dropped[DQ_DROP_NO_PACKET_BUFFER], 2);
            while (r.n_kept > 0)
                dq_burst_unref(r.kept[--r.n_kept]);
            r.keep = 0;
        }
    }
    DQ_EQ(r.heaps, 6);
    rig_close(&r);
}

// Only whole heaps, where that is what is wanted, and none where nothing reads.
static void dropped(void) {
    static rig r;
    dq_heaps_conf c = usual();
    c.drop_incomplete = 1;
    rig_open(&r, (bed_conf){.batch = 32}, c);
    r.sizes[0] = r.sizes[1] = 20;
    memset(r.sent[0], 1, 20);
    const piece all[] = {{r.base, 20, 0, 20}, {r.base + 3, 20, 0, 10}, {r.base + 3, 20, 15, 5}};
    rig_send(&r, all, 3, 7);
    rig_steps(&r);
    dq_session_stop(r.b.s, 0);
    while (rig_serve(&r, 0) > 0) {
    }
    DQ_EQ(r.heaps, 1);
    DQ_EQ(line(&r).dropped[DQ_DROP_INCOMPLETE], 2);
    rig_close(&r);
}

static void refused(rig *r, const char *why, dq_heaps_conf c) {
    dq_diag d = {{0}};
    dq_stage *st = NULL;
    dq_queue *q = NULL;
    c.region = r->b.more;
    DQ_EQ(dq_stage_heaps(r->b.s, "bad", &c, &st, &q, &d), DQ_INVALID_PARAMETER);
    if (!strstr(d.text, why)) {
        fprintf(stderr, "%s: %s\n", why, d.text);
        DQ_CHECK(false);
    }
}

static void misuse(void) {
    static rig r;
    rig_open(&r, (bed_conf){0}, usual());
    dq_heaps_conf c = usual();
    c.offset.n = 0;
    refused(&r, "needs a memory region, id, offset", c);
    c = usual();
    c.heap_bytes = 8;
    refused(&r, "either size or heap_bytes", c);
    c.size.n = 0;
    c.heap_bytes = MOST + 1;
    refused(&r, "does not fit the buffers", c);
    c = usual();
    c.window = 2 * HEAPS;
    refused(&r, "needs more buffers", c);
    c = usual();
    c.fill = 256;
    refused(&r, "is not a byte", c);
    rig_close(&r);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(any_order);
    DQ_RUN(lies);
    DQ_RUN(closing);
    DQ_RUN(no_buffer);
    DQ_RUN(dropped);
    DQ_RUN(misuse);
    return dq_done();
}
