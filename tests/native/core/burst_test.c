// burst_test.c: bursts: references, selections, lengths, partial frees, and what happens when descriptors or
// buffers run out. Every case ends with all buffers back.
#include "bed.h"
#include "core/peers.h"

#include <pthread.h>

static uint32_t free_bufs(const dq_region *r) {
    dq_region_info info;
    dq_region_read(r, &info);
    return info.free_bufs;
}

static dq_burst *must_alloc(dq_queue *q, uint32_t n) {
    dq_burst *b = NULL;
    DQ_EQ(dq_tx_alloc(q, n, &b), DQ_OK);
    if (!b) exit(1);
    return b;
}

// A session whose transmit queue has one region per segment, not started.
static dq_queue *open_segments(dq_session **s, dq_region **r, uint32_t nseg) {
    dq_session_conf c = {
        .virtual_clock = 1, .start_ns = BED_START_NS, .rx_meta_buffers = 4, .tx_meta_buffers = 4};
    dq_iface_conf ic = {.name = "port0", .engine = "loop"};
    dq_queue_conf qc = {
        .name = "tx0", .dir = DQ_TX, .direct = 1, .core = -1, .batch_size = 16, .n_regions = nseg};
    dq_diag d = {{0}};
    dq_iface *i;
    dq_queue *q;
    bed_must(dq_session_new(&c, s, &d), &d, "session");
    for (uint32_t k = 0; k < nseg; k++)
        qc.regions[k] = r[k] = bed_region(*s, "r", 64, 100 + 100 * k);
    bed_must(dq_iface_add(*s, &ic, &i, &d), &d, "interface");
    bed_must(dq_queue_add(i, &qc, &q, &d), &d, "queue");
    bed_must(dq_session_open(*s, &d), &d, "open");
    return q;
}

static void references(void) {
    bed b;
    bed_open(&b, (bed_conf){.bufs = 32});
    dq_burst *x = must_alloc(b.tx[0][0], 8);
    DQ_EQ(free_bufs(b.out), 24);
    for (int i = 0; i < 3; i++)
        dq_burst_ref(x);
    for (int i = 0; i < 3; i++)
        dq_burst_unref(x);
    DQ_EQ(free_bufs(b.out), 24);
    dq_burst_unref(x);
    DQ_EQ(free_bufs(b.out), 32);
    dq_burst_unref(NULL);
    bed_start(&b);
    bed_close(&b);
}

static void fresh_columns(void) {
    bed b;
    dq_view v;
    bed_open(&b, (bed_conf){.bufs = 16, .batch = 16});
    for (int round = 0; round < 2; round++) { // the second gets what the first left dirty
        dq_burst *x = must_alloc(b.tx[0][0], 16);
        dq_burst_view(x, &v);
        DQ_EQ(v.n, 16);
        DQ_EQ(v.nseg, 1);
        DQ_EQ(v.flags, 0);
        DQ_EQ(v.bytes, 0);
        DQ_EQ(v.conn, 0);
        DQ_EQ(v.clock, DQ_CLOCK_VIRTUAL);
        DQ_CHECK(v.queue == b.tx[0][0]);
        for (uint32_t i = 0; i < 16; i++) {
            DQ_CHECK(v.len[0][i] == 0 && v.flow[i] == 0 && v.ts[i] == DQ_NO_TIME &&
                     dq_burst_times(x)[i] == 0);
            v.flow[i] = 7;
            v.ts[i] = dq_burst_times(x)[i] = 9;
        }
        DQ_EQ(dq_burst_redirect(x, 5, &x), DQ_OK);
        DQ_EQ(dq_burst_set_len(x, 0, -1, 60), DQ_OK);
        dq_burst_unref(x);
    }
    bed_start(&b);
    bed_close(&b);
}

static uint32_t imm_of(const dq_burst *b, uint32_t i) {
    uint32_t value = 99;
    return dq_burst_imm(b, i, &value) ? value : UINT32_MAX;
}

