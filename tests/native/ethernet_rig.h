// ethernet_rig.h: a session whose interface is a raw Ethernet port (ethernet.h) over a driver that hands out
// frames from lists, one for each device queue.
#ifndef ETHERNET_RIG_H
#define ETHERNET_RIG_H

#include "core/err.h"
#include "core/region.h"
#include "dqtest.h"
#include "engine/ethernet/ethernet.h"
#include "pipeline/engine.h"
#include "pipeline/queue.h"

enum { DEVICE_QUEUES = 2, DEPTH = 512, QUEUES = 3 };

// What a device queue will hand out.
typedef struct fake_queue {
    dqi_piece pieces[DEPTH];
    uint32_t n, at, read, released;
} fake_queue;

static fake_queue fake[DEVICE_QUEUES];
static uint32_t n_queues;
static bool in_place;
static uint32_t fake_netdev; // index of the device's network device

static int fake_open(dqi_port *p, dq_diag *diag) {
    (void)diag;
    memset(fake, 0, sizeof fake);
    p->n_queues = n_queues;
    p->netdev = fake_netdev;
    p->direct = in_place;
    p->copy = "it is a test";
    for (uint32_t k = 0; k < n_queues; k++) {
        p->queues[k].state = &fake[k];
        p->queues[k].region = in_place ? p->iface->rx[0]->conf.regions[0] : NULL;
        p->queues[k].split = in_place && p->iface->rx[0]->conf.n_regions > 1 ? p->iface->rx[0] : NULL;
    }
    return DQ_OK;
}

static void fake_close(dqi_port *p) { (void)p; }

static uint32_t fake_read(dqi_port_queue *l, dqi_piece *out, uint32_t max) {
    fake_queue *f = l->state;
    uint32_t n = 0;
    while (f->at + n < f->n && n < max)
        n++;
    while (n > 0 && f->pieces[f->at + n - 1].more) // whole frames
        n--;
    memcpy(out, f->pieces + f->at, n * sizeof *out);
    f->at += n;
    f->read += n > 0;
    return n;
}

static void fake_release(dqi_port_queue *l) { ((fake_queue *)l->state)->released++; }

// The device's rules: what the last change reported of them, and whether it takes any.
static struct {
    uint32_t n_gone, n_add;
    uint32_t gone_id, add_id; // flow ids of the first
    bool refuses;
} reported;

static int fake_steer(dqi_port *p, const dq_rule *gone, uint32_t n_gone, const dq_rule *rules, uint32_t n,
                      dq_diag *diag) {
    if (reported.refuses)
        return dqi_fail(diag, DQ_NO_SPACE_AVAILABLE, "interface %s: full", p->iface->conf.name);
    reported.n_gone = n_gone, reported.n_add = n;
    reported.gone_id = n_gone > 0 ? gone->flow_id : 0;
    reported.add_id = n > 0 ? rules->flow_id : 0;
    return DQ_OK;
}

static const dqi_port_driver driver = {.name = "a list",
                                       .open = fake_open,
                                       .close = fake_close,
                                       .read = fake_read,
                                       .release = fake_release,
                                       .steer = fake_steer};

static int open_fake(dq_iface *i, dq_diag *diag) { return dqi_eth_open(i, &driver, diag); }

static const dqi_engine_ops engine = {
    .name = "fake",
    .open = open_fake,
    .stop = dqi_eth_stop,
    .close = dqi_eth_close,
    .rx = dqi_eth_rx,
    .held = dqi_eth_held,
    .flush = dqi_eth_flush,
    .lines = dqi_eth_lines,
    .flows = &dqi_eth_flows,
};

// ---- a session --------------------------------------------------------------------------------------------

typedef struct rig {
    dq_session *s;
    dq_iface *i;
    dq_region *region[2];
    dq_queue *q[QUEUES];
} rig;

typedef struct rig_conf {
    uint32_t device_queues, queues, nseg, size[2], bufs, meta;
    bool in_place, isolation;
} rig_conf;

static inline void must(int err, const dq_diag *d) {
    if (err == DQ_OK) return;
    fprintf(stderr, "set-up: %s: %s\n", dq_err_name(err), d->text);
    exit(1);
}

static inline rig rig_open(rig_conf c) {
    rig r = {0};
    dq_diag d = {{0}};
    dq_session_conf sc = {.rx_meta_buffers = c.meta ? c.meta : 64, .tx_meta_buffers = 8};
    dq_iface_conf ic = {.name = "port", .engine = "loop", .flow_isolation = c.isolation};
    n_queues = c.device_queues;
    in_place = c.in_place;
    must(dq_session_new(&sc, &r.s, &d), &d);
    for (uint32_t k = 0; k < c.nseg; k++) {
        dq_region_conf rc = {.affinity = -1, .num_bufs = c.bufs ? c.bufs : 1024, .buf_size = c.size[k]};
        snprintf(rc.name, sizeof rc.name, "m%u", k);
        must(dq_region_add(r.s, &rc, &r.region[k], &d), &d);
    }
    must(dq_iface_add(r.s, &ic, &r.i, &d), &d);
    r.i->ops = &engine;
    for (uint32_t k = 0; k < c.queues; k++) {
        dq_queue_conf qc = {.id = k, .dir = DQ_RX, .direct = 1, .batch_size = 32, .n_regions = c.nseg};
        memcpy(qc.regions, r.region, sizeof r.region);
        snprintf(qc.name, sizeof qc.name, "rx%u", k);
        must(dq_queue_add(r.i, &qc, &r.q[k], &d), &d);
        atomic_store(&r.q[k]->rx.consumed, true);
    }
    must(dq_session_open(r.s, &d), &d);
    return r;
}

static inline dq_line line_of(const rig *r, int kind, uint32_t id) {
    dq_line lines[8];
    uint32_t n = dq_ledger(r->s, lines, 8);
    for (uint32_t k = 0; k < n && k < 8; k++)
        if (lines[k].kind == kind && lines[k].queue_id == id) return lines[k];
    dq_failed(__FILE__, __LINE__, "no such line");
    return lines[0];
}

static inline uint64_t dropped(const dq_line *l) {
    uint64_t n = 0;
    for (int k = 0; k < DQ_REASONS; k++)
        n += l->dropped[k];
    return n;
}

// What a queue got in one look, and returns.
static inline uint32_t take(dq_queue *q, dq_burst **b) {
    *b = dqi_burst_get(q->bursts);
    int n = dqi_eth_rx(q, b, q->conf.batch_size);
    DQ_EQ(n, (*b)->n);
    dqi_add(&q->c.out, (uint64_t)n);
    return (uint32_t)n;
}

// Every account adds up once all is taken, and all buffers are back.
static inline void rig_close(rig *r) {
    for (uint32_t k = 0; k < r->i->n_rx; k++) {
        dq_line l = line_of(r, DQ_LINE_RX, k);
        DQ_EQ(l.in, l.out + l.held + dropped(&l));
    }
    dq_line w = line_of(r, DQ_LINE_WIRE, 0);
    DQ_EQ(w.in, w.out + dropped(&w));
    for (uint32_t k = 0; k < n_queues; k++)
        DQ_EQ(fake[k].read, fake[k].released);
    DQ_EQ(dq_session_close(r->s), 0);
}

#endif
