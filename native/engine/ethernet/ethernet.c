// ethernet.c: setup of a raw Ethernet interface (port, queues, rules) and calls to its driver. ethernet_rx.c
// receives packets.
#include "core/err.h"
#include "engine/ethernet/ethernet_rx.h"
#include "engine/ethernet/heads.h"
#include "engine/ethernet/kernel_groups.h"
#include "engine/ethernet/pause.h"
#include "pipeline/queue.h"
#include "pipeline/responder.h"

#include <errno.h>
#include <linux/if_ether.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#define HEADERS 22 // bytes of a frame beyond the MTU: addresses, type, two tags

static int no_memory(const dq_iface *i, dq_diag *diag) {
    return dqi_fail(diag, DQ_ESYS - ENOMEM, "interface %s: no memory", i->conf.name);
}

// ---- open and close ---------------------------------------------------------------------------------------

// Device queues l with l % n_rx == k belong to queue k, which polls the others after them.
static void order_queues(const dqi_port *p, uint32_t k) {
    dqi_eth_queue *r = p->iface->rx[k]->engine;
    uint32_t n = 0;
    for (uint32_t l = 0; l < p->n_queues; l++)
        if (l % p->iface->n_rx == k) r->order[n++] = (uint8_t)l;
    for (uint32_t l = 0; l < p->n_queues; l++)
        if (l % p->iface->n_rx != k) r->order[n++] = (uint8_t)l;
}

static int open_queue(dq_queue *q, dq_diag *diag) {
    dqi_eth_queue *r = calloc(1, sizeof *r);
    if (!r || !dqi_inbox_init(&r->box, dqi_burst_pool_level(q->bursts))) {
        free(r);
        return no_memory(q->iface, diag);
    }
    q->engine = r;
    return DQ_OK;
}

static void close_queue(dq_queue *q) {
    dqi_eth_queue *r = q->engine;
    if (!r) return;
    dqi_inbox_flush(q, &r->box);
    dqi_inbox_free(&r->box);
    free(r);
    q->engine = NULL;
}

static int open_queues(dq_iface *i, dq_diag *diag) {
    int err = DQ_OK;
    for (uint32_t k = 0; err == DQ_OK && k < i->n_rx; k++)
        err = open_queue(i->rx[k], diag);
    return err;
}

// Returns the index of a receive queue of the open session, which may not be listed yet.
static uint32_t index_of(const dq_queue *q) {
    uint32_t k = 0;
    while (k < q->iface->n_rx && q->iface->rx[k] != q)
        k++;
    return k;
}

// Opens a device queue of q's own, where the driver can.
static int open_own(dqi_port *p, dq_queue *q, dq_diag *diag) {
    dqi_port_queue *l = &p->queues[index_of(q)];
    if (!p->driver->rx_open || l->index < p->n_queues) return DQ_OK; // that of the open was not closed
    if (!l->batch) l->batch = calloc(1, sizeof *l->batch);
    if (!l->batch) return no_memory(p->iface, diag);
    int err = p->driver->rx_open(l, q, diag);
    if (err == DQ_OK)
        ((dqi_eth_queue *)q->engine)->own = l;
    else
        p->driver->rx_close(l);
    return err;
}

// A queue that is added later also reads the device queues of the open, as all queues do.
int dqi_eth_queue_open(dq_queue *q, dq_diag *diag) {
    dqi_port *p = dqi_port_of(q->iface);
    if (q->conf.dir == DQ_TX) return p->driver->tx_open(q, diag);
    if (p->n_queues == 0)
        return dqi_fail(
            diag, DQ_NOT_SUPPORTED,
            "interface %s: queue %s: engine %s was opened without a receive queue and has no ring "
            "to read; hint: give the configuration one",
            q->iface->conf.name, q->conf.name, q->iface->ops->name);
    int err = open_queue(q, diag);
    if (err == DQ_OK && (err = open_own(p, q, diag)) != DQ_OK) close_queue(q);
    if (err != DQ_OK) return err;
    dqi_eth_queue *r = q->engine;
    for (uint32_t l = 0; l < p->n_queues; l++)
        r->order[l] = (uint8_t)((q->conf.id + l) % p->n_queues);
    q->rx.stamping = p->stamps;
    if (p->driver->rx_added) p->driver->rx_added(p);
    return DQ_OK;
}

