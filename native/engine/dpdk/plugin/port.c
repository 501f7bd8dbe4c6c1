// port.c: a device as a port: queues, start and stop.
#include "dpdk.h"
#include "gpu.h"

#include <errno.h>
#include <pthread.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_mbuf_dyn.h>
#include <rte_version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DESCRIPTORS   1024 // per queue, unless the driver has a preference
#define LAST_FRAME_MS 2    // time for a NIC to send its last frames before the close
// Checksum checks of removed outer headers.
#define OUTER_SUMS (RTE_ETH_RX_OFFLOAD_OUTER_IPV4_CKSUM | RTE_ETH_RX_OFFLOAD_OUTER_UDP_CKSUM)

// ---- capabilities -----------------------------------------------------------------------------------------

// Returns the MTU to configure: what the buffers can hold, within the device's limits; 0: the device's own,
// where the kernel manages it.
static uint32_t wanted_mtu(const dqi_port *p, const dpdk_port *d) {
    const dq_iface *i = p->iface;
    if (d->info.if_index != 0 || d->info.max_mtu == 0 || d->info.max_mtu == UINT16_MAX) return 0;
    uint32_t rx = memory_longest(i->rx, i->n_rx), tx = memory_longest(i->tx, i->n_tx),
             most = rx > tx ? rx : tx;
    uint32_t mtu = most > FRAME_EXTRA ? most - FRAME_EXTRA : 0;
    if (mtu > d->info.max_mtu) mtu = d->info.max_mtu;
    return mtu < d->info.min_mtu ? d->info.min_mtu : mtu;
}

// ---- queues -----------------------------------------------------------------------------------------------

static int refuse(const dqi_port *p, const dpdk_port *d, int err, const char *what, dq_diag *diag) {
    char why[256];
    eal_log_read(why, sizeof why);
    return host->fail(diag, DQ_ESYS + err, "interface %s: device %s: %s: %s%s", p->iface->conf.name,
                      d->device, what, strerror(-err), why);
}

static int count_queues(dqi_port *p, dpdk_port *d, dq_diag *diag) {
    const dq_iface *i = p->iface;
    if (i->n_tx > d->info.max_tx_queues)
        return host->fail(
            diag, DQ_INVALID_PARAMETER, "interface %s: %u transmit queues, and device %s has %u%s",
            i->conf.name, i->n_tx, d->device, d->info.max_tx_queues,
            driver_is(d, "net_af_packet") ? "; hint: qpairs=N in its arguments gives it more" : "");
    p->n_queues = i->n_rx < d->info.max_rx_queues ? i->n_rx : d->info.max_rx_queues;
    if (p->n_queues > 1 && (d->info.flow_type_rss_offloads & (RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP)) == 0 &&
        !d->vdev)
        p->n_queues = 1; // it cannot distribute packets
    // Drivers are best tested with a queue in each direction. net_tap and net_af_packet distribute over all
    // their queues, even those without a reader.
    d->n_rxq = p->n_queues > 0 ? (uint16_t)p->n_queues : 1;
    d->n_txq = i->n_tx > 0 ? (uint16_t)i->n_tx : 1;
    if (driver_is(d, "net_tap")) d->n_rxq = d->n_txq = RTE_MAX(d->n_rxq, d->n_txq);
    if (driver_is(d, "net_af_packet")) d->n_rxq = d->info.max_rx_queues;
    if (p->n_queues > 0) p->n_queues = d->n_rxq;
    return DQ_OK;
}

// Returns the number of descriptors: at most a quarter of the buffers.
static uint16_t descriptors(uint16_t wish, uint32_t bufs) {
    uint32_t n = wish ? wish : DESCRIPTORS;
    if (n > bufs / 4) n = bufs / 4;
    return (uint16_t)(n < 32 ? 32 : n);
}

