// sums.c: checksum offload on transmit.
#include "dpdk.h"

uint8_t sums_offered(uint64_t offloads) {
    uint8_t has = 0;
    if (offloads & RTE_ETH_TX_OFFLOAD_UDP_CKSUM) has |= DQ_HAS_UDP;
    if (offloads & RTE_ETH_TX_OFFLOAD_TCP_CKSUM) has |= DQ_HAS_TCP;
    if (has) has |= DQ_HAS_IPV6;
    if (has && offloads & RTE_ETH_TX_OFFLOAD_IPV4_CKSUM) has |= DQ_HAS_IPV4;
    return has;
}

uint32_t sums_ask(const dpdk_port *d, const tx_state *t, struct rte_mbuf **frames, uint32_t n, dqi_sums s) {
    const uint64_t all =
        RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IPV6 | RTE_MBUF_F_TX_IP_CKSUM | RTE_MBUF_F_TX_L4_MASK;
    uint64_t flags = 0;
    if (s.has & DQ_HAS_IPV4) flags = RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM;
    if (s.has & DQ_HAS_IPV6) flags = RTE_MBUF_F_TX_IPV6;
    if (s.has & DQ_HAS_UDP) flags |= RTE_MBUF_F_TX_UDP_CKSUM;
    if (s.has & DQ_HAS_TCP) flags |= RTE_MBUF_F_TX_TCP_CKSUM;
    for (uint32_t k = 0; k < n; k++) {
        frames[k]->ol_flags = (frames[k]->ol_flags & ~all) | flags;
        if (flags) frames[k]->tx_offload = rte_mbuf_tx_offload(s.l2_len, s.l3_len, 0, 0, 0, 0, 0);
    }
    return flags ? rte_eth_tx_prepare(d->id, t->queue, frames, (uint16_t)n) : n;
}