// Immediates stay with their packets when these are selected, swapped and moved; a packet without one, before
// or behind those that have one, gets none, nor does a later burst of the same descriptor.
static void immediates(void) {
    bed b;
    const uint32_t idx[] = {3, 1};
    bed_open(&b, (bed_conf){.bufs = 32, .batch = 16});
    for (int round = 0; round < 2; round++) {
        dq_burst *x = must_alloc(b.tx[0][0], 4), *y = must_alloc(b.tx[0][0], 3), *part;
        DQ_EQ(imm_of(x, 0), UINT32_MAX);
        DQ_EQ(dq_burst_truncate(y, 1), DQ_OK);
        dqi_burst_set_imm(x, 1, (dqi_imm){0, DQI_IMM_SEND});
        dqi_burst_set_imm(x, 2, (dqi_imm){UINT32_MAX - 1, DQI_IMM_WRITE});
        dqi_burst_set_imm(x, 3, (dqi_imm){7, DQI_IMM_SEND});
        DQ_EQ(imm_of(x, 0), UINT32_MAX);
        DQ_EQ(imm_of(x, 4), UINT32_MAX);
        DQ_EQ(dq_burst_pick(x, idx, 2, &part), DQ_OK);
        DQ_EQ(imm_of(part, 0), 7);
        DQ_EQ(imm_of(part, 1), 0);
        dq_burst_unref(part);
        dqi_burst_swap(x, 0, 2);
        DQ_EQ(imm_of(x, 0), UINT32_MAX - 1);
        DQ_EQ(imm_of(x, 2), UINT32_MAX);
        dqi_burst_move(y, x, 0, 4);
        const uint32_t want[] = {UINT32_MAX, UINT32_MAX - 1, 0, UINT32_MAX, 7};
        for (uint32_t i = 0; i < 5; i++)
            DQ_EQ(imm_of(y, i), want[i]);
        DQ_EQ(dqi_burst_imm(y, 1).of, DQI_IMM_WRITE);
        dq_burst *z = must_alloc(b.tx[0][0], 2);
        dqi_burst_move(y, z, 0, 1);
        DQ_EQ(imm_of(y, 5), UINT32_MAX);
        dq_burst_unref(z);
        dq_burst_unref(x);
        dq_burst_unref(y);
    }
    bed_start(&b);
    bed_close(&b);
}

static void lengths(void) {
    dq_session *s;
    dq_region *r[2];
    dq_view v;
    dq_queue *q = open_segments(&s, r, 2);
    dq_burst *x = must_alloc(q, 3);
    static const struct {
        uint32_t seg;
        int64_t i;
        uint32_t len;
        int err;
        uint64_t bytes; // of the burst afterwards
    } steps[] = {
        {0, -1, 100, DQ_OK, 300},
        {0, -1, 101, DQ_INVALID_PARAMETER, 300},
        {1, -1, 200, DQ_OK, 900},
        {1, 2, 201, DQ_INVALID_PARAMETER, 900},
        {1, 2, 0, DQ_OK, 700},
        {1, 3, 1, DQ_INVALID_PARAMETER, 700},
        {2, 0, 1, DQ_INVALID_PARAMETER, 700},
        {0, INT64_MAX, 1, DQ_INVALID_PARAMETER, 700},
        {0, INT64_C(1) << 32, 1, DQ_INVALID_PARAMETER, 700},
        {0, 0, UINT32_MAX, DQ_INVALID_PARAMETER, 700},
        {0, 1, 1, DQ_OK, 601},
    };
    for (size_t k = 0; k < sizeof steps / sizeof *steps; k++) {
        DQ_EQ(dq_burst_set_len(x, steps[k].seg, steps[k].i, steps[k].len), steps[k].err);
        dq_burst_view(x, &v);
        DQ_EQ(v.bytes, steps[k].bytes);
    }
    dq_burst_unref(x);
    DQ_EQ(dq_session_close(s), 0);
}

static void truncated(void) {
    dq_session *s;
    dq_region *r[2];
    dq_view v;
    dq_queue *q = open_segments(&s, r, 2);
    dq_burst *x = must_alloc(q, 10);
    DQ_EQ(dq_burst_set_len(x, 0, -1, 50), DQ_OK);
    DQ_EQ(dq_burst_truncate(x, 11), DQ_INVALID_PARAMETER);
    DQ_EQ(dq_burst_truncate(x, 10), DQ_OK);
    DQ_EQ(dq_burst_truncate(x, 4), DQ_OK);
    dq_burst_view(x, &v);
    DQ_EQ(v.n, 4);
    DQ_EQ(v.bytes, 200);
    DQ_EQ(free_bufs(r[0]), 60);
    DQ_EQ(free_bufs(r[1]), 60);
    DQ_EQ(dq_burst_truncate(x, 5), DQ_INVALID_PARAMETER);
    DQ_EQ(dq_burst_truncate(x, 0), DQ_OK);
    DQ_EQ(free_bufs(r[0]), 64);
    dq_burst_unref(x);
    DQ_EQ(dq_session_close(s), 0);
}

