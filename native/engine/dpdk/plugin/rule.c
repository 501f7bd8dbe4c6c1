// rule.c: translates a flow rule to rte_flow.
#include "rule.h"

#include <rte_byteorder.h>

#define IPV4  (DQ_MATCH_IPV4_SRC | DQ_MATCH_IPV4_DST | DQ_MATCH_IPV4_LEN)
#define IPV6  (DQ_MATCH_IPV6_SRC | DQ_MATCH_IPV6_DST)
#define PORTS (DQ_MATCH_UDP_SRC | DQ_MATCH_UDP_DST | DQ_MATCH_TCP_SRC | DQ_MATCH_TCP_DST)

static void add(words *w, enum rte_flow_item_type type, const void *spec, const void *last,
                const void *mask) {
    w->items[w->n++] = (struct rte_flow_item){.type = type, .spec = spec, .last = last, .mask = mask};
}

// A port or port range as a rule's three values; last is 0 for a single port.
typedef struct ports {
    rte_be16_t first, last, mask;
} ports;

static ports range(dq_port_range r, bool given) {
    if (!given) return (ports){0, 0, 0};
    return (ports){rte_cpu_to_be_16(r.lo), r.hi != r.lo ? rte_cpu_to_be_16(r.hi) : 0, 0xffff};
}

static void add_link(words *w, headers *h, const dq_match *m, bool with_tag) {
    if (any(m, DQ_MATCH_ETH_SRC)) {
        memcpy(&h->eth.hdr.src_addr, m->eth_src, 6);
        memset(&h->eth_mask.hdr.src_addr, 0xff, 6);
    }
    if (any(m, DQ_MATCH_ETH_DST)) {
        memcpy(&h->eth.hdr.dst_addr, m->eth_dst, 6);
        memset(&h->eth_mask.hdr.dst_addr, 0xff, 6);
    }
    bool tagged = with_tag || any(m, DQ_MATCH_VLAN_ID), typed = any(m, DQ_MATCH_ETHERTYPE);
    if (typed && !tagged) {
        h->eth.hdr.ether_type = rte_cpu_to_be_16(m->ethertype);
        h->eth_mask.hdr.ether_type = 0xffff;
    }
    bool plain = any(m, DQ_MATCH_ETH_SRC | DQ_MATCH_ETH_DST) || (typed && !tagged);
    add(w, RTE_FLOW_ITEM_TYPE_ETH, plain ? &h->eth : NULL, NULL, plain ? &h->eth_mask : NULL);
    if (!tagged) return;
    h->vlan.hdr.vlan_tci = rte_cpu_to_be_16(m->vlan_id);
    h->vlan_mask.hdr.vlan_tci = rte_cpu_to_be_16(any(m, DQ_MATCH_VLAN_ID) ? 0x0fff : 0);
    if (typed) {
        h->vlan.hdr.eth_proto = rte_cpu_to_be_16(m->ethertype);
        h->vlan_mask.hdr.eth_proto = 0xffff;
    }
    add(w, RTE_FLOW_ITEM_TYPE_VLAN, &h->vlan, NULL, &h->vlan_mask);
}

static void prefix(uint8_t mask[16], uint32_t bits) {
    for (uint32_t i = 0; i<16; i++, bits = bits> 8 ? bits - 8 : 0)
        mask[i] = (uint8_t)(bits >= 8 ? 0xff : 0xff00 >> bits);
}

static void add_ipv4(words *w, headers *h, const dq_match *m) {
    h->ip4.hdr.src_addr = rte_cpu_to_be_32(m->ipv4_src);
    h->ip4_mask.hdr.src_addr = any(m, DQ_MATCH_IPV4_SRC) ? rte_cpu_to_be_32(m->ipv4_src_mask) : 0;
    h->ip4.hdr.dst_addr = rte_cpu_to_be_32(m->ipv4_dst);
    h->ip4_mask.hdr.dst_addr = any(m, DQ_MATCH_IPV4_DST) ? rte_cpu_to_be_32(m->ipv4_dst_mask) : 0;
    h->ip4.hdr.total_length = rte_cpu_to_be_16(m->ipv4_len);
    h->ip4_mask.hdr.total_length = any(m, DQ_MATCH_IPV4_LEN) ? 0xffff : 0;
    bool some = any(m, DQ_MATCH_IPV4_SRC | DQ_MATCH_IPV4_DST | DQ_MATCH_IPV4_LEN);
    add(w, RTE_FLOW_ITEM_TYPE_IPV4, some ? &h->ip4 : NULL, NULL, some ? &h->ip4_mask : NULL);
}