void dqi_eth_queue_close(dq_queue *q) {
    const dqi_port_driver *d = dqi_port_of(q->iface)->driver;
    if (q->conf.dir == DQ_TX) {
        if (d->tx_close) d->tx_close(q);
        return;
    }
    dqi_port_queue *own = ((dqi_eth_queue *)q->engine)->own;
    if (own) d->rx_close(own);
    close_queue(q);
}

// ---- regions that come and go -----------------------------------------------------------------------------

static int change_region(const dq_iface *i, const dq_region *r, dq_diag *diag) {
    const dqi_region_ops *ops = dqi_port_of(i)->driver->regions;
    return ops ? ops->change(i, r, diag) : DQ_OK;
}

static int join_region(dq_iface *i, const dq_region *r, dq_diag *diag) {
    const dqi_region_ops *ops = dqi_port_of(i)->driver->regions;
    return ops && ops->join ? ops->join(i, r, diag) : DQ_OK;
}

static void leave_region(dq_iface *i, const dq_region *r) {
    const dqi_region_ops *ops = dqi_port_of(i)->driver->regions;
    if (ops && ops->leave) ops->leave(i, r);
}

const dqi_region_ops dqi_eth_regions = {.change = change_region, .join = join_region, .leave = leave_region};

static int open_device_queues(dqi_port *p, dq_diag *diag) {
    for (uint32_t l = 0; l < p->n_queues; l++) {
        p->queues[l].batch = calloc(1, sizeof *p->queues[l].batch);
        if (!p->queues[l].batch) return no_memory(p->iface, diag);
        int err = dqi_eth_heads_open(&p->queues[l], diag);
        if (err != DQ_OK) return err;
    }
    for (uint32_t k = 0; k < p->iface->n_rx; k++)
        order_queues(p, k);
    return DQ_OK;
}

static void report_how(const dqi_port *p) {
    const dq_iface *i = p->iface;
    if (i->n_rx == 0) {
        dqi_note(i->session, "interface %s: %s", i->conf.name, p->driver->name);
        return;
    }
    dqi_note(i->session, "interface %s: %s, %u receive queue%s of the device; %s%s%s", i->conf.name,
             p->driver->name, p->n_queues, p->n_queues == 1 ? "" : "s",
             p->driver->steer ? "" : "flows by software; ",
             p->copy ? "copy: " : "packets stay where the device put them", p->copy ? p->copy : "");
    for (uint32_t k = 0; k < i->n_rx; k++)
        if (i->rx[k]->conf.n_regions > 1)
            dqi_note(i->session, "interface %s: queue %s: hds: %s", i->conf.name, i->rx[k]->conf.name,
                     i->rx[k] == p->queues[0].split ? "device" : "software");
}

void dqi_eth_note_mtu(const dqi_port *p, uint32_t mtu) {
    const dq_iface *i = p->iface;
    char device[IF_NAMESIZE];
    if (!if_indextoname(p->netdev, device)) return;
    for (uint32_t k = 0; k < i->n_tx; k++) {
        const dq_queue *q = i->tx[k];
        uint32_t bytes = 0;
        for (uint32_t n = 0; n < q->conf.n_regions; n++)
            bytes += q->conf.regions[n]->conf.buf_size;
        if (bytes <= mtu + HEADERS) continue;
        dqi_note(i->session,
                 "interface %s: queue %s: buffers hold %u bytes, %s has an MTU of %u: longer frames are "
                 "dropped as "
                 "too long; hint: ip link set %s mtu %u",
                 i->conf.name, q->conf.name, bytes, device, mtu, device, bytes - ETH_HLEN);
    }
}

int dqi_eth_open(dq_iface *i, const dqi_port_driver *d, dq_diag *diag) {
    dqi_port *p = calloc(1, sizeof *p);
    if (!p) return no_memory(i, diag);
    i->engine = p;
    p->iface = i;
    p->driver = d;
    for (uint32_t l = 0; l < DQ_MAX_QUEUES; l++) {
        p->queues[l].port = p;
        p->queues[l].index = l;
    }
    int err = open_queues(i, diag);
    if (err == DQ_OK) err = d->open(p, diag);
    if (err == DQ_OK) err = open_device_queues(p, diag);
    for (uint32_t k = 0; k < i->n_rx; k++)
        i->rx[k]->rx.stamping = p->stamps;
    if (err == DQ_OK) {
        report_how(p);
        dqi_pause_open(p);
    }
    return err;
}

