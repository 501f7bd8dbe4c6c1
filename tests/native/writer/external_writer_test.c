// external_writer_test.c: bursts for a consumer outside the engine: what waits, what is refused, what a
// script hands over, and that virtual time stands still while the consumer is at work.
#include "bed_pipe.h"

#include <pthread.h>

#define TAGGED 77

static dq_stage *outlet(bed *b, uint32_t depth, int policy) {
    dq_diag d = {{0}};
    dq_stage *st;
    bed_must(dq_stage_external(b->s, "up", DQ_LINE_WRITER, depth, policy, &st, &d), &d, "outlet");
    return st;
}

static dq_line up_line(const bed *b) { return bed_line(b->s, "up", DQ_LINE_WRITER, NULL); }

// The consumer: a thread that takes until the end, notes packets, and begins one thing a burst, which takes a
// while.
typedef struct consumer {
    pthread_t thread;
    dq_stage *st;
    bed *b;
    int64_t nap_ns;
    uint64_t lose_each; // bursts; 0: none is lost
    uint64_t bursts, packets, tagged, lost;
    int64_t slip_ns; // how far virtual time went while something was under way
} consumer;

static void *take_all(void *arg) {
    consumer *t = arg;
    dq_view v;
    uint32_t tag;
    for (dq_burst *b; (b = dq_external_take(t->st, &v, &tag)) != NULL;) {
        int64_t from = dq_now(t->b->s);
        uint64_t bytes = 0;
        for (uint32_t i = 0; i < v.n; i++)
            bytes += v.len[0][i];
        t->tagged += tag == TAGGED ? v.n : 0;
        t->packets += v.n;
        t->bursts++;
        dq_external_busy(t->st, 1);
        dq_burst_unref(b);
        if (t->nap_ns) nanosleep(&(struct timespec){.tv_nsec = t->nap_ns}, NULL);
        if (t->lose_each && t->bursts % t->lose_each == 0) {
            dq_external_lost(t->st, DQ_DROP_WRITE_ERROR, v.n);
            t->lost += v.n;
        } else {
            dq_external_out(t->st, v.n, bytes);
            dq_external_note(t->st, DQ_EXTRA_OBJECTS, 1);
        }
        t->slip_ns += dq_now(t->b->s) - from;
        dq_external_busy(t->st, -1);
    }
    return NULL;
}

static void consumer_start(consumer *t, bed *b, dq_stage *st) {
    t->b = b;
    t->st = st;
    DQ_EQ(pthread_create(&t->thread, NULL, take_all, t), 0);
}

static void consumer_end(consumer *t) {
    dq_external_end(t->st);
    DQ_EQ(pthread_join(t->thread, NULL), 0);
}

// Everything that is pushed is taken, whatever the ring holds; the ledger has what the consumer reported of
// it.
static void all_is_taken(void) {
    BED_EACH_MODE(m) {
        bed b;
        bed_open(&b, (bed_conf){.mode = m, .batch = 8, .timeout_us = 50, .tx_meta = 64});
        consumer t = {.lose_each = 3};
        dq_stage *st = outlet(&b, 2, DQ_POLICY_WAIT);
        bed_pipe(b.rx[0][0], &st, 1);
        dq_stage *tap = bed_tap(&b, 1, 64, DQ_POLICY_WAIT);
        bed_pipe(b.rx[0][0], &tap, 1);
        bed_start(&b);
        consumer_start(&t, &b, st);
        bed_stream(&b, b.tx[0][0], 800, 8, 100, 7);
        bed_until(&b, 800);
        DQ_EQ(dq_session_stop(b.s, BED_PATIENCE), 0);
        consumer_end(&t);
        dq_line l = up_line(&b);
        DQ_EQ(l.in, 800);
        DQ_EQ(t.packets, 800);
        DQ_EQ(l.out, 800 - t.lost);
        DQ_EQ(l.out_bytes, 100 * l.out);
        DQ_EQ(l.held, 0);
        DQ_EQ(l.dropped[DQ_DROP_WRITE_ERROR], t.lost);
        DQ_EQ(l.extra[DQ_EXTRA_OBJECTS], t.bursts - t.bursts / 3);
        bed_close(&b);
    }
}

