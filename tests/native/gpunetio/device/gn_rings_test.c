// gn_rings_test.c: 32 threads play a warp: packets go from a kernel through a proxy that loses some to a
// kernel that receives; none is lost unseen, doubled, spoiled or overtaken, whatever the rings' size, tickets
// and scope.
static int lines; // whether a warp writes its slots together, as on a GPU
#define GN_POST_WARP lines
#include "gn_rig.h"

enum { DEPTH = 3, BYTES = 64 };

enum way { BY_THREAD, BY_WARP, BY_BLOCK, WEAK };
static const uint32_t rounds[] = {20, 5, 4, 20}; // of each; DQ_GN_ROUNDS times as many where it is set

typedef struct packet {
    uint64_t thread, number, check[6];
} packet;

static struct {
    rig_context context;
    enum way way;
    uint32_t threads, loss; // loss: of 100
    uint64_t per_thread;
    packet *sent, *came; // the two regions
    uint8_t (*seen)[64];
    _Atomic uint64_t last[64]; // number + 1 of the last packet of each thread
    _Atomic uint64_t delivered, sent_now;
    _Atomic int ended;
    uint64_t dropped;
} t;

static void packet_write(packet *p, uint64_t thread, uint64_t number) {
    p->thread = thread;
    p->number = number;
    for (uint64_t k = 0; k < 6; k++)
        p->check[k] = (thread << 32 | number) * (2 * k + 3);
}

static void sender(void *arg) {
    (void)arg;
    gn_side s;
    gn_tx q;
    gn_u64 tickets[DEPTH] = {0};
    DQ_EQ(gn_open(&s, t.context.block), GN_OK);
    DQ_EQ(gn_tx_open(&q, &s, 0), GN_OK);
    for (uint64_t n = 0; n < t.per_thread; n++) {
        uint64_t k = n % DEPTH, buffer = rig_thread * DEPTH + k;
        bool mine = (n * 7 + rig_thread) % 5 != 0; // now and then a lane has nothing
        if (n >= DEPTH && tickets[k] != ~0ull) {
            int err = gn_wait(&q, tickets[k], RIG_FOREVER);
            DQ_CHECK(err == GN_OK || err == GN_FAILED);
        }
        tickets[k] = ~0ull;
        if (!mine && t.way == BY_THREAD) continue;
        gn_slot slot = gn_fill_nop();
        if (mine) {
            packet_write(&t.sent[buffer], rig_thread, n);
            slot = gn_fill_send(gn_place(0, buffer * BYTES), BYTES, 0, 0);
            atomic_fetch_add(&t.sent_now, 1);
        }
        rig_delay();
        DQ_EQ(gn_submit(&q,
                        t.way == BY_THREAD ? GN_BY_THREAD
                        : t.way == BY_WARP ? GN_BY_WARP
                                           : GN_BY_BLOCK,
                        &slot, RIG_FOREVER, mine ? &tickets[k] : NULL),
              GN_OK);
    }
    gn_sync(GN_BY_BLOCK);
    int err = gn_flush(&q, RIG_FOREVER);
    DQ_CHECK(err == GN_OK || err == GN_FAILED);
}

// One thread names the tickets: it commits as many as the ring has slots, then publishes them at once.
static void weak_sender(void *arg) {
    (void)arg;
    gn_side s;
    gn_tx q;
    if (rig_thread) return;
    DQ_EQ(gn_open(&s, t.context.block), GN_OK);
    DQ_EQ(gn_tx_open(&q, &s, 0), GN_OK);
    uint64_t next = gn_next(&q), number = 0, all = t.per_thread * 32;
    while (number < all) {
        uint32_t n = 1 + dq_below(&rig_seed, 1u << q.log2);
        if (n > all - number) n = (uint32_t)(all - number);
        DQ_EQ(gn_room(&q, next, n, RIG_FOREVER), GN_OK);
        for (uint32_t k = 0; k < n; k++, number++) {
            uint64_t buffer = number % 64;
            if (number >= 64) {
                int err = gn_wait(&q, next + k - 64, RIG_FOREVER);
                DQ_CHECK(err == GN_OK || err == GN_FAILED);
            }
            packet_write(&t.sent[buffer], 0, number);
            gn_slot slot = gn_fill_send(gn_place(0, buffer * BYTES), BYTES, 0, 0);
            gn_commit(&q, next + k, &slot);
        }
        rig_delay();
        gn_publish(&q, next, n);
        next += n;
    }
    gn_set_next(&q, next);
    atomic_fetch_add(&t.sent_now, all);
    int err = gn_flush(&q, RIG_FOREVER);
    DQ_CHECK(err == GN_OK || err == GN_FAILED);
}

