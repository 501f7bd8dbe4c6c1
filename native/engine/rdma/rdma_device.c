// rdma_device.c: devices, the registration of regions, completion queues.
//
// A session registers each region once with each device that its interfaces use, with the rights that the
// configuration gives it: nothing else is pinned. A completion queue belongs to a queue of the interface and
// grows with its connections.
#include "core/err.h"
#include "engine/rdma/rdma.h"
#include "engine/rdma/verbs_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define FIRST_ROOM 1024 // entries of a completion queue at its beginning

// ---- regions ----------------------------------------------------------------------------------------------

static int rights(const dq_region *r, const dqi_rdma_device *d) {
    int access = VB_ACCESS_LOCAL_WRITE;
    if (r->conf.access & DQ_ACCESS_READ) access |= VB_ACCESS_REMOTE_READ;
    if (r->conf.access & DQ_ACCESS_WRITE) {
        access |= VB_ACCESS_REMOTE_WRITE;
        if (d->attr.atomic_cap != VB_ATOMIC_NONE) access |= VB_ACCESS_REMOTE_ATOMIC;
    }
    return access;
}

// What lies on a GPU can be of use without the device: where that can't reach it, the report says so.
static void say_reach(const dqi_rdma *r, const dq_region *g, int err, const dq_diag *why) {
    if (err == DQ_OK)
        dqi_note(r->iface->session,
                 "interface %s: memory region %s: device %s reaches it on the GPU (DMA-BUF)",
                 r->iface->conf.name, g->conf.name, r->device->verbs->device->name);
    else
        dqi_note(r->iface->session, "%s: it can't be lent, and operations can't name it", why->text);
}

static int register_regions(dqi_rdma *r, dq_diag *diag) {
    dqi_rdma_device *d = r->device;
    const dq_session *s = r->iface->session;
    for (uint32_t k = 0; k < s->n_regions; k++) {
        dq_region *g = s->regions[k];
        d->n_mrs = k + 1;
        if (!g->cpu && !g->gpu) continue;
        dq_diag why = {{0}};
        int err = dqi_verbs_register(d->pd, g, rights(g, d), r->iface->conf.name, &d->mrs[k], &why);
        if (g->gpu && !g->cpu) {
            say_reach(r, g, err, &why);
        } else if (err != DQ_OK) {
            if (diag) *diag = why;
            return err;
        }
    }
    return DQ_OK;
}

uint32_t dqi_rdma_lkey(const dqi_rdma *r, uint64_t off) {
    const dq_session *s = r->iface->session;
    for (uint32_t k = 0; k < r->device->n_mrs; k++)
        if (r->device->mrs[k] && dqi_region_has(s->regions[k], off)) return r->device->mrs[k]->lkey;
    return 0;
}

int dqi_rdma_mtu(int bytes) {
    int mtu = VB_MTU_4096;
    while (mtu > VB_MTU_256 && 128 << mtu > bytes)
        mtu--;
    return mtu;
}

// ---- devices ----------------------------------------------------------------------------------------------

// That of another interface of the session, or NULL.
static dqi_rdma_device *known(const dqi_rdma *r, const vb_context *verbs, uint8_t port) {
    const dq_session *s = r->iface->session;
    for (uint32_t k = 0; k < s->n_ifaces; k++) {
        const dqi_rdma *other = s->ifaces[k]->ops == &dqi_engine_rdma ? s->ifaces[k]->engine : NULL;
        dqi_rdma_device *d = other ? other->device : NULL;
        if (d && d->verbs == verbs && d->port_num == port) return d;
    }
    return NULL;
}

int dqi_rdma_device_open(dqi_rdma *r, vb_context *verbs, uint8_t port, dq_diag *diag) {
    const char *name = r->iface->conf.name;
    r->device = known(r, verbs, port);
    if (r->device) {
        r->device->users++;
        return DQ_OK;
    }
    dqi_rdma_device *d = calloc(1, sizeof *d);
    if (!d) return dqi_fail(diag, DQ_ESYS - ENOMEM, "interface %s: no memory", name);
    r->device = d;
    *d = (dqi_rdma_device){.verbs = verbs, .port_num = port, .users = 1};
    int err = vb.query_device(verbs, &d->attr);
    if (err == 0) err = vb.query_port(verbs, port, &d->port);
    if (err == 0 && !(d->pd = vb.alloc_pd(verbs))) err = errno;
    if (err != 0)
        return dqi_fail(diag, DQ_ESYS - err, "interface %s: device %s: %s", name, verbs->device->name,
                        strerror(err));
    dqi_rdma_nonblocking(verbs->async_fd);
    return register_regions(r, diag);
}

void dqi_rdma_device_close(dqi_rdma *r) {
    dqi_rdma_device *d = r->device;
    r->device = NULL;
    if (!d || --d->users > 0) return;
    for (uint32_t k = 0; k < d->n_mrs; k++)
        if (d->mrs[k]) vb.dereg_mr(d->mrs[k]);
    if (d->pd) vb.dealloc_pd(d->pd);
    free(d);
}

// ---- completion queues ------------------------------------------------------------------------------------

int dqi_rdma_nonblocking(int fd) {
    int flags = fcntl(fd, F_GETFL);
    return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 ? DQ_ESYS - errno : DQ_OK;
}

// One more of x; DQ_OK or an error. Under dqi_rdma.lock, once there are pollers.
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
    q->channel = vb.create_comp_channel(r->device->verbs);
    int err = q->channel ? dqi_rdma_nonblocking(q->channel->fd) : DQ_ESYS - errno;
    if (err == DQ_OK) err = add_cq(x);
    if (err == DQ_OK) return DQ_OK;
    return dqi_fail(diag, err, "interface %s: queue %s: completion queue of device %s: %s",
                    r->iface->conf.name, x->queue->conf.name, r->device->verbs->device->name,
                    dq_err_name(err));
}

static void take_events(dqi_rdma_cqs *q) {
    vb_take_events(q->channel);
    q->armed = false;
}

void dqi_rdma_cqs_close(dqi_rdma_cqs *q) {
    if (q->channel) take_events(q);
    for (uint32_t k = 0; k < atomic_load(&q->n_cqs); k++)
        vb.destroy_cq(q->list[k].cq);
    if (q->channel) vb.destroy_comp_channel(q->channel);
    atomic_store(&q->n_cqs, 0);
    q->channel = NULL;
}

// Makes room for so many entries in all, which the device allows. DQ_OK or an error.
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
             "interface %s: queue %s: no completion queue for one connection more: it has %u, and device %s "
             "takes %u "
             "entries each, of which a connection needs %u; hint: more queues",
             r->iface->conf.name, x->queue->conf.name, atomic_load(&x->cqs.n_cqs),
             r->device->verbs->device->name, max, n);
    return NULL;
}

// Takes what the queue whose turn it is has; whether there was something in one of them.
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
    if (q->armed) take_events(q);
    return poll_cqs(q) ? q->wc : NULL;
}

bool dqi_rdma_cq_arm(dqi_rdma_cqs *q) {
    for (uint32_t k = 0; k < atomic_load(&q->n_cqs) && !q->armed; k++)
        vb_req_notify(q->list[k].cq);
    q->armed = true;
    // What came before the request makes no event.
    return q->at == q->n && !poll_cqs(q);
}