// Time does not pass on the virtual clock while the consumer is at it, though the ring has room.
static void virtual_time_waits(void) {
    bed b;
    bed_open(&b, (bed_conf){.batch = 4, .timeout_us = 10});
    consumer t = {.nap_ns = 2000000};
    dq_stage *st = outlet(&b, 64, DQ_POLICY_DROP);
    bed_pipe(b.rx[0][0], &st, 1);
    bed_start(&b);
    consumer_start(&t, &b, st);
    for (int i = 0; i < 10; i++) {
        DQ_EQ(bed_send(&b, b.tx[0][0], 4, 100, 7), DQ_OK);
        bed_steps(&b, dq_now(b.s) + 50000, false);
        DQ_EQ(up_line(&b).out, 4 * (uint64_t)(i + 1)); // of before this moment all is over
    }
    consumer_end(&t);
    DQ_EQ(t.slip_ns, 0);
    bed_close(&b);
}

// A full ring: one policy drops at the pipe; what is left at the finish was stopped.
static void full_ring_drops(void) {
    bed b;
    bed_open(&b, (bed_conf){.mode = BED_DIRECT, .batch = 4});
    dq_stage *st = outlet(&b, 8, DQ_POLICY_DROP);
    bed_pipe(b.rx[0][0], &st, 1);
    bed_start(&b);
    for (int i = 0; i < 20; i++)
        DQ_EQ(bed_send(&b, b.tx[0][0], 4, 100, 7), DQ_OK);
    int64_t end = dqi_mono_ns() + BED_PATIENCE;
    while (up_line(&b).in < 80 && dqi_mono_ns() < end)
        bed_serve(&b, 1000000);
    dq_line l = up_line(&b);
    DQ_EQ(l.in, 80);
    DQ_EQ(l.held, 32);
    DQ_EQ(l.dropped[DQ_DROP_BEHIND], 48);
    DQ_EQ(dq_session_stop(b.s, BED_PATIENCE), 0);
    dq_session_finish(b.s);
    l = up_line(&b);
    DQ_EQ(l.held, 0);
    DQ_EQ(l.dropped[DQ_DROP_STOPPED], 32);
    bed_close(&b);
}

// A script hands over what it has: counted with its tag, read-only from then on, refused when the ring is
// full or has ended.
static void handed_over(void) {
    bed b;
    bed_open(&b, (bed_conf){.batch = 4});
    dq_stage *st = outlet(&b, 2, DQ_POLICY_DROP);
    bed_start(&b);
    dq_burst *burst;
    DQ_EQ(bed_make(&b, b.tx[0][0], 4, 100, 7, &burst), DQ_OK);
    DQ_EQ(dq_external_put(st, burst, TAGGED), DQ_OK);
    dq_view v;
    dq_burst_view(burst, &v);
    DQ_CHECK(v.flags & DQ_BURST_SHARED);
    DQ_EQ(dq_external_put(st, burst, TAGGED), DQ_OK);
    DQ_EQ(dq_external_put(st, burst, TAGGED), DQ_NO_SPACE_AVAILABLE);
    dq_line l = up_line(&b);
    DQ_EQ(l.in, 8);
    DQ_EQ(l.in_bytes, 800);
    DQ_EQ(l.bursts, 2);
    DQ_EQ(l.held, 8);
    dq_burst_unref(burst);
    consumer t = {0};
    consumer_start(&t, &b, st);
    consumer_end(&t);
    DQ_EQ(t.tagged, 8);
    DQ_EQ(up_line(&b).out, 8);
    DQ_EQ(bed_make(&b, b.tx[0][0], 4, 100, 7, &burst), DQ_OK);
    DQ_EQ(dq_external_put(st, burst, TAGGED), DQ_NOT_READY);
    dq_burst_unref(burst);
    bed_close(&b);
}

// A burst that no stage reordered is not a block.
static void no_block(void) {
    bed b;
    bed_open(&b, (bed_conf){0});
    bed_start(&b);
    dq_burst *burst;
    uint32_t header = 1;
    DQ_EQ(bed_make(&b, b.tx[0][0], 1, 100, 7, &burst), DQ_OK);
    DQ_EQ(dq_block_bytes(burst, &header), 0);
    dq_burst_unref(burst);
    bed_close(&b);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(all_is_taken);
    DQ_RUN(virtual_time_waits);
    DQ_RUN(full_ring_drops);
    DQ_RUN(handed_over);
    DQ_RUN(no_block);
    return dq_done();
}
