// dark_test.c: packets whose second segment lies where the CPU can't read it. What needs no bytes of it
// works, everything else refuses before packets flow, and any access to it ends the process.
#include "bed_pipe.h"
#include "core/burst.h"
#include "core/region.h"
#include "pipeline/queue.h"
#include "pipeline/session.h"
#include "pipeline/stages/dq_stages.h"
#include "reorder/dq_reorder.h"
#include "reorder_rig.h"
#include "writer/dq_writer.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define HEAD 64 // bytes of the first segment

static const bed_conf split = {.rx_nseg = 2, .rx_size = {HEAD, 1024}, .rx_device_only = 2, .bufs = 256};

static bed_conf with(bed_mode mode) {
    bed_conf c = split;
    c.mode = mode;
    return c;
}

// Packets arrive whole: the device finds behind the headers what was sent.
static void arrives(void) {
    BED_EACH_MODE(m) {
        bed b;
        bed_conf c = with(m);
        c.bufs = 2048; // as many as are sent: threads are not in step
        c.timeout_us = 100;
        bed_open(&b, c);
        bed_tap_all(&b);
        bed_stream(&b, b.tx[0][0], 1000, 16, 600, 7148);
        bed_until(&b, 1000);
        for (size_t k = 0; k < b.n; k++)
            DQ_CHECK(b.got[k].intact && b.got[k].seq == k);
        bed_close(&b);
    }
}

static dq_burst *received(bed *b) {
    dq_event ev = {0};
    bed_steps(b, INT64_MAX, false);
    DQ_EQ(dq_wait(b->w, 0, &ev, 1), 1);
    return ev.b;
}

// What a script does with such bursts, without looking at the second segment.
static void handled(void) {
    const uint32_t odd[] = {1, 3, 5};
    bed b;
    dq_view v;
    dq_burst *x, *some;
    bed_open(&b, with(BED_VIRTUAL));
    bed_tap_all(&b);
    DQ_EQ(bed_send(&b, b.tx[0][0], 8, 600, 7148), DQ_OK);
    x = received(&b);
    dq_burst_view(x, &v);
    DQ_EQ(v.device_only, 2);
    DQ_EQ(v.len[0][0], HEAD);
    DQ_EQ(v.len[1][0], 600 - HEAD);
    DQ_CHECK(v.off[1][0] >= b.s->core.arena_bytes);
    DQ_EQ(dq_burst_pick(x, odd, 3, &some), DQ_OK);
    dq_burst_view(some, &v);
    DQ_EQ(v.device_only, 2);
    dq_burst_unref(some);
    dq_burst_compact(x, &x); // what b:keep() does
    DQ_EQ(dq_burst_set_len(x, 1, 0, 1024), DQ_OK);
    DQ_EQ(dq_burst_set_len(x, 1, 0, 1025), DQ_INVALID_PARAMETER);
    DQ_EQ(dq_burst_free_packet_segment(x, 1, 0), DQ_OK);
    DQ_EQ(dq_burst_free_packet(x, 1), DQ_OK);
    DQ_EQ(dqi_region_level(b.in[1]), 256 - 6);
    DQ_EQ(dq_burst_free_segment(x, 1), DQ_OK);
    DQ_EQ(dqi_region_level(b.in[1]), 256);
    DQ_EQ(dqi_region_level(b.in[0]), 256 - 7);
    DQ_EQ(dq_tx_send(b.tx[0][0], x), DQ_INVALID_PARAMETER); // two segments, and the queue sends one
    dq_burst_unref(x);
    bed_close(&b);
}

