// rx_test.c: the receive proxy, and what scripts take from semaphores.
#include "pipeline/session.h"
#include "rig.h"

#define EACH_REAL_MODE(m) for (bed_mode m = BED_DIRECT; m <= BED_WORKER && (bed_case(__func__, m), true); m++)

typedef struct reader {
    uint64_t next, packets;
    uint64_t broken, disorder;
} reader;

// Takes what is there, and checks it; gives `give` of it back.
static void read_all(rig *r, reader *x, bool give) {
    dqi_gn_rx *rx = &r->gn->rx[0];
    gn_u64 w[GN_RX_WORDS];
    while (gn_read(rx->slots[gn_index(x->next, rx->log2)].w, GN_RX_WORDS, gn_lap(x->next, rx->log2), w)) {
        const dq_region *of = r->gn->bound[gn_place_region(w[0])];
        const uint8_t *p = r->b.s->core.base + of->offset + gn_place_offset(w[0]);
        uint32_t len = (uint32_t)(w[1] >> 32);
        uint8_t want[2048];
        uint64_t seq = 0;
        for (int k = 0; k < 8; k++)
            seq = seq << 8 | p[BED_HEAD + k];
        bed_frame(want, len, 1000, 2000, seq);
        x->broken += memcmp(p, want, len) != 0;
        x->disorder += seq < x->packets;
        x->packets++;
        if (give) gn_store(&rx->released[gn_index(x->next, rx->log2)], x->next + 1);
        x->next++;
    }
}

// All packets come in order, whole, and are held until they are returned.
static void stream(bed_mode m, uint32_t slots, uint64_t first) {
    rig r;
    reader x = {.next = first};
    const uint64_t count = 2000;
    rig_open(&r, (bed_conf){.mode = m},
             (dq_gn_conf){.n_rx = 1, .rx_slots = slots, .policy = DQ_POLICY_WAIT, .first = first});
    bed_start(&r.b);
    int64_t end = dqi_mono_ns() + BED_PATIENCE;
    uint64_t sent = 0;
    while (x.packets < count && dqi_mono_ns() < end) {
        if (sent < count && sent < x.packets + 512 &&
            bed_send(&r.b, r.b.tx[0][0], 16, RIG_LEN, 2000) == DQ_OK)
            sent += 16;
        read_all(&r, &x, true);
        bed_serve(&r.b, 0);
    }
    DQ_EQ(x.packets, count);
    DQ_EQ(x.broken, 0);
    DQ_EQ(x.disorder, 0);
    RIG_UNTIL(&r, rig_line(&r, "test.rx").out == count);
    DQ_EQ(rig_line(&r, "test.rx").held, 0);
    rig_close(&r);
}

static void receives(void) {
    EACH_REAL_MODE(m) {
        stream(m, 2, 0);
        stream(m, 64, (UINT64_C(1) << 32) - 3);
        stream(m, 1024, UINT64_C(1) << 62);
    }
}

// A ring that nothing empties drops what comes, counted, and holds what it has until the end.
static void full(void) {
    EACH_REAL_MODE(m) {
        rig r;
        reader x = {0};
        rig_open(&r, (bed_conf){.mode = m}, (dq_gn_conf){.n_rx = 1, .rx_slots = 32});
        bed_start(&r.b);
        for (uint32_t k = 0; k < 10; k++)
            DQ_EQ(bed_send(&r.b, r.b.tx[0][0], 16, RIG_LEN, 2000), DQ_OK);
        RIG_UNTIL(&r, rig_line(&r, "test.rx").in == 160);
        dq_line l = rig_line(&r, "test.rx");
        DQ_EQ(l.held, 32);
        DQ_EQ(l.out, 0);
        DQ_EQ(l.dropped[DQ_DROP_BEHIND], 128);
        DQ_EQ(gn_load(&r.gn->rx[0].state->dropped), 128);
        read_all(&r, &x, false);
        DQ_EQ(x.packets, 32);
        DQ_EQ(x.broken, 0);
        // The packets behind one that is returned late stay.
        dqi_gn_rx *rx = &r.gn->rx[0];
        for (uint64_t t = 1; t < 32; t++)
            gn_store(&rx->released[t], t + 1);
        for (uint32_t k = 0; k < 20; k++)
            rig_go(&r);
        DQ_EQ(rig_line(&r, "test.rx").held, 32);
        gn_store(&rx->released[0], 1);
        RIG_UNTIL(&r, rig_line(&r, "test.rx").out == 32);
        rig_close(&r);
    }
}

