// pipe_test.c: pipes and stages: tees, filters, counters, samplers, forwarding, taps that drop and taps that
// wait, pipes that come and go in mid-traffic.
#include "bed_pipe.h"
#include "pipeline/stages/dq_stages.h"

#include <pthread.h>

// ---- tees -------------------------------------------------------------------------------------------------

// Two pipes both get all; with two that read packets, bursts are read-only.
static void tee(void) {
    BED_EACH_MODE(m) {
        for (int two = 0; two < 2; two++) {
            bed b;
            bed_open(&b, (bed_conf){.mode = m, .timeout_us = 100});
            dq_stage *t1 = bed_tap(&b, 1, 64, DQ_POLICY_WAIT),
                     *t2 = two ? bed_tap(&b, 2, 64, DQ_POLICY_WAIT) : counter(&b, "count");
            bed_pipe(b.rx[0][0], &t1, 1);
            bed_pipe(b.rx[0][0], &t2, 1);
            bed_start(&b);
            bed_stream(&b, b.tx[0][0], 1000, 40, 100, 7);
            bed_until(&b, two ? 2000 : 1000);
            check_tag(&b, 1, 1000, 0, 1);
            if (two) check_tag(&b, 2, 1000, 0, 1);
            DQ_EQ(b.shared, two ? b.bursts : 0);
            bed_close(&b);
        }
    }
}

static void read_only(void) {
    bed b;
    dq_event ev[2];
    dq_field f;
    DQ_CHECK(dq_field_named("udp_dst", &f));
    bed_open(&b, (bed_conf){.batch = 8});
    dq_stage *t[] = {bed_tap(&b, 1, 8, DQ_POLICY_WAIT), bed_tap(&b, 2, 8, DQ_POLICY_WAIT)};
    bed_pipe(b.rx[0][0], t, 2);
    bed_start(&b);
    DQ_EQ(bed_send(&b, b.tx[0][0], 8, 100, 7), DQ_OK);
    bed_steps(&b, INT64_MAX, false);
    DQ_EQ(dq_wait(b.w, 0, ev, 2), 2);
    DQ_CHECK(ev[0].view.flags & DQ_BURST_SHARED);
    DQ_EQ(dq_burst_set(ev[0].b, &f, 9, 0, 0), DQ_INVALID_PARAMETER);
    DQ_EQ(dq_burst_set_len(ev[0].b, 0, -1, 60), DQ_INVALID_PARAMETER);
    DQ_EQ(dq_burst_truncate(ev[0].b, 2), DQ_INVALID_PARAMETER);
    dq_burst_free_packet(ev[0].b, 3); // goes back with the burst
    bed_note(&b, 2, &ev[1].view);
    check_tag(&b, 2, 8, 0, 1);
    dq_burst_unref(ev[0].b);
    dq_burst_unref(ev[1].b);
    bed_close(&b);
}

// ---- filters, counters, samplers --------------------------------------------------------------------------

static void filters(void) {
    static const dq_cbpf_insn cbpf[] = {
        {0x28, 0, 0, 36}, {0x15, 0, 1, 8}, {0x06, 0, 0, 0xffff}, {0x06, 0, 0, 0}}; // dst port 8
    const dq_insn prog[] = {{.op = DQ_OP_LOAD, .a = DQ_BASE_START, .b = 16, .c = 36 * 8},
                            {.op = DQ_OP_PUSH, .imm = 8},
                            {.op = DQ_OP_EQ},
                            {.op = DQ_OP_RET}};
    dq_match match = {.set = DQ_MATCH_UDP_DST, .udp_dst = {8, 8}};
    const dq_filter_conf confs[] = {
        {.kind = DQ_FILTER_MATCH, .match = &match},
        {.kind = DQ_FILTER_PROG, .insns = prog, .n_insns = 4},
        {.kind = DQ_FILTER_CBPF, .cbpf = cbpf, .n_cbpf = 4},
    };
    BED_EACH_MODE(m) {
        for (size_t k = 0; k < 3; k++) {
            bed b;
            bed_open(&b, (bed_conf){.mode = m, .timeout_us = 100});
            dq_stage *st[] = {counter(&b, "before"), filter(&b, "only8", &confs[k]), counter(&b, "after"),
                              bed_tap(&b, 1, 64, DQ_POLICY_WAIT)};
            bed_pipe(b.rx[0][0], st, 4);
            bed_start(&b);
            for (int i = 0; i < 100; i++) // ports of odd packets pass
                bed_stream(&b, b.tx[0][0], 1, 1, 100, (uint16_t)(7 + i % 2));
            bed_until(&b, 50);
            bed_stop(&b);
            check_tag(&b, 1, 50, 1, 2);
            DQ_EQ(stage_line(&b, "before").out, 100);
            DQ_EQ(stage_line(&b, "only8").in, 100);
            DQ_EQ(stage_line(&b, "only8").out, 50);
            DQ_EQ(stage_line(&b, "only8").out_bytes, 5000);
            DQ_EQ(stage_line(&b, "only8").dropped[DQ_DROP_FILTERED], 50);
            DQ_EQ(stage_line(&b, "after").in, 50);
            DQ_EQ(stage_line(&b, "after").in_bytes, 5000);
            bed_close(&b);
        }
    }
}

