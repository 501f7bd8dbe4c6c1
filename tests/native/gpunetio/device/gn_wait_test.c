// gn_wait_test.c: every wait of a kernel ends: at its limit, when the context is aborted, when the ring's
// life is over; what a call that failed leaves; contexts that are refused; words that a warp relays.
#include "gn_rig.h"

static rig_context context;
static gn_side side;
static gn_tx tx;
static gn_rx rx;
static gn_sem sem;
static uint64_t region[8];

static gn_context_conf conf_of(const gn_ring_conf *ring, const gn_region *r) {
    return (gn_context_conf){.tx = ring,
                             .rx = ring,
                             .sems = ring,
                             .n_tx = 1,
                             .n_rx = 1,
                             .n_sems = 1,
                             .regions = r,
                             .n_regions = 1,
                             .limit_ns = 500000,
                             .epoch = 3};
}

static void open_with(bool single) {
    gn_ring_conf ring = {
        .slots = 4, .ops = 1u << GN_OP_SEND | 1u << GN_OP_ADD, .first = 1000, .single = single};
    gn_region r = {(uintptr_t)region, sizeof region, 0, GN_READ | GN_WRITE, 0};
    gn_context_conf conf = conf_of(&ring, &r);
    memset(region, 0, sizeof region);
    rig_open(&context, &conf);
    rig_time = 1;
    DQ_EQ(gn_open(&side, context.block), GN_OK);
    DQ_EQ(gn_tx_open(&tx, &side, 0), GN_OK);
    DQ_EQ(gn_rx_open(&rx, &side, 0), GN_OK);
    DQ_EQ(gn_sem_open(&sem, &side, 0), GN_OK);
}

static void open_all(void) { open_with(false); }

// ---- waits, with a context where nothing comes ------------------------------------------------------------

static int w_reserve(gn_u64 limit) {
    gn_u64 t;
    return gn_reserve(&tx, 1, limit, &t);
}
static int w_room(gn_u64 limit) { return gn_room(&tx, 1001, 4, limit); }
static int w_wait(gn_u64 limit) { return gn_wait(&tx, 1000, limit); }
static int w_flush(gn_u64 limit) { return gn_flush(&tx, limit); }
static int w_send(gn_u64 limit) { return gn_send(&tx, GN_BY_THREAD, 0, 8, 0, 0, limit, 0); }
static int w_fetch(gn_u64 limit) {
    gn_u64 was;
    return gn_fetch_add(&tx, 0, 1, gn_place(0, 8), limit, &was);
}
static int w_recv(gn_u64 limit) {
    gn_u64 first;
    gn_u32 n;
    int err = gn_recv(&rx, GN_BY_THREAD, 4, limit, &first, &n, 0);
    DQ_EQ(n, 0);
    return err;
}
static int w_push(gn_u64 limit) { return gn_sem_push(&sem, 0, 0, limit, 0); }
static int w_done(gn_u64 limit) { return gn_sem_done(&sem, 1002, limit); }
static int w_signal(gn_u64 limit) { return gn_wait_signal(&side, gn_place(0, 16), 1, limit); }

static const struct {
    int (*wait)(gn_u64);
    bool ring; // it ends with the ring's life
} waits[] = {{w_reserve, true}, {w_room, true}, {w_wait, true},  {w_flush, true}, {w_send, true},
             {w_fetch, true},   {w_recv, true}, {w_push, false}, {w_done, false}, {w_signal, false}};
enum { WAITS = sizeof waits / sizeof *waits };

static void fill_up(void) {
    gn_u64 t;
    for (int k = 0; k < 4; k++) {
        DQ_EQ(gn_send(&tx, GN_BY_THREAD, 0, 8, 0, 0, 0, &t), GN_OK);
        DQ_EQ(gn_sem_push(&sem, 0, 0, 0, &t), GN_OK);
        DQ_EQ(t, 1000 + k);
    }
}

