// split.c: a card that cuts frames at given lengths, into buffers of several pools.
#include "nic.h"

#include <stdio.h>

#define FRAMES 1024 // that the driver may hold
#define ROOM   9728 // bytes of one

// The pool that the driver is to receive into.
static struct rte_mempool *driver_pool(uint16_t port, uint16_t index) {
    char name[32];
    snprintf(name, sizeof name, "nic%u_%u", port, index);
    struct rte_mempool *mp = rte_mempool_lookup(name);
    if (!mp) mp = rte_pktmbuf_pool_create(name, FRAMES, 0, 0, ROOM + RTE_PKTMBUF_HEADROOM, SOCKET_ID_ANY);
    if (!mp) nic_die("no memory for frames");
    return mp;
}

struct rte_mempool *nic_split_set_up(nic_queue *q, uint16_t port, uint16_t index,
                                     const struct rte_eth_rxconf *conf) {
    if (conf->rx_nseg > NIC_PARTS) nic_die("more parts than the card can");
    q->n_parts = conf->rx_nseg;
    for (uint16_t k = 0; k < q->n_parts; k++) {
        q->parts[k] = conf->rx_seg[k].split;
        if (k == 0) q->parts[k].offset += RTE_PKTMBUF_HEADROOM;
        if (q->parts[k].length == 0 ||
            rte_pktmbuf_data_room_size(q->parts[k].mp) < q->parts[k].offset + q->parts[k].length)
            nic_die("a part that is longer than its buffers");
    }
    return driver_pool(port, index);
}

struct rte_mempool *nic_whole_set_up(nic_queue *q, uint16_t port, uint16_t index, struct rte_mempool *mp) {
    q->n_parts = 1;
    q->parts[0] = (struct rte_eth_rxseg_split){
        .mp = mp,
        .length = (uint16_t)(rte_pktmbuf_data_room_size(mp) - RTE_PKTMBUF_HEADROOM),
        .offset = RTE_PKTMBUF_HEADROOM,
    };
    return driver_pool(port, index);
}

// The next part of frame m, from byte `at` on.
static struct rte_mbuf *part_of(const struct rte_eth_rxseg_split *part, const struct rte_mbuf *m,
                                uint32_t at) {
    uint32_t left = m->pkt_len - at;
    struct rte_mbuf *p = rte_pktmbuf_alloc(part->mp);
    if (!p) return NULL;
    p->data_off = part->offset;
    p->data_len = (uint16_t)RTE_MIN(left, part->length);
    char *to = nic_reach(rte_pktmbuf_mtod(p, char *), p->data_len);
    const void *bytes = rte_pktmbuf_read(m, at, p->data_len, to);
    if (bytes != to) rte_memcpy(to, bytes, p->data_len);
    return p;
}

struct rte_mbuf *nic_split(const nic_queue *q, struct rte_mbuf *m) {
    struct rte_mbuf *head = NULL, *last = NULL;
    uint32_t at = 0;
    for (uint16_t k = 0; at < m->pkt_len; k++) { // what is too long continues in buffers of the last part's
        struct rte_mbuf *p = part_of(&q->parts[RTE_MIN(k, q->n_parts - 1)], m, at);
        if (!p) break;
        at += p->data_len;
        if (head)
            last->next = p;
        else
            head = p;
        head->nb_segs = k + 1;
        last = p;
    }
    if (head && at < m->pkt_len) {
        rte_pktmbuf_free(head);
        head = NULL;
    }
    if (head) head->pkt_len = at;
    rte_pktmbuf_free(m);
    return head;
}