static int configure(dqi_port *p, dpdk_port *d, dq_diag *diag) {
    const dq_iface *i = p->iface;
    if (driver_is(d, "net_pcap")) p->stamps = strstr(d->args, "rx_pcap=") ? DQ_STAMPS_FILE : DQ_STAMPS_KERNEL;
    struct rte_eth_conf conf = {.rxmode.mtu = wanted_mtu(p, d)};
    uint64_t hash = d->info.flow_type_rss_offloads & (RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP | RTE_ETH_RSS_TCP);
    if (p->n_queues > 1 && hash) {
        d->rss = true;
        conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
        conf.rx_adv_conf.rss_conf.rss_hf = hash;
    }
    conf.rxmode.offloads = (d->info.rx_offload_capa & (RTE_ETH_RX_OFFLOAD_SCATTER | OUTER_SUMS)) |
                           (d->n_parts > 1 ? RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT : 0);
    conf.txmode.offloads =
        d->info.tx_offload_capa & (RTE_ETH_TX_OFFLOAD_MULTI_SEGS | (i->n_tx > 0 ? SUMS_OFFLOADS : 0));
    clock_choose(p, d, &conf);
    d->links = conf.txmode.offloads & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
    d->sums = sums_offered(conf.txmode.offloads);
    eal_log_clear();
    int err = rte_eth_dev_configure(d->id, d->n_rxq, d->n_txq, &conf);
    if (err != 0) return refuse(p, d, err, "configuration", diag);
    d->configured = true;
    d->rx_desc = descriptors(d->info.default_rxportconf.ring_size, memory_fewest(d));
    d->tx_desc = descriptors(d->info.default_txportconf.ring_size,
                             i->n_tx ? i->tx[0]->conf.regions[0]->conf.num_bufs : UINT32_MAX);
    err = rte_eth_dev_adjust_nb_rx_tx_desc(d->id, &d->rx_desc, &d->tx_desc);
    return err == 0 ? DQ_OK : refuse(p, d, err, "descriptors", diag);
}

static int set_up_queues(dqi_port *p, dpdk_port *d, dq_diag *diag) {
    int err = 0;
    eal_log_clear();
    for (uint16_t k = 0; err == 0 && k < d->n_rxq; k++)
        err = memory_rx_queue(d, k);
    if (err != 0) return refuse(p, d, err, "receive queue", diag);
    for (uint16_t k = 0; err == 0 && k < d->n_txq; k++)
        err = rte_eth_tx_queue_setup(d->id, k, d->tx_desc, SOCKET_ID_ANY, NULL);
    return err == 0 ? DQ_OK : refuse(p, d, err, "transmit queue", diag);
}

static int make_states(dqi_port *p, dpdk_port *d, dq_diag *diag) {
    dq_iface *i = p->iface;
    d->queues = calloc(d->n_rxq, sizeof *d->queues);
    d->txs = calloc(d->n_txq, sizeof *d->txs);
    if (!d->queues || !d->txs)
        return host->fail(diag, DQ_ESYS - ENOMEM, "interface %s: no memory", i->conf.name);
    for (uint32_t k = 0; k < p->n_queues; k++) {
        d->queues[k].queue = (uint16_t)k;
        d->queues[k].last_frames = d->rx_desc;
        p->queues[k].state = &d->queues[k];
    }
    for (uint32_t k = 0; k < d->n_txq; k++) {
        d->txs[k].queue = (uint16_t)k;
        d->txs[k].copies = d->own;
    }
    for (uint32_t k = 0; k < i->n_tx; k++) {
        i->tx[k]->engine = &d->txs[k];
        i->tx[k]->tx.device_sums = d->sums;
    }
    return DQ_OK;
}

// Device queues are set up before the start, in a number that a driver changes only while the device is
// stopped. So a queue that is added shares one of the open, under its lock.
int port_tx_open(dq_queue *q, dq_diag *diag) {
    dpdk_port *d = dpdk_of(dqi_port_of(q->iface));
    if (!d->own)
        return host->fail(
            diag, DQ_NOT_SUPPORTED,
            "interface %s: queue %s: driver %s was opened without buffers to send from; hint: give "
            "the configuration a transmit queue",
            q->iface->conf.name, q->conf.name, d->info.driver_name);
    q->engine = &d->txs[q->conf.id % d->n_txq];
    q->tx.device_sums = d->sums;
    return DQ_OK;
}

