// stage_queue_test.c: stages that do work by themselves (poll) and hand bursts out of queues of their own: a
// delay line, which holds each burst for a time and gives it to one of its two queues in turn.
#include "bed_pipe.h"
#include "core/burst.h"
#include "core/err.h"
#include "pipeline/session.h"
#include "pipeline/stage_queue.h"

#define DELAY_NS INT64_C(3000000)
#define ROOM     1024

typedef struct delay {
    dq_stage *stage;
    dq_queue *out[2];
    dq_burst *held[ROOM]; // [given, due) may go, [due, n) wait
    int64_t until[ROOM];
    uint32_t n, due, given[2];
    dqi_counters c;
    dqi_gauge packets;
    uint64_t early, polls;
} delay;

static int delay_push(dq_stage *st, dqi_node *node, dq_burst *in, dq_burst **out) {
    delay *d = st->impl;
    (void)node;
    if (d->n == ROOM) return DQ_NOT_READY;
    d->held[d->n] = in;
    d->until[d->n++] = dq_now(st->session) + DELAY_NS;
    dqi_gauge_add(&d->packets, in->n);
    *out = NULL;
    return DQ_OK;
}

static int delay_poll(dq_stage *st) {
    delay *d = st->impl;
    uint32_t was = d->due;
    d->polls++;
    while (d->due < d->n && d->until[d->due] <= dq_now(st->session))
        d->due++;
    if (d->due < d->n) st->next_ns = d->until[d->due];
    return d->due > was;
}

// Burst k goes through queue k % 2.
static int delay_rx(dq_queue *q, dq_burst **b, uint32_t room) {
    delay *d = q->engine;
    uint32_t side = q == d->out[1], k = 2 * d->given[side] + side;
    if (room == 0 || k >= d->due) return 0;
    dq_burst_unref(*b);
    *b = d->held[k];
    d->given[side]++;
    d->early += dq_now(q->session) < d->until[k];
    dqi_gauge_add(&d->packets, -(int64_t)(*b)->n);
    dqi_add(&d->c.out, (*b)->n);
    dqi_add(&d->c.out_bytes, (*b)->bytes);
    dqi_add(&q->c.in, (*b)->n);
    dqi_add(&q->c.in_bytes, (*b)->bytes);
    return (int)(*b)->n;
}

static uint64_t delay_held(const dq_stage *st) {
    const delay *d = st->impl;
    return (uint64_t)dqi_gauge_get(&d->packets);
}

static void delay_line(const dq_stage *st, dq_line *l) {
    const delay *d = st->impl;
    dqi_line_add(l, &d->c);
}

static uint64_t delay_drain(dq_stage *st) {
    delay *d = st->impl;
    uint64_t n = d->n - d->due;
    for (; d->due < d->n; d->due++)
        d->until[d->due] = 0;
    return n;
}

static const dqi_stage_ops delay_ops = {
    .line_kind = DQ_LINE_STAGE,
    .push = delay_push,
    .held = delay_held,
    .line = delay_line,
    .poll = delay_poll,
    .drain = delay_drain,
};

static void delay_make(bed *b, delay *d, const char *name) {
    dq_diag diag = {{0}};
    *d = (delay){0};
    for (int k = 0; k < 2; k++) {
        char line[DQ_NAME_LEN];
        snprintf(line, sizeof line, "%.*s.%c", 32, name, "ab"[k]);
        dqi_stage_queue_conf conf = {
            .line = line,
            .queue = {.core = -1, .batch_size = b->conf.batch, .n_regions = 1, .regions = {b->in[0]}},
            .n_bursts = 2,
            .rx = delay_rx,
            .impl = d,
        };
        snprintf(conf.queue.name, sizeof conf.queue.name, "%.*s", 32, line);
        bed_must(dqi_stage_queue_new(b->s, &conf, &d->out[k], &diag), &diag, name);
    }
    bed_must(dqi_stage_add(b->s, name, &delay_ops, d, &d->stage, &diag), &diag, name);
    for (int k = 0; k < 2; k++)
        dqi_stage_queue_own(d->stage, d->out[k]);
}

// Of the bursts of 40, half come through each queue, none before its time, all in the order of their queue.
static void two_queues(void) {
    BED_EACH_MODE(m) {
        bed b;
        delay d;
        bed_open(&b, (bed_conf){.mode = m, .batch = 40});
        delay_make(&b, &d, "delay");
        dq_stage *t[] = {bed_tap(&b, 1, 64, DQ_POLICY_WAIT), bed_tap(&b, 2, 64, DQ_POLICY_WAIT)};
        for (int k = 0; k < 2; k++)
            bed_pipe(d.out[k], &t[k], 1);
        bed_pipe(b.rx[0][0], &d.stage, 1);
        DQ_EQ(d.stage->source == b.rx[0][0], true);
        bed_start(&b);
        bed_stream(&b, b.tx[0][0], 2000, 40, 100, 7);
        bed_until(&b, 2000);
        size_t n[2];
        for (uint64_t k = 0; k < 2; k++) {
            bed_got *g = of_tag(&b, k + 1, &n[k]);
            for (size_t i = 1; i < n[k]; i++)
                DQ_CHECK(g[i].intact && g[i].seq > g[i - 1].seq);
            free(g);
        }
        DQ_EQ(n[0] + n[1], 2000);
        DQ_CHECK(n[0] >= n[1] && n[0] <= n[1] + 40);
        DQ_EQ(d.early, 0);
        bed_stop(&b); // a worker counts what it handed out after the taps have it
        DQ_EQ(bed_line(b.s, "delay.a", DQ_LINE_STAGE, NULL).out, n[0]);
        DQ_EQ(bed_line(b.s, "delay.b", DQ_LINE_STAGE, NULL).out, n[1]);
        bed_close(&b);
    }
}

