// op_test.c: operations: their end comes once, on any thread, with their bursts back; the task is notified of
// each once, also when it asks late, when nothing asks, and when the task or the session goes first.
#include "bed.h"
#include "pipeline/op.h"
#include "pipeline/waiter.h"

#include <pthread.h>

#ifdef __SANITIZE_THREAD__
#define ROUNDS 1000000
#else
#define ROUNDS 100000
#endif
#define OPEN 64 // operations at a time

static dq_waiter *new_waiter(void) {
    dq_waiter *w;
    dq_diag d = {{0}};
    bed_must(dq_waiter_new(&w, &d), &d, "waiter");
    return w;
}

static void parts_add_up(void) {
    dq_op *op;
    dq_op_state s;
    char text[64];
    DQ_EQ(dq_op_new(10, &op), DQ_OK);
    dq_op_ok(op, 4, 400);
    dq_op_lost(op, 3, "the disk is full");
    dq_op_lost(op, 0, "nothing");
    dq_op_read(op, &s);
    DQ_CHECK(!s.done && s.completed == 4 && s.failed == 3 && s.bytes == 400);
    dq_op_lost(op, 1, "and gone");
    dq_op_ok(op, 2, 20);
    dq_op_read(op, &s);
    DQ_CHECK(s.done && s.completed == 6 && s.failed == 4 && s.bytes == 420);
    dq_op_error(op, text, sizeof text);
    DQ_CHECK(strcmp(text, "the disk is full") == 0); // the first
    dq_op_free(op);
    dq_op_ok(NULL, 1, 1);
    dq_op_lost(NULL, 1, "x");
    dq_op_free(NULL);
    DQ_EQ(dq_op_new(0, &op), DQ_OK); // nothing to do
    dq_op_read(op, &s);
    DQ_CHECK(s.done);
    dq_op_free(op);
}

static void watched(void) {
    dq_waiter *w = new_waiter();
    dq_event ev[4];
    dq_op *early, *late, *none;
    DQ_EQ(dq_op_new(1, &early), DQ_OK);
    DQ_EQ(dq_op_new(1, &late), DQ_OK);
    DQ_EQ(dq_op_new(0, &none), DQ_OK);
    DQ_EQ(dq_op_watch(early, w, 7), DQ_OK);
    DQ_EQ(dq_op_watch(early, w, 8), DQ_INVALID_PARAMETER);
    DQ_EQ(dq_wait(w, 0, ev, 4), 0);
    dq_op_ok(early, 1, 0);
    dq_op_ok(late, 1, 0);
    DQ_EQ(dq_op_watch(late, w, 9), DQ_OK);
    DQ_EQ(dq_op_watch(none, w, 10), DQ_OK);
    dq_op_free(late); // released before its end is reported
    DQ_EQ(dq_wait(w, 0, ev, 2), 2);
    DQ_CHECK(ev[0].kind == DQ_EV_OP && ev[0].tag == 7 && ev[1].tag == 9);
    DQ_EQ(dq_wait(w, -1, ev, 4), 1);
    DQ_EQ(ev[0].tag, 10);
    DQ_EQ(dq_wait(w, 0, ev, 4), 0);
    dq_op_free(early);
    dq_op_free(none);
    dq_waiter_free(w);
}

// A task that has gone gets no notification, and nothing leaks (LeakSanitizer).
static void the_task_goes_first(void) {
    dq_waiter *w = new_waiter();
    dq_op *open, *ended;
    DQ_EQ(dq_op_new(1, &open), DQ_OK);
    DQ_EQ(dq_op_new(1, &ended), DQ_OK);
    DQ_EQ(dq_op_watch(open, w, 1), DQ_OK);
    DQ_EQ(dq_op_watch(ended, w, 2), DQ_OK);
    dq_op_ok(ended, 1, 0);
    dq_op_free(ended);
    dq_waiter_free(w);
    dq_op_ok(open, 1, 0);
    dq_op_free(open);
}

// Operations of a pool come and go, each as new; its owner may leave it before they end (LeakSanitizer).
static void a_pool_goes_round(void) {
    enum { ALL = 3 };
    dq_op *ops[ALL];
    dq_op_state s;
    char text[64];
    dqi_op_pool *p = dqi_op_pool_new(ALL);
    DQ_CHECK(p != NULL);
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t k = 0; k < ALL; k++) {
            ops[k] = dqi_op_take(p, 2);
            dq_op_read(ops[k], &s);
            dq_op_error(ops[k], text, sizeof text);
            DQ_CHECK(!s.done && s.completed == 0 && s.failed == 0 && s.bytes == 0 && text[0] == 0);
        }
        DQ_CHECK(dqi_op_take(p, 1) == NULL);
        for (uint32_t k = 0; k < ALL; k++) {
            dq_op_ok(ops[k], 1, 10);
            dq_op_free(ops[k]); // the work has it yet
            DQ_CHECK(k > 0 || dqi_op_take(p, 1) == NULL);
            if (round == 2 && k == 1) dqi_op_pool_free(p);
            dq_op_lost(ops[k], 1, "gone");
        }
    }
    dqi_op_pool_free(NULL);
    dqi_op_pool_free(dqi_op_pool_new(1));
}