// Configures the device to accept the multicast groups that the session reports itself.
static int hear_groups(dqi_port *p, dq_diag *diag) {
    uint32_t n = dqi_responder_macs(p->iface, NULL, 0);
    uint8_t(*macs)[6] = calloc((size_t)n + 1, sizeof *macs);
    if (!macs) return no_memory(p->iface, diag);
    dqi_responder_macs(p->iface, macs, n);
    int err = p->driver->set_rx_macs(p, (const uint8_t(*)[6])macs, n, diag);
    free(macs);
    return err;
}

int dqi_eth_start(dq_iface *i, dq_diag *diag) {
    dqi_port *p = dqi_port_of(i);
    int err = p->driver->start ? p->driver->start(p, diag) : DQ_OK;
    return err == DQ_OK && p->driver->set_rx_macs ? hear_groups(p, diag) : err;
}

void dqi_eth_stop(dq_iface *i) {
    dqi_port *p = dqi_port_of(i);
    if (p->driver->stop) p->driver->stop(p);
    dqi_pause_refresh(p, true);
    p->pause.counted = false; // later frames are not of the run
}

void dqi_eth_close(dq_iface *i) {
    dqi_port *p = dqi_port_of(i);
    for (uint32_t k = 0; k < i->n_rx; k++)
        close_queue(i->rx[k]);
    p->driver->close(p);
    for (uint32_t l = 0; l < DQ_MAX_QUEUES; l++) {
        dqi_eth_heads_close(&p->queues[l]);
        free(p->queues[l].batch);
        dqi_flows_let_go(p->queues[l].rules);
    }
    dqi_kernel_groups_free(p);
    dqi_flows_free(&p->flows);
    free(p);
    i->engine = NULL;
}

// ---- calls to the driver ----------------------------------------------------------------------------------

int dqi_eth_tx(dq_queue *q, dq_burst *b, uint32_t first, uint32_t n) {
    return dqi_port_of(q->iface)->driver->tx(q, b, first, n);
}

int dqi_eth_reap(dq_queue *q) {
    const dqi_port_driver *d = dqi_port_of(q->iface)->driver;
    return d->reap ? d->reap(q) : 0;
}

void dqi_eth_drop_rest(dq_queue *q) {
    const dqi_port_driver *d = dqi_port_of(q->iface)->driver;
    if (d->drop_rest) d->drop_rest(q);
}

// Arms all device queues, including those of other queues, whose pollers may be blocked by their consumers.
int dqi_eth_arm(dq_queue *q, struct pollfd *fds, int max) {
    dqi_port *p = dqi_port_of(q->iface);
    if (q->conf.dir == DQ_TX) return p->driver->arm_tx ? p->driver->arm_tx(q, fds, max) : 0;
    const dqi_eth_queue *r = q->engine;
    int n = 0;
    if (r->own && q->rx.n_pipes > 0 && max > 0) n = p->driver->arm_rx(r->own, q, fds, max);
    for (uint32_t k = 0; k < p->n_queues && q->rx.n_pipes > 0 && n < max; k++)
        n += p->driver->arm_rx(&p->queues[r->order[k]], q, fds + n, max - n);
    return n;
}

uint64_t dqi_eth_held(dq_queue *q) {
    const dqi_port_driver *d = dqi_port_of(q->iface)->driver;
    if (q->conf.dir == DQ_TX) return d->held ? d->held(q) : 0;
    return q->engine ? dqi_inbox_held(&((dqi_eth_queue *)q->engine)->box) : 0;
}

// Returns true if the device counted something that concerns transmission.
static bool counts_tx(const dqi_port *p) {
    return dqi_get(&p->c.extra[DQ_EXTRA_NIC_TX_ERRORS]) != 0 ||
           dqi_get(&p->c.extra[DQ_EXTRA_NIC_PAUSE_RECEIVED]) != 0;
}

