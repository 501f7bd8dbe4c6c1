// finish_test.c: the end of stages whose finish blocks: forever, for long but not without progress, and one
// beside the other.
#include "bed_pipe.h"
#include "core/burst.h"
#include "pipeline/session.h"
#include "pipeline/stage.h"

#include <pthread.h>
#include <semaphore.h>

#define SESSIONS 100
#define HELD     16

// Keeps what it gets until its device, the semaphore, takes it.
typedef struct keeper {
    dq_stage *stage;
    dq_burst *held[HELD];
    uint32_t n;
    dqi_gauge packets;
    dqi_counters c;
    sem_t device;
    _Atomic uint64_t sum; // of all bytes, read at the end
} keeper;

static int keeper_push(dq_stage *st, dqi_node *node, dq_burst *in, dq_burst **out) {
    keeper *k = st->impl;
    (void)node;
    if (k->n == HELD) return DQ_NOT_READY;
    k->held[k->n++] = in;
    dqi_gauge_add(&k->packets, in->n);
    *out = NULL;
    return DQ_OK;
}

static void keeper_finish(dq_stage *st) {
    keeper *k = st->impl;
    for (uint32_t i = 0; i < k->n; i++) {
        sem_wait(&k->device);
        dq_burst *b = k->held[i];
        dq_view v;
        uint64_t sum = 0;
        dq_burst_view(b, &v);
        for (uint32_t p = 0; p < v.n; p++)
            for (uint32_t at = 0; at < v.len[0][p]; at++)
                sum += v.base[v.off[0][p] + at];
        dqi_add(&k->c.out, b->n);
        dqi_add(&k->c.out_bytes, b->bytes);
        dqi_gauge_add(&k->packets, -(int64_t)b->n);
        dq_burst_unref(b);
        atomic_fetch_add(&k->sum, sum);
    }
}

static uint64_t keeper_held(const dq_stage *st) {
    const keeper *k = st->impl;
    return (uint64_t)dqi_gauge_get(&k->packets);
}

static void keeper_line(const dq_stage *st, dq_line *l) {
    const keeper *k = st->impl;
    dqi_line_add(l, &k->c);
}

static const dqi_stage_ops keeper_ops = {
    .line_kind = DQ_LINE_STAGE,
    .consumer = true,
    .push = keeper_push,
    .held = keeper_held,
    .line = keeper_line,
    .finish = keeper_finish,
    .blocks = true,
};

static void keeper_make(bed *b, keeper *k, const char *name) {
    dq_diag d = {{0}};
    *k = (keeper){0};
    sem_init(&k->device, 0, 0);
    bed_must(dqi_stage_add(b->s, name, &keeper_ops, k, &k->stage, &d), &d, name);
}

// A session that has sent 2 bursts of 10 packets into each of n keepers.
static void bed_with(bed *b, bed_mode m, keeper *k, uint32_t n, int64_t end_ns) {
    static const char *const names[] = {"first", "second"};
    bed_open(b, (bed_conf){.mode = m, .batch = 10, .bufs = 64});
    b->s->end_ns = end_ns;
    for (uint32_t i = 0; i < n; i++) {
        keeper_make(b, &k[i], names[i]);
        bed_pipe(b->rx[0][0], &k[i].stage, 1);
    }
    bed_start(b);
    bed_stream(b, b->tx[0][0], 20, 10, 100, 7);
    bed_stop(b);
}

// A stage that is stuck is left behind, over and over; when its device wakes at last it finds its packets.
static void stuck(void) {
    static keeper k[SESSIONS];
    for (int i = 0; i < SESSIONS; i++) {
        bed b;
        bed_mode m = (bed_mode)(i % BED_MODES);
        bed_case(__func__, m);
        bed_with(&b, m, &k[i], 1, 5000000);
        DQ_CHECK(!dq_stage_abandoned(k[i].stage));
        dq_session_finish(b.s);
        DQ_CHECK(dq_stage_abandoned(k[i].stage));
        dq_line l = stage_line(&b, "first");
        DQ_EQ(l.in, 20);
        DQ_EQ(l.dropped[DQ_DROP_STOPPED], 20);
        bed_close(&b);
    }
    for (int i = 0; i < SESSIONS; i++)
        for (uint32_t n = 0; n < k[i].n; n++)
            sem_post(&k[i].device);
    uint64_t first = 0;
    for (int i = 0; i < SESSIONS; i++) {
        int64_t end = dqi_mono_ns() + BED_PATIENCE;
        while (!atomic_load(&k[i].stage->finished) && dqi_mono_ns() < end)
            sched_yield();
        DQ_CHECK(atomic_load(&k[i].stage->finished));
        if (i < BED_MODES) first = atomic_load(&k[0].sum);
        DQ_EQ(atomic_load(&k[i].sum), first);
    }
    DQ_CHECK(first > 0);
}

static void *slow_device(void *arg) {
    keeper *k = arg;
    for (uint32_t i = 0; i < k->n; i++) {
        nanosleep(&(struct timespec){.tv_sec = 1, .tv_nsec = 500000000}, NULL);
        sem_post(&k->device);
    }
    return NULL;
}

// A device that takes something now and then may take its time: longer in all than one that takes nothing.
static void slow(void) {
    bed b;
    keeper k;
    pthread_t t;
    bed_case(__func__, BED_WORKER);
    bed_with(&b, BED_WORKER, &k, 1, 2800000000);
    DQ_EQ(pthread_create(&t, NULL, slow_device, &k), 0);
    dq_session_finish(b.s);
    pthread_join(t, NULL);
    DQ_CHECK(!dq_stage_abandoned(k.stage));
    DQ_EQ(stage_line(&b, "first").out, 20);
    bed_close(&b);
}

// One that hangs is not a reason for the other to lose anything.
static void beside(void) {
    static keeper k[2];
    bed b;
    bed_case(__func__, BED_WORKER);
    bed_with(&b, BED_WORKER, k, 2, 1000000000);
    for (uint32_t n = 0; n < k[1].n; n++)
        sem_post(&k[1].device);
    dq_session_finish(b.s);
    DQ_CHECK(dq_stage_abandoned(k[0].stage) && !dq_stage_abandoned(k[1].stage));
    DQ_EQ(stage_line(&b, "first").dropped[DQ_DROP_STOPPED], 20);
    DQ_EQ(stage_line(&b, "second").out, 20);
    bed_close(&b);
    for (uint32_t n = 0; n < k[0].n; n++)
        sem_post(&k[0].device);
    int64_t end = dqi_mono_ns() + BED_PATIENCE;
    while (!atomic_load(&k[0].stage->finished) && dqi_mono_ns() < end)
        sched_yield();
    DQ_EQ(atomic_load(&k[0].sum), atomic_load(&k[1].sum));
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(stuck);
    DQ_RUN(slow);
    DQ_RUN(beside);
    return dq_done();
}
