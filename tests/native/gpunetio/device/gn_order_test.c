// gn_order_test.c: the rules of order of gn_ring.h, one case each: bytes that are not atomics, written on one
// side and read on the other, with random delays. DQ_GN_SIGNALS: how many of each (10^8 takes minutes).
//
// Under the thread sanitizer each release and acquire that is left out is a race:
// tests/gpunetio/gpunetio_test.go builds this without one at a time, and each such build has to fail.
#include "gn_rig.h"

#include <time.h>

// A case runs for so many signals, a few at a time; unless they were asked for, it ends after ten seconds:
// on a busy machine each may have to wait until the other side gets a processor.
enum { AT_ONCE = 250, SECONDS = 10 };

static uint64_t signals(void) {
    const char *n = getenv("DQ_GN_SIGNALS");
    return n ? strtoull(n, NULL, 10) : DQ_ROUNDS(200000);
}

static bool time_is_up(time_t from) { return !getenv("DQ_GN_SIGNALS") && time(NULL) - from > SECONDS; }

static struct {
    rig_context context;
    uint64_t n, first, port_number;
    uint64_t bytes[64]; // the region: 8 for each slot of a ring of 8, whose first word is checked
    uint64_t results[8], shadow[8];
} t;

static void open_port(uint32_t slots) {
    static gn_region region;
    memset(&t, 0, sizeof t);
    t.n = AT_ONCE;
    t.first = (1ull << 32) - 3;
    region = (gn_region){(uintptr_t)t.bytes, sizeof t.bytes, 0, GN_READ | GN_WRITE, 0};
    gn_ring_conf ring = {.slots = slots, .first = t.first, .ops = (1u << GN_OPS) - 1};
    gn_context_conf conf = {.tx = &ring,
                            .rx = &ring,
                            .sems = &ring,
                            .n_tx = 1,
                            .n_rx = 1,
                            .n_sems = 1,
                            .regions = &region,
                            .n_regions = 1,
                            .limit_ns = RIG_FOREVER,
                            .epoch = 1};
    rig_open(&t.context, &conf);
}

static uint64_t word_of(uint64_t k) { return k * 0x9e3779b97f4a7c15ull + 1; }

static void delay_from(uint64_t seed) {
    if (!rig_seed) rig_seed = seed + t.port_number;
    rig_time = rig_time ? rig_time : 1;
    rig_delay();
}

// Runs both sides on new contexts.
static void both(uint32_t slots, void *(*kernel)(void *), void *(*proxy)(void *)) {
    const time_t from = time(NULL);
    for (uint64_t n = 0; n < signals() && !time_is_up(from); n += AT_ONCE) {
        pthread_t a, b;
        open_port(slots);
        t.port_number = n;
        DQ_EQ(pthread_create(&a, NULL, kernel, NULL), 0);
        DQ_EQ(pthread_create(&b, NULL, proxy, NULL), 0);
        pthread_join(a, NULL);
        pthread_join(b, NULL);
        free(t.context.block);
    }
}

static void wait_slot(uint64_t ticket, gn_u64 w[GN_TX_WORDS]) {
    while (!rig_take(&t.context, 0, ticket, w))
        sched_yield();
}

static gn_tx open_tx(gn_side *s) {
    gn_tx q;
    DQ_EQ(gn_open(s, t.context.block), GN_OK);
    DQ_EQ(gn_tx_open(&q, s, 0), GN_OK);
    return q;
}

// ---- 1: bytes before the slot that names them, by gn_post and by gn_publish -------------------------------

static void *post_bytes(void *arg) {
    (void)arg;
    gn_side s;
    gn_tx q = open_tx(&s);
    for (uint64_t k = 0; k < t.n; k++) {
        uint64_t ticket = t.first + k, at = ticket % 8;
        if (k >= 8) DQ_EQ(gn_wait(&q, ticket - 8, RIG_FOREVER), GN_OK);
        t.bytes[at * 8] = word_of(k);
        gn_slot slot = gn_fill_send(gn_place(0, at * 64), 8, 0, 0);
        delay_from(1);
        DQ_EQ(gn_room(&q, ticket, 1, RIG_FOREVER), GN_OK);
        if (k / 64 % 2) {
            gn_post(&q, ticket, &slot);
        } else {
            gn_commit(&q, ticket, &slot);
            gn_publish(&q, ticket, 1);
        }
    }
    return NULL;
}

