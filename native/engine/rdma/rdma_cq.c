// rdma_cq.c: completion queues of a queue's connections, on which its poller polls and sleeps.
#include "core/err.h"
#include "engine/rdma/rdma.h"

#include <errno.h>

#define FIRST_ROOM 1024 // initial entries

// Adds a completion queue to x; returns DQ_OK or an error. Under conns.lock, once there are pollers.
static int add_cq(dqi_rdma_queue *x) {
    const dqi_rdma_device *d = x->r->device;
    dqi_rdma_cqs *q = &x->cqs;
    uint32_t n = atomic_load(&q->n_cqs), room = FIRST_ROOM;
    if (n == DQI_RDMA_CQS) return DQ_NO_SPACE_AVAILABLE;
    if (room > (uint32_t)d->attr.max_cqe) room = (uint32_t)d->attr.max_cqe;
    vb_cq *cq = vb.create_cq(d->verbs, (int)room, NULL, q->channel, 0);
    if (!cq) return DQ_ESYS - errno;
    q->list[n] = (dqi_rdma_cq){.cq = cq, .room = room};
    atomic_store(&q->n_cqs, n + 1);
    return DQ_OK;
}

int dqi_rdma_cqs_open(dqi_rdma_queue *x, dq_diag *diag) {
    const dqi_rdma *r = x->r;
    dqi_rdma_cqs *q = &x->cqs;
    q->receives = x->queue->conf.dir == DQ_RX || r->iface->n_rx == 0;
    q->channel = vb.create_comp_channel(r->device->verbs);
    int err = q->channel ? dqi_rdma_nonblocking(q->channel->fd) : DQ_ESYS - errno;
    if (err == DQ_OK) err = add_cq(x);
    if (err == DQ_OK) return DQ_OK;
    return dqi_fail(diag, err, "interface %s: queue %s: cannot create a completion queue of device %s: %s",
                    r->iface->conf.name, x->queue->conf.name, r->device->verbs->device->name,
                    dq_err_name(err));
}

void dqi_rdma_cqs_woken(dqi_rdma_cqs *q) {
    vb_take_events(q->channel);
    for (uint32_t k = 0; k < atomic_load(&q->n_cqs); k++)
        q->list[k].armed = false;
}

void dqi_rdma_cqs_close(dqi_rdma_cqs *q) {
    if (q->channel) dqi_rdma_cqs_woken(q);
    for (uint32_t k = 0; k < atomic_load(&q->n_cqs); k++)
        vb.destroy_cq(q->list[k].cq);
    if (q->channel) vb.destroy_comp_channel(q->channel);
    atomic_store(&q->n_cqs, 0);
    q->channel = NULL;
}

// Grows to n entries in total, at most max. Returns DQ_OK or an error.
static int grow(dqi_rdma_cq *c, uint32_t n, uint32_t max) {
    uint32_t room = c->room;
    while (room < n)
        room *= 2;
    if (room > max) room = max;
    int err = room > c->room ? vb.resize_cq(c->cq, (int)room) : 0;
    if (err != 0) return DQ_ESYS - (err > 0 ? err : errno);
    c->room = room;
    return DQ_OK;
}

dqi_rdma_cq *dqi_rdma_cq_for(dqi_rdma_queue *x, uint32_t n, int *err) {
    const dqi_rdma *r = x->r;
    uint32_t max = (uint32_t)r->device->attr.max_cqe, k = 0;
    while (k < atomic_load(&x->cqs.n_cqs) && x->cqs.list[k].used + n > max)
        k++;
    *err = k < atomic_load(&x->cqs.n_cqs) ? DQ_OK : add_cq(x);
    if (*err == DQ_OK) *err = grow(&x->cqs.list[k], x->cqs.list[k].used + n, max);
    if (*err == DQ_OK) {
        x->cqs.list[k].used += n;
        return &x->cqs.list[k];
    }
    dqi_note(r->iface->session,
             "interface %s: queue %s: cannot create a completion queue for another connection: there are %u, "
             "device %s supports %u entries in each, and a connection needs %u; hint: more queues",
             r->iface->conf.name, x->queue->conf.name, atomic_load(&x->cqs.n_cqs),
             r->device->verbs->device->name, max, n);
    return NULL;
}

// Polls the completion queues in turn until one has completions; returns false if none has.
static bool poll_cqs(dqi_rdma_cqs *q) {
    uint32_t n = atomic_load(&q->n_cqs);
    q->at = q->n = 0;
    for (uint32_t k = 0; k < n && q->n == 0; k++) {
        int got = vb_poll_cq(q->list[q->turn++ % n].cq, DQI_RDMA_POLL, q->wc);
        q->n = got > 0 ? (uint32_t)got : 0;
    }
    return q->n > 0;
}

vb_wc *dqi_rdma_cq_next(dqi_rdma_cqs *q) {
    if (q->at < q->n) return &q->wc[q->at];
    return poll_cqs(q) ? q->wc : NULL;
}

bool dqi_rdma_cqs_arm(dqi_rdma_cqs *q) {
    for (uint32_t k = 0; k < atomic_load(&q->n_cqs); k++) {
        dqi_rdma_cq *c = &q->list[k];
        if (c->armed || (!q->receives && atomic_load(&c->sending) == 0)) continue;
        c->armed = vb_req_notify(c->cq) == 0;
    }
    // Earlier completions trigger no event.
    return q->at == q->n && !poll_cqs(q);
}
