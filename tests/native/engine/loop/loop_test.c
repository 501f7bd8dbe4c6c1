// loop_test.c: the loop engine as a user sees it: which interface receives which, hand-over by reference and
// by copy, split receive, packets that don't fit.
#include "bed.h"
#include "core/region.h"

static bool reported(const dq_session *s, const char *what) {
    char text[512];
    for (uint32_t i = 0; dq_session_report(s, i, text, sizeof text); i++)
        if (strstr(text, what)) return true;
    return false;
}

// ---- which interface receives which
// ---------------------------------------------------------------------------------------

// One interface receives its own packets, of two each receives the other's packets, of more each receives all
// others.
static void listeners(void) {
    BED_EACH_MODE(m) {
        for (uint32_t ports = 1; ports <= BED_IFACES; ports++) {
            bed b;
            bed_open(&b, (bed_conf){.mode = m, .ifaces = ports, .timeout_us = 100});
            bed_tap_all(&b);
            bed_stream(&b, b.tx[0][0], 300, 30, 100, 7);
            size_t copies = ports == 1 ? 1 : ports - 1;
            bed_until(&b, 300 * copies);
            bed_stop(&b);
            DQ_EQ(b.n, 300 * copies);
            for (uint32_t p = 0; p < ports; p++) {
                uint64_t next = 0;
                for (size_t k = 0; k < b.n; k++) {
                    if (b.got[k].tag != 100 * p) continue;
                    DQ_CHECK(b.got[k].intact && b.got[k].seq == next);
                    next++;
                }
                DQ_EQ(next, p == 0 && ports > 1 ? 0 : 300);
            }
            dq_line w = bed_line(b.s, "port0", DQ_LINE_WIRE, NULL);
            DQ_EQ(w.in, 300 * copies);
            DQ_EQ(w.out, 300 * copies);
            DQ_EQ(w.in_bytes, w.out_bytes);
            bed_close(&b);
        }
    }
}

// Nothing is there to receive: counted, not kept.
static void nobody_listens(void) {
    BED_EACH_MODE(m) {
        dq_session *s;
        dq_waiter *w;
        dq_diag d = {{0}};
        dq_burst *x;
        dq_iface *i;
        dq_queue *q;
        dq_session_conf c = {.virtual_clock = m == BED_VIRTUAL,
                             .start_ns = m == BED_VIRTUAL ? BED_START_NS : 0,
                             .rx_meta_buffers = 8,
                             .tx_meta_buffers = 8};
        dq_iface_conf ic = {.name = "port0", .engine = "loop"};
        dq_queue_conf qc = {.name = "tx0",
                            .dir = DQ_TX,
                            .direct = m != BED_WORKER,
                            .core = -1,
                            .batch_size = 8,
                            .n_regions = 1};
        bed_must(dq_session_new(&c, &s, &d), &d, "session");
        bed_must(dq_waiter_new(&w, &d), &d, "waiter");
        qc.regions[0] = bed_region(s, "r", 64, 200);
        bed_must(dq_iface_add(s, &ic, &i, &d), &d, "port0");
        bed_must(dq_queue_add(i, &qc, &q, &d), &d, "tx0");
        bed_must(dq_session_open(s, &d), &d, "open");
        if (qc.direct) DQ_EQ(dq_waiter_adopt(w, q), DQ_OK);
        bed_must(dq_session_start(s, &d), &d, "start");
        DQ_EQ(dq_tx_alloc(q, 8, &x), DQ_OK);
        DQ_EQ(dq_burst_set_len(x, 0, -1, 60), DQ_OK);
        DQ_EQ(dq_tx_send(q, x), DQ_OK);
        DQ_EQ(dq_session_stop(s, 1000000000), 0);
        DQ_EQ(bed_line(s, "port0", DQ_LINE_WIRE, NULL).dropped[DQ_DROP_NO_PEER], 8);
        bed_check_ledger(s, true);
        DQ_EQ(dq_session_close(s), 0);
        dq_waiter_free(w);
    }
}

