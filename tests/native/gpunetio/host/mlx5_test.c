// mlx5_test.c: the proxy of a ring with entries in mlx5's format: operations and packets complete, errors are
// counted and stop the queue, and a hostile kernel reaches no other memory.
#include "rig.h"

#define EACH_REAL_MODE(m) for (bed_mode m = BED_DIRECT; m <= BED_WORKER && (bed_case(__func__, m), true); m++)

enum { SLOTS = 16, WRITE = GN_MLX5_WRITE, SEND = GN_MLX5_SEND };

// A context of one queue, to which the bed's receive region is a peer's.
static void open_queue(rig *r, bed_mode m) {
    rig_bed(r, (bed_conf){.mode = m});
    rig_context(r, (dq_gn_conf){.n_tx = 1,
                                .tx_slots = SLOTS,
                                .ops = 1u << GN_OP_SEND | 1u << GN_OP_PUT,
                                .remote = {r->b.in[0]},
                                .n_remote = 1,
                                .objects = {{.kind = GN_OBJECT_TX, .tx = 1, .mlx5 = true}},
                                .n_objects = 1,
                                .first = 1001});
    bed_tap_all(&r->b);
}

static uint8_t *far_bytes(const rig *r, uint64_t offset) {
    return r->b.s->core.base + r->b.in[0]->offset + offset;
}

static void put_be(uint8_t *b, int bytes, uint64_t v) {
    for (int k = bytes; k-- > 0; v >>= 8)
        b[k] = (uint8_t)v;
}

static uint8_t *entry(rig *r, uint64_t index, uint32_t opcode, uint32_t segments, uint8_t flags) {
    uint8_t *e = (uint8_t *)r->gn->tx[0].slots + index % SLOTS * GN_MLX5_ENTRY;
    memset(e, 0, GN_MLX5_ENTRY);
    put_be(e, 4, (index & 0xffff) << 8 | opcode);
    put_be(e + 4, 4, 1 << 8 | segments);
    e[11] = flags;
    return e;
}

static void data(const rig *r, uint8_t *segment, uint64_t offset, uint32_t bytes) {
    put_be(segment, 4, bytes);
    put_be(segment + 4, 4, rig_row(r));
    put_be(segment + 8, 8, (uintptr_t)rig_bytes(r, offset));
}

static void write_to(rig *r, uint64_t index, uint32_t key, uint64_t offset, uint32_t bytes, uint8_t flags) {
    uint8_t *e = entry(r, index, WRITE, 3, flags);
    put_be(e + 16, 8, (uintptr_t)far_bytes(r, 0) + offset);
    put_be(e + 24, 4, key);
    data(r, e + 32, 8 * index, bytes);
}

// The object's words lead to the queue's memory, as a kernel has them.
static void ring(const rig *r, uint64_t end) {
    const gn_object *o = (const gn_object *)(uintptr_t)dq_gn_object_at(r->gn, 0);
    uint8_t b[4];
    uint32_t record;
    put_be(b, 4, end & 0xffff);
    memcpy(&record, b, sizeof b);
    __atomic_store_n((uint32_t *)(uintptr_t)o->part[0].words[5], record, __ATOMIC_RELEASE);
}

// Returns the last word of completion entry k, in the host's order; 0: it is not there yet.
static uint32_t completion(const rig *r, uint64_t k) {
    const gn_object *o = (const gn_object *)(uintptr_t)dq_gn_object_at(r->gn, 0);
    const uint8_t *c = (const uint8_t *)(uintptr_t)o->part[1].words[2] + k % SLOTS * GN_MLX5_ENTRY;
    uint32_t last = __atomic_load_n((const uint32_t *)(const void *)(c + 60), __ATOMIC_ACQUIRE);
    uint8_t b[4];
    memcpy(b, &last, sizeof b);
    bool there = b[3] >> 4 != 15 && (b[3] & 1) == k / SLOTS % 2;
    return there ? (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)c[55] << 8 | b[3] >> 4 | 1u << 7
                 : 0;
}

// What `completion` returns for an index.
static uint32_t expected(uint64_t index, uint32_t syndrome) {
    return (uint32_t)(index & 0xffff) << 16 | syndrome << 8 | (syndrome ? GN_MLX5_ERROR : GN_MLX5_DONE) |
           1u << 7;
}

static void writes(void) {
    EACH_REAL_MODE(m) {
        rig r;
        open_queue(&r, m);
        uint32_t peer = dqi_gn_row(r.gn, r.b.in[0]);
        for (uint32_t k = 0; k < 3 * SLOTS * 8; k++)
            *rig_bytes(&r, k) = (uint8_t)(k * 5 + 1);
        for (uint64_t k = 0; k < 3 * SLOTS; k++) {
            write_to(&r, k, peer, 8 * k, 8, k % 4 == 3 ? GN_MLX5_SIGNALED : 0);
            if (k % 4 < 3) continue;
            ring(&r, k + 1);
            RIG_UNTIL(&r, completion(&r, k / 4) == expected(k, 0));
        }
        DQ_CHECK(memcmp(far_bytes(&r, 0), rig_bytes(&r, 0), 3 * SLOTS * 8) == 0);
        DQ_EQ(rig_completed(&r, 0), 1001 + 3 * SLOTS);
        DQ_CHECK(dq_gn_idle(r.gn));
        dq_line line = rig_line(&r, "test.tx");
        DQ_EQ(line.extra[DQ_EXTRA_ONE_SIDED], 3 * SLOTS);
        DQ_EQ(gn_load(&r.gn->tx[0].state->dropped), 0);
        rig_close(&r);
    }
}