// A queue with such memory of its own sends them on by reference; a tee beside it counts.
static void forwarded(void) {
    dq_diag d = {{0}};
    dq_pipe *p;
    dq_session_conf sc = {
        .virtual_clock = 1, .start_ns = BED_START_NS, .rx_meta_buffers = 64, .tx_meta_buffers = 64};
    dq_session *s;
    dq_iface *i[2];
    dq_queue *tx, *in, *out, *rx;
    bed_must(dq_session_new(&sc, &s, &d), &d, "session");
    dq_region *flat = bed_region(s, "flat", 256, 1024), *head = bed_region(s, "head", 256, HEAD),
              *dark = bed_region_of(s, DQ_KIND_DARK, "dark", 256, 1024);
    for (int k = 0; k < 2; k++) {
        dq_iface_conf ic = {.engine = "loop"};
        snprintf(ic.name, sizeof ic.name, "port%d", k);
        bed_must(dq_iface_add(s, &ic, &i[k], &d), &d, "interface");
    }
    dq_queue_conf qc = {.direct = 1, .core = -1, .batch_size = 16, .n_regions = 1, .regions = {flat}};
    snprintf(qc.name, sizeof qc.name, "flat");
    qc.dir = DQ_TX;
    bed_must(dq_queue_add(i[0], &qc, &tx, &d), &d, "tx");
    qc.n_regions = 2;
    qc.regions[0] = head;
    qc.regions[1] = dark;
    snprintf(qc.name, sizeof qc.name, "split");
    bed_must(dq_queue_add(i[1], &qc, &out, &d), &d, "out");
    qc.dir = DQ_RX;
    bed_must(dq_queue_add(i[1], &qc, &in, &d), &d, "in");
    bed_must(dq_queue_add(i[0], &qc, &rx, &d), &d, "rx");
    bed_must(dq_session_open(s, &d), &d, "open");
    dq_stage *fwd, *count, *back;
    bed_must(dq_stage_forward(s, "fwd", out, DQ_POLICY_DROP, &fwd, &d), &d, "forward");
    bed_must(dq_stage_count(s, "count", &count, &d), &d, "count");
    bed_must(dq_stage_count(s, "back", &back, &d), &d, "count");
    bed_must(dq_pipe_add(in, &count, 1, 0, &p, &d), &d, "tee");
    bed_must(dq_pipe_add(in, &fwd, 1, 0, &p, &d), &d, "pipe");
    bed_must(dq_pipe_add(rx, &back, 1, 0, &p, &d), &d, "pipe");
    bed_must(dq_session_start(s, &d), &d, "start");
    bed of = {.s = s};
    for (int k = 0; k < 10; k++) {
        DQ_EQ(bed_send(&of, tx, 16, 600, 7148), DQ_OK);
        bed_steps(&of, INT64_MAX, false);
    }
    dq_line l = bed_line(s, "back", DQ_LINE_STAGE, NULL);
    DQ_EQ(l.in, 160);
    DQ_EQ(l.in_bytes, 160 * 600);
    l = bed_line(s, "count", DQ_LINE_STAGE, NULL);
    DQ_EQ(l.in, 160);
    l = bed_line(s, "port1", DQ_LINE_RX, NULL);
    DQ_EQ(l.extra[DQ_EXTRA_COPIED], 160); // what was split
    l = bed_line(s, "port0", DQ_LINE_RX, NULL);
    DQ_EQ(l.extra[DQ_EXTRA_COPIED], 0); // by reference
    dq_session_stop(s, 0);
    DQ_EQ(dq_session_close(s), 0);
}

static void refuses(bed *b, dq_stage *const *stages, uint32_t n, const char *want) {
    dq_diag d = {{0}};
    dq_pipe *p;
    DQ_EQ(dq_pipe_add(b->rx[0][0], stages, n, 0, &p, &d), DQ_NOT_SUPPORTED);
    if (!strstr(d.text, want)) fprintf(stderr, "%s\n", d.text);
    DQ_CHECK(strstr(d.text, want));
    DQ_EQ(b->rx[0][0]->rx.n_pipes, 0);
}

