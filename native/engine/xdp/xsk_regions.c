// xsk_regions.c: placement of received frames. Device queue l is assigned to receive queue l % n_rx: the
// kernel fills buffers of that queue's region if it is suitable, else those of a staging region.
#include "core/err.h"
#include "core/region.h"
#include "engine/xdp/xsk.h"
#include "engine/xdp/xsk_driver.h"
#include "pipeline/engine.h"
#include "pipeline/queue.h"

#include <stdio.h>
#include <string.h>

enum { SMALL_CHUNK = 2048, LARGE_CHUNK = 4096 }; // bytes

// ---- the plan ---------------------------------------------------------------------------------------------

// Returns true if all receive queues have the same single region, so that any of them can use the buffers of
// a device queue.
static bool share_region(const dq_iface *i) {
    for (uint32_t k = 0; k < i->n_rx; k++)
        if (i->rx[k]->conf.n_regions > 1 || i->rx[k]->conf.regions[0] != i->rx[0]->conf.regions[0])
            return false;
    return true;
}

// Returns the length of the longest frame that queue k accepts, with tag, in bytes.
static uint32_t longest_of(const dq_iface *i, uint32_t k, uint32_t mtu) {
    const dq_queue_conf *c = &i->rx[k]->conf;
    uint64_t room = 0;
    for (uint32_t s = 0; s < c->n_regions; s++)
        room += c->regions[s]->conf.buf_size;
    return room < mtu + XSK_TAGGED ? (uint32_t)room : mtu + XSK_TAGGED;
}

// Returns why the kernel cannot fill queue k's own region, which has this stride; NULL: it can.
static const char *why_copy(const dq_iface *i, uint32_t k, uint32_t stride, const xsk_plan *p) {
    const dq_region *r = i->rx[k]->conf.regions[0];
    uint32_t longest = 0;
    for (uint32_t o = 0; o < i->n_rx; o++)
        if (longest_of(i, o, p->mtu) > longest) longest = longest_of(i, o, p->mtu);
    if (i->rx[k]->conf.n_regions > 1) return "the queue splits headers from data";
    if (i->n_rx > p->queues && !share_region(i)) return "several queues share what a NIC queue receives";
    if (r->group > 1) return "the region's buffers go out in groups";
    if (stride != SMALL_CHUNK && stride != LARGE_CHUNK)
        return "AF_XDP takes buffers of 2048 or 4096 bytes only";
    if (longest_of(i, k, p->mtu) > stride - XSK_HEADROOM)
        return "AF_XDP needs 256 bytes in front of each frame: lower buf_size's frames";
    if (longest > stride - XSK_HEADROOM) return "frames of another queue are longer than its buffers";
    if (p->chunk != 0 && stride != p->chunk) return "AF_XDP takes buffers of one size, the first queue's";
    return NULL;
}

// laid_out: the strides of the regions are known.
static xsk_plan make_plan(const dq_iface *i, bool laid_out, uint32_t queues, uint32_t mtu) {
    xsk_plan p = {.queues = queues, .mtu = mtu};
    for (uint32_t k = 0; k < i->n_rx; k++) {
        const dq_region *r = i->rx[k]->conf.regions[0];
        uint32_t stride = laid_out ? r->stride : dq_stride(r->conf.buf_size, true, i->ops->name);
        p.copy[k] = why_copy(i, k, stride, &p);
        if (!p.copy[k]) p.chunk = stride;
    }
    for (uint32_t k = 0; k < i->n_rx && k < queues; k++)
        p.staged |= p.copy[k] != NULL;
    if (p.chunk == 0) p.chunk = mtu + XSK_TAGGED <= SMALL_CHUNK - XSK_HEADROOM ? SMALL_CHUNK : LARGE_CHUNK;
    return p;
}

// Adds the staging region, the session's last one; packets are copied from it into the queues' buffers.
static void add_staging(dq_iface *i, const xsk_plan *p) {
    dq_region_conf c = {.kind = i->rx[0]->conf.regions[0]->conf.kind,
                        .affinity = i->rx[0]->conf.regions[0]->conf.affinity,
                        .num_bufs = XSK_RING * p->queues,
                        .buf_size = p->chunk - DQ_HEADROOM};
    snprintf(c.name, sizeof c.name, "%.40s (AF_XDP)", i->conf.name);
    dq_region *r;
    if (dq_region_add(i->session, &c, &r, NULL) != DQ_OK) return;
    r->headroom = DQ_HEADROOM;
    xsk_given(i)->staging = r;
}

void dqi_xsk_claim(dq_iface *i) {
    if (!xsk_given(i)->steer || i->n_rx == 0) return;
    uint32_t n = xsk_count_queues(i->conf.address);
    xsk_plan p = make_plan(i, false, n < DQ_MAX_QUEUES ? n : DQ_MAX_QUEUES, xsk_mtu_of(i->conf.address));
    if (p.staged) add_staging(i, &p);
}