static void *read_bytes(void *arg) {
    (void)arg;
    gn_tx_state *state = rig_tx_state(&t.context, 0);
    for (uint64_t k = 0; k < t.n; k++) {
        gn_u64 w[GN_TX_WORDS];
        uint64_t ticket = t.first + k;
        wait_slot(ticket, w);
        gn_store(&state->accepted, ticket + 1);
        delay_from(2);
        DQ_EQ(t.bytes[gn_place_offset(w[1]) / 8], word_of(k));
        gn_store(&state->completed, ticket + 1);
    }
    return NULL;
}

static void data_before_its_slot(void) { both(4, post_bytes, read_bytes); }

// ---- 2 and 5: bytes before the descriptor that names them; reads before the release mark ------------------

static void *take_packets(void *arg) {
    (void)arg;
    gn_side s;
    gn_rx q;
    DQ_EQ(gn_open(&s, t.context.block), GN_OK);
    DQ_EQ(gn_rx_open(&q, &s, 0), GN_OK);
    for (uint64_t k = 0; k < t.n;) {
        gn_u64 first;
        gn_u32 n;
        DQ_EQ(gn_recv(&q, GN_BY_THREAD, 3, RIG_FOREVER, &first, &n, 0), GN_OK);
        for (uint32_t i = 0; i < n; i++, k++) {
            gn_packet p = {0};
            DQ_EQ(first + i, t.first + k);
            DQ_EQ(gn_rx_read(&q, first + i, &p), GN_OK);
            DQ_EQ(*(const uint64_t *)gn_pointer(&s, p.place), word_of(k));
        }
        delay_from(3);
        gn_release(&q, GN_BY_THREAD, first, n);
    }
    return NULL;
}

static void *give_packets(void *arg) {
    (void)arg;
    for (uint64_t k = 0; k < t.n; k++) {
        uint64_t ticket = t.first + k, at = ticket % 4;
        while (!rig_free(&t.context, 0, ticket))
            sched_yield();
        t.bytes[at * 8] = word_of(k);
        delay_from(4);
        rig_give(&t.context, 0, ticket, gn_place(0, at * 64), 8);
    }
    return NULL;
}

static void data_before_its_descriptor(void) { both(4, take_packets, give_packets); }
static void packet_read_before_released(void) { both(4, take_packets, give_packets); }

// ---- 3: a slot is read before it is accepted; what the proxy did by then is seen by the thread reusing it

static void *post_again(void *arg) {
    (void)arg;
    gn_side s;
    gn_tx q = open_tx(&s);
    for (uint64_t k = 0; k < t.n; k++) {
        gn_u64 ticket;
        DQ_EQ(gn_reserve(&q, 1, RIG_FOREVER, &ticket), GN_OK);
        if (k >= 4) DQ_EQ(t.shadow[ticket % 4], word_of(k - 4));
        gn_slot slot = gn_fill_add(0, word_of(k));
        delay_from(5);
        gn_post(&q, ticket, &slot);
    }
    DQ_EQ(gn_flush(&q, RIG_FOREVER), GN_OK);
    return NULL;
}

static void *read_and_accept(void *arg) {
    (void)arg;
    gn_tx_state *state = rig_tx_state(&t.context, 0);
    for (uint64_t k = 0; k < t.n; k++) {
        gn_u64 w[GN_TX_WORDS];
        gn_desc d;
        gn_region remote = {0, 8, 0, GN_REMOTE | GN_ADD, 0};
        gn_given given = {&remote, 1, 1u << GN_OP_ADD, 8};
        uint64_t ticket = t.first + k;
        wait_slot(ticket, w);
        DQ_EQ(gn_check(w, ticket, &given, &d), GN_FAULT_NONE);
        t.shadow[ticket % 4] = d.operand;
        delay_from(6);
        gn_store(&state->accepted, ticket + 1);
        gn_store(&state->completed, ticket + 1);
    }
    return NULL;
}