// A packet's completion entry comes when the packet was sent: each of more than the ring has entries.
static void packets(void) {
    EACH_REAL_MODE(m) {
        rig r;
        open_queue(&r, m);
        for (uint64_t k = 0; k < 5 * SLOTS; k++) {
            data(&r, entry(&r, k, SEND, 2, GN_MLX5_SIGNALED) + 16, rig_buf(&r, k), RIG_LEN);
            ring(&r, k + 1);
            if (k % SLOTS != SLOTS - 1) continue;
            for (uint64_t i = k + 1 - SLOTS; i <= k; i++)
                RIG_UNTIL(&r, completion(&r, i) == expected(i, 0));
        }
        DQ_EQ(rig_line(&r, "test.tx").out, 5 * SLOTS);
        rig_close(&r);
    }
}

// After an entry in error nothing is done: each entry is counted, and the first error is reported.
static void stops(void) {
    EACH_REAL_MODE(m) {
        rig r;
        open_queue(&r, m);
        uint32_t peer = dqi_gn_row(r.gn, r.b.in[0]);
        *rig_bytes(&r, 0) = 7, *rig_bytes(&r, 8) = 8, *rig_bytes(&r, 16) = 9, *rig_bytes(&r, 24) = 10;
        for (uint64_t k = 0; k < 4; k++)
            write_to(&r, k, k == 1 ? rig_row(&r) : peer, 0, 1, 0);
        ring(&r, 4);
        RIG_UNTIL(&r, completion(&r, 2) == expected(3, GN_MLX5_FLUSHED));
        DQ_EQ(completion(&r, 0), expected(1, GN_MLX5_REMOTE_ACCESS));
        DQ_EQ(completion(&r, 1), expected(2, GN_MLX5_FLUSHED));
        RIG_UNTIL(&r, rig_completed(&r, 0) == 1005);
        DQ_EQ(far_bytes(&r, 0)[0], 7);
        dq_line line = rig_line(&r, "test.tx");
        DQ_EQ(line.dropped[DQ_DROP_NOT_ITS_REGION], 1);
        DQ_EQ(line.dropped[DQ_DROP_SEND_ERROR], 2);
        DQ_EQ(gn_load(&r.gn->tx[0].state->error), gn_error(GN_FAULT_REGION, 1002));
        DQ_EQ(gn_load(&r.gn->tx[0].state->dropped), 3);
        rig_close(&r);
    }
}

// Whatever entries and record contain, memory that no operation of the ring may write keeps its bytes, and
// each entry completes.
static void hostile(void) {
    uint64_t seed = 7;
    for (uint32_t round = 0; round < 40; round++) {
        rig r;
        open_queue(&r, BED_DIRECT);
        uint32_t peer = dqi_gn_row(r.gn, r.b.in[0]);
        memset(rig_bytes(&r, 0), 0xa5, 4096);
        for (uint32_t step = 0; step < 200; step++) {
            uint64_t at = rig_accepted(&r, 0) - 1001 + dq_below(&seed, 3);
            write_to(&r, at, peer, dq_rand(&seed) >> dq_below(&seed, 64), (uint32_t)(dq_rand(&seed) >> 40),
                     8);
            uint8_t *e = (uint8_t *)r.gn->tx[0].slots + dq_below(&seed, SLOTS) * GN_MLX5_ENTRY;
            for (uint32_t n = dq_below(&seed, 4); n > 0; n--)
                e[dq_below(&seed, GN_MLX5_ENTRY)] = (uint8_t)dq_rand(&seed);
            ring(&r, dq_below(&seed, 8) ? at + 1 : dq_rand(&seed));
            rig_go(&r);
        }
        uint64_t accepted = rig_accepted(&r, 0);
        ring(&r, accepted - 1001 + 1);
        RIG_UNTIL(&r, rig_accepted(&r, 0) > accepted);
        RIG_UNTIL(&r, rig_completed(&r, 0) == rig_accepted(&r, 0));
        for (uint32_t k = 0; k < 4096; k++)
            DQ_EQ(*rig_bytes(&r, k), 0xa5);
        rig_close(&r);
    }
}

// A ring can't be both: the arguments would contradict each other.
static void one_kind(void) {
    rig r;
    dq_diag d = {{0}};
    dq_stage *stages[DQ_GN_RINGS];
    dq_gn *gn;
    rig_bed(&r, (bed_conf){.mode = BED_DIRECT});
    dq_gn_conf gc = {.name = "both", .gpu = DQ_HOST_GPU, .n_tx = 1, .tx = {r.b.tx[0][0]}, .tx_slots = SLOTS};
    gc.rx_slots = gc.sem_slots = SLOTS;
    gc.ops = 1u << GN_OP_SEND;
    gc.n_objects = 2;
    gc.objects[0] = gc.objects[1] = (dq_gn_object){.kind = GN_OBJECT_TX, .tx = 1, .mlx5 = true};
    gc.objects[1].mlx5 = false;
    DQ_EQ(dq_gn_open(r.b.s, &gc, &gn, stages, &d), DQ_INVALID_PARAMETER);
    DQ_CHECK(strstr(d.text, "transmit ring 1 is an mlx5 queue in one argument and not in another"));
    bed_close(&r.b);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(writes);
    DQ_RUN(packets);
    DQ_RUN(stops);
    DQ_RUN(hostile);
    DQ_RUN(one_kind);
    return dq_done();
}