static void bad_filters(void) {
    const dq_insn no_end[] = {{.op = DQ_OP_PUSH, .imm = 1}};
    const dq_cbpf_insn jump_out[] = {{0x05, 0, 0, 1000}, {0x06, 0, 0, 1}};
    dq_match clash = {.set = DQ_MATCH_UDP_DST | DQ_MATCH_TCP_DST};
    const dq_filter_conf confs[] = {
        {.kind = DQ_FILTER_MATCH, .match = &clash},
        {.kind = DQ_FILTER_PROG, .insns = no_end, .n_insns = 1},
        {.kind = DQ_FILTER_CBPF, .cbpf = jump_out, .n_cbpf = 2},
    };
    bed b;
    dq_diag d;
    dq_stage *st;
    bed_open(&b, (bed_conf){.batch = 8});
    for (size_t k = 0; k < 3; k++)
        DQ_CHECK(dq_stage_filter(b.s, "f", &confs[k], &st, &d) < 0);
    port_filter(&b, "f", 7);
    dq_match any = {0};
    DQ_EQ(dq_stage_filter(b.s, "f", &(dq_filter_conf){.kind = DQ_FILTER_MATCH, .match = &any}, &st, &d),
          DQ_INVALID_PARAMETER);
    DQ_CHECK(strstr(d.text, "f") != NULL);
    DQ_EQ(dq_stage_count(b.s, "a name that is a good deal longer than the sixty-three bytes there are", &st,
                         &d),
          DQ_INVALID_PARAMETER);
    DQ_EQ(dq_stage_sample(b.s, "s", 0, &st, &d), DQ_INVALID_PARAMETER);
    DQ_EQ(dq_stage_tap(b.s, "t", b.w, 1, 4, DQ_POLICY_DROP, 0, &st, &d), DQ_INVALID_PARAMETER);
    DQ_EQ(dq_stage_forward(b.s, "w", b.rx[0][0], DQ_POLICY_DROP, &st, &d), DQ_INVALID_PARAMETER);
    dq_pipe *p;
    st = counter(&b, "c");
    DQ_EQ(dq_pipe_add(b.tx[0][0], &st, 1, 0, &p, &d), DQ_INVALID_PARAMETER);
    bed_start(&b);
    bed_close(&b);
}

static void samplers(void) {
    bed b;
    dq_diag d = {{0}};
    dq_stage *st[2], *t2;
    bed_open(&b, (bed_conf){.batch = 4});
    bed_must(dq_stage_sample(b.s, "third", 3, &st[0], &d), &d, "third");
    st[1] = bed_tap(&b, 1, 64, DQ_POLICY_WAIT);
    bed_must(dq_stage_tap(b.s, "fifth", b.w, 2, 64, DQ_POLICY_WAIT, 5, &t2, &d), &d, "fifth");
    bed_pipe(b.rx[0][0], st, 2);
    bed_pipe(b.rx[0][0], &t2, 1);
    bed_start(&b);
    bed_stream(&b, b.tx[0][0], 30 * 4, 4, 100, 7);
    bed_steps(&b, INT64_MAX, true);
    size_t n;
    bed_got *g = of_tag(&b, 1, &n);
    DQ_EQ(n, 40);
    for (size_t k = 0; k < n; k++)
        DQ_EQ(g[k].seq, k / 4 * 12 + k % 4);
    free(g);
    DQ_EQ(stage_line(&b, "third").dropped[DQ_DROP_NOT_SAMPLED], 80);
    g = of_tag(&b, 2, &n);
    DQ_EQ(n, 24);
    free(g);
    DQ_EQ(tap_line(&b, "fifth").dropped[DQ_DROP_NOT_SAMPLED], 96);
    bed_close(&b);
}

// ---- forwarding -------------------------------------------------------------------------------------------

