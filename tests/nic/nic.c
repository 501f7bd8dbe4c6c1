// nic.c: the calls that an emulated network card answers for the device behind it.
#include "nic.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OUTER_SUMS  (RTE_ETH_RX_OFFLOAD_OUTER_IPV4_CKSUM | RTE_ETH_RX_OFFLOAD_OUTER_UDP_CKSUM)
#define RX_OFFLOADS (RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT | RTE_ETH_RX_OFFLOAD_TIMESTAMP | OUTER_SUMS)
#define TX_OFFLOADS RTE_ETH_TX_OFFLOAD_SEND_ON_TIMESTAMP

static nic_queue rx[NIC_PORTS][NIC_QUEUES], tx[NIC_PORTS][NIC_QUEUES];
static nic_asked asked[NIC_PORTS];
static _Atomic uint64_t lost[NIC_PORTS]; // frames that had no buffer

void nic_die(const char *what) {
    fprintf(stderr, "emulated network card: %s\n", what);
    abort();
}

void *nic_next(const char *name) {
    void *f = dlsym(RTLD_NEXT, name);
    if (!f) nic_die(name);
    return f;
}

bool nic_has(const char *feature) {
    const char *list = getenv("DAQIRI_NIC"), *at = list ? strstr(list, feature) : NULL;
    size_t len = strlen(feature);
    return at && (at == list || at[-1] == ',') && (at[len] == 0 || at[len] == ',');
}

// ---- what it offers ---------------------------------------------------------------------------------------

int rte_eth_dev_info_get(uint16_t port, struct rte_eth_dev_info *info) {
    int err = NIC_NEXT(rte_eth_dev_info_get)(port, info);
    if (err != 0) return err;
    if (nic_has("split")) {
        info->rx_offload_capa |= RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT;
        info->rx_seg_capa =
            (struct rte_eth_rxseg_capa){.multi_pools = 1, .offset_allowed = 1, .max_nseg = NIC_PARTS};
    }
    if (nic_has("stamps")) info->rx_offload_capa |= RTE_ETH_RX_OFFLOAD_TIMESTAMP;
    if (nic_has("transforms")) info->rx_offload_capa |= OUTER_SUMS;
    if (nic_has("waits")) info->tx_offload_capa |= RTE_ETH_TX_OFFLOAD_SEND_ON_TIMESTAMP;
    return 0;
}

int rte_eth_dev_configure(uint16_t port, uint16_t n_rx, uint16_t n_tx, const struct rte_eth_conf *conf) {
    if (port >= NIC_PORTS || n_rx > NIC_QUEUES || n_tx > NIC_QUEUES) nic_die("too many ports or queues");
    struct rte_eth_conf c = *conf;
    asked[port] = (nic_asked){
        .stamps = c.rxmode.offloads & RTE_ETH_RX_OFFLOAD_TIMESTAMP,
        .sums = (c.rxmode.offloads & OUTER_SUMS) == OUTER_SUMS,
        .waits = c.txmode.offloads & RTE_ETH_TX_OFFLOAD_SEND_ON_TIMESTAMP,
    };
    c.rxmode.offloads &= ~RX_OFFLOADS;
    c.txmode.offloads &= ~TX_OFFLOADS;
    memset(rx[port], 0, sizeof rx[port]);
    memset(tx[port], 0, sizeof tx[port]);
    return NIC_NEXT(rte_eth_dev_configure)(port, n_rx, n_tx, &c);
}

int rte_eth_rx_queue_setup(uint16_t port, uint16_t index, uint16_t n, unsigned socket,
                           const struct rte_eth_rxconf *conf, struct rte_mempool *mp) {
    struct rte_eth_rxconf c;
    if (conf && conf->rx_nseg > 0) {
        if (mp || !(conf->offloads & RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT)) return -EINVAL;
        mp = nic_split_set_up(&rx[port][index], port, index, conf);
        c = *conf;
        c.rx_nseg = 0;
        c.rx_seg = NULL;
        c.offloads &= ~RX_OFFLOADS;
        conf = &c;
    }
    if (mp && rte_pktmbuf_priv_flags(mp) & RTE_PKTMBUF_POOL_F_PINNED_EXT_BUF)
        mp = nic_whole_set_up(&rx[port][index], port, index, mp);
    return NIC_NEXT(rte_eth_rx_queue_setup)(port, index, n, socket, conf, mp);
}