// ---- hand-over --------------------------------------------------------------------------------------------

// Regions of one size: the receiver gets the sender's very buffers. Of different sizes: copies in its own.
static void reference_or_copy(void) {
    BED_EACH_MODE(m) {
        for (int copy = 0; copy < 2; copy++) {
            bed b;
            bed_open(&b, (bed_conf){.mode = m, .timeout_us = 100, .batch = 16, .rx_size = {copy ? 512 : 0}});
            DQ_CHECK(reported(b.s, copy ? "copy" : "by reference"));
            bed_tap_all(&b);
            bed_stream(&b, b.tx[0][0], 160, 16, 200, 7);
            bed_until(&b, 160);
            bed_check_order(&b, 160);
            DQ_EQ(bed_line(b.s, "port0", DQ_LINE_RX, NULL).extra[DQ_EXTRA_COPIED], copy ? 160 : 0);
            dq_event ev;
            b.seq = 160;
            DQ_EQ(bed_send(&b, b.tx[0][0], 16, 200, 7), DQ_OK);
            if (m == BED_VIRTUAL) bed_steps(&b, INT64_MAX, false);
            DQ_EQ(dq_wait(b.w, BED_PATIENCE, &ev, 1), 1);
            dq_region_info out;
            dq_region_read(b.out, &out);
            DQ_EQ(out.free_bufs, copy ? out.num_bufs : out.num_bufs - ev.view.n);
            dq_burst_unref(ev.b);
            bed_close(&b);
        }
    }
}

// Two regions on the receive queue: the first takes the first buf_size bytes of each packet, the second the
// rest.
static void header_data_split(void) {
    static const struct {
        uint32_t len, first, second;
    } cases[] = {{64, 64, 0}, {128, 128, 0}, {129, 128, 1}, {628, 128, 500}};
    BED_EACH_MODE(m) {
        for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
            bed b;
            dq_event ev;
            bed_open(&b, (bed_conf){
                             .mode = m, .timeout_us = 100, .batch = 8, .rx_nseg = 2, .rx_size = {128, 500}});
            bed_tap_all(&b);
            DQ_EQ(bed_send(&b, b.tx[0][0], 8, cases[k].len, 7), DQ_OK);
            if (m == BED_VIRTUAL) bed_steps(&b, INT64_MAX, false);
            DQ_EQ(dq_wait(b.w, BED_PATIENCE, &ev, 1), 1);
            DQ_EQ(ev.view.n, 8);
            DQ_EQ(ev.view.nseg, 2);
            DQ_EQ(ev.view.bytes, 8 * cases[k].len);
            for (uint32_t i = 0; i < ev.view.n; i++) {
                DQ_EQ(ev.view.len[0][i], cases[k].first);
                DQ_EQ(ev.view.len[1][i], cases[k].second);
            }
            bed_note(&b, 0, &ev.view);
            bed_check_order(&b, 8);
            dq_burst_unref(ev.b);
            bed_close(&b);
        }
    }
}

// Packets that fit in no buffer are counted; their neighbours arrive.
static void too_long(void) {
    BED_EACH_MODE(m) {
        bed b;
        dq_burst *x;
        bed_open(&b, (bed_conf){.mode = m, .timeout_us = 100, .rx_size = {256}});
        bed_tap_all(&b);
        for (int round = 0; round < 20; round++) {
            DQ_EQ(bed_make(&b, b.tx[0][0], 6, 256, 7, &x), DQ_OK);
            DQ_EQ(dq_burst_set_len(x, 0, 1, 257), DQ_OK);
            DQ_EQ(dq_burst_set_len(x, 0, 4, 1024), DQ_OK);
            DQ_EQ(dq_tx_send(b.tx[0][0], x), DQ_OK);
        }
        bed_until(&b, 80);
        bed_stop(&b);
        DQ_EQ(b.n, 80);
        for (size_t k = 0; k < b.n; k++)
            DQ_CHECK(b.got[k].intact && b.got[k].seq % 6 != 1 && b.got[k].seq % 6 != 4);
        DQ_EQ(bed_line(b.s, "port0", DQ_LINE_RX, NULL).dropped[DQ_DROP_TOO_LONG], 40);
        bed_close(&b);
    }
}

