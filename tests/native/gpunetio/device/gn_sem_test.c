// gn_sem_test.c: semaphores, all interleavings: a producer and two consumers, or one and an onlooker, step
// through the code of gn_sem.h access by access, in every order that there is.
//
// An actor is run again for each step: its accesses so far in the call that it is in give what they gave, the
// next one is done in the memory of the state, and the run is left before the one after it. A call that waits
// begins again. What an actor is, between calls, are a few numbers; so a state is memory, actors and their
// logs, and the states that were reached before are known.
#include "dqtest.h"

#include <setjmp.h>

#define GN_OWN_WORDS
#include "gpunetio/device/gn_base.h"

enum { ITEMS = 3, SIZE = 2, ACTORS = 4, LOG = 28, WORDS = 3 + 2 * SIZE, STATES = 1 << 20 };
enum { PRODUCER, CONSUMER, OTHER, ONLOOKER };

typedef struct actor {
    uint8_t phase, finished, n; // n: of the log
    uint8_t result;             // the last call's
    uint64_t ticket;
    uint64_t log[LOG];
} actor;

typedef struct state {
    uint64_t word[WORDS]; // ready, hold, done, items
    actor a[ACTORS];
    uint32_t taken, given; // items
    uint32_t seen;         // by the item that the onlooker checks, since its call began: statuses it had
} state;

static state now;           // where the step is done
static uint64_t *at[WORDS]; // the words in the context's block
static actor *me;
static uint32_t read_at;
static bool stepped;
static jmp_buf out;

static int word_at(const gn_u64 *p) {
    for (int k = 0; k < WORDS; k++)
        if ((const uint64_t *)(const void *)p == at[k]) return k;
    return -1;
}

// The next access of the run; true: it is done now, and log[n - 1] is to be what it gave.
static bool step(gn_u64 *gave) {
    if (read_at < me->n) {
        *gave = me->log[read_at++];
        return false;
    }
    if (stepped) longjmp(out, 1);
    stepped = true;
    if (me->n == LOG) {
        fprintf(stderr, "a call of more than %d accesses\n", LOG);
        exit(1);
    }
    me->n++;
    read_at++;
    return true;
}

static gn_u64 gn_peek(const gn_u64 *p) {
    gn_u64 v;
    int k = word_at(p);
    if (k < 0) return *p;
    if (step(&v)) me->log[me->n - 1] = v = now.word[k];
    return v;
}
static gn_u64 gn_load(const gn_u64 *p) { return gn_peek(p); }
static void gn_poke(gn_u64 *p, gn_u64 v) {
    gn_u64 nothing;
    int k = word_at(p);
    if (k >= 0 && step(&nothing)) now.word[k] = v;
}
static void gn_store(gn_u64 *p, gn_u64 v) { gn_poke(p, v); }
static void gn_store_fenced(gn_u64 *p, gn_u64 v) { gn_poke(p, v); }
static void gn_store_near(gn_u64 *p, gn_u64 v) { gn_poke(p, v); }
static gn_u64 gn_load_beside(const gn_u64 *p) { return gn_load(p); }
static void gn_fence(void) {}
static int gn_swap(gn_u64 *p, gn_u64 is, gn_u64 v) {
    gn_u64 did;
    int k = word_at(p);
    if (step(&did)) {
        me->log[me->n - 1] = did = now.word[k] == is;
        if (did) now.word[k] = v;
    }
    return (int)did;
}
static int gn_swap_shown(gn_u64 *p, gn_u64 is, gn_u64 v) { return gn_swap(p, is, v); }

#define GN_LANES   1
#define GN_NOW()   1
#define GN_PAUSE() (me->n = 0, longjmp(out, 1))
#include "gpunetio/device/gn.h"
#include "gpunetio/device/gn_context.h"

static void *block;
static gn_sem sem;
static uint64_t first;
static int fails_at; // the item whose holder fails, -1: none
static uint32_t statuses;

