// ops_test.c: operations on a peer's memory over the loop engine, and rings that wait for each other.
#include "rig.h"

#define EACH_REAL_MODE(m) for (bed_mode m = BED_DIRECT; m <= BED_WORKER && (bed_case(__func__, m), true); m++)

static const uint32_t all = 1u << GN_OP_PUT | 1u << GN_OP_GET | 1u << GN_OP_ADD | 1u << GN_OP_CAS |
                            1u << GN_OP_COPY | 1u << GN_OP_WAIT;

// Opens a context of two rings, to which the bed's receive region is a peer's.
static void open_two(rig *r, bed_mode m, uint64_t limit_ns) {
    rig_bed(r, (bed_conf){.mode = m});
    rig_context(r, (dq_gn_conf){.n_tx = 2,
                                .ops = all,
                                .remote = {r->b.in[0]},
                                .n_remote = 1,
                                .limit_ns = limit_ns,
                                .first = 1000});
    bed_tap_all(&r->b);
}

static gn_u64 far(const rig *r, uint64_t offset) { return gn_place(dqi_gn_row(r->gn, r->b.in[0]), offset); }
static gn_u64 near(const rig *r, uint64_t offset) { return gn_place(rig_row(r), offset); }
static uint8_t *far_bytes(const rig *r, uint64_t offset) {
    return r->b.s->core.base + r->b.in[0]->offset + offset;
}
static uint64_t word(const uint8_t *p) {
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

// Posts a slot on a ring, waits for its completion, and returns the error, or GN_FAULT_NONE.
static uint32_t ended(rig *r, uint32_t ring, gn_u64 w[GN_TX_WORDS]) {
    const gn_tx_state *is = r->gn->tx[ring].state;
    uint64_t ticket = r->ticket[ring], dropped = gn_load(&is->dropped);
    rig_post(r, ring, w);
    RIG_UNTIL(r, rig_completed(r, ring) > ticket);
    return gn_load(&is->dropped) == dropped ? GN_FAULT_NONE : (uint32_t)(gn_load(&is->error) >> 56);
}

// Two segments become one after the other, and one becomes two; long ones in several parts.
static void segments(void) {
    EACH_REAL_MODE(m) {
        rig r;
        open_two(&r, m, 0);
        for (uint32_t k = 0; k < 3000; k++)
            *rig_bytes(&r, k) = (uint8_t)(k * 7 + k / 256);
        gn_u64 put[GN_TX_WORDS] = {
            rig_word0(GN_OP_PUT, GN_SPLIT, 5), near(&r, 100), 700, far(&r, 3), 0, 0, near(&r, 2000)};
        DQ_EQ(ended(&r, 0, put), GN_FAULT_NONE);
        DQ_CHECK(memcmp(far_bytes(&r, 3), rig_bytes(&r, 100), 5) == 0);
        DQ_CHECK(memcmp(far_bytes(&r, 8), rig_bytes(&r, 2000), 700) == 0);
        DQ_EQ(far_bytes(&r, 708)[0], 0);
        gn_u64 get[GN_TX_WORDS] = {
            rig_word0(GN_OP_GET, GN_SPLIT, 605), near(&r, 5000), 100, far(&r, 3), 0, 0, near(&r, 4000)};
        DQ_EQ(ended(&r, 0, get), GN_FAULT_NONE);
        DQ_CHECK(memcmp(rig_bytes(&r, 5000), far_bytes(&r, 3), 605) == 0);
        DQ_CHECK(memcmp(rig_bytes(&r, 4000), far_bytes(&r, 608), 100) == 0);
        DQ_EQ(rig_line(&r, "test.tx1").extra[DQ_EXTRA_ONE_SIDED_BYTES], 2 * 705);
        rig_close(&r);
    }
}

static void inline_bytes(void) {
    EACH_REAL_MODE(m) {
        rig r;
        open_two(&r, m, 0);
        gn_u64 put[GN_TX_WORDS] = {rig_word0(GN_OP_PUT, GN_INLINE, GN_INLINE_BYTES),
                                   0x07060504030201,
                                   0x0e0d0c0b0a0908,
                                   far(&r, 1),
                                   0x232221201f1e1d,
                                   0x1c1b1a19181716,
                                   0x1514131211100f};
        DQ_EQ(ended(&r, 0, put), GN_FAULT_NONE);
        for (uint32_t k = 0; k < GN_INLINE_BYTES; k++)
            DQ_EQ(far_bytes(&r, 1)[k], k + 1);
        DQ_EQ(far_bytes(&r, 1)[GN_INLINE_BYTES], 0);
        put[0]++;
        DQ_EQ(ended(&r, 0, put), GN_FAULT_LENGTH);
        rig_close(&r);
    }
}

static void compare_and_swap(void) {
    EACH_REAL_MODE(m) {
        rig r;
        open_two(&r, m, 0);
        const uint64_t top = 1ull << 63, value = 7 | top;
        memcpy(far_bytes(&r, 64), &value, sizeof value);
        gn_u64 cas[GN_TX_WORDS] = {rig_word0(GN_OP_CAS, GN_RESULT, 0), 7, 0, 0, far(&r, 64), 9, near(&r, 8)};
        gn_u64 same[GN_TX_WORDS];
        memcpy(same, cas, sizeof same);
        same[0] |= (gn_u64)GN_COMPARED << 48;
        DQ_EQ(ended(&r, 0, cas), GN_FAULT_NONE); // another value by its highest bit
        DQ_EQ(word(far_bytes(&r, 64)), value);
        DQ_EQ(word(rig_bytes(&r, 8)), value);
        DQ_EQ(ended(&r, 0, same), GN_FAULT_NONE);
        DQ_EQ(word(far_bytes(&r, 64)), 9);
        DQ_EQ(word(rig_bytes(&r, 8)), value);
        gn_u64 alone[GN_TX_WORDS] = {rig_word0(GN_OP_CAS, GN_TOP, 0), 9, 0, 0, far(&r, 64), 1};
        DQ_EQ(ended(&r, 0, alone), GN_FAULT_NONE);
        DQ_EQ(word(far_bytes(&r, 64)), 1 | top);
        alone[4] = near(&r, 64);
        DQ_EQ(ended(&r, 0, alone), GN_FAULT_RIGHTS); // not a peer's
        rig_close(&r);
    }
}

static void post_wait(rig *r, uint32_t ring, uint32_t on, uint64_t ticket) {
    gn_u64 w[GN_TX_WORDS] = {rig_word0(GN_OP_WAIT, 0, 0), ticket, 0, on};
    rig_post(r, ring, w);
}

static void post_add(rig *r, uint32_t ring, uint64_t at) {
    gn_u64 w[GN_TX_WORDS] = {rig_word0(GN_OP_ADD, 0, 0), 0, 0, 0, far(r, at), 1};
    rig_post(r, ring, w);
}

// A counter of the second ring moves when the first ring's put is done, and not before it is posted.
static void waits(void) {
    EACH_REAL_MODE(m) {
        rig r;
        open_two(&r, m, 1000000000000);
        uint64_t ticket = r.ticket[0];
        post_wait(&r, 1, 0, ticket + 1);
        post_add(&r, 1, 0);
        post_add(&r, 0, 8);
        RIG_UNTIL(&r, rig_completed(&r, 0) == ticket + 1);
        for (int k = 0; k < 3; k++)
            rig_go(&r);
        DQ_EQ(rig_accepted(&r, 1), 1000);
        DQ_EQ(word(far_bytes(&r, 0)), 0);
        post_add(&r, 0, 8);
        RIG_UNTIL(&r, rig_completed(&r, 1) == 1002);
        DQ_EQ(word(far_bytes(&r, 0)), 1);
        DQ_EQ(word(far_bytes(&r, 8)), 2);
        DQ_EQ(gn_load(&r.gn->tx[1].state->dropped), 0);
        rig_close(&r);
    }
}

// A ticket that failed, a ring that there is not, and a cycle: wait and next operation fail, later ones do
// not.
static void waits_in_vain(void) {
    EACH_REAL_MODE(m) {
        rig r;
        open_two(&r, m, 1000000);
        gn_u64 bad[GN_TX_WORDS] = {rig_word0(GN_OP_ADD, 0, 0), 0, 0, 0, near(&r, 0), 1};
        DQ_EQ(ended(&r, 0, bad), GN_FAULT_RIGHTS);
        const struct {
            uint32_t ring, on;
            uint64_t ticket;
        } cases[] = {{1, 0, 1000}, {1, 2, 1000}, {1, 1, 5000}};
        for (uint32_t k = 0; k < 3; k++) {
            uint64_t first = r.ticket[1], dropped = gn_load(&r.gn->tx[1].state->dropped);
            gn_u64 nop[GN_TX_WORDS] = {rig_word0(GN_OP_NOP, 0, 0)};
            post_wait(&r, 1, cases[k].on, cases[k].ticket);
            rig_post(&r, 1, nop);
            post_add(&r, 1, 16);
            post_add(&r, 1, 16);
            RIG_UNTIL(&r, rig_completed(&r, 1) == first + 4);
            DQ_EQ(word(far_bytes(&r, 16)), k + 1);
            DQ_EQ(gn_load(&r.gn->tx[1].state->dropped), dropped + 2);
            DQ_EQ(gn_load(&r.gn->tx[1].state->error), gn_error(GN_FAULT_WAIT, first + 2));
        }
        DQ_EQ(rig_line(&r, "test.tx2").dropped[DQ_DROP_SEND_ERROR], 6);
        DQ_EQ(gn_load(&r.gn->tx[1].state->failed), 1001);
        rig_close(&r);
    }
}

// Checks that the receive ring has `n` packets of a segment with these immediate values, what they came with,
// and these lengths.
static void check_received(rig *r, uint32_t n, const uint32_t *of, const uint32_t *value,
                           const uint32_t *len) {
    dqi_gn_rx *rx = &r->gn->rx[0];
    RIG_UNTIL(r, gn_load(&rx->state->filled) >= 1000 + n);
    DQ_EQ(gn_load(&rx->state->filled), 1000 + n);
    for (uint64_t t = 1000; t < 1000 + n; t++) {
        gn_u64 w[GN_RX_WORDS];
        DQ_CHECK(gn_read(rx->slots[gn_index(t, rx->log2)].w, GN_RX_WORDS, gn_lap(t, rx->log2), w));
        DQ_EQ(w[3] >> 60, of[t - 1000]);
        DQ_EQ((uint32_t)w[1], value[t - 1000]);
        DQ_EQ(w[1] >> 32, len[t - 1000]);
        gn_store(&rx->released[gn_index(t, rx->log2)], t + 1);
    }
    RIG_UNTIL(r, rig_line(r, "test.rx").out == n);
}

// A put's immediate value comes behind its bytes with a packet without bytes, a send's with the packet: all
// of them from one buffer, and all in flight at once.
static void immediates(void) {
    EACH_REAL_MODE(m) {
        rig r;
        rig_bed(&r, (bed_conf){.mode = m});
        rig_context(&r, (dq_gn_conf){.n_tx = 1,
                                     .n_rx = 1,
                                     .ops = all | 1u << GN_OP_SEND,
                                     .remote = {r.b.in[0]},
                                     .n_remote = 1,
                                     .policy = DQ_POLICY_WAIT,
                                     .first = 1000});
        bed_start(&r.b);
        bed_frame(rig_bytes(&r, 0), RIG_LEN, 1000, 2000, 7);
        gn_u64 slots[][GN_TX_WORDS] = {
            {rig_word0(GN_OP_PUT, GN_IMM, 8), near(&r, 0), 0, far(&r, 40), 0xffffffff},
            {rig_word0(GN_OP_PUT, GN_IMM | GN_INLINE, 1), 0xab, 0, far(&r, 64), 0x01020304},
            {rig_word0(GN_OP_SEND, GN_IMM, RIG_LEN), near(&r, 0), 0, 0, 0x0a0b0c0d},
            {rig_word0(GN_OP_SEND, 0, RIG_LEN), near(&r, 0)},
            {rig_word0(GN_OP_SEND, GN_IMM, RIG_LEN), near(&r, 0)},
            {rig_word0(GN_OP_PUT, GN_IMM, 0), near(&r, 0), 0, far(&r, 0), 5},
        };
        const uint32_t of[] = {GN_IMM_PUT, GN_IMM_PUT, GN_IMM_SEND, GN_IMM_NONE, GN_IMM_SEND, GN_IMM_PUT};
        const uint32_t value[] = {0xffffffff, 0x01020304, 0x0a0b0c0d, 0, 0, 5};
        const uint32_t len[] = {0, 0, RIG_LEN, RIG_LEN, RIG_LEN, 0};
        for (uint32_t k = 0; k < 6; k++)
            rig_post(&r, 0, slots[k]);
        check_received(&r, 6, of, value, len);
        RIG_UNTIL(&r, rig_completed(&r, 0) == 1006);
        DQ_CHECK(memcmp(far_bytes(&r, 40), rig_bytes(&r, 0), 8) == 0);
        DQ_EQ(far_bytes(&r, 64)[0], 0xab);
        dq_line l = rig_line(&r, "test.tx");
        DQ_EQ(l.out, 6);
        DQ_EQ(l.out_bytes, 3 * RIG_LEN);
        DQ_EQ(l.extra[DQ_EXTRA_ONE_SIDED], 3);
        DQ_EQ(l.extra[DQ_EXTRA_ONE_SIDED_BYTES], 9);
        rig_close(&r);
    }
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(segments);
    DQ_RUN(inline_bytes);
    DQ_RUN(compare_and_swap);
    DQ_RUN(waits);
    DQ_RUN(waits_in_vain);
    DQ_RUN(immediates);
    return dq_done();
}
