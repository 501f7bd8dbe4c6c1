// rdma_device.c: devices and the registration of regions.
//
// A session registers each region once with each device of its interfaces, with the access of its
// configuration; no other memory is pinned.
#include "core/err.h"
#include "engine/rdma/rdma.h"
#include "engine/rdma/verbs_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

// ---- regions ----------------------------------------------------------------------------------------------

int dqi_rdma_rights(const dqi_rdma_device *d, uint32_t access) {
    int rights = VB_ACCESS_LOCAL_WRITE;
    if (access & DQ_ACCESS_READ) rights |= VB_ACCESS_REMOTE_READ;
    if (access & DQ_ACCESS_WRITE) {
        rights |= VB_ACCESS_REMOTE_WRITE;
        if (d->attr.atomic_cap != VB_ATOMIC_NONE) rights |= VB_ACCESS_REMOTE_ATOMIC;
    }
    return rights;
}

// Reports whether the device reaches a GPU region, which is usable without the device otherwise.
static void report_reach(const dqi_rdma *r, const dq_region *g, int err, const dq_diag *why) {
    if (err == DQ_OK)
        dqi_note(r->iface->session,
                 "interface %s: memory region %s: device %s can access it on the GPU (DMA-BUF)",
                 r->iface->conf.name, g->conf.name, r->device->verbs->device->name);
    else
        dqi_note(r->iface->session, "%s: it cannot be lent or used by operations", why->text);
}

static int register_regions(dqi_rdma *r, dq_diag *diag) {
    dqi_rdma_device *d = r->device;
    const dq_session *s = r->iface->session;
    for (uint32_t k = 0; k < s->core.n_regions; k++) {
        dq_region *g = s->core.regions[k];
        d->n_mrs = k + 1;
        if (!g->cpu && !g->gpu) continue;
        dq_diag why = {{0}};
        int err = dqi_verbs_register(d->pd, g, dqi_rdma_rights(d, g->conf.access), r->iface->conf.name,
                                     &d->mrs[k], &why);
        if (g->gpu && !g->cpu) {
            report_reach(r, g, err, &why);
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
        if (r->device->mrs[k] && dqi_region_has(s->core.regions[k], off)) return r->device->mrs[k]->lkey;
    return 0;
}

int dqi_rdma_mtu(int bytes) {
    int mtu = VB_MTU_4096;
    while (mtu > VB_MTU_256 && 128 << mtu > bytes)
        mtu--;
    return mtu;
}

// ---- devices ----------------------------------------------------------------------------------------------

int dqi_rdma_nonblocking(int fd) {
    int flags = fcntl(fd, F_GETFL);
    return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 ? DQ_ESYS - errno : DQ_OK;
}

// Returns the device state of another interface of the session, or NULL.
static dqi_rdma_device *known(const dqi_rdma *r, const vb_context *verbs, uint8_t port) {
    const dq_session *s = r->iface->session;
    for (uint32_t k = 0; k < s->n_ifaces; k++) {
        const dqi_rdma *other = s->ifaces[k]->ops == r->iface->ops ? s->ifaces[k]->engine : NULL;
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