static void add_ipv6(words *w, headers *h, const dq_match *m) {
    memcpy(&h->ip6.hdr.src_addr, m->ipv6_src, 16);
    memcpy(&h->ip6.hdr.dst_addr, m->ipv6_dst, 16);
    if (any(m, DQ_MATCH_IPV6_SRC)) prefix((uint8_t *)&h->ip6_mask.hdr.src_addr, m->ipv6_src_prefix);
    if (any(m, DQ_MATCH_IPV6_DST)) prefix((uint8_t *)&h->ip6_mask.hdr.dst_addr, m->ipv6_dst_prefix);
    bool some = any(m, DQ_MATCH_IPV6_SRC | DQ_MATCH_IPV6_DST);
    add(w, RTE_FLOW_ITEM_TYPE_IPV6, some ? &h->ip6 : NULL, NULL, some ? &h->ip6_mask : NULL);
}

static void add_udp(words *w, headers *h, const dq_match *m) {
    ports src = range(m->udp_src, any(m, DQ_MATCH_UDP_SRC)),
          dst = range(m->udp_dst, any(m, DQ_MATCH_UDP_DST));
    h->udp.hdr = (struct rte_udp_hdr){.src_port = src.first, .dst_port = dst.first};
    h->udp_last.hdr = (struct rte_udp_hdr){.src_port = src.last, .dst_port = dst.last};
    h->udp_mask.hdr = (struct rte_udp_hdr){.src_port = src.mask, .dst_port = dst.mask};
    add(w, RTE_FLOW_ITEM_TYPE_UDP, &h->udp, src.last || dst.last ? &h->udp_last : NULL, &h->udp_mask);
}

static void add_tcp(words *w, headers *h, const dq_match *m) {
    ports src = range(m->tcp_src, any(m, DQ_MATCH_TCP_SRC)),
          dst = range(m->tcp_dst, any(m, DQ_MATCH_TCP_DST));
    h->tcp.hdr = (struct rte_tcp_hdr){.src_port = src.first, .dst_port = dst.first};
    h->tcp_last.hdr = (struct rte_tcp_hdr){.src_port = src.last, .dst_port = dst.last};
    h->tcp_mask.hdr = (struct rte_tcp_hdr){.src_port = src.mask, .dst_port = dst.mask};
    add(w, RTE_FLOW_ITEM_TYPE_TCP, &h->tcp, src.last || dst.last ? &h->tcp_last : NULL, &h->tcp_mask);
}

const char *rule_beyond(const dq_rule *r, const dqi_act *a) {
    const dq_match *m = &r->match;
    if (r->n_actions > 1) return "several actions of one flow";
    if (r->n_actions > 0 && a->kind == DQ_ACT_DECAP && a->tunnel == DQ_TUNNEL_GRE) return "GRE tunnels";
    if (any(m, DQ_MATCH_FLEX)) return "flex items";
    if (any(m, DQ_MATCH_ECPRI | DQ_MATCH_ECPRI_TYPE | DQ_MATCH_ECPRI_ID))
        return "eCPRI over either transport";
    if (any(m, DQ_MATCH_IP_PROTO)) return "an IP protocol of either version";
    bool v6 = any(m, DQ_MATCH_IPV6_SRC | DQ_MATCH_IPV6_DST);
    bool v4 = any(m, DQ_MATCH_IPV4_SRC | DQ_MATCH_IPV4_DST | DQ_MATCH_IPV4_LEN);
    if (v4 && v6) return "IPv4 and IPv6 in one rule";
    return NULL;
}

// Returns the device queue of the queue with this id.
static uint16_t device_queue_of(const dq_iface *i, uint16_t id) {
    uint16_t k = 0;
    while (k < i->n_rx && i->rx[k]->conf.id != id)
        k++;
    return k;
}

uint32_t rule_forms(const steered *r, bool all, uint8_t forms[RULE_FORMS]) {
    const dq_match *m = &r->outer;
    const bool pops = any(m, DQ_MATCH_TAGGED);
    bool v6 = all && !any(m, IPV4 | IPV6) && any(m, PORTS) && !any(m, DQ_MATCH_ETHERTYPE);
    bool tagged = pops || (all && !any(m, DQ_MATCH_VLAN_ID));
    uint32_t n = 0;
    for (uint8_t f = 0; f < RULE_FORMS; f++) {
        if ((f & FORM_TAGGED) ? !tagged : pops) continue;
        if (v6 || !(f & FORM_V6)) forms[n++] = f;
    }
    return n;
}

