// ring_test.c: the bounded queue between threads: full, empty, wrap-around, and a hammer with several
// producers and consumers that follows every entry.
#include "dqtest.h"

#include "core/ring.h"

#include <pthread.h>
#include <sched.h>

static void *as_ptr(uint64_t v) { return (void *)(uintptr_t)v; }

static void full_and_empty(void) {
    static const struct { uint32_t asked, room; } sizes[] = {{1, 2}, {2, 2}, {3, 4}, {64, 64}, {65, 128}};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        dqi_ring r;
        void *p = NULL;
        uint32_t aux = 0;
        DQ_CHECK(dqi_ring_init(&r, sizes[k].asked));
        for (int round = 0; round < 3; round++) { // the second goes across the wrap
            DQ_CHECK(!dqi_ring_pop(&r, &p, &aux));
            for (uint32_t i = 0; i < sizes[k].room; i++)
                DQ_CHECK(dqi_ring_push(&r, as_ptr(i + 1), i * 3));
            DQ_CHECK(!dqi_ring_push(&r, as_ptr(99), 0));
            DQ_EQ(dqi_ring_level(&r), sizes[k].room);
            for (uint32_t i = 0; i < sizes[k].room; i++) {
                DQ_CHECK(dqi_ring_pop(&r, &p, &aux));
                DQ_EQ((uintptr_t)p, i + 1);
                DQ_EQ(aux, i * 3);
            }
            DQ_EQ(dqi_ring_level(&r), 0);
            DQ_CHECK(dqi_ring_push(&r, as_ptr(7), 0) &&
                     dqi_ring_pop(&r, &p, NULL)); // an odd start for the next
        }
        dqi_ring_free(&r);
        dqi_ring_free(&r);
    }
}

static void counters_wrap(void) {
    dqi_ring r;
    void *p = NULL;
    DQ_CHECK(dqi_ring_init(&r, 4));
    uint32_t start = UINT32_MAX - 5; // positions near the end of their range
    atomic_store(&r.head, start);
    atomic_store(&r.tail, start);
    for (uint32_t i = 0; i < 4; i++)
        atomic_store(&r.slots[(start + i) & r.mask].seq, start + i);
    for (uint64_t v = 1; v < 40; v += 3) {
        for (uint64_t i = 0; i < 3; i++)
            DQ_CHECK(dqi_ring_push(&r, as_ptr(v + i), 0));
        DQ_EQ(dqi_ring_level(&r), 3);
        for (uint64_t i = 0; i < 3; i++) {
            DQ_CHECK(dqi_ring_pop(&r, &p, NULL));
            DQ_EQ((uintptr_t)p, v + i);
        }
    }
    dqi_ring_free(&r);
}

// ---- hammer -----------------------------------------------------------------------------------------------

enum { PRODUCERS = 3, CONSUMERS = 3, EACH = 30000 };

static dqi_ring shared_ring;
static _Atomic uint32_t taken;
static _Atomic uint8_t seen[PRODUCERS][EACH];

static void *produce(void *arg) {
    uint32_t who = (uint32_t)(uintptr_t)arg;
    for (uint32_t i = 0; i < EACH; i++)
        while (!dqi_ring_push(&shared_ring, as_ptr((uint64_t)who << 32 | i), who ^ i))
            sched_yield();
    return NULL;
}

// Each consumer sees each producer's entries in rising order.
static void *consume(void *arg) {
    (void)arg;
    int64_t last[PRODUCERS] = {-1, -1, -1};
    while (atomic_load(&taken) < PRODUCERS * EACH) {
        void *p;
        uint32_t aux;
        if (!dqi_ring_pop(&shared_ring, &p, &aux)) {
            sched_yield();
            continue;
        }
        uint32_t who = (uint32_t)((uint64_t)(uintptr_t)p >> 32), i = (uint32_t)(uintptr_t)p;
        atomic_fetch_add(&taken, 1);
        DQ_CHECK(who < PRODUCERS && i < EACH && aux == (who ^ i));
        DQ_CHECK((int64_t)i > last[who]);
        last[who] = i;
        atomic_fetch_add(&seen[who][i], 1);
    }
    return NULL;
}

static void many_producers_many_consumers(void) {
    pthread_t t[PRODUCERS + CONSUMERS];
    DQ_CHECK(dqi_ring_init(&shared_ring, 16));
    for (uint32_t i = 0; i < PRODUCERS + CONSUMERS; i++)
        DQ_EQ(pthread_create(&t[i], NULL, i < PRODUCERS ? produce : consume, as_ptr(i)), 0);
    for (uint32_t i = 0; i < PRODUCERS + CONSUMERS; i++)
        pthread_join(t[i], NULL);
    for (uint32_t w = 0; w < PRODUCERS; w++)
        for (uint32_t i = 0; i < EACH; i++)
            if (seen[w][i] != 1) DQ_EQ(seen[w][i], 1);
    DQ_EQ(dqi_ring_level(&shared_ring), 0);
    dqi_ring_free(&shared_ring);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(full_and_empty);
    DQ_RUN(counters_wrap);
    DQ_RUN(many_producers_many_consumers);
    return dq_done();
}
