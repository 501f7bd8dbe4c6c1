// memory.c: memory of a device's frames: the receive queue's regions or the engine's buffers.
#include "dpdk.h"

#include <rte_errno.h>
#include <stdio.h>

#define OWN_BYTES (16u << 20) // limit of the engine's buffers, in bytes per queue
#define OWN_MOST  9728        // limit of the frame bytes in one of them on receive

uint32_t memory_longest(dq_queue *_Atomic const *queues, uint32_t n) {
    uint32_t most = 0;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t bytes = 0;
        for (uint32_t s = 0; s < queues[k]->conf.n_regions; s++)
            bytes += queues[k]->conf.regions[s]->conf.buf_size;
        most = bytes > most ? bytes : most;
    }
    return most;
}

// Virtual devices that accept buffers at any address; others share DPDK's memory with a peer or impose its
// layout.
bool memory_takes_any(const dpdk_port *d) {
    static const char *const names[] = {"net_null", "net_ring", "net_pcap", "net_af_packet", "net_tap"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (driver_is(d, names[i])) return true;
    return !d->vdev;
}

const char *memory_cannot_split(const dpdk_port *d, const dq_queue *q) {
    const struct rte_eth_rxseg_capa *can = &d->info.rx_seg_capa;
    if (!(d->info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT))
        return "packets are split over several memory regions, which the device can't do";
    if (!can->multi_pools || can->max_nseg < q->conf.n_regions)
        return "packets are split over more memory regions than the device can";
    if (!can->offset_allowed || DQ_HEADROOM % (1u << can->offset_align_log2) != 0)
        return "packets are split over several memory regions, and the device leaves no room in front of "
               "parts";
    return NULL;
}

// Finds the pools of the receive queue's regions; returns why frames cannot be received there, or NULL.
static const char *find_parts(dpdk_port *d, const dq_queue *q) {
    const char *why = q->conf.n_regions > 1 ? memory_cannot_split(d, q) : NULL;
    for (uint32_t s = 0; !why && s < q->conf.n_regions; s++)
        d->parts[s] = pool_of(d->bound, q->conf.regions[s], &why);
    return why;
}

void memory_choose(dqi_port *p, dpdk_port *d) {
    const dq_iface *i = p->iface;
    d->own_only = !memory_takes_any(d);
    if (i->n_rx == 0) return;
    if (i->n_rx > 1)
        p->copy = "several queues share the device's buffers";
    else if (d->own_only)
        p->copy = "the driver needs buffers of its own";
    else
        p->copy = find_parts(d, i->rx[0]);
    if (p->copy) return;
    dqi_port_queue *l = &p->queues[0]; // the only one
    d->n_parts = i->rx[0]->conf.n_regions;
    d->rx_pool = d->parts[0];
    p->direct = d->n_parts == 1 && d->rx_pool->region->cpu;
    l->region = d->rx_pool->region;
    l->split = d->n_parts > 1 ? i->rx[0] : NULL;
}

int memory_own(dqi_port *p, dpdk_port *d, dq_diag *diag) {
    static _Atomic uint32_t serial;
    const dq_iface *i = p->iface;
    if (d->rx_pool && i->n_tx == 0) return DQ_OK;
    uint32_t rx = memory_longest(i->rx, i->n_rx), tx = memory_longest(i->tx, i->n_tx);
    if (rx > OWN_MOST) rx = OWN_MOST; // longer frames are chained if the device can
    d->own_room = RTE_MAX(RTE_MAX(rx, tx), 2048u);
    if (d->own_room > UINT16_MAX - DQ_HEADROOM) d->own_room = UINT16_MAX - DQ_HEADROOM;
    uint32_t n = d->n_txq * BURST_MAX + d->tx_desc;
    if (!d->rx_pool) n += d->n_rxq * (2 * BURST_MAX + d->rx_desc);
    uint32_t most = OWN_BYTES / d->own_room * (d->n_rxq + d->n_txq);
    if (n > most) n = most;
    char name[RTE_MEMPOOL_NAMESIZE];
    snprintf(name, sizeof name, "dqown%u", atomic_fetch_add(&serial, 1));
    d->own = rte_pktmbuf_pool_create(name, n, 64, 0, (uint16_t)(d->own_room + DQ_HEADROOM), SOCKET_ID_ANY);
    if (d->own) return DQ_OK;
    return host->fail(diag, DQ_ESYS - rte_errno,
                      "interface %s: DPDK has no memory for %u buffers of %u bytes; hint: echo "
                      "256 > /proc/sys/vm/nr_hugepages",
                      i->conf.name, n, d->own_room);
}

uint32_t memory_fewest(const dpdk_port *d) {
    uint32_t n = UINT32_MAX;
    for (uint32_t s = 0; s < d->n_parts; s++)
        n = RTE_MIN(n, d->parts[s]->region->conf.num_bufs);
    return n;
}

// A region with a mempool keeps its buffers' mbufs until the session ends.
static int change_region(const dq_iface *i, const dq_region *r, dq_diag *diag) {
    const bound *b = dpdk_of(dqi_port_of(i))->bound;
    for (uint32_t k = 0; k < b->n; k++)
        if (r && b->pools[k].region == r)
            return host->fail(diag, DQ_NOT_SUPPORTED,
                              "interface %s: region %s: DPDK has its buffers in a mempool until the session "
                              "ends; hint: regions that were added can be deleted",
                              i->conf.name, r->conf.name);
    return DQ_OK;
}

const dqi_region_ops memory_regions = {.change = change_region};

// Splits frames at the buf_size of each region.
static int split_queue(const dpdk_port *d, uint16_t k) {
    union rte_eth_rxseg segs[DQ_MAX_SEGS] = {0};
    struct rte_eth_rxconf conf = d->info.default_rxconf;
    for (uint32_t s = 0; s < d->n_parts; s++)
        segs[s].split = (struct rte_eth_rxseg_split){
            .mp = d->parts[s]->mp,
            .length = (uint16_t)d->parts[s]->region->conf.buf_size,
            .offset = s == 0 ? 0 : DQ_HEADROOM, // DPDK adds the headroom of the first
        };
    conf.rx_seg = segs;
    conf.rx_nseg = (uint16_t)d->n_parts;
    conf.offloads |= RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT;
    return rte_eth_rx_queue_setup(d->id, k, d->rx_desc, SOCKET_ID_ANY, &conf, NULL);
}

int memory_rx_queue(const dpdk_port *d, uint16_t k) {
    if (d->n_parts > 1) return split_queue(d, k);
    return rte_eth_rx_queue_setup(d->id, k, d->rx_desc, SOCKET_ID_ANY, NULL,
                                  d->rx_pool ? d->rx_pool->mp : d->own);
}