// The masks are the defaults of rte_flow, which drivers support; for NVGRE with the flow id, the header's
// last byte.
static void add_tunnel(words *w, const dqi_act *a) {
    if (a->tunnel == DQ_TUNNEL_VXLAN) {
        w->vxlan.hdr.vx_vni = rte_cpu_to_be_32(a->id << 8);
        w->vxlan_mask = rte_flow_item_vxlan_mask;
        add(w, RTE_FLOW_ITEM_TYPE_VXLAN, &w->vxlan, NULL, &w->vxlan_mask);
        return;
    }
    for (uint32_t k = 0; k < 3; k++)
        w->nvgre.tni[k] = (uint8_t)(a->id >> (16 - 8 * k));
    w->nvgre.flow_id = a->header[a->header_len - 1];
    w->nvgre_mask = rte_flow_item_nvgre_mask;
    w->nvgre_mask.flow_id = 0xff;
    add(w, RTE_FLOW_ITEM_TYPE_NVGRE, &w->nvgre, NULL, &w->nvgre_mask);
}

static void add_headers(words *w, headers *h, const dq_match *m, uint8_t form) {
    add_link(w, h, m, form & FORM_TAGGED);
    if (any(m, IPV6) || form & FORM_V6)
        add_ipv6(w, h, m);
    else if (any(m, IPV4 | PORTS))
        add_ipv4(w, h, m); // a port does not imply an IP version
    if (any(m, DQ_MATCH_UDP_SRC | DQ_MATCH_UDP_DST)) add_udp(w, h, m);
    if (any(m, DQ_MATCH_TCP_SRC | DQ_MATCH_TCP_DST)) add_tcp(w, h, m);
}

// Appends the pattern; for a tunnel the outer headers, the tunnel header and, if the rule matches on them,
// the inner headers.
static void add_pattern(words *w, const steered *r, uint8_t form) {
    const dq_match *m = &r->outer;
    add_headers(w, &w->outer, m, form);
    w->kind = any(m, IPV6) || form & FORM_V6 ? 2 : any(m, IPV4 | PORTS) ? 1 : 0;
    w->kind += w->n > 1 && w->items[1].type == RTE_FLOW_ITEM_TYPE_VLAN ? 3 : 0;
    if (tunnels(r)) add_tunnel(w, &r->act);
    if (tunnels(r) && r->rule.match.set != 0) add_headers(w, &w->inner, &r->rule.match, 0);
    add(w, RTE_FLOW_ITEM_TYPE_END, NULL, NULL, NULL);
}

static enum rte_flow_action_type type_of(const dqi_act *a) {
    return a->kind == DQ_ACT_VLAN_POP     ? RTE_FLOW_ACTION_TYPE_OF_POP_VLAN
           : a->tunnel == DQ_TUNNEL_VXLAN ? RTE_FLOW_ACTION_TYPE_VXLAN_DECAP
                                          : RTE_FLOW_ACTION_TYPE_NVGRE_DECAP;
}

void rule_translate(const dq_iface *i, const steered *s, uint8_t form, bool marks, bool acts, words *w) {
    const dq_rule *r = &s->rule;
    *w = (words){0};
    add_pattern(w, s, form);
    uint32_t n = 0;
    w->mark.id = r->flow_id | (acts ? MARK_DONE : 0);
    if (marks) w->actions[n++] = (struct rte_flow_action){RTE_FLOW_ACTION_TYPE_MARK, &w->mark};
    if (acts) w->actions[n++] = (struct rte_flow_action){type_of(&s->act), NULL};
    for (uint32_t k = 0; k < r->n_queues && k < DQ_RULE_MAX_QUEUES; k++)
        w->queues[k] = device_queue_of(i, r->queues[k]);
    w->queue.index = w->queues[0];
    w->rss = (struct rte_flow_action_rss){.types = RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP | RTE_ETH_RSS_TCP,
                                          .level = tunnels(s) ? 2 : 0, // inner headers
                                          .queue_num = r->n_queues,
                                          .queue = w->queues};
    if (r->rss)
        w->actions[n++] = (struct rte_flow_action){RTE_FLOW_ACTION_TYPE_RSS, &w->rss};
    else
        w->actions[n++] = (struct rte_flow_action){RTE_FLOW_ACTION_TYPE_QUEUE, &w->queue};
    w->actions[n] = (struct rte_flow_action){RTE_FLOW_ACTION_TYPE_END, NULL};
}