// Stages that would read the segment refuse a pipe as a whole, wherever they stand in it.
static void pipes_refused(void) {
    dq_diag d = {{0}};
    bed b;
    dq_stage *st[3];
    dq_queue *aggregates;
    bed_conf conf = with(BED_VIRTUAL);
    conf.more_bufs = 128;
    conf.more_size = 1 << 16;
    bed_open(&b, conf);
    st[0] = counter(&b, "count");
    st[1] = port_filter(&b, "port", 7148);
    dq_writer_conf wc = {.n_dirs = 1, .prefix = "x", .dirs = {"/tmp"}};
    bed_must(dq_stage_writer(b.s, "disk", &wc, &st[2], &d), &d, "writer");
    refuses(&b, st, 3,
            "stage disk reads the second segment of queue rx0's packets, and the CPU can't read region in");
    dq_reorder_conf rc = {.region = b.more, .slots = 16, .slot_bytes = 1024, .segment = 1, .seq_bits = 64};
    rc.seq = number();
    rc.timeout_ns = 1000000;
    bed_must(dq_stage_reorder(b.s, "blocks", &rc, &st[2], &aggregates, &d), &d, "reorder");
    refuses(&b, st, 3, "stage blocks reads the second segment");
    dq_convert_conf cc = {.region = b.more,
                          .types = {.input = DQ_DTYPE_INT16, .output = DQ_DTYPE_FP32, .network = 1},
                          .payload_offset = 42};
    bed_must(dq_stage_convert(b.s, "floats", &cc, &st[2], &d), &d, "convert");
    refuses(&b, st, 3, "stage floats reads the second segment");
    dq_stage *fwd = forwarder(&b, "fwd", b.tx[0][0], DQ_POLICY_DROP);
    dq_pipe *p;
    DQ_EQ(dq_pipe_add(b.rx[0][0], &fwd, 1, 0, &p, &d), DQ_INVALID_PARAMETER); // one segment, not two
    bed_pipe(b.rx[0][0], st, 2);                                              // a filter reads the first
    const dq_action pop = {.kind = DQ_ACT_VLAN_POP};
    dq_rule rule = bed_rule(7148, 7, 0);
    rule.n_actions = 1;
    DQ_EQ(dq_iface_change_rules(b.ifaces[0], NULL, 0, &rule, 1, &pop, &d), DQ_NOT_SUPPORTED);
    DQ_CHECK(strstr(d.text, "which can't read region in of queue rx0"));
    bed_close(&b);
}

// An engine that can't reach such memory refuses the open, and so does every one where headers would lie
// there.
static void opens_refused(void) {
    static const struct {
        const char *engine, *want;
        uint32_t first;
    } cases[] = {{"loop", "queue rx: the CPU reads headers, and can't in region dark", 1},
                 {"socket", "queue rx: engine socket can't reach region dark", 0}};
    for (uint32_t k = 0; k < 2; k++) {
        dq_session_conf sc = {.rx_meta_buffers = 4, .tx_meta_buffers = 4};
        dq_iface_conf ic = {.name = "port", .socket = {.proto = DQ_PROTO_UDP, .server = 1}};
        dq_queue_conf qc = {.name = "rx", .direct = 1, .core = -1, .batch_size = 4, .n_regions = 2};
        dq_session *s;
        dq_diag d = {{0}};
        dq_iface *i;
        dq_queue *q;
        bed_must(dq_session_new(&sc, &s, &d), &d, "session");
        snprintf(ic.engine, sizeof ic.engine, "%s", cases[k].engine);
        qc.regions[cases[k].first ? 0 : 1] = bed_region_of(s, DQ_KIND_DARK, "dark", 8, 256);
        qc.regions[cases[k].first ? 1 : 0] = bed_region(s, "host", 8, 256);
        bed_must(dq_iface_add(s, &ic, &i, &d), &d, "interface");
        bed_must(dq_queue_add(i, &qc, &q, &d), &d, "queue");
        DQ_EQ(dq_session_open(s, &d), DQ_NOT_SUPPORTED);
        DQ_CHECK(strstr(d.text, cases[k].want));
        dq_session_close(s);
    }
}

// The guard is real: a read where the packet lies ends the process that makes it.
static void a_touch_dies(void) {
    bed b;
    bed_open(&b, with(BED_VIRTUAL));
    bed_tap_all(&b);
    DQ_EQ(bed_send(&b, b.tx[0][0], 1, 600, 7148), DQ_OK);
    dq_burst *x = received(&b);
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGSEGV, SIG_DFL);
        _exit(*(volatile uint8_t *)dqi_bytes(x, 1, 0) == 0 ? 0 : 1);
    }
    int status = 0;
    DQ_EQ(waitpid(pid, &status, 0), pid);
    DQ_CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    dq_burst_unref(x);
    bed_close(&b);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(arrives);
    DQ_RUN(handled);
    DQ_RUN(forwarded);
    DQ_RUN(pipes_refused);
    DQ_RUN(opens_refused);
    DQ_RUN(a_touch_dies);
    return dq_done();
}