// port0 sends, port1 receives and forwards what passes its filter, port0 receives it back.
static void forward(void) {
    BED_EACH_MODE(m) {
        for (int copy = 0; copy < 2; copy++) {
            bed b;
            bed_open(&b, (bed_conf){.mode = m,
                                    .ifaces = 2,
                                    .timeout_us = 100,
                                    .bufs = 1024,
                                    .rx_bufs = 8192,
                                    .rx_size = {copy ? 1000 : 0}});
            dq_stage *there[] = {port_filter(&b, "only8", 8),
                                 forwarder(&b, "back", b.tx[1][0], DQ_POLICY_WAIT)};
            dq_stage *here = bed_tap(&b, 1, 64, DQ_POLICY_WAIT);
            bed_pipe(b.rx[1][0], there, 2);
            bed_pipe(b.rx[0][0], &here, 1);
            bed_start(&b);
            for (int i = 0; i < 200; i++)
                bed_stream(&b, b.tx[0][0], 10, 10, 100, (uint16_t)(7 + i % 2));
            bed_until(&b, 1000);
            bed_stop(&b);
            DQ_EQ(b.n, 1000);
            for (size_t k = 0; k < b.n; k++)
                DQ_CHECK(b.got[k].intact && b.got[k].seq == k / 10 * 20 + 10 + k % 10);
            DQ_EQ(stage_line(&b, "back").out, 1000);
            DQ_EQ(bed_line(b.s, "port1", DQ_LINE_TX, NULL).out, 1000);
            bed_close(&b);
        }
    }
}

// A worker receives and forwards to a queue that a task polls: the worker must leave the sending to the task.
static void forward_across_threads(void) {
    bed b;
    bed_open(&b,
             (bed_conf){.mode = BED_DIRECT, .rx_worker = true, .ifaces = 2, .timeout_us = 50, .bufs = 2048});
    dq_stage *there = forwarder(&b, "back", b.tx[1][0], DQ_POLICY_WAIT),
             *here = bed_tap(&b, 1, 64, DQ_POLICY_WAIT);
    bed_pipe(b.rx[1][0], &there, 1);
    bed_pipe(b.rx[0][0], &here, 1);
    bed_start(&b);
    bed_stream(&b, b.tx[0][0], 20000, 32, 100, 7);
    bed_until(&b, 20000);
    bed_check_order(&b, 20000);
    bed_close(&b);
}

// Two forwarders and a tap share one burst; nothing changes it for the others.
static void forward_twice(void) {
    BED_EACH_MODE(m) {
        bed b;
        bed_open(&b,
                 (bed_conf){
                     .mode = m, .ifaces = 2, .tx = 2, .timeout_us = 100, .rx_bufs = 16384, .eth_src = true});
        dq_stage *f[] = {forwarder(&b, "one", b.tx[1][0], DQ_POLICY_WAIT),
                         forwarder(&b, "two", b.tx[1][1], DQ_POLICY_WAIT)};
        dq_stage *seen = bed_tap(&b, 1, 64, DQ_POLICY_WAIT), *here = bed_tap(&b, 2, 64, DQ_POLICY_WAIT);
        bed_pipe(b.rx[1][0], &f[0], 1);
        bed_pipe(b.rx[1][0], &f[1], 1);
        bed_pipe(b.rx[1][0], &seen, 1);
        bed_pipe(b.rx[0][0], &here, 1);
        bed_start(&b);
        bed_stream(&b, b.tx[0][0], 3000, 30, 100, 7);
        bed_until(&b, 9000);
        check_tag(&b, 1, 3000, 0, 1);
        size_t n;
        bed_got *g = of_tag(&b, 2, &n);
        DQ_EQ(n, 6000);
        for (size_t k = 0; k < n; k++)
            DQ_CHECK(g[k].intact);
        free(g);
        bed_close(&b);
    }
}

// ---- one stage, several queues ----------------------------------------------------------------------------