static void look_at(const packet *p) {
    packet want;
    uint64_t n = p->number;
    packet_write(&want, p->thread, n);
    DQ_EQ_BYTES(p, &want, sizeof want);
    if (p->thread >= 64 || n >= t.per_thread * 32) return;
    DQ_EQ(t.seen[n][p->thread]++, 0);
}

static void receiver(void *arg) {
    (void)arg;
    gn_side s;
    gn_rx q;
    int scope = t.way == BY_THREAD ? GN_BY_THREAD : t.way == BY_BLOCK ? GN_BY_BLOCK : GN_BY_WARP;
    DQ_EQ(gn_open(&s, t.context.block), GN_OK);
    DQ_EQ(gn_rx_open(&q, &s, 0), GN_OK);
    for (;;) {
        gn_u64 first;
        gn_u32 n;
        int err = gn_recv(&q, scope, 32, 1000000, &first, &n, rig_of->share);
        DQ_CHECK(err == GN_OK || err == GN_TIMEOUT || err == GN_ABORTED);
        if (err == GN_ABORTED) return;
        if (n == 0) continue; // a busy machine: no packet came in time
        uint32_t step = scope == GN_BY_THREAD ? 1 : t.threads;
        gn_packet p = {0};
        if (scope == GN_BY_WARP) { // all lanes see each other's
            gn_rx_read_warp(&q, first, n, &p);
            gn_u64 place = gn_shuffle(p.place, n - 1);
            DQ_EQ(p.bytes, rig_thread < n ? BYTES : 0);
            DQ_EQ(gn_rx_read(&q, first + n - 1, &p), GN_OK);
            DQ_EQ(p.place, place);
            gn_rx_read_warp(&q, first, n, &p);
        }
        for (uint32_t k = scope == GN_BY_THREAD ? 0 : rig_thread; k < n; k += step) {
            if (scope != GN_BY_WARP) DQ_EQ(gn_rx_read(&q, first + k, &p), GN_OK);
            DQ_EQ(p.bytes, BYTES);
            DQ_EQ(p.flow, 7);
            DQ_EQ(p.conn, 3);
            DQ_EQ(p.time, (first + k) & 0xffff);
            DQ_EQ(gn_place_region(p.place), 1);
            look_at((const packet *)gn_pointer(&s, p.place));
            atomic_fetch_add(&t.delivered, 1);
        }
        rig_delay();
        gn_release(&q, scope, first, n);
    }
}

// The proxy and the wire: slots in their order, some of them lost, into receive descriptors.
static void *proxy(void *arg) {
    gn_given given = {.regions = arg, .n_regions = 2, .ops = 1u << GN_OP_SEND, .most = BYTES};
    gn_tx_state *state = rig_tx_state(&t.context, 0);
    uint64_t next = t.context.tx[0].first, out = t.context.rx[0].first, seed = 5, order[64] = {0};
    while (!atomic_load(&t.ended)) {
        gn_u64 w[GN_TX_WORDS];
        gn_desc d;
        if (!rig_take(&t.context, 0, next, w)) {
            sched_yield();
            continue;
        }
        DQ_EQ(gn_check(w, next, &given, &d), GN_FAULT_NONE);
        gn_store(&state->accepted, next + 1);
        const packet *p = (const packet *)(const void *)((const uint8_t *)t.sent + gn_place_offset(d.from));
        DQ_CHECK(p->number + 1 > order[p->thread % 64]); // a thread's packets in its order
        order[p->thread % 64] = p->number + 1;
        if (dq_below(&seed, 100) < t.loss) {
            t.dropped++;
            gn_poke(&state->dropped, t.dropped);
            gn_poke(&state->error, gn_error(GN_FAULT_FAILED, next));
        } else {
            while (!rig_free(&t.context, 0, out))
                sched_yield();
            uint64_t buffer = gn_index(out, t.context.rx[0].log2);
            t.came[buffer] = *p;
            rig_give(&t.context, 0, out++, gn_place(1, buffer * BYTES), d.bytes);
        }
        gn_store(&state->completed, ++next | (t.dropped ? GN_SOME_FAILED : 0));
    }
    return NULL;
}

