// rule.c: a flow rule of ours in the words of rte_flow.
#include "rule.h"

#include <rte_byteorder.h>

#define IPV4  (DQ_MATCH_IPV4_SRC | DQ_MATCH_IPV4_DST | DQ_MATCH_IPV4_LEN)
#define IPV6  (DQ_MATCH_IPV6_SRC | DQ_MATCH_IPV6_DST)
#define PORTS (DQ_MATCH_UDP_SRC | DQ_MATCH_UDP_DST | DQ_MATCH_TCP_SRC | DQ_MATCH_TCP_DST)

static void add(words *w, enum rte_flow_item_type type, const void *spec, const void *last,
                const void *mask) {
    w->items[w->n++] = (struct rte_flow_item){.type = type, .spec = spec, .last = last, .mask = mask};
}

// A port, or a range of them, in a rule's three values; last is 0 for one port.
typedef struct ports {
    rte_be16_t first, last, mask;
} ports;

static ports range(dq_port_range r, bool given) {
    if (!given) return (ports){0, 0, 0};
    return (ports){rte_cpu_to_be_16(r.lo), r.hi != r.lo ? rte_cpu_to_be_16(r.hi) : 0, 0xffff};
}

static void add_link(words *w, const dq_match *m, bool with_tag) {
    if (any(m, DQ_MATCH_ETH_SRC)) {
        memcpy(&w->eth.hdr.src_addr, m->eth_src, 6);
        memset(&w->eth_mask.hdr.src_addr, 0xff, 6);
    }
    if (any(m, DQ_MATCH_ETH_DST)) {
        memcpy(&w->eth.hdr.dst_addr, m->eth_dst, 6);
        memset(&w->eth_mask.hdr.dst_addr, 0xff, 6);
    }
    bool tagged = with_tag || any(m, DQ_MATCH_VLAN_ID), typed = any(m, DQ_MATCH_ETHERTYPE);
    if (typed && !tagged) {
        w->eth.hdr.ether_type = rte_cpu_to_be_16(m->ethertype);
        w->eth_mask.hdr.ether_type = 0xffff;
    }
    bool plain = any(m, DQ_MATCH_ETH_SRC | DQ_MATCH_ETH_DST) || (typed && !tagged);
    add(w, RTE_FLOW_ITEM_TYPE_ETH, plain ? &w->eth : NULL, NULL, plain ? &w->eth_mask : NULL);
    if (!tagged) return;
    w->vlan.hdr.vlan_tci = rte_cpu_to_be_16(m->vlan_id);
    w->vlan_mask.hdr.vlan_tci = rte_cpu_to_be_16(any(m, DQ_MATCH_VLAN_ID) ? 0x0fff : 0);
    if (typed) {
        w->vlan.hdr.eth_proto = rte_cpu_to_be_16(m->ethertype);
        w->vlan_mask.hdr.eth_proto = 0xffff;
    }
    add(w, RTE_FLOW_ITEM_TYPE_VLAN, &w->vlan, NULL, &w->vlan_mask);
}

static void prefix(uint8_t mask[16], uint32_t bits) {
    for (uint32_t i = 0; i<16; i++, bits = bits> 8 ? bits - 8 : 0)
        mask[i] = (uint8_t)(bits >= 8 ? 0xff : 0xff00 >> bits);
}

static void add_ipv4(words *w, const dq_match *m) {
    w->ip4.hdr.src_addr = rte_cpu_to_be_32(m->ipv4_src);
    w->ip4_mask.hdr.src_addr = any(m, DQ_MATCH_IPV4_SRC) ? rte_cpu_to_be_32(m->ipv4_src_mask) : 0;
    w->ip4.hdr.dst_addr = rte_cpu_to_be_32(m->ipv4_dst);
    w->ip4_mask.hdr.dst_addr = any(m, DQ_MATCH_IPV4_DST) ? rte_cpu_to_be_32(m->ipv4_dst_mask) : 0;
    w->ip4.hdr.total_length = rte_cpu_to_be_16(m->ipv4_len);
    w->ip4_mask.hdr.total_length = any(m, DQ_MATCH_IPV4_LEN) ? 0xffff : 0;
    bool some = any(m, DQ_MATCH_IPV4_SRC | DQ_MATCH_IPV4_DST | DQ_MATCH_IPV4_LEN);
    add(w, RTE_FLOW_ITEM_TYPE_IPV4, some ? &w->ip4 : NULL, NULL, some ? &w->ip4_mask : NULL);
}