// ---- open, start, stop, close -----------------------------------------------------------------------------

static void report(const dqi_port *p, const dpdk_port *d) {
    const dq_iface *i = p->iface;
    host->note(i->session, "interface %s: device %s, driver %s of %s%s", i->conf.name, d->device,
               d->info.driver_name, rte_version(),
               eal_has_huge_pages() ? "" : "; no huge pages were free: DPDK works on small ones");
    if (p->n_queues > 1)
        host->note(i->session, "interface %s: the device spreads packets over %u receive queues%s",
                   i->conf.name, p->n_queues, d->rss ? " by RSS" : " as its driver does");
    if (i->n_tx > 0)
        host->note(i->session, "interface %s: checksums of transmissions: %s", i->conf.name,
                   d->sums ? "by the device" : "software: the device offers none");
    if (driver_is(d, "net_ring"))
        host->note(i->session,
                   "interface %s: net_ring hands over the sender's buffers: copied where sender and receiver "
                   "have different memory regions",
                   i->conf.name);
}

// DPDK's functions that probe, configure and remove devices are not thread-safe.
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

// net_null returns all requested frames or none, so requests are limited to a quarter of a small region.
static void limit_calls(dpdk_port *d) {
    d->most = RTE_MIN(RTE_MAX(memory_fewest(d) / 4, 1u), (uint32_t)BURST_MAX);
    d->chunk = d->info.if_index == 0 ? CHUNK : BURST_MAX; // each call is a system call
}

static int open_port(dqi_port *p, dq_diag *diag) {
    dpdk_port *d = calloc(1, sizeof *d);
    if (!d) return host->fail(diag, DQ_ESYS - ENOMEM, "interface %s: no memory", p->iface->conf.name);
    p->state = d;
    d->ts_offset = -1;
    d->sees_all = d->asks = -1;
    int err = eal_start(diag);
    if (err == DQ_OK) err = device_open(p, diag);
    if (err == DQ_OK) err = (d->bound = bind_session(p->iface->session, diag)) ? DQ_OK : DQ_ESYS - ENOMEM;
    if (err == DQ_OK) memory_choose(p, d);
    if (err == DQ_OK) err = gpu_lend(p, d, diag);
    if (err == DQ_OK) err = count_queues(p, d, diag);
    if (err == DQ_OK) err = configure(p, d, diag);
    if (err == DQ_OK) err = memory_own(p, d, diag);
    if (err == DQ_OK) err = set_up_queues(p, d, diag);
    if (err == DQ_OK) err = make_states(p, d, diag);
    if (err != DQ_OK) return err;
    p->netdev = d->info.if_index;
    limit_calls(d);
    p->pollable = p->n_queues > 0 && d->n_sockets == p->n_queues;
    uint32_t kernel = kernel_mtu(d);
    uint16_t mtu = 0;
    if (rte_eth_dev_get_mtu(d->id, &mtu) != 0 || (kernel == 0 && wanted_mtu(p, d) == 0)) mtu = 0;
    if (kernel > 0 || mtu > 0)
        atomic_init(&d->max_frame, (kernel > 0 ? kernel : mtu) + FRAME_EXTRA);
    else
        atomic_init(&d->max_frame, UINT32_MAX);
    report(p, d);
    return DQ_OK;
}

int port_open(dqi_port *p, dq_diag *diag) {
    pthread_mutex_lock(&one_at_a_time);
    int err = open_port(p, diag);
    pthread_mutex_unlock(&one_at_a_time);
    return err;
}

static int start_port(dqi_port *p, dq_diag *diag) {
    dpdk_port *d = dpdk_of(p);
    steer_prepare(p);
    eal_log_clear();
    int err = rte_eth_dev_start(d->id);
    if (err != 0) return refuse(p, d, err, "start", diag);
    d->started = true;
    if ((err = clock_begin(p, d)) != 0) return refuse(p, d, err, "its clock stands still", diag);
    if (driver_is(d, "net_pcap")) rte_mbuf_dyn_rx_timestamp_register(&d->ts_offset, &d->ts_flag);
    if (!p->iface->conf.flow_isolation && !kernel_promiscuous(d))
        d->promiscuous = rte_eth_promiscuous_enable(d->id) == 0;
    kernel_start(d);
    atomic_init(&d->up, d->vdev);
    if ((err = steer_start(p)) != 0) return refuse(p, d, err, "start without isolation", diag);
    counters_start(p, d);
    return DQ_OK;
}