static void partial_frees(void) {
    dq_session *s;
    dq_region *r[2];
    dq_view v;
    dq_queue *q = open_segments(&s, r, 2);
    dq_burst *x = must_alloc(q, 10);
    DQ_EQ(dq_burst_set_len(x, 0, -1, 10), DQ_OK);
    DQ_EQ(dq_burst_set_len(x, 1, -1, 20), DQ_OK);
    DQ_EQ(dq_burst_free_packet(x, 3), DQ_OK);
    DQ_EQ(dq_burst_free_packet(x, 3), DQ_OK);
    DQ_EQ(dq_burst_free_packet(x, 10), DQ_INVALID_PARAMETER);
    DQ_EQ(free_bufs(r[0]), 55);
    DQ_EQ(free_bufs(r[1]), 55);
    dq_burst_view(x, &v);
    DQ_EQ(v.n, 10);
    DQ_EQ(v.bytes, 270);
    DQ_EQ(v.len[0][3] + v.len[1][3], 0);
    DQ_EQ(dq_burst_set_len(x, 0, 3, 1), DQ_INVALID_PARAMETER); // its buffer belongs to another burst now
    DQ_EQ(dq_burst_free_segment(x, 2), DQ_INVALID_PARAMETER);
    DQ_EQ(dq_burst_free_segment(x, 1), DQ_OK);
    DQ_EQ(free_bufs(r[1]), 64);
    DQ_EQ(free_bufs(r[0]), 55);
    dq_burst_view(x, &v);
    DQ_EQ(v.bytes, 90);
    DQ_EQ(dq_burst_truncate(x, 2), DQ_OK);
    DQ_EQ(free_bufs(r[0]), 62);
    dq_burst_unref(x);
    DQ_EQ(dq_session_close(s), 0);
}

static void selections(void) {
    bed b;
    dq_view v, pv, ppv;
    dq_burst *x, *p, *pp, *none;
    bed_open(&b, (bed_conf){.bufs = 16});
    DQ_EQ(bed_make(&b, b.tx[0][0], 10, 100, 7, &x), DQ_OK);
    dq_burst_view(x, &v);
    for (uint32_t i = 0; i < 10; i++)
        v.flow[i] = i, v.ts[i] = 100 + i;
    const uint32_t idx[] = {9, 2, 2, 5}, again[] = {3, 0}, past[] = {1, 10};
    DQ_EQ(dq_burst_set_len(x, 0, 5, 80), DQ_OK);
    DQ_EQ(dq_burst_pick(x, idx, 4, &p), DQ_OK);
    DQ_EQ(dq_burst_pick(p, again, 2, &pp), DQ_OK);
    DQ_EQ(dq_burst_pick(x, past, 2, &none), DQ_INVALID_PARAMETER);
    dq_burst_view(p, &pv);
    dq_burst_view(pp, &ppv);
    DQ_EQ(pv.n, 4);
    DQ_EQ(pv.bytes, 380);
    DQ_EQ(ppv.n, 2);
    DQ_EQ(ppv.bytes, 180);
    for (uint32_t i = 0; i < 4; i++) {
        DQ_EQ(pv.off[0][i], v.off[0][idx[i]]);
        DQ_EQ(pv.flow[i], idx[i]);
        DQ_EQ(pv.ts[i], 100 + idx[i]);
    }
    DQ_EQ(ppv.flow[0], 5);
    DQ_EQ(ppv.flow[1], 9);
    dq_burst_unref(x); // the selections keep its buffers
    DQ_EQ(free_bufs(b.out), 6);
    DQ_EQ(dq_burst_free_packet(p, 0), DQ_OK); // a selection owns none that it could return
    DQ_EQ(dq_burst_truncate(p, 1), DQ_OK);
    DQ_EQ(free_bufs(b.out), 6);
    dq_burst_unref(p);
    DQ_EQ(free_bufs(b.out), 6);
    dq_burst_view(pp, &ppv);
    DQ_EQ(bed_bytes(&ppv, 0, 1)[BED_HEAD + 7], 9);
    dq_burst_unref(pp);
    DQ_EQ(free_bufs(b.out), 16);
    bed_start(&b);
    bed_close(&b);
}