// ---- threads ----------------------------------------------------------------------------------------------

// A worker ends operations in the order in which they come, after random delays.
typedef struct works {
    dqi_ring in;
    _Atomic bool quit;
    uint64_t seed;
} works;

static void *worker(void *arg) {
    works *k = arg;
    void *p;
    for (;;) {
        bool over = atomic_load(&k->quit);
        if (!dqi_ring_pop(&k->in, &p, NULL)) {
            if (over) return NULL;
            sched_yield();
            continue;
        }
        for (uint64_t n = dq_rand(&k->seed) % 64; n > 0; n--)
            dqi_pause();
        if (dq_rand(&k->seed) % 8 == 0)
            dq_op_lost(p, 1, "a fault");
        else
            dq_op_ok(p, 1, 100);
    }
}

// An operation, and how its task is notified of it.
typedef struct asked {
    dq_op *op;
    enum { EARLY, LATE, NEVER } how;
    bool reported;
} asked;

static uint32_t hear(dq_waiter *w, asked *a, int64_t timeout_ns) {
    dq_event ev[16];
    int n = dq_wait(w, timeout_ns, ev, 16);
    for (int k = 0; k < n; k++) {
        asked *of = &a[ev[k].tag];
        dq_op_state s;
        DQ_CHECK(ev[k].kind == DQ_EV_OP && of->op && !of->reported);
        dq_op_read(of->op, &s);
        DQ_CHECK(s.done && s.completed + s.failed == 1);
        of->reported = true;
    }
    return (uint32_t)n;
}

// Each of many operations holds a burst of a queue that has no more than there are operations under way.
static void ends_come_once(void) {
    bed b;
    works k = {.seed = 1};
    pthread_t t;
    asked a[OPEN] = {0};
    uint64_t seed = 2, received = 0, expected = 0;
    dq_waiter *w = new_waiter();
    dqi_op_pool *p = dqi_op_pool_new(OPEN);
    bed_open(&b, (bed_conf){.bufs = OPEN, .tx_meta = OPEN});
    DQ_CHECK(dqi_ring_init(&k.in, OPEN));
    DQ_EQ(pthread_create(&t, NULL, worker, &k), 0);
    for (uint64_t r = 0; r < ROUNDS; r++) {
        asked *of = &a[r % OPEN];
        if (of->op) { // made OPEN rounds ago
            dq_op_state s = {0};
            if (of->how == LATE) DQ_EQ(dq_op_watch(of->op, w, r % OPEN), DQ_OK);
            while (of->how != NEVER && !of->reported)
                received += hear(w, a, 1000000);
            while (dq_op_read(of->op, &s), !s.done)
                sched_yield();
            dq_op_free(of->op);
        }
        *of = (asked){.how = dq_rand(&seed) % 3};
        dq_burst *x;
        DQ_EQ(dq_tx_alloc(b.tx[0][0], 1, &x), DQ_OK); // its burst is back, or there would be none
        while (!(of->op = r % 2 ? dqi_op_take(p, 1) : dqi_op_new(1, NULL, 0)))
            sched_yield(); // the worker is about to release one
        dqi_op_hold(of->op, x);
        dq_burst_unref(x);
        expected += of->how != NEVER;
        if (of->how == EARLY) DQ_EQ(dq_op_watch(of->op, w, r % OPEN), DQ_OK);
        DQ_CHECK(dqi_ring_push(&k.in, of->op, 0));
        received += hear(w, a, 0);
    }
    for (uint32_t i = 0; i < OPEN; i++)
        if (a[i].op && a[i].how == LATE) DQ_EQ(dq_op_watch(a[i].op, w, i), DQ_OK);
    while (received < expected)
        received += hear(w, a, 1000000);
    DQ_EQ(hear(w, a, 1000000), 0); // no end twice
    atomic_store(&k.quit, true);
    pthread_join(t, NULL);
    for (uint32_t i = 0; i < OPEN; i++)
        dq_op_free(a[i].op);
    dqi_op_pool_free(p);
    dqi_ring_free(&k.in);
    dq_waiter_free(w);
    bed_close(&b);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(parts_add_up);
    DQ_RUN(watched);
    DQ_RUN(the_task_goes_first);
    DQ_RUN(a_pool_goes_round);
    DQ_RUN(ends_come_once);
    return dq_done();
}