static int status_of(const state *s, uint64_t k) {
    return gn_sem_state(first + k, s->word[2], s->word[1], s->word[0]);
}

// One call of the actor; what comes after it depends on what the call gave.
static void call(actor *a, int who) {
    gn_sem_item item;
    gn_u64 ticket;
    if (who == PRODUCER) {
        if (a->phase == ITEMS) {
            gn_sem_exit(&sem);
            a->finished = 1;
        } else {
            a->result = (uint8_t)gn_sem_push(&sem, a->phase + 100u, a->phase * 3u, GN_LIMIT, 0);
            a->phase++;
            a->finished = a->result != GN_OK;
        }
    } else if (who == ONLOOKER) {
        int said = gn_sem_status_of(&sem, first + 2);
        DQ_CHECK(now.seen >> said & 1);
        a->finished = 1;
    } else if (a->phase == 0) {
        a->result = (uint8_t)gn_sem_take(&sem, GN_LIMIT, &ticket, &item);
        a->finished = a->result != GN_OK;
        if (a->finished) return;
        a->ticket = ticket;
        a->phase = 1;
        uint64_t k = ticket - first;
        DQ_CHECK(k < ITEMS && !(now.taken >> k & 1));
        now.taken |= 1u << k;
        DQ_EQ(item.first, k + 100);
        DQ_EQ(item.count, k * 3);
    } else if ((int)(a->ticket - first) == fails_at) {
        gn_sem_fail(&sem);
        a->finished = 1;
    } else {
        uint64_t k = a->ticket - first;
        a->result = (uint8_t)gn_sem_done(&sem, a->ticket, GN_LIMIT);
        a->phase = 0;
        a->finished = a->result != GN_OK;
        if (a->finished) return;
        DQ_EQ(now.given, (1u << k) - 1); // in order
        now.given |= 1u << k;
    }
}

// Statuses that may follow each other.
static const uint8_t follows[6] = {
    [GN_SEM_FREE] = 1 << GN_SEM_READY | 1 << GN_SEM_EXIT | 1 << GN_SEM_ERROR,
    [GN_SEM_READY] = 1 << GN_SEM_HOLD | 1 << GN_SEM_ERROR,
    [GN_SEM_HOLD] = 1 << GN_SEM_DONE | 1 << GN_SEM_ERROR,
    [GN_SEM_EXIT] = 1 << GN_SEM_ERROR,
};

// One step of an actor from s, in `now`.
static void advance(const state *s, int who) {
    now = *s;
    me = &now.a[who];
    read_at = 0;
    stepped = false;
    if (who == ONLOOKER && me->n == 0) now.seen = 1u << status_of(s, 2);
    if (setjmp(out) == 0) {
        call(me, who);
        me->n = 0;
    }
    if (me->n == 0) memset(me->log, 0, sizeof me->log);
    uint64_t done = now.word[2] & ~GN_SEM_END, hold = now.word[1], ready = now.word[0] & ~GN_SEM_END;
    DQ_CHECK(first <= done && done <= hold && hold <= ready && ready <= done + SIZE);
    for (uint64_t k = 0; k <= ITEMS; k++) {
        int was = status_of(s, k), is = status_of(&now, k);
        DQ_CHECK(was == is || follows[was] >> is & 1);
        statuses |= 1u << is;
    }
    now.seen |= 1u << status_of(&now, 2);
}

// ---- states that were reached -----------------------------------------------------------------------------

static state *states;
static uint32_t n_states, *table, *edges, n_edges;