// A buffer stays where it is as long as a selection can reach it, whatever becomes of its packet in the
// parent; and what was freed stays empty, also in selections made later.
static void freed_under_a_selection(void) {
    const uint32_t first[] = {0, 1, 2, 3};
    bed b;
    dq_view v;
    dq_burst *x, *before, *after;
    bed_open(&b, (bed_conf){.bufs = 16});
    dq_diag d = {{0}};
    DQ_EQ(dqi_region_keep_peers(b.out, &d), DQ_OK);
    DQ_EQ(bed_make(&b, b.tx[0][0], 10, 100, 7, &x), DQ_OK);
    DQ_EQ(dq_burst_pick(x, first, 4, &before), DQ_OK);
    DQ_CHECK(dqi_burst_peer_addr(before, 0));
    DQ_EQ(dq_burst_free_packet(x, 1), DQ_OK);
    DQ_EQ(dq_burst_truncate(x, 3), DQ_OK);
    DQ_EQ(dq_burst_free_segment(x, 0), DQ_OK);
    DQ_EQ(free_bufs(b.out), 6);
    DQ_EQ(dq_burst_set_len(x, 0, 1, 1), DQ_INVALID_PARAMETER);
    dq_burst_view(before, &v);
    for (uint32_t i = 0; i < 4; i++)
        DQ_EQ(bed_bytes(&v, 0, i)[BED_HEAD + 7], i);
    DQ_EQ(dq_burst_pick(x, first, 2, &after), DQ_OK);
    DQ_EQ(dq_burst_set_len(after, 0, -1, 1), DQ_INVALID_PARAMETER);
    DQ_CHECK(!dqi_burst_peer_addr(after, 0));
    dq_burst_unref(after);
    dq_burst_unref(before);
    DQ_EQ(free_bufs(b.out), 6);
    dq_burst_unref(x);
    DQ_EQ(free_bufs(b.out), 16);

    DQ_EQ(bed_make(&b, b.tx[0][0], 10, 100, 7, &x), DQ_OK); // alone, its buffers go at once
    DQ_EQ(dq_burst_free_packet(x, 0), DQ_OK);
    DQ_EQ(free_bufs(b.out), 7);
    DQ_EQ(dq_burst_pick(x, first, 4, &after), DQ_OK);
    DQ_EQ(dq_burst_set_len(after, 0, 0, 1), DQ_INVALID_PARAMETER);
    DQ_EQ(dq_burst_set_len(after, 0, 1, 1), DQ_OK);
    dq_burst_unref(x);
    dq_burst_unref(after);
    DQ_EQ(free_bufs(b.out), 16);
    bed_start(&b);
    bed_close(&b);
}

static void check_writable(dq_burst *x, bool want) {
    dq_field f;
    dq_view v;
    DQ_CHECK(dq_field_named("udp_dst", &f));
    dq_burst_view(x, &v);
    DQ_EQ(((v.flags | *v.owner_flags) & DQ_BURST_SHARED) == 0, want);
    DQ_EQ(dq_burst_set(x, &f, 9, 0, 0), want ? (int)v.n : DQ_INVALID_PARAMETER);
    DQ_EQ(dq_burst_set_len(x, 0, -1, 100), want ? DQ_OK : DQ_INVALID_PARAMETER);
    DQ_EQ(dq_burst_checksums(x, -1), want ? DQ_OK : DQ_INVALID_PARAMETER);
    DQ_EQ(dq_burst_truncate(x, v.n), want ? DQ_OK : DQ_INVALID_PARAMETER);
}