static void limits(void) {
    open_all();
    fill_up();
    for (int k = 0; k < WAITS; k++) {
        static const uint64_t limit[] = {5000, 100000, GN_LIMIT};
        for (int i = 0; i < 3; i++) {
            uint64_t from = rig_time, want = limit[i] == GN_LIMIT ? 500000 : limit[i];
            DQ_EQ(waits[k].wait(limit[i]), GN_TIMEOUT);
            DQ_CHECK(rig_time - from >= want && rig_time - from <= want + want / 10);
        }
        uint64_t from = rig_time;
        DQ_EQ(waits[k].wait(0), GN_AGAIN);
        DQ_EQ(rig_time, from);
    }
    DQ_EQ(gn_next(&tx), 1004); // who waited in vain has no ticket
    const gn_tx_posted *posted = gn_at(context.block, context.tx[0].posted);
    DQ_CHECK(gn_peek(&posted->waits) > 1000);
    const gn_kernel_words *k = gn_at(context.block, context.head.kernel);
    DQ_EQ(gn_peek(&k->abi), GN_ABI);
    DQ_CHECK(gn_peek(&k->beat) > 1);
    free(context.block);
}

static void aborts(void) {
    open_all();
    fill_up();
    for (int k = 0; k < WAITS; k++) {
        gn_store(&rig_tx_state(&context, 0)->epoch, 3 | GN_BROKEN_RING);
        gn_store(&rig_rx_state(&context, 0)->epoch, 4);
        DQ_EQ(waits[k].wait(5000), waits[k].ring ? GN_BROKEN : GN_TIMEOUT);
        gn_proxy_words *words = gn_at(context.block, context.head.proxy);
        gn_store(&words->abort, 1);
        DQ_EQ(waits[k].wait(5000), GN_ABORTED);
        gn_store(&words->abort, 0);
    }
    gn_tx again;
    DQ_EQ(gn_tx_open(&again, &side, 0), GN_BROKEN);
    free(context.block);
}

// A kernel that is slower than its queue, and so never waits.
static void aborts_while_packets_come(void) {
    for (int single = 0; single < 2; single++) {
        open_with(single);
        rig_give(&context, 0, 1000, 0, 8);
        gn_proxy_words *words = gn_at(context.block, context.head.proxy);
        gn_store(&words->abort, 1);
        DQ_EQ(w_recv(5000), GN_ABORTED);
        free(context.block);
    }
}

// A kernel whose queue is faster than it is never waits, and still gets GN_ABORTED within one lap of its
// ring: with tickets that the ring gives and with those that it names itself.
static void aborts_while_there_is_room(void) {
    for (int weak = 0; weak < 2; weak++) {
        open_all();
        gn_proxy_words *words = gn_at(context.block, context.head.proxy);
        int err = GN_OK, sent = 0;
        for (; sent < 16 && err == GN_OK; sent++) {
            if (sent == 8) gn_store(&words->abort, 1);
            err = weak ? gn_room(&tx, 1000 + (gn_u64)sent, 1, 0) : w_send(0);
            gn_store(&rig_tx_state(&context, 0)->accepted, 1001 + (gn_u64)sent);
        }
        DQ_EQ(err, GN_ABORTED);
        DQ_CHECK(sent > 8 && sent <= 8 + 4 + 1);
        free(context.block);
    }
}