static void add_ipv6(words *w, const dq_match *m) {
    memcpy(&w->ip6.hdr.src_addr, m->ipv6_src, 16);
    memcpy(&w->ip6.hdr.dst_addr, m->ipv6_dst, 16);
    if (any(m, DQ_MATCH_IPV6_SRC)) prefix((uint8_t *)&w->ip6_mask.hdr.src_addr, m->ipv6_src_prefix);
    if (any(m, DQ_MATCH_IPV6_DST)) prefix((uint8_t *)&w->ip6_mask.hdr.dst_addr, m->ipv6_dst_prefix);
    bool some = any(m, DQ_MATCH_IPV6_SRC | DQ_MATCH_IPV6_DST);
    add(w, RTE_FLOW_ITEM_TYPE_IPV6, some ? &w->ip6 : NULL, NULL, some ? &w->ip6_mask : NULL);
}

static void add_udp(words *w, const dq_match *m) {
    ports src = range(m->udp_src, any(m, DQ_MATCH_UDP_SRC)),
          dst = range(m->udp_dst, any(m, DQ_MATCH_UDP_DST));
    w->udp.hdr = (struct rte_udp_hdr){.src_port = src.first, .dst_port = dst.first};
    w->udp_last.hdr = (struct rte_udp_hdr){.src_port = src.last, .dst_port = dst.last};
    w->udp_mask.hdr = (struct rte_udp_hdr){.src_port = src.mask, .dst_port = dst.mask};
    add(w, RTE_FLOW_ITEM_TYPE_UDP, &w->udp, src.last || dst.last ? &w->udp_last : NULL, &w->udp_mask);
}

static void add_tcp(words *w, const dq_match *m) {
    ports src = range(m->tcp_src, any(m, DQ_MATCH_TCP_SRC)),
          dst = range(m->tcp_dst, any(m, DQ_MATCH_TCP_DST));
    w->tcp.hdr = (struct rte_tcp_hdr){.src_port = src.first, .dst_port = dst.first};
    w->tcp_last.hdr = (struct rte_tcp_hdr){.src_port = src.last, .dst_port = dst.last};
    w->tcp_mask.hdr = (struct rte_tcp_hdr){.src_port = src.mask, .dst_port = dst.mask};
    add(w, RTE_FLOW_ITEM_TYPE_TCP, &w->tcp, src.last || dst.last ? &w->tcp_last : NULL, &w->tcp_mask);
}

const char *rule_beyond(const dq_match *m) {
    if (any(m, DQ_MATCH_FLEX)) return "flex items";
    if (any(m, DQ_MATCH_ECPRI | DQ_MATCH_ECPRI_TYPE | DQ_MATCH_ECPRI_ID))
        return "eCPRI over either transport";
    if (any(m, DQ_MATCH_IP_PROTO)) return "an IP protocol of either version";
    bool v6 = any(m, DQ_MATCH_IPV6_SRC | DQ_MATCH_IPV6_DST);
    bool v4 = any(m, DQ_MATCH_IPV4_SRC | DQ_MATCH_IPV4_DST | DQ_MATCH_IPV4_LEN);
    if (v4 && v6) return "IPv4 and IPv6 in one rule";
    return NULL;
}

// The lane of the queue with this id.
static uint16_t lane_of(const dq_iface *i, uint16_t id) {
    uint16_t k = 0;
    while (k < i->n_rx && i->rx[k]->conf.id != id)
        k++;
    return k;
}

uint32_t rule_forms(const dq_match *m, bool all, uint8_t forms[RULE_FORMS]) {
    bool v6 = all && !any(m, IPV4 | IPV6) && any(m, PORTS) && !any(m, DQ_MATCH_ETHERTYPE);
    bool tagged = all && !any(m, DQ_MATCH_VLAN_ID);
    uint32_t n = 0;
    for (uint8_t f = 0; f < RULE_FORMS; f++)
        if ((v6 || !(f & FORM_V6)) && (tagged || !(f & FORM_TAGGED))) forms[n++] = f;
    return n;
}