int port_start(dqi_port *p, dq_diag *diag) {
    pthread_mutex_lock(&one_at_a_time);
    int err = start_port(p, diag);
    pthread_mutex_unlock(&one_at_a_time);
    return err;
}

// Software applies what the device does not, unless the device is isolated and cannot leave isolation.
int port_steer(dqi_port *p, const dq_rule *gone, uint32_t n_gone, const dq_rule *add, uint32_t n_add,
               dq_diag *diag) {
    pthread_mutex_lock(&one_at_a_time);
    const char *why = steer_change(p, gone, n_gone, add, n_add);
    pthread_mutex_unlock(&one_at_a_time);
    if (!why) return DQ_OK;
    return host->fail(
        diag, DQ_NOT_SUPPORTED,
        "interface %s: device %s gives only what its own rules say, and refuses this one: %s; hint: "
        "flow_isolation: false",
        p->iface->conf.name, dpdk_of(p)->device, why);
}

void port_stop(dqi_port *p) {
    port_refresh(p);
    dpdk_of(p)->stopping = true;
    counters_stop(p, dpdk_of(p));
}

static void free_frames(dpdk_port *d) {
    for (uint32_t k = 0; d->queues && k < d->n_rxq; k++) {
        rx_state *s = &d->queues[k];
        if (s->first < s->n) rte_pktmbuf_free_bulk(s->got + s->first, s->n - s->first);
        if (s->n_lent > 0) rte_pktmbuf_free_bulk(s->lent, s->n_lent);
    }
}

static void close_port(dqi_port *p, dpdk_port *d) {
    free_frames(d);
    steer_end(d);
    if (d->started && !d->vdev) nanosleep(&(struct timespec){.tv_nsec = LAST_FRAME_MS * 1000000}, NULL);
    clock_end(p, d);
    if (d->promiscuous) rte_eth_promiscuous_disable(d->id);
    if (d->started) rte_eth_dev_stop(d->id);
    kernel_close(d);
    gpu_take_back(d);
    device_close(d);
    rte_mempool_free(d->own);
    unbind_session(d->bound);
    for (uint32_t k = 0; k < p->iface->n_tx; k++)
        p->iface->tx[k]->engine = NULL;
    free(d->queues);
    free(d->txs);
    free(d);
    p->state = NULL;
}

void port_close(dqi_port *p) {
    pthread_mutex_lock(&one_at_a_time);
    if (dpdk_of(p)) close_port(p, dpdk_of(p));
    pthread_mutex_unlock(&one_at_a_time);
}

// A device without a group filter receives all groups; a device not yet started is configured at its start.
int port_set_rx_macs(dqi_port *p, const uint8_t (*macs)[6], uint32_t n, dq_diag *diag) {
    const dpdk_port *d = dpdk_of(p);
    if (!d->started || d->promiscuous || d->sees_all >= 0) return DQ_OK;
    int err = rte_eth_dev_set_mc_addr_list(d->id, (struct rte_ether_addr *)macs, n);
    if (err != 0 && n > 0) err = rte_eth_allmulticast_enable(d->id);
    return err == 0 || n == 0 ? DQ_OK : refuse(p, d, err, "receive multicast", diag);
}

uint32_t port_mtu(const dqi_port *p) {
    const dpdk_port *d = dpdk_of(p);
    return d->max_frame == UINT32_MAX ? 0 : d->max_frame - FRAME_EXTRA;
}

int port_mac(const dqi_port *p, uint8_t mac[6]) {
    struct rte_ether_addr a;
    if (rte_eth_macaddr_get(dpdk_of(p)->id, &a) != 0) return DQ_NOT_SUPPORTED;
    memcpy(mac, a.addr_bytes, sizeof a.addr_bytes);
    return DQ_OK;
}