int xsk_make_plan(const dq_iface *i, xsk_port *x, dq_diag *diag) {
    x->plan = make_plan(i, true, x->n, x->mtu);
    if (x->plan.staged && (!xsk_given(i)->staging || xsk_given(i)->staging->stride != x->plan.chunk))
        return dqi_fail(diag, DQ_NOT_SUPPORTED, "AF_XDP: the stride of the buffers differs from the plan");
    return DQ_OK;
}

// ---- device queues ----------------------------------------------------------------------------------------

static dq_region *region_of(const dq_iface *i, const xsk_plan *p, uint32_t lane) {
    uint32_t home = lane % i->n_rx;
    return p->copy[home] ? xsk_given(i)->staging : i->rx[home]->conf.regions[0];
}

void xsk_settle(dqi_port *p, xsk_port *x) {
    const dq_iface *i = p->iface;
    for (uint32_t l = 0; l < x->n && i->n_rx > 0; l++) {
        xsk_socket *s = &x->sockets[l];
        bool direct = !x->plan.copy[l % i->n_rx];
        uint32_t feeds = 0;
        s->region = region_of(i, &x->plan, l);
        for (uint32_t o = 0; o < x->n; o++)
            feeds += region_of(i, &x->plan, o) == s->region;
        uint32_t share = s->region->conf.num_bufs / feeds / (direct ? 2 : 1);
        s->most_posted = share < XSK_RING ? share : XSK_RING;
        s->reserve = direct && i->n_rx > 1 ? s->most_posted / 4 : 0;
        p->queues[l].region = direct ? s->region : NULL;
    }
}

void xsk_share(dqi_port *p) {
    for (uint32_t l = 0; l < p->n_queues; l++) {
        xsk_socket *s = p->queues[l].state;
        dqi_lock(&p->queues[l].busy);
        if (p->queues[l].region) s->reserve = s->most_posted / 4;
        dqi_unlock(&p->queues[l].busy);
    }
}

// ---- report -----------------------------------------------------------------------------------------------

// Writes the device queues assigned to receive queue k as a comma-separated list.
static void list_queues(char *to, size_t n, const dq_iface *i, const xsk_plan *p, uint32_t k) {
    size_t at = 0;
    for (uint32_t l = k; l < p->queues && at < n; l += i->n_rx)
        at += (size_t)snprintf(to + at, n - at, "%s%u", l == k ? "" : ", ", l);
}

// Reports the placement for each queue when several regions are used; a frame's region depends on its device
// queue.
static void report_queues(const dq_iface *i, const xsk_plan *p) {
    char queues[128];
    for (uint32_t k = 0; k < i->n_rx; k++) {
        list_queues(queues, sizeof queues, i, p, k);
        if (p->copy[k])
            dqi_note(i->session, "interface %s: queue %s: copy: %s", i->conf.name, i->rx[k]->conf.name,
                     p->copy[k]);
        else
            dqi_note(i->session,
                     "interface %s: queue %s: direct: packets from NIC queue%s %s stay where the device put "
                     "them; copy: packets from others",
                     i->conf.name, i->rx[k]->conf.name, strchr(queues, ',') ? "s" : "", queues);
    }
    const char *d = i->conf.address;
    if (xsk_takes_rules(d))
        dqi_note(i->session,
                 "interface %s: %s chooses the NIC queue; hint: ethtool -N %s flow-type udp4 dst-port PORT "
                 "action QUEUE for a flow, ethtool -X %s for all",
                 i->conf.name, d, d, d);
    else
        dqi_note(i->session,
                 "interface %s: %s chooses the NIC queue and supports no rules for it (ethtool -N)",
                 i->conf.name, d);
}

void xsk_report_direct(dqi_port *p, const xsk_port *x) {
    const dq_iface *i = p->iface;
    const char *const *copy = x->plan.copy;
    uint32_t direct = 0;
    for (uint32_t k = 0; k < i->n_rx; k++)
        direct += !copy[k];
    p->direct = direct > 0;
    p->copy = direct == 0 ? copy[0] : NULL;
    if (direct > 0 && !share_region(i)) {
        p->copy = "as reported for each queue";
        report_queues(i, &x->plan);
    }
    if (i->n_rx > x->n && !share_region(i))
        dqi_note(
            i->session,
            "interface %s: %s has fewer NIC queues (%u) than there are receive queues (%u); hint: ethtool "
            "-L %s combined %u, or rx %u; or one memory region for all of them",
            i->conf.name, i->conf.address, x->n, i->n_rx, i->conf.address, i->n_rx, i->n_rx);
}
