// resources_test.c: queues and regions that come and go beside the traffic of other queues.
#include "bed_pipe.h"
#include "core/burst.h"
#include "core/region.h"
#include "pipeline/session.h"

#define KEPT   7 // ports: of the queue that stays, and of the one that comes and goes
#define COMING 8
#define RULE   UINT64_C(100) // order of the rule for COMING

static dq_region_conf region_conf(const char *name) {
    // Another size than the sender's: packets are copied into the queue's buffers.
    dq_region_conf c = {.kind = DQ_KIND_HOST, .affinity = -1, .num_bufs = 512, .buf_size = 512};
    snprintf(c.name, sizeof c.name, "%s", name);
    return c;
}

static dq_queue_conf conf_of(const bed *b, dq_dir dir, uint32_t id, dq_region *r) {
    dq_queue_conf c = {.id = id, .dir = dir, .core = -1, .batch_size = 64, .n_regions = 1, .regions = {r}};
    c.direct = b->conf.mode != BED_WORKER;
    snprintf(c.name, sizeof c.name, "%s%u", dir == DQ_RX ? "rx" : "tx", id);
    return c;
}

static dq_queue *join(bed *b, dq_dir dir, uint32_t id, dq_region *r) {
    dq_diag d = {{0}};
    dq_queue_conf c = conf_of(b, dir, id, r);
    dq_queue *q;
    bed_must(dq_queue_join(b->ifaces[0], &c, &q, &d), &d, c.name);
    if (c.direct) DQ_EQ(dq_waiter_adopt(b->w, q), DQ_OK);
    return q;
}

static void leave(bed *b, dq_queue *q) {
    dq_diag d = {{0}};
    int64_t end = dqi_mono_ns() + BED_PATIENCE;
    bed_must(dq_queue_delete(q, &d), &d, "delete");
    while (!dq_queue_leave(q) && dqi_mono_ns() < end) {
        if (b->conf.mode == BED_VIRTUAL) bed_steps(b, dq_now(b->s) + 1000000, true);
        while (bed_serve(b, 0) > 0) {
        }
    }
    DQ_CHECK(dqi_queue_gone(q));
}

static void rule(bed *b, bool add) {
    uint64_t order = RULE;
    dq_diag d = {{0}};
    dq_rule r = bed_rule(COMING, 2, 1);
    r.order = RULE;
    bed_must(bed_change(b->ifaces[0], &order, add ? 0 : 1, &r, add ? 1 : 0, &d), &d, "rule");
}

static void open_with_rule(bed *b, bed_mode m) {
    bed_open(b, (bed_conf){.mode = m, .isolation = true, .timeout_us = 100});
    dq_rule r = bed_rule(KEPT, 1, 0);
    bed_rules(b->ifaces[0], &r, 1);
    bed_tap_all(b);
}

// A queue in a region of its own comes, receives and goes, again and again, while another one receives. Each
// packet arrives, and the line of the queue has those of all its lives.
static void come_and_go(void) {
    BED_EACH_MODE(m) {
        enum { LIVES = 12, EACH = 128 };
        bed b;
        dq_diag d = {{0}};
        uint32_t regions = 0;
        open_with_rule(&b, m);
        for (int life = 0; life < LIVES; life++) {
            dq_region_conf rc = region_conf("later");
            dq_region *r;
            bed_must(dq_region_join(b.s, &rc, NULL, &r, &d), &d, "region");
            dq_queue *q = join(&b, DQ_RX, 1, r);
            dq_stage *t = bed_tap(&b, 10 + (uint64_t)life, 64, DQ_POLICY_WAIT);
            dq_pipe *p = bed_pipe(q, &t, 1);
            rule(&b, true);
            size_t had = b.n;
            bed_stream(&b, b.tx[0][0], EACH, 32, 100, KEPT);
            bed_stream(&b, b.tx[0][0], EACH, 32, 100, COMING);
            bed_until(&b, had + 2 * EACH);
            rule(&b, false);
            dq_pipe_remove(p);
            bed_stream(&b, b.tx[0][0], EACH, 32, 100, KEPT);
            DQ_EQ(dq_region_unused(b.s, r, &d), DQ_RESOURCE_IN_USE);
            leave(&b, q);
            DQ_EQ(dq_region_unused(b.s, r, &d), DQ_OK);
            DQ_CHECK(dq_region_leave(r));
            bed_until(&b, had + 3 * EACH);
            if (life == 0) regions = b.s->core.n_regions;
        }
        DQ_EQ(b.s->core.n_regions, regions); // ids and addresses are used again
        bed_stop(&b);
        DQ_EQ(bed_line(b.s, "port0", DQ_LINE_RX, "rx0").out, 2 * LIVES * EACH);
        DQ_EQ(bed_line(b.s, "port0", DQ_LINE_RX, "rx1").out, LIVES * EACH);
        DQ_EQ(b.n, 3 * LIVES * EACH);
        bed_close(&b);
    }
}