int rte_eth_stats_get(uint16_t port, struct rte_eth_stats *stats) {
    int err = NIC_NEXT(rte_eth_stats_get)(port, stats);
    if (err == 0) stats->imissed += atomic_load(&lost[port]);
    return err;
}

// What the card counts beside what the driver does.
static const char *const counters[] = {"rx_out_of_buffer", "rx_phy_discards", "rx_phy_packets"};
#define COUNTERS (int)(sizeof counters / sizeof *counters)

int rte_eth_xstats_get_names(uint16_t port, struct rte_eth_xstat_name *names, unsigned size) {
    int n = NIC_NEXT(rte_eth_xstats_get_names)(port, names, size);
    if (!nic_has("counters") || n < 0) return n;
    for (int k = 0; k < COUNTERS && n + COUNTERS <= (int)size; k++)
        snprintf(names[n + k].name, sizeof names->name, "%s", counters[k]);
    return n + COUNTERS;
}

int rte_eth_xstats_get(uint16_t port, struct rte_eth_xstat *values, unsigned size) {
    int n = NIC_NEXT(rte_eth_xstats_get)(port, values, size);
    if (!nic_has("counters") || n < 0) return n;
    const uint64_t now[] = {atomic_load(&lost[port]), 0, 7};
    for (int k = 0; k < COUNTERS && n + COUNTERS <= (int)size; k++)
        values[n + k] = (struct rte_eth_xstat){.id = (uint64_t)(n + k), .value = now[k]};
    return n + COUNTERS;
}

// ---- packets ----------------------------------------------------------------------------------------------

static nic_queue *find(nic_queue (*queues)[NIC_QUEUES], const void *data) {
    for (uint16_t p = 0; p < NIC_PORTS; p++)
        for (uint16_t k = 0; k < NIC_QUEUES; k++)
            if (queues[p][k].data == data) return &queues[p][k];
    nic_die("a queue that was not started");
}

static uint16_t receive(void *data, struct rte_mbuf **frames, uint16_t n) {
    nic_queue *q = find(rx, data);
    uint16_t came = q->driver(data, frames, n), kept = 0;
    for (uint16_t k = 0; k < came; k++) {
        struct rte_mbuf *m = q->n_parts > 0 ? nic_split(q, frames[k]) : frames[k];
        if (m)
            frames[kept++] = m;
        else
            atomic_fetch_add(&lost[q->port], 1);
    }
    if (asked[q->port].stamps) nic_stamp(frames, kept);
    uint16_t n_wanted = 0;
    for (uint16_t k = 0; nic_has("flows") && k < kept; k++) {
        if (nic_steer(q->port, frames[k], asked[q->port].sums))
            frames[n_wanted++] = frames[k];
        else
            rte_pktmbuf_free(frames[k]);
    }
    if (nic_has("flows")) kept = n_wanted;
    return kept;
}

static uint16_t transmit(void *data, struct rte_mbuf **frames, uint16_t n) {
    return nic_hold(find(tx, data), frames, n);
}

int rte_eth_dev_start(uint16_t port) {
    int err = NIC_NEXT(rte_eth_dev_start)(port);
    struct rte_eth_dev_info info;
    if (err != 0) return err;
    NIC_NEXT(rte_eth_dev_info_get)(port, &info);
    struct rte_eth_fp_ops *ops = &rte_eth_fp_ops[port];
    for (uint16_t k = 0; k < info.nb_rx_queues; k++) {
        rx[port][k].data = ops->rxq.data[k];
        rx[port][k].driver = ops->rx_pkt_burst;
        rx[port][k].port = port;
    }
    ops->rx_pkt_burst = receive;
    for (uint16_t k = 0; asked[port].waits && k < info.nb_tx_queues; k++) {
        tx[port][k].data = ops->txq.data[k];
        tx[port][k].driver = ops->tx_pkt_burst;
        tx[port][k].port = port;
    }
    if (asked[port].waits) ops->tx_pkt_burst = transmit;
    return 0;
}

int rte_eth_dev_stop(uint16_t port) {
    if (asked[port].waits) nic_hold_end(port);
    return NIC_NEXT(rte_eth_dev_stop)(port);
}