bool rule_can_act(const dq_match *m, const dqi_act *a) {
    if (a->kind == DQ_ACT_VLAN_POP) return any(m, DQ_MATCH_VLAN_ID);
    if (a->kind != DQ_ACT_DECAP || any(m, a->ipv6 ? IPV4 : IPV6)) return false;
    if (a->tunnel == DQ_TUNNEL_NVGRE) return !any(m, PORTS);
    if (a->tunnel != DQ_TUNNEL_VXLAN || any(m, DQ_MATCH_TCP_SRC | DQ_MATCH_TCP_DST)) return false;
    return !any(m, DQ_MATCH_UDP_DST) || (m->udp_dst.lo <= a->udp_dst && a->udp_dst <= m->udp_dst.hi);
}

// The masks are rte_flow's own: drivers know them.
static void add_tunnel(words *w, const dqi_act *a) {
    if (a->tunnel == DQ_TUNNEL_VXLAN) {
        w->vxlan.hdr.vx_vni = rte_cpu_to_be_32(a->id << 8);
        w->vxlan_mask = rte_flow_item_vxlan_mask;
        add(w, RTE_FLOW_ITEM_TYPE_VXLAN, &w->vxlan, NULL, &w->vxlan_mask);
        return;
    }
    for (uint32_t k = 0; k < 3; k++)
        w->nvgre.tni[k] = (uint8_t)(a->id >> (16 - 8 * k));
    w->nvgre_mask = rte_flow_item_nvgre_mask;
    add(w, RTE_FLOW_ITEM_TYPE_NVGRE, &w->nvgre, NULL, &w->nvgre_mask);
}

static void add_pattern(words *w, dq_match m, uint8_t form, const dqi_act *act) {
    const bool decap = act && act->kind == DQ_ACT_DECAP;
    if (decap && act->tunnel == DQ_TUNNEL_VXLAN) {
        m.set |= DQ_MATCH_UDP_DST;
        m.udp_dst = (dq_port_range){act->udp_dst, act->udp_dst};
    }
    add_link(w, &m, form & FORM_TAGGED);
    w->kind = 3 * (w->n - 1);
    if (any(&m, IPV6) || form & FORM_V6 || (decap && act->ipv6)) {
        w->kind += 2;
        add_ipv6(w, &m);
    } else if (any(&m, IPV4 | PORTS) || decap) {
        w->kind += 1;
        add_ipv4(w, &m); // a port says nothing of the version
    }
    if (any(&m, DQ_MATCH_UDP_SRC | DQ_MATCH_UDP_DST)) add_udp(w, &m);
    if (any(&m, DQ_MATCH_TCP_SRC | DQ_MATCH_TCP_DST)) add_tcp(w, &m);
    if (decap) add_tunnel(w, act);
    add(w, RTE_FLOW_ITEM_TYPE_END, NULL, NULL, NULL);
}

static enum rte_flow_action_type type_of(const dqi_act *a) {
    return a->kind == DQ_ACT_VLAN_POP     ? RTE_FLOW_ACTION_TYPE_OF_POP_VLAN
           : a->tunnel == DQ_TUNNEL_VXLAN ? RTE_FLOW_ACTION_TYPE_VXLAN_DECAP
                                          : RTE_FLOW_ACTION_TYPE_NVGRE_DECAP;
}

void rule_translate(const dq_iface *i, const dq_rule *r, uint8_t form, bool marks, const dqi_act *act,
                    words *w) {
    *w = (words){0};
    add_pattern(w, r->match, form, act);
    uint32_t n = 0;
    w->mark.id = r->flow_id | (act ? MARK_DONE : 0);
    if (marks) w->actions[n++] = (struct rte_flow_action){RTE_FLOW_ACTION_TYPE_MARK, &w->mark};
    if (act) w->actions[n++] = (struct rte_flow_action){type_of(act), NULL};
    for (uint32_t k = 0; k < r->n_queues && k < DQ_RULE_MAX_QUEUES; k++)
        w->queues[k] = lane_of(i, r->queues[k]);
    w->queue.index = w->queues[0];
    w->rss = (struct rte_flow_action_rss){.types = RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP | RTE_ETH_RSS_TCP,
                                          .queue_num = r->n_queues,
                                          .queue = w->queues};
    if (r->rss)
        w->actions[n++] = (struct rte_flow_action){RTE_FLOW_ACTION_TYPE_RSS, &w->rss};
    else
        w->actions[n++] = (struct rte_flow_action){RTE_FLOW_ACTION_TYPE_QUEUE, &w->queue};
    w->actions[n] = (struct rte_flow_action){RTE_FLOW_ACTION_TYPE_END, NULL};
}