static void refused(void) {
    dq_diag diag;
    gn_u64 t;
    gn_tx none;
    open_all();
    DQ_EQ(gn_tx_open(&none, &side, 1), GN_INVALID);
    DQ_EQ(gn_reserve(&tx, 5, 0, &t), GN_INVALID);
    DQ_EQ(gn_reserve(&tx, 0, 0, &t), GN_INVALID);
    DQ_EQ(gn_put(&tx, GN_BY_THREAD, 0, 0, 8, 0, 0), GN_INVALID); // the ring takes none
    DQ_EQ(gn_put_inline(&tx, GN_BY_THREAD, 0, 0, 9, 0, 0), GN_INVALID);
    rig_give(&context, 0, 1000, 0, 8);
    for (int scope = -1; scope < 5; scope += 4) { // below and behind those that there are
        gn_u32 n = 7;
        DQ_EQ(gn_send(&tx, scope, gn_place(0, 0), 8, 0, 0, 0, &t), GN_INVALID);
        DQ_EQ(gn_recv(&rx, scope, 1, 0, &t, &n, 0), GN_INVALID);
        DQ_EQ(n, 0);
        DQ_EQ(gn_release(&rx, scope, 1000, 1), GN_INVALID);
    }
    DQ_EQ(gn_wait_signal(&side, gn_place(1, 0), 1, 0), GN_INVALID);
    DQ_EQ(gn_wait_signal(&side, gn_place(0, 4), 1, 0), GN_INVALID);
    gn_context *head = context.block;
    head->abi ^= 1;
    DQ_EQ(gn_open(&side, context.block), GN_ABI_DIFFERS);
    free(context.block);
    gn_region r = {0, 64, 0, GN_READ, 0};
    static const uint32_t wrong[] = {0, 1, 3, 6, 65537, 131072};
    for (int k = 0; k < 6; k++) {
        gn_ring_conf ring = {.slots = wrong[k]}, two[2] = {{.slots = 8}, ring};
        gn_context_conf conf = conf_of(two, &r);
        conf.n_rx = 2;
        DQ_EQ(gn_context_check("kernel echo", &conf, &diag), DQ_INVALID_PARAMETER);
        DQ_CHECK(strstr(diag.text, "kernel echo: receive ring 2 has ") != NULL);
    }
    gn_ring_conf ring = {.slots = 2};
    gn_context_conf conf = conf_of(&ring, &r);
    conf.n_regions = GN_REGIONS + 1;
    DQ_EQ(gn_context_check("kernel echo", &conf, &diag), DQ_INVALID_PARAMETER);
}

// ---- what comes -------------------------------------------------------------------------------------------

// A slot is there when all its words are, whichever comes last; in each lap.
static void words_in_any_order(void) {
    open_all();
    for (uint64_t ticket = 1000; ticket < 1016; ticket++) {
        gn_slot *slot = gn_tx_slot(context.block, &context.tx[0], ticket);
        gn_u64 lap = gn_lap(ticket, 2), w[GN_TX_WORDS];
        for (uint64_t k = 1; k <= GN_TX_WORDS; k++) {
            uint64_t word = (ticket + k) % GN_TX_WORDS;
            DQ_CHECK(!rig_take(&context, 0, ticket, w));
            gn_store(&slot->w[word], lap | (ticket << 8 | word));
        }
        DQ_CHECK(rig_take(&context, 0, ticket, w));
        for (uint64_t k = 0; k < GN_TX_WORDS; k++)
            DQ_EQ(w[k], ticket << 8 | k);
    }
    free(context.block);
}

// Packets of several segments are taken whole or not at all.
static void whole_packets(void) {
    static const uint8_t segments[] = {1, 2, 1};
    uint64_t ticket = 1000;
    open_all();
    for (int k = 0; k < 3; k++) {
        for (uint32_t i = 0; i < segments[k]; i++, ticket++) {
            gn_u64 first,
                w[GN_RX_WORDS] = {gn_place(0, ticket % 8), 5, 0, gn_rx_word(9, i, i + 1 < segments[k])};
            gn_u32 n;
            if (i) DQ_EQ(gn_recv(&rx, GN_BY_THREAD, 4, 0, &first, &n, 0), GN_AGAIN);
            gn_write(gn_rx_slot_of(context.block, &context.rx[0], ticket)->w, GN_RX_WORDS, gn_lap(ticket, 2),
                     w);
        }
        gn_u64 first;
        gn_u32 n;
        DQ_EQ(gn_recv(&rx, GN_BY_THREAD, 4, 0, &first, &n, 0), GN_OK);
        DQ_EQ(n, segments[k]);
        DQ_EQ(first, ticket - n);
        gn_packet p = {0};
        DQ_EQ(gn_rx_read(&rx, ticket - 1, &p), GN_OK);
        DQ_EQ(p.segment, n - 1);
        DQ_EQ(p.more, 0);
        DQ_EQ(p.conn, 9);
        DQ_CHECK(!rig_free(&context, 0, first + 4));
        gn_release(&rx, GN_BY_THREAD, first, n);
        DQ_CHECK(rig_free(&context, 0, first + 4));
    }
    free(context.block);
}