static uint32_t known(const state *s) {
    uint64_t h = 14695981039346656037ull;
    const uint8_t *b = (const uint8_t *)s;
    for (size_t k = 0; k < sizeof *s; k++)
        h = (h ^ b[k]) * 1099511628211ull;
    uint32_t slot = (uint32_t)(h >> 20) % (2 * STATES);
    while (table[slot] && memcmp(&states[table[slot] - 1], s, sizeof *s) != 0)
        slot = (slot + 1) % (2 * STATES);
    if (table[slot] == 0) {
        if (n_states == STATES) {
            fprintf(stderr, "more than %d states\n", STATES);
            exit(1);
        }
        states[n_states] = *s;
        table[slot] = ++n_states;
    }
    return table[slot] - 1;
}

static bool all_finished(const state *s) {
    for (int k = 0; k < ACTORS; k++)
        if (!s->a[k].finished) return false;
    return true;
}

// From every state an end can be reached: nothing waits forever.
static void ends(void) {
    uint8_t *good = calloc(n_states, 1);
    bool more = true;
    for (uint32_t k = 0; k < n_states; k++)
        good[k] = all_finished(&states[k]);
    while (more) {
        more = false;
        for (uint32_t e = n_edges; e > 0; e--) {
            uint32_t from = edges[2 * e - 2], to = edges[2 * e - 1];
            if (!good[from] && good[to]) good[from] = more = true;
        }
    }
    uint32_t stuck = 0;
    for (uint32_t k = 0; k < n_states; k++)
        stuck += !good[k];
    DQ_EQ(stuck, 0);
    free(good);
}

// without: an actor that takes no part.
static void explore(int fails, int without) {
    gn_ring_conf ring = {.slots = SIZE, .first = first = (1ull << 32) - 3};
    gn_context_conf conf = {.sems = &ring, .n_sems = 1, .limit_ns = 1000, .epoch = 1};
    block = aligned_alloc(4096, gn_context_bytes(&conf));
    gn_context_make(block, &conf);
    gn_side s;
    gn_open(&s, block);
    gn_sem_open(&sem, &s, 0);
    at[0] = (uint64_t *)&sem.producer->ready;
    at[1] = (uint64_t *)&sem.consumer->hold;
    at[2] = (uint64_t *)&sem.consumer->done;
    for (int k = 0; k < 2 * SIZE; k++)
        at[3 + k] = (uint64_t *)(void *)sem.items + k;
    fails_at = fails;
    states = calloc(STATES, sizeof *states);
    table = calloc(2 * STATES, sizeof *table);
    edges = calloc((size_t)ACTORS * STATES, 2 * sizeof *edges);
    n_states = n_edges = 0;
    state start;
    memset(&start, 0, sizeof start);
    for (int k = 0; k < WORDS; k++)
        start.word[k] = *at[k];
    start.a[without].finished = 1;
    known(&start);
    uint32_t finals = 0;
    for (uint32_t k = 0; k < n_states && atomic_load(&dq_failures) == 0; k++) {
        for (int who = 0; who < ACTORS; who++) {
            if (states[k].a[who].finished) continue;
            advance(&states[k], who);
            edges[2 * n_edges] = k;
            edges[2 * n_edges++ + 1] = known(&now);
        }
        if (!all_finished(&states[k])) continue;
        finals++;
        if (fails < 0) DQ_EQ(states[k].given, (1u << ITEMS) - 1);
        if (fails >= 0) DQ_EQ(states[k].given >> fails, 0); // the other may not have returned its own by then
    }
    DQ_CHECK(finals > 0);
    ends();
    printf("%u states, %u steps, %u ends\n", n_states, n_edges, finals);
    free(states);
    free(table);
    free(edges);
    free(block);
}

static void all_interleavings(void) {
    statuses = 0;
    // Two consumers cost most where none fails, or the last item's: a sanitizer sees as much without them.
    const int last = DQ_SANITIZED ? ITEMS - 2 : ITEMS - 1;
    for (int fails = -1; fails <= last; fails++) {
        if (!DQ_SANITIZED || fails >= 0) explore(fails, ONLOOKER);
        explore(fails, OTHER);
    }
    DQ_EQ(statuses, (1u << 6) - 1);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(all_interleavings);
    return dq_done();
}