static void slot_read_before_accepted(void) { both(4, post_again, read_and_accept); }

// ---- 4: results before completed --------------------------------------------------------------------------

static void *ask_results(void *arg) {
    (void)arg;
    gn_side s;
    gn_tx q = open_tx(&s);
    for (uint64_t k = 0; k < t.n; k++) {
        gn_u64 ticket;
        gn_slot slot = gn_fill_add(0, k);
        DQ_EQ(gn_submit(&q, GN_BY_THREAD, &slot, RIG_FOREVER, &ticket), GN_OK);
        DQ_EQ(gn_wait(&q, ticket, RIG_FOREVER), k % 3 == 0 ? GN_FAILED : GN_OK);
        DQ_EQ(t.results[ticket % 8], word_of(k));
        delay_from(7);
    }
    return NULL;
}

static void *give_results(void *arg) {
    (void)arg;
    gn_tx_state *state = rig_tx_state(&t.context, 0);
    for (uint64_t k = 0; k < t.n; k++) {
        gn_u64 w[GN_TX_WORDS];
        uint64_t ticket = t.first + k;
        wait_slot(ticket, w);
        gn_store(&state->accepted, ticket + 1);
        delay_from(8);
        t.results[ticket % 8] = word_of(k);
        if (k % 3 == 0) gn_poke(&state->error, gn_error(GN_FAULT_FAILED, ticket));
        gn_store(&state->completed, (ticket + 1) | GN_SOME_FAILED);
    }
    return NULL;
}

static void result_before_completed(void) { both(2, ask_results, give_results); }

// ---- 6: data before its signal ----------------------------------------------------------------------------

static void *push_items(void *arg) {
    (void)arg;
    gn_side s;
    gn_sem m;
    DQ_EQ(gn_open(&s, t.context.block), GN_OK);
    DQ_EQ(gn_sem_open(&m, &s, 0), GN_OK);
    for (uint64_t k = 0; k < t.n; k++) {
        while (gn_sem_status_of(&m, t.first + k - 4) != GN_SEM_DONE && k >= 4)
            sched_yield();
        t.bytes[k % 4 * 8] = word_of(k); // of an item that was returned
        delay_from(9);
        DQ_EQ(gn_sem_push(&m, k, k * 2, RIG_FOREVER, 0), GN_OK);
    }
    gn_sem_exit(&m);
    return NULL;
}

static void *take_items(void *arg) {
    (void)arg;
    gn_side s;
    gn_sem m;
    gn_u64 ticket;
    gn_sem_item item;
    DQ_EQ(gn_open(&s, t.context.block), GN_OK);
    DQ_EQ(gn_sem_open(&m, &s, 0), GN_OK);
    for (uint64_t k = 0; k < t.n; k++) {
        DQ_EQ(gn_sem_take(&m, RIG_FOREVER, &ticket, &item), GN_OK);
        DQ_EQ(item.first, k);
        DQ_EQ(item.count, k * 2);
        DQ_EQ(t.bytes[k % 4 * 8], word_of(k));
        delay_from(10);
        DQ_EQ(gn_sem_done(&m, ticket, RIG_FOREVER), GN_OK);
    }
    DQ_EQ(gn_sem_take(&m, RIG_FOREVER, &ticket, &item), GN_ENDED);
    return NULL;
}

static void data_before_signal(void) { both(4, take_items, push_items); }

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(data_before_its_slot);
    DQ_RUN(data_before_its_descriptor);
    DQ_RUN(packet_read_before_released);
    DQ_RUN(slot_read_before_accepted);
    DQ_RUN(result_before_completed);
    DQ_RUN(data_before_signal);
    return dq_done();
}