static void *add(void *arg) {
    gn_u64 w[GN_TX_WORDS];
    gn_desc d;
    gn_region remote = {0, 64, 0, GN_REMOTE | GN_ADD | GN_WRITE, 0};
    gn_region both[2] = {{0, sizeof region, 0, GN_WRITE, 0}, remote};
    gn_given given = {both, 2, 1u << GN_OP_ADD, 0};
    while (!rig_take(&context, 0, 1000, w))
        sched_yield();
    DQ_EQ(gn_check(w, 1000, &given, &d), GN_FAULT_NONE);
    DQ_EQ(d.signal, gn_place(1, 16));
    region[gn_place_offset(d.result) / 8] = d.operand * 3;
    gn_store(&rig_tx_state(&context, 0)->accepted, 1001);
    gn_store(&rig_tx_state(&context, 0)->completed, 1001);
    return arg;
}

static void fetch_and_add(void) {
    gn_u64 was = 0;
    pthread_t t;
    open_all();
    DQ_EQ(pthread_create(&t, NULL, add, NULL), 0);
    DQ_EQ(gn_fetch_add(&tx, gn_place(1, 16), 14, gn_place(0, 24), RIG_FOREVER, &was), GN_OK);
    pthread_join(t, NULL);
    DQ_EQ(was, 42);
    free(context.block);
}

// ---- words that a warp brings -----------------------------------------------------------------------------

static struct {
    gn_tx_state tx;
    gn_rx_state rx;
    gn_proxy_words proxy;
} mirror;

static void relay_once(void *arg) {
    gn_side s;
    DQ_EQ(gn_open(&s, context.block), GN_OK);
    DQ_EQ(gn_relay(&s), *(int *)arg);
}

static void relay(int want) {
    rig_launch *l = calloc(1, sizeof *l);
    rig_start(l, 32, relay_once, &want);
    rig_end(l);
    free(l);
}

static void relayed(void) {
    gn_u64 first;
    gn_u32 n;
    open_all();
    gn_context *head = context.block;
    gn_tx_row *t = gn_at(head, head->tx);
    gn_rx_row *r = gn_at(head, head->rx);
    mirror.tx = *rig_tx_state(&context, 0);
    mirror.rx = *rig_rx_state(&context, 0);
    t->state = (uintptr_t)&mirror.tx - (uintptr_t)head; // below or above: modulo 2^64
    r->state = (uintptr_t)&mirror.rx - (uintptr_t)head;
    head->proxy = (uintptr_t)&mirror.proxy - (uintptr_t)head;
    DQ_EQ(gn_open(&side, head), GN_OK);
    DQ_EQ(gn_tx_open(&tx, &side, 0), GN_OK);
    DQ_EQ(gn_rx_open(&rx, &side, 0), GN_OK);
    DQ_EQ(w_send(0), GN_OK);
    gn_store(&rig_tx_state(&context, 0)->accepted, 1001);
    gn_poke(&rig_tx_state(&context, 0)->error, gn_error(GN_FAULT_FAILED, 1000));
    gn_store(&rig_tx_state(&context, 0)->completed, 1001 | GN_SOME_FAILED);
    rig_give(&context, 0, 1000, 0, 8);
    DQ_EQ(gn_poll(&tx, 1000), GN_AGAIN);
    DQ_EQ(w_recv(0), GN_AGAIN);
    relay(GN_OK);
    DQ_EQ(gn_poll(&tx, 1000), GN_FAILED);
    DQ_EQ(gn_recv(&rx, GN_BY_THREAD, 4, 0, &first, &n, 0), GN_OK);
    DQ_EQ(n, 1);
    gn_proxy_words *words = gn_at(head, context.head.proxy_source);
    gn_store(&words->abort, 1);
    DQ_EQ(w_recv(0), GN_AGAIN);
    relay(GN_ABORTED);
    DQ_EQ(w_recv(0), GN_ABORTED);
    free(context.block);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(limits);
    DQ_RUN(aborts);
    DQ_RUN(aborts_while_packets_come);
    DQ_RUN(aborts_while_there_is_room);
    DQ_RUN(refused);
    DQ_RUN(words_in_any_order);
    DQ_RUN(whole_packets);
    DQ_RUN(fetch_and_add);
    DQ_RUN(relayed);
    return dq_done();
}