// A reader of one of the bursts that share packets makes the packets of all read-only. Send times are each
// burst's own.
static void read_only_for_all(void) {
    const uint32_t idx[] = {0, 1, 2, 3};
    for (int which = 0; which < 3; which++) {
        bed b;
        dq_burst *x[3];
        bed_open(&b, (bed_conf){.bufs = 16});
        DQ_EQ(bed_make(&b, b.tx[0][0], 4, 100, 7, &x[0]), DQ_OK);
        DQ_EQ(dq_burst_pick(x[0], idx, 4, &x[1]), DQ_OK);
        DQ_EQ(dq_burst_pick(x[1], idx, 2, &x[2]), DQ_OK);
        for (int i = 0; i < 3; i++)
            check_writable(x[i], true);
        dqi_burst_share(x[which]);
        dq_burst *late;
        DQ_EQ(dq_burst_pick(x[2], idx, 2, &late), DQ_OK);
        check_writable(late, false);
        for (int i = 0; i < 3; i++) {
            check_writable(x[i], false);
            DQ_EQ(dq_burst_times(x[i]) == NULL, i == which || (i == 0 && which != 0));
        }
        DQ_CHECK(dq_burst_times(late));
        dq_burst_unref(late);
        for (int i = 0; i < 3; i++)
            dq_burst_unref(x[i]);
        DQ_EQ(free_bufs(b.out), 16);
        bed_start(&b);
        bed_close(&b);
    }
}

// A selection that is on its way out makes its parent's packets read-only; one that the queue refused does
// not.
static void read_only_once_sent(void) {
    const uint32_t idx[] = {0, 1};
    enum { RING = 4 };
    bed b;
    dq_burst *x[2], *p;
    bed_open(&b, (bed_conf){.bufs = 16, .tx_meta = RING});
    for (int i = 0; i < 2; i++)
        DQ_EQ(bed_make(&b, b.tx[0][0], 4, 100, 7, &x[i]), DQ_OK);
    for (int i = 0; i < RING; i++) {
        DQ_EQ(dq_burst_pick(x[0], idx, 2, &p), DQ_OK);
        DQ_EQ(dq_tx_send(b.tx[0][0], p), DQ_OK);
    }
    DQ_EQ(dq_burst_pick(x[1], idx, 2, &p), DQ_OK);
    DQ_EQ(dq_tx_send(b.tx[0][0], p), DQ_NO_SPACE_AVAILABLE);
    check_writable(x[0], false);
    check_writable(x[1], true);
    check_writable(p, true);
    dq_burst_unref(p);
    for (int i = 0; i < 2; i++)
        dq_burst_unref(x[i]);
    bed_start(&b);
    bed_close(&b);
}

// Where a burst goes is its own while another consumer reads it.
static void redirected(void) {
    bed b;
    dq_view v;
    dq_burst *x, *y;
    bed_open(&b, (bed_conf){.bufs = 16});
    DQ_EQ(bed_make(&b, b.tx[0][0], 4, 100, 7, &x), DQ_OK);
    DQ_EQ(dq_burst_redirect(x, 3, &y), DQ_OK);
    DQ_CHECK(x == y);
    dq_burst_ref(x); // a writer, say
    DQ_EQ(dq_burst_redirect(x, 3, &y), DQ_OK);
    DQ_CHECK(x == y);
    DQ_EQ(dq_burst_redirect(x, 5, &y), DQ_OK);
    DQ_CHECK(x != y);
    dq_burst_view(x, &v);
    DQ_EQ(v.conn, 3);
    dq_burst_view(y, &v);
    DQ_EQ(v.conn, 5);
    DQ_EQ(v.n, 4);
    DQ_EQ(v.bytes, 400);
    dq_burst_unref(x);
    DQ_EQ(free_bufs(b.out), 12);
    dq_burst_unref(y);
    DQ_EQ(free_bufs(b.out), 16);
    bed_start(&b);
    bed_close(&b);
}

static void selections_run_out(void) {
    enum { MANY = 100000 };
    static dq_burst *held[MANY];
    bed b;
    dq_burst *x;
    uint32_t idx[64] = {0}, n = 0;
    bed_open(&b, (bed_conf){.bufs = 16});
    x = must_alloc(b.tx[0][0], 4);
    for (int round = 0; round < 2; round++) {
        int err = DQ_OK;
        for (n = 0; n < MANY && (err = dq_burst_pick(x, idx, 2, &held[n])) == DQ_OK;)
            n++;
        DQ_CHECK(n >= 256 && n < MANY);
        DQ_EQ(err, DQ_NO_FREE_BURST_BUFFERS);
        while (n > 0)
            dq_burst_unref(held[--n]);
    }
    dq_burst_unref(x);
    bed_start(&b);
    bed_close(&b);
}