// The clock is not asked over and over: on the virtual clock each burst leaves at its time, to the ns.
static void next_look(void) {
    bed b;
    delay d;
    bed_open(&b, (bed_conf){.batch = 8});
    delay_make(&b, &d, "delay");
    dq_stage *t = bed_tap(&b, 1, 64, DQ_POLICY_WAIT);
    bed_pipe(d.out[0], &t, 1);
    bed_pipe(b.rx[0][0], &d.stage, 1);
    bed_start(&b);
    DQ_EQ(bed_send(&b, b.tx[0][0], 8, 100, 7), DQ_OK);
    bed_steps(&b, INT64_MAX, true);
    DQ_EQ(b.n, 8);
    DQ_EQ(b.got[0].seen_ns, d.until[0]);
    DQ_CHECK(d.polls < 100);
    bed_close(&b);
}

// One stage feeds the next, and none itself.
static void in_a_row(void) {
    BED_EACH_MODE(m) {
        bed b;
        delay d[2];
        bed_open(&b, (bed_conf){.mode = m, .batch = 40});
        delay_make(&b, &d[0], "first");
        delay_make(&b, &d[1], "second");
        dq_stage *t = bed_tap(&b, 1, 64, DQ_POLICY_WAIT);
        for (int k = 0; k < 2; k++)
            bed_pipe(d[1].out[k], &t, 1);
        bed_pipe(b.rx[0][0], &d[0].stage, 1);
        for (int k = 0; k < 2; k++)
            bed_pipe(d[0].out[k], &d[1].stage, 1);
        DQ_CHECK(d[1].stage->source == d[0].out[0]);
        DQ_CHECK(dqi_stage_is_before(d[0].stage, d[1].out[0]));
        DQ_CHECK(!dqi_stage_is_before(d[1].stage, d[0].out[0]));
        DQ_CHECK(!dqi_stage_is_before(d[0].stage, b.rx[0][0]));
        bed_start(&b);
        bed_stream(&b, b.tx[0][0], 1000, 40, 100, 7);
        bed_until(&b, 1000);
        DQ_EQ(d[0].early + d[1].early, 0);
        bed_close(&b);
    }
}

// What waits at the stop comes out of the drain, through the pipes behind.
static void stop_drains(void) {
    BED_EACH_MODE(m) {
        bed b;
        delay d;
        bed_open(&b, (bed_conf){.mode = m, .batch = 40});
        delay_make(&b, &d, "delay");
        dq_stage *c[] = {counter(&b, "a"), counter(&b, "b")};
        for (int k = 0; k < 2; k++)
            bed_pipe(d.out[k], &c[k], 1);
        bed_pipe(b.rx[0][0], &d.stage, 1);
        bed_start(&b);
        bed_stream(&b, b.tx[0][0], 400, 40, 100, 7);
        bed_stop(&b);
        DQ_EQ(stage_line(&b, "a").in + stage_line(&b, "b").in, 400);
        bed_close(&b);
    }
}

static void too_many(void) {
    bed b;
    delay d[DQI_MAX_STAGE_QUEUES / 2];
    dq_diag diag = {{0}};
    dq_queue *q;
    bed_open(&b, (bed_conf){0});
    for (int k = 0; k < DQI_MAX_STAGE_QUEUES / 2; k++) {
        char name[16];
        snprintf(name, sizeof name, "d%d", k);
        delay_make(&b, &d[k], name);
    }
    dqi_stage_queue_conf conf = {
        .line = "more", .queue = {.batch_size = 1, .n_regions = 1, .regions = {b.in[0]}}, .n_bursts = 1};
    snprintf(conf.queue.name, sizeof conf.queue.name, "more");
    DQ_EQ(dqi_stage_queue_new(b.s, &conf, &q, &diag), DQ_NO_SPACE_AVAILABLE);
    DQ_CHECK(strstr(diag.text, "more than 64 queues of stages") != NULL);
    bed_close(&b);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(two_queues);
    DQ_RUN(next_look);
    DQ_RUN(in_a_row);
    DQ_RUN(stop_drains);
    DQ_RUN(too_many);
    return dq_done();
}