static void run(uint32_t slots, uint64_t first, enum way way, uint32_t loss) {
    gn_ring_conf tx = {.slots = slots, .first = first, .ops = 1u << GN_OP_SEND};
    gn_ring_conf rx = {.slots = slots, .first = first, .single = loss != 10};
    t.threads = way == BY_BLOCK ? 64 : 32;
    const char *more = getenv("DQ_GN_ROUNDS");
    t.per_thread = rounds[way] * (more ? strtoul(more, NULL, 10) : 1);
    t.way = way;
    lines = way == BY_WARP;
    t.loss = loss;
    t.dropped = 0;
    atomic_store(&t.delivered, 0);
    atomic_store(&t.sent_now, 0);
    atomic_store(&t.ended, 0);
    t.sent = calloc(64 * DEPTH, sizeof(packet));
    t.came = calloc(slots, sizeof(packet));
    t.seen = calloc(t.per_thread * 32, sizeof *t.seen);
    gn_region regions[2] = {{(uintptr_t)t.sent, 64 * DEPTH * sizeof(packet), 0, GN_READ | GN_WRITE, 0},
                            {(uintptr_t)t.came, slots * sizeof(packet), 0, GN_READ, 0}};
    gn_context_conf conf = {.tx = &tx,
                            .rx = &rx,
                            .n_tx = 1,
                            .n_rx = 1,
                            .regions = regions,
                            .n_regions = 2,
                            .limit_ns = RIG_FOREVER,
                            .epoch = 1};
    rig_open(&t.context, &conf);
    pthread_t p;
    rig_launch *out = calloc(1, sizeof *out), *in = calloc(1, sizeof *in);
    rig_start(in, t.threads, receiver, NULL);
    rig_start(out, t.threads, way == WEAK ? weak_sender : sender, NULL);
    DQ_EQ(pthread_create(&p, NULL, proxy, regions), 0);
    rig_end(out);
    while (atomic_load(&t.delivered) + t.dropped < atomic_load(&t.sent_now) && !atomic_load(&dq_failures))
        sched_yield();
    atomic_store(&t.ended, 1);
    pthread_join(p, NULL);
    gn_proxy_words *words = gn_at(t.context.block, t.context.head.proxy);
    gn_store(&words->abort, 1);
    rig_end(in);
    DQ_EQ(atomic_load(&t.sent_now), atomic_load(&t.delivered) + t.dropped);
    DQ_EQ((gn_load(&rig_tx_state(&t.context, 0)->completed) & ~GN_SOME_FAILED) - first,
          atomic_load(&t.sent_now));
    DQ_CHECK((loss == 0) == (t.dropped == 0));
    free(out);
    free(in);
    free(t.sent);
    free(t.came);
    free(t.seen);
    free(t.context.block);
}

static void conservation(void) {
    static const uint32_t slots[] = {2, 4, 64}, losses[] = {0, 10, 50};
    static const uint64_t firsts[] = {(1ull << 16) - 3, (1ull << 32) - 3, 1ull << 62};
    for (uint32_t k = 0; k < 36; k++)
        run(slots[k % 3], firsts[k / 3 % 3], (enum way)(k / 9), losses[(k + k / 3 + k / 9) % 3]);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(conservation);
    return dq_done();
}