// The receive region is empty: counted; with buffers back, packets arrive again.
static void no_packet_buffers(void) {
    BED_EACH_MODE(m) {
        bed b;
        uint32_t ids[32];
        bed_open(&b, (bed_conf){.mode = m, .timeout_us = 100, .rx_bufs = 32, .rx_size = {512}});
        bed_tap_all(&b);
        DQ_EQ(dqi_bufs_alloc(b.in[0], ids, 32), 32);
        DQ_EQ(bed_send(&b, b.tx[0][0], 40, 100, 7), DQ_OK);
        int64_t end = dqi_mono_ns() + BED_PATIENCE;
        while (bed_line(b.s, "port0", DQ_LINE_RX, NULL).dropped[DQ_DROP_NO_PACKET_BUFFER] < 40 &&
               dqi_mono_ns() < end)
            m == BED_VIRTUAL ? bed_steps(&b, INT64_MAX, true) : (void)bed_serve(&b, 100000);
        dqi_bufs_free(b.s, ids, 32);
        b.seq = 0;
        bed_stream(&b, b.tx[0][0], 30, 30, 100, 7);
        bed_until(&b, 30);
        bed_check_order(&b, 30);
        bed_close(&b);
    }
}

// The sender's MAC goes into each frame when the queue is configured so.
static void source_address(void) {
    bed b;
    uint8_t mac[6], other[6];
    dq_event ev;
    bed_open(&b, (bed_conf){.ifaces = 2, .eth_src = true, .batch = 8});
    DQ_EQ(dq_iface_mac(b.ifaces[0], mac), DQ_OK);
    DQ_EQ(dq_iface_mac(b.ifaces[1], other), DQ_OK);
    DQ_CHECK(memcmp(mac, other, 6) != 0);
    bed_tap_all(&b);
    DQ_EQ(bed_send(&b, b.tx[0][0], 8, 100, 7), DQ_OK);
    bed_steps(&b, INT64_MAX, false);
    DQ_EQ(dq_wait(b.w, 0, &ev, 1), 1);
    for (uint32_t i = 0; i < ev.view.n; i++)
        DQ_EQ_BYTES(bed_bytes(&ev.view, 0, i) + 6, mac, 6);
    dq_burst_unref(ev.b);
    bed_close(&b);
}

// Each change of the rules holds for what is sent next, though the wire keeps those that it knows.
static void rules_change(void) {
    BED_EACH_MODE(m) {
        bed b;
        bed_open(&b, (bed_conf){.mode = m, .timeout_us = 100});
        bed_tap_all(&b);
        for (uint32_t id = 1; id <= 4; id++) {
            dq_diag d = {{0}};
            const uint64_t gone = id - 1;
            dq_rule r = bed_rule(7, id, 0);
            r.order = id;
            DQ_EQ(bed_change(b.ifaces[0], &gone, id > 1, &r, 1, &d), DQ_OK);
            const size_t from = b.n;
            bed_stream(&b, b.tx[0][0], 50, 30, 100, 7);
            bed_until(&b, from + 50);
            for (size_t k = from; k < b.n; k++)
                DQ_EQ(b.got[k].flow, id);
        }
        bed_stop(&b);
        bed_close(&b);
    }
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(listeners);
    DQ_RUN(nobody_listens);
    DQ_RUN(reference_or_copy);
    DQ_RUN(header_data_split);
    DQ_RUN(too_long);
    DQ_RUN(no_packet_buffers);
    DQ_RUN(source_address);
    DQ_RUN(rules_change);
    return dq_done();
}