static void buffers_run_out(void) {
    bed b;
    dq_burst *x, *none = NULL;
    bed_open(&b, (bed_conf){.bufs = 10, .tx_meta = 4});
    x = must_alloc(b.tx[0][0], 8);
    for (int i = 0; i < 10; i++) // more often than there are descriptors: a refusal takes none
        DQ_EQ(dq_tx_alloc(b.tx[0][0], 3, &none), DQ_NO_FREE_PACKET_BUFFERS);
    DQ_EQ(free_bufs(b.out), 2);
    dq_burst_unref(x);
    bed_start(&b);
    bed_close(&b);
}

static void second_region_runs_out(void) {
    dq_session *s;
    dq_region *r[3];
    dq_queue *q = open_segments(&s, r, 3);
    dq_burst *none = NULL;
    uint32_t ids[60];
    DQ_EQ(dqi_bufs_alloc(r[2], ids, 60), 60);
    for (int i = 0; i < 10; i++)
        DQ_EQ(dq_tx_alloc(q, 5, &none), DQ_NO_FREE_PACKET_BUFFERS);
    DQ_EQ(free_bufs(r[0]), 64);
    DQ_EQ(free_bufs(r[1]), 64);
    DQ_EQ(free_bufs(r[2]), 4);
    dqi_bufs_free(s, ids, 60);
    DQ_EQ(dq_session_close(s), 0);
}

static void descriptors_run_out(void) {
    bed b;
    dq_burst *x[4], *none = NULL;
    bed_open(&b, (bed_conf){.bufs = 100, .tx_meta = 4});
    for (int i = 0; i < 4; i++)
        x[i] = must_alloc(b.tx[0][0], 2);
    DQ_EQ(dq_tx_alloc(b.tx[0][0], 2, &none), DQ_NO_FREE_BURST_BUFFERS);
    DQ_EQ(free_bufs(b.out), 92);
    dq_burst_unref(x[2]);
    x[2] = must_alloc(b.tx[0][0], 2);
    for (int i = 0; i < 4; i++)
        dq_burst_unref(x[i]);
    bed_start(&b);
    bed_close(&b);
}

// What is still out when the session closes is reported.
static void missing_buffers_are_counted(void) {
    bed b;
    bed_open(&b, (bed_conf){.bufs = 16});
    must_alloc(b.tx[0][0], 5);
    DQ_EQ(dq_session_close(b.s), 5);
    dq_waiter_free(b.w);
}

// ---- threads ----------------------------------------------------------------------------------------------

static dq_queue *hammered;

static void *hammer(void *arg) {
    uint64_t seed = (uint64_t)(uintptr_t)arg;
    for (int i = 0; i < 4000; i++) {
        dq_burst *x, *p = NULL;
        uint32_t n = 1 + dq_below(&seed, 16), idx[16];
        if (dq_tx_alloc(hammered, n, &x) != DQ_OK) continue;
        for (uint32_t k = 0; k < n; k++)
            idx[k] = k;
        dq_burst_ref(x);
        if (dq_burst_pick(x, idx, n, &p) != DQ_OK) p = NULL;
        dq_burst_unref(x);
        if (!p) DQ_EQ(dq_burst_truncate(x, n / 2), DQ_OK);
        dq_burst_unref(x);
        dq_burst_unref(p);
    }
    return NULL;
}

static void from_many_threads(void) {
    bed b;
    pthread_t t[4];
    bed_open(&b, (bed_conf){.bufs = 40, .tx_meta = 6});
    hammered = b.tx[0][0];
    for (uintptr_t i = 0; i < 4; i++)
        DQ_EQ(pthread_create(&t[i], NULL, hammer, (void *)i), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    DQ_EQ(free_bufs(b.out), 40);
    bed_start(&b);
    bed_close(&b);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(references);
    DQ_RUN(fresh_columns);
    DQ_RUN(immediates);
    DQ_RUN(lengths);
    DQ_RUN(truncated);
    DQ_RUN(partial_frees);
    DQ_RUN(selections);
    DQ_RUN(freed_under_a_selection);
    DQ_RUN(read_only_for_all);
    DQ_RUN(read_only_once_sent);
    DQ_RUN(redirected);
    DQ_RUN(selections_run_out);
    DQ_RUN(buffers_run_out);
    DQ_RUN(second_region_runs_out);
    DQ_RUN(descriptors_run_out);
    DQ_RUN(missing_buffers_are_counted);
    DQ_RUN(from_many_threads);
    return dq_done();
}