// What waits in a deleted queue is dropped and counted; a burst that is held delays the end.
static void held_and_flushed(void) {
    bed b;
    dq_diag d = {{0}};
    open_with_rule(&b, BED_VIRTUAL);
    dq_region_conf rc = region_conf("later");
    dq_region *r;
    bed_must(dq_region_join(b.s, &rc, NULL, &r, &d), &d, "region");
    dq_queue *q = join(&b, DQ_RX, 1, r);
    dq_burst *held = dqi_burst_get(q->bursts);
    DQ_EQ(dqi_burst_fill(held, q->conf.regions, 1, 3), DQ_OK);
    held->n = 3;
    rule(&b, true);
    DQ_EQ(bed_send(&b, b.tx[0][0], 20, 100, COMING), DQ_OK);
    bed_steps(&b, dq_now(b.s) + 1000000, true);
    DQ_EQ(dqi_queue_held(q), 20);
    rule(&b, false);
    DQ_EQ(dq_queue_delete(q, &d), DQ_OK);
    DQ_EQ(bed_line(b.s, "port0", DQ_LINE_RX, "rx1").dropped[DQ_DROP_FLUSHED], 20);
    DQ_CHECK(!dq_queue_leave(q));
    DQ_EQ(dq_queue_delete(q, &d), DQ_INVALID_PARAMETER);
    dq_queue_conf c = conf_of(&b, DQ_RX, 1, r);
    dq_queue *other;
    DQ_EQ(dq_queue_join(b.ifaces[0], &c, &other, &d), DQ_ALREADY_EXISTS);
    DQ_EQ(dq_region_unused(b.s, r, &d), DQ_RESOURCE_IN_USE);
    dq_burst_ref(held);
    dq_burst_unref(held);
    DQ_CHECK(!dq_queue_leave(q));
    dq_burst_unref(held);
    DQ_CHECK(dq_queue_leave(q));
    uint32_t id;
    DQ_EQ(dqi_bufs_alloc(r, &id, 1), 1);
    DQ_CHECK(!dq_region_leave(r));
    dqi_bufs_free(b.s, &id, 1);
    DQ_CHECK(dq_region_leave(r));
    bed_close(&b);
}

// A transmit queue sends what it has before it goes.
static void transmit_queue(void) {
    BED_EACH_MODE(m) {
        enum { LIVES = 8, EACH = 96 };
        bed b;
        open_with_rule(&b, m);
        for (int life = 0; life < LIVES; life++) {
            dq_queue *q = join(&b, DQ_TX, 1, b.out);
            for (int k = 0; k < EACH / 32; k++)
                DQ_EQ(bed_send(&b, q, 32, 100, KEPT), DQ_OK);
            leave(&b, q);
        }
        bed_until(&b, LIVES * EACH);
        bed_stop(&b);
        DQ_EQ(bed_line(b.s, "port0", DQ_LINE_TX, "tx1").out, LIVES * EACH);
        bed_close(&b);
    }
}

static void refusals(void) {
    bed b;
    dq_diag d = {{0}};
    dq_queue *q, *again;
    dq_region *r;
    open_with_rule(&b, BED_VIRTUAL);
    dq_queue_conf c = conf_of(&b, DQ_RX, 0, b.in[0]);
    DQ_EQ(dq_queue_join(b.ifaces[0], &c, &q, &d), DQ_ALREADY_EXISTS);
    c = conf_of(&b, DQ_RX, DQ_MAX_QUEUES, b.in[0]);
    DQ_EQ(dq_queue_join(b.ifaces[0], &c, &q, &d), DQ_INVALID_PARAMETER);
    c = conf_of(&b, DQ_RX, 1, b.in[0]);
    c.batch_size = 65;
    DQ_EQ(dq_queue_join(b.ifaces[0], &c, &q, &d), DQ_INVALID_PARAMETER);
    DQ_EQ(dq_queue_delete(b.rx[0][0], &d), DQ_RESOURCE_IN_USE); // its tap
    dq_region_conf rc = region_conf("in");
    DQ_EQ(dq_region_join(b.s, &rc, NULL, &r, &d), DQ_ALREADY_EXISTS);
    rc = region_conf("pinned");
    rc.kind = DQ_KIND_HOST_PINNED;
    DQ_EQ(dq_region_join(b.s, &rc, NULL, &r, &d), DQ_NOT_SUPPORTED);
    rc = region_conf("empty");
    rc.num_bufs = 0;
    DQ_EQ(dq_region_join(b.s, &rc, NULL, &r, &d), DQ_INVALID_PARAMETER);
    rc = region_conf("huge sizes");
    rc.num_bufs = 1u << 31, rc.buf_size = 1u << 20; // more than the reserved addresses
    DQ_CHECK(dq_region_join(b.s, &rc, NULL, &r, &d) != DQ_OK);
    q = join(&b, DQ_RX, 1, b.in[0]);
    leave(&b, q);
    c = conf_of(&b, DQ_RX, 1, b.in[0]);
    snprintf(c.name, sizeof c.name, "other");
    DQ_EQ(dq_queue_join(b.ifaces[0], &c, &again, &d), DQ_INVALID_PARAMETER); // the id counts for rx1
    again = join(&b, DQ_RX, 1, b.in[0]);
    DQ_CHECK(again == q);
    bed_stop(&b);
    c = conf_of(&b, DQ_RX, 2, b.in[0]);
    DQ_EQ(dq_queue_join(b.ifaces[0], &c, &again, &d), DQ_INVALID_PARAMETER);
    bed_close(&b);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(refusals);
    DQ_RUN(held_and_flushed);
    DQ_RUN(come_and_go);
    DQ_RUN(transmit_queue);
    return dq_done();
}