// Packets that come one by one do not use up the queue's bursts while the kernel keeps them, and are released
// in order.
static void singles(void) {
    EACH_REAL_MODE(m) {
        rig r;
        reader x = {0};
        const uint64_t count = 100;
        rig_open(&r, (bed_conf){.mode = m, .rx_meta = 8, .tx_meta = 8},
                 (dq_gn_conf){.n_rx = 1, .rx_slots = 128, .policy = DQ_POLICY_WAIT});
        bed_start(&r.b);
        for (uint64_t k = 0; k < count; k++) {
            int err = bed_send(&r.b, r.b.tx[0][0], 1, RIG_LEN, 2000);
            DQ_EQ(err, DQ_OK);
            if (err != DQ_OK) break;
            RIG_UNTIL(&r, rig_line(&r, "test.rx").in == k + 1);
        }
        DQ_EQ(rig_line(&r, "test.rx").held, count);
        read_all(&r, &x, false);
        DQ_EQ(x.packets, count);
        DQ_EQ(x.broken + x.disorder, 0);
        dqi_gn_rx *rx = &r.gn->rx[0];
        for (uint64_t t = 0; t < count; t++)
            gn_store(&rx->released[t], t + 1);
        RIG_UNTIL(&r, rig_line(&r, "test.rx").out == count);
        DQ_EQ(rig_line(&r, "test.rx").out_bytes, count * RIG_LEN);
        DQ_EQ(rig_line(&r, "test.rx").held, 0);
        rig_close(&r);
    }
}

// Of what the kernel has not released at its end it received what it had taken; a kernel that died, or
// whose counter is none, received nothing of it.
static void leftovers(uint64_t taken, bool died, uint64_t received) {
    rig r;
    rig_open(&r, (bed_conf){.mode = BED_WORKER}, (dq_gn_conf){.n_rx = 1, .first = 9});
    bed_start(&r.b);
    DQ_EQ(bed_send(&r.b, r.b.tx[0][0], 5, RIG_LEN, 2000), DQ_OK);
    RIG_UNTIL(&r, rig_line(&r, "test.rx").held == 5);
    gn_store(&r.gn->rx[0].local->taken, 9 + taken);
    if (died) dqi_gn_break(r.gn);
    dq_gn_detach(r.gn);
    dq_line l = rig_line(&r, "test.rx");
    DQ_EQ(l.out, received);
    DQ_EQ(l.out_bytes, received * RIG_LEN);
    DQ_EQ(l.dropped[DQ_DROP_STOPPED], 5 - received);
    DQ_EQ(l.held, 0);
    DQ_EQ(bed_send(&r.b, r.b.tx[0][0], 5, RIG_LEN, 2000), DQ_OK);
    RIG_UNTIL(&r, rig_line(&r, "test.rx").dropped[DQ_DROP_NO_CONSUMER] == 5);
    rig_close(&r);
}

static void ends(void) {
    leftovers(0, false, 0);
    leftovers(3, false, 3);
    leftovers(5, false, 5);
    leftovers(6, false, 0);
    leftovers((uint64_t)-1, false, 0);
    leftovers(3, true, 0);
}

static void semaphores(void) {
    rig r;
    uint64_t first, count;
    rig_open(&r, (bed_conf){.mode = BED_WORKER}, (dq_gn_conf){.n_sems = 2, .sem_slots = 4, .first = 7});
    bed_start(&r.b);
    dqi_gn_sem *s = &r.gn->sems[1];
    DQ_CHECK(!dq_gn_sem_take(r.gn, 1, &first, &count));
    for (uint64_t t = 7; t < 11; t++) {
        gn_sem_item *i = &s->items[gn_index(t, 2)];
        gn_poke(&i->first, 100 * t);
        gn_poke(&i->count, t);
        gn_store(&s->producer->ready, t + 1);
    }
    for (uint64_t t = 7; t < 11; t++) {
        DQ_CHECK(dq_gn_sem_take(r.gn, 1, &first, &count));
        DQ_EQ(first, 100 * t);
        DQ_EQ(count, t);
        DQ_EQ(gn_load(&s->consumer->hold), t + 1);
        DQ_EQ(gn_load(&s->consumer->done), t);
        dq_gn_sem_done(r.gn, 1);
        DQ_EQ(gn_load(&s->consumer->done), t + 1);
    }
    DQ_CHECK(!dq_gn_sem_take(r.gn, 1, &first, &count));
    gn_store(&s->producer->ready, UINT64_C(1) << 40); // no counter: more items than there are places
    DQ_CHECK(!dq_gn_sem_take(r.gn, 1, &first, &count));
    DQ_CHECK(!dq_gn_sem_take(r.gn, 0, &first, &count));
    rig_close(&r);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(receives);
    DQ_RUN(full);
    DQ_RUN(singles);
    DQ_RUN(ends);
    DQ_RUN(semaphores);
    return dq_done();
}