// An interface without receive queues has a line only if the device counted something of transmission.
int dqi_eth_lines(dq_iface *i, dq_line *l, int max) {
    if (max < 1 || (i->n_rx == 0 && !counts_tx(dqi_port_of(i)))) return 0;
    *l = (dq_line){.kind = DQ_LINE_WIRE};
    snprintf(l->name, sizeof l->name, "%s", i->conf.name);
    dqi_line_add(l, &dqi_port_of(i)->c);
    return 1;
}

void dqi_eth_refresh(dq_iface *i) {
    dqi_port *p = dqi_port_of(i);
    if (p->driver->refresh) p->driver->refresh(p);
    dqi_pause_refresh(p, false);
}

static uint32_t eth_mtu(const dq_iface *i) {
    const dqi_port *p = dqi_port_of(i);
    return p->driver->mtu ? p->driver->mtu(p) : 0;
}

static int eth_mac(const dq_iface *i, uint8_t mac[6]) {
    const dqi_port *p = dqi_port_of(i);
    return p->driver->mac(p, mac);
}

static int eth_multicast(dq_iface *i, const char *group, const char *source, bool join, dq_diag *diag) {
    dqi_port *p = dqi_port_of(i);
    int err = p->driver->multicast ? p->driver->multicast(p, group, source, join, diag) : DQ_OK;
    // A driver that takes frames from the kernel also takes the queries, unless unmatched frames stay in the
    // kernel.
    bool ours = !p->driver->multicast || (p->filters && !i->conf.flow_isolation);
    if (err == DQ_OK && ours) err = dqi_responder_multicast(i, group, source, join, diag);
    return err == DQ_OK && p->driver->set_rx_macs ? hear_groups(p, diag) : err;
}

static int eth_answers(const dq_iface *i, dq_diag *diag) {
    if (!dqi_port_of(i)->filters || !i->conf.flow_isolation) return DQ_OK;
    return dqi_fail(diag, DQ_NOT_SUPPORTED,
                    "interface %s: with flow_isolation packets that match no flow go to the kernel, which "
                    "answers for its own addresses; hint: ip addr add ADDRESS dev %s",
                    i->conf.name, i->conf.address);
}

// ---- rules ------------------------------------------------------------------------------------------------
//
// A driver that offloads rules receives each change after the software classifier was updated, so rules that
// the device does not apply yet, or no longer applies, are still applied. If the driver rejects the change,
// the old rules are restored.

static int eth_change_rules(dq_iface *i, const uint64_t *gone, uint32_t n_gone, const dq_rule *add,
                            uint32_t n_add, dq_diag *diag) {
    dqi_port *p = dqi_port_of(i);
    bool device = p->driver->steer && n_gone + n_add > 0;
    if (!device) return dqi_flows_change(&p->flows, i, gone, n_gone, add, n_add, diag);
    dq_rule *out = calloc((size_t)n_gone + 1, sizeof *out);
    if (!out) return no_memory(i, diag);
    dqi_flow_rules *was = dqi_flows_hold(&p->flows);
    int err = dqi_flows_change(&p->flows, i, gone, n_gone, add, n_add, diag);
    if (err == DQ_OK) {
        for (uint32_t k = 0; k < n_gone; k++)
            out[k] = *dqi_flows_rule(was, gone[k]);
        err = p->driver->steer(p, out, n_gone, add, n_add, diag);
        if (err != DQ_OK) dqi_flows_put_back(&p->flows, was);
    }
    dqi_flows_let_go(was);
    free(out);
    return err;
}

static int eth_drop_all(dq_iface *i, bool drop) {
    dqi_port *p = dqi_port_of(i);
    dqi_flows_drop_all(&p->flows, drop);
    if (p->driver->drop_all) p->driver->drop_all(p, drop);
    return DQ_OK;
}

const dqi_flow_ops dqi_eth_flows = {.change_rules = eth_change_rules, .drop_all = eth_drop_all};
const dqi_link_ops dqi_eth_link = {
    .mac = eth_mac, .mtu = eth_mtu, .multicast = eth_multicast, .answers = eth_answers};
const dqi_link_ops dqi_eth_groups = {.multicast = eth_multicast};