static void shared_stage(void) {
    BED_EACH_MODE(m) {
        bed b;
        bed_open(&b, (bed_conf){.mode = m, .rx = 4, .tx = 4, .timeout_us = 100, .bufs = 2048});
        const dq_rule rules[] = {bed_rule(0, 1, 0), bed_rule(1, 2, 1), bed_rule(2, 3, 2), bed_rule(3, 4, 3)};
        bed_rules(b.ifaces[0], rules, 4);
        dq_stage *st[] = {counter(&b, "all"), bed_tap(&b, 9, 64, DQ_POLICY_WAIT)};
        for (int q = 0; q < 4; q++)
            bed_pipe(b.rx[0][q], st, 2);
        bed_start(&b);
        for (int i = 0; i < 100; i++)
            for (uint16_t port = 0; port < 4; port++)
                bed_stream(&b, b.tx[0][port], 10, 10, 100, port);
        bed_until(&b, 4000);
        bed_stop(&b);
        DQ_EQ(stage_line(&b, "all").in, 4000);
        DQ_EQ(tap_line(&b, "tap9").out, 4000);
        uint64_t last[4] = {0};
        for (size_t k = 0; k < b.n; k++) { // each queue's packets in order
            const bed_got *g = &b.got[k];
            DQ_CHECK(g->intact && g->dport < 4 && g->flow == g->dport + 1u && g->seq >= last[g->dport & 3]);
            last[g->dport & 3] = g->seq + 1;
        }
        bed_close(&b);
    }
}

// ---- pipes in mid-traffic ---------------------------------------------------------------------------------

static bed *busy;
static _Atomic bool enough;
static dq_stage *coming[2];

static void *come_and_go(void *arg) {
    dq_stage *st = coming[(uintptr_t)arg];
    for (int i = 0; !atomic_load(&enough); i++) {
        char name[32];
        snprintf(name, sizeof name, "stage%d.%d", (int)(uintptr_t)arg, i);
        if (i < 100) counter(busy, name);
        dq_pipe *p = bed_pipe(busy->rx[0][0], &st, 1);
        nanosleep(&(struct timespec){.tv_nsec = 30000}, NULL);
        dq_pipe_remove(p);
    }
    return NULL;
}

// The pipe that stays loses nothing; a stage's figures outlive its pipes.
static void pipes_come_and_go(void) {
    bed b;
    pthread_t t[2];
    bed_open(&b, (bed_conf){.mode = BED_WORKER, .timeout_us = 50, .bufs = 1024});
    dq_stage *stays = bed_tap(&b, 1, 64, DQ_POLICY_WAIT);
    bed_pipe(b.rx[0][0], &stays, 1);
    coming[0] = bed_tap(&b, 2, 4, DQ_POLICY_DROP);
    coming[1] = counter(&b, "comes");
    bed_start(&b);
    busy = &b;
    enough = false;
    for (uintptr_t i = 0; i < 2; i++)
        DQ_EQ(pthread_create(&t[i], NULL, come_and_go, (void *)i), 0);
    uint64_t last = 0;
    for (int i = 0; i < 500; i++) {
        bed_stream(&b, b.tx[0][0], 40, 20, 100, 7);
        uint64_t now = stage_line(&b, "comes").in;
        DQ_CHECK(now >= last);
        last = now;
    }
    atomic_store(&enough, true);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    bed_stop(&b);
    check_tag(&b, 1, 20000, 0, 1);
    size_t n;
    free(of_tag(&b, 2, &n));
    DQ_EQ(tap_line(&b, "tap2").out, n);
    DQ_CHECK(stage_line(&b, "comes").out <= 20000);
    bed_close(&b);
}

// Two ports that forward to each other forever: the stop ends that, and the packets are all accounted for.
static void a_ring_stops(void) {
    BED_EACH_MODE(m) {
        if (m == BED_VIRTUAL) continue;
        bed b;
        bed_open(&b, (bed_conf){.mode = m, .ifaces = 2, .timeout_us = 50});
        for (uint32_t k = 0; k < 2; k++) {
            dq_stage *back = forwarder(&b, k ? "back" : "forth", b.tx[k][0], DQ_POLICY_WAIT);
            bed_pipe(b.rx[k][0], &back, 1);
        }
        bed_start(&b);
        DQ_EQ(bed_send(&b, b.tx[0][0], 64, 100, 7148), DQ_OK);
        int64_t end = dqi_mono_ns() + BED_PATIENCE;
        while (stage_line(&b, "back").in < 6400 && dqi_mono_ns() < end)
            bed_serve(&b, 100000);
        DQ_CHECK(stage_line(&b, "back").in >= 6400);
        b.drain_ns = 100000000; // it would be used up
        bed_stop(&b);
        bed_close(&b);
    }
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(tee);
    DQ_RUN(read_only);
    DQ_RUN(filters);
    DQ_RUN(bad_filters);
    DQ_RUN(samplers);
    DQ_RUN(forward);
    DQ_RUN(forward_across_threads);
    DQ_RUN(forward_twice);
    DQ_RUN(shared_stage);
    DQ_RUN(pipes_come_and_go);
    DQ_RUN(a_ring_stops);
    return dq_done();
}
