// steer.c: an interface's flow rules as rte_flow rules of the device, where it has queues for them and takes
// them all.
//
// They only help: the device puts a packet into its queue's lane and marks it with its flow id. A packet that
// comes without a mark (one with a tag that the device's rule doesn't see, one that was on its way while
// rules changed, any on a device that can't mark) is classified by the software, which has all rules always.
// So a rule that the device refuses takes the whole interface back to software, and nothing is lost.
#include "dpdk.h"

#include <rte_byteorder.h>
#include <rte_flow.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST     4096     // rules in a device
#define MARK_MAX 0xffffef // a mark's largest value, of those that devices have

// ---- a rule in DPDK's words -------------------------------------------------------------------------------

// A pattern and where its parts lie.
typedef struct words {
    uint32_t n;
    struct rte_flow_item items[6];
    struct rte_flow_item_eth eth, eth_mask;
    struct rte_flow_item_vlan vlan, vlan_mask;
    struct rte_flow_item_ipv4 ip4, ip4_mask;
    struct rte_flow_item_ipv6 ip6, ip6_mask;
    struct rte_flow_item_udp udp, udp_last, udp_mask;
    struct rte_flow_item_tcp tcp, tcp_last, tcp_mask;
    struct rte_flow_action actions[3];
    struct rte_flow_action_mark mark;
    struct rte_flow_action_queue queue;
    struct rte_flow_action_rss rss;
    uint16_t queues[DQ_RULE_MAX_QUEUES];
} words;

static void add(words *w, enum rte_flow_item_type type, const void *spec, const void *last,
                const void *mask) {
    w->items[w->n++] = (struct rte_flow_item){.type = type, .spec = spec, .last = last, .mask = mask};
}

static bool any(const dq_match *m, uint32_t bits) { return (m->set & bits) != 0; }

// A port, or a range of them, in a rule's three values; last is 0 for one port.
typedef struct ports {
    rte_be16_t first, last, mask;
} ports;

static ports range(dq_port_range r, bool given) {
    if (!given) return (ports){0, 0, 0};
    return (ports){rte_cpu_to_be_16(r.lo), r.hi != r.lo ? rte_cpu_to_be_16(r.hi) : 0, 0xffff};
}

static void add_link(words *w, const dq_match *m) {
    if (any(m, DQ_MATCH_ETH_SRC)) {
        memcpy(&w->eth.hdr.src_addr, m->eth_src, 6);
        memset(&w->eth_mask.hdr.src_addr, 0xff, 6);
    }
    if (any(m, DQ_MATCH_ETH_DST)) {
        memcpy(&w->eth.hdr.dst_addr, m->eth_dst, 6);
        memset(&w->eth_mask.hdr.dst_addr, 0xff, 6);
    }
    bool tagged = any(m, DQ_MATCH_VLAN_ID), typed = any(m, DQ_MATCH_ETHERTYPE);
    if (typed && !tagged) {
        w->eth.hdr.ether_type = rte_cpu_to_be_16(m->ethertype);
        w->eth_mask.hdr.ether_type = 0xffff;
    }
    bool plain = any(m, DQ_MATCH_ETH_SRC | DQ_MATCH_ETH_DST) || (typed && !tagged);
    add(w, RTE_FLOW_ITEM_TYPE_ETH, plain ? &w->eth : NULL, NULL, plain ? &w->eth_mask : NULL);
    if (!tagged) return;
    w->vlan.hdr.vlan_tci = rte_cpu_to_be_16(m->vlan_id);
    w->vlan_mask.hdr.vlan_tci = rte_cpu_to_be_16(0x0fff);
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
    add(w, RTE_FLOW_ITEM_TYPE_IPV6, &w->ip6, NULL, &w->ip6_mask);
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

// What a device's rule can't say, or says otherwise: text, NULL: nothing.
static const char *beyond(const dq_match *m) {
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

static void translate(const dq_iface *i, const dq_rule *r, bool marks, words *w) {
    const dq_match *m = &r->match;
    *w = (words){0};
    add_link(w, m);
    if (any(m, DQ_MATCH_IPV6_SRC | DQ_MATCH_IPV6_DST))
        add_ipv6(w, m);
    else if (any(m, DQ_MATCH_IPV4_SRC | DQ_MATCH_IPV4_DST | DQ_MATCH_IPV4_LEN | DQ_MATCH_UDP_SRC |
                        DQ_MATCH_UDP_DST | DQ_MATCH_TCP_SRC | DQ_MATCH_TCP_DST))
        add_ipv4(w, m); // a port says nothing of the version: IPv6 comes without a mark
    if (any(m, DQ_MATCH_UDP_SRC | DQ_MATCH_UDP_DST)) add_udp(w, m);
    if (any(m, DQ_MATCH_TCP_SRC | DQ_MATCH_TCP_DST)) add_tcp(w, m);
    add(w, RTE_FLOW_ITEM_TYPE_END, NULL, NULL, NULL);
    uint32_t n = 0;
    w->mark.id = r->flow_id;
    if (marks) w->actions[n++] = (struct rte_flow_action){RTE_FLOW_ACTION_TYPE_MARK, &w->mark};
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

// ---- which rules a device may have ------------------------------------------------------------------------

static bool ranges_meet(dq_port_range a, dq_port_range b) { return a.lo <= b.hi && b.lo <= a.hi; }

// No packet matches both. Rules that may meet are told apart by their order, which devices know little of.
static bool apart(const dq_match *a, const dq_match *b) {
    uint32_t both = a->set & b->set;
    const uint32_t udp = DQ_MATCH_UDP_SRC | DQ_MATCH_UDP_DST, tcp = DQ_MATCH_TCP_SRC | DQ_MATCH_TCP_DST;
    if ((both & DQ_MATCH_UDP_DST) && !ranges_meet(a->udp_dst, b->udp_dst)) return true;
    if ((both & DQ_MATCH_UDP_SRC) && !ranges_meet(a->udp_src, b->udp_src)) return true;
    if ((both & DQ_MATCH_TCP_DST) && !ranges_meet(a->tcp_dst, b->tcp_dst)) return true;
    if ((both & DQ_MATCH_TCP_SRC) && !ranges_meet(a->tcp_src, b->tcp_src)) return true;
    if ((any(a, udp) && any(b, tcp)) || (any(a, tcp) && any(b, udp))) return true;
    if ((both & DQ_MATCH_IPV4_SRC) && ((a->ipv4_src ^ b->ipv4_src) & a->ipv4_src_mask & b->ipv4_src_mask))
        return true;
    if ((both & DQ_MATCH_IPV4_DST) && ((a->ipv4_dst ^ b->ipv4_dst) & a->ipv4_dst_mask & b->ipv4_dst_mask))
        return true;
    if ((both & DQ_MATCH_VLAN_ID) && a->vlan_id != b->vlan_id) return true;
    if ((both & DQ_MATCH_ETHERTYPE) && a->ethertype != b->ethertype) return true;
    if ((both & DQ_MATCH_ETH_SRC) && memcmp(a->eth_src, b->eth_src, 6) != 0) return true;
    return (both & DQ_MATCH_ETH_DST) && memcmp(a->eth_dst, b->eth_dst, 6) != 0;
}

// Why the device is not even asked for the rules from `first` on; NULL: it is.
static const char *not_for_device(const dqi_port *p, const dpdk_port *d, uint32_t first) {
    if (p->n_lanes != p->iface->n_rx) return "the device has fewer queues";
    if (d->n_steered > MOST) return "there are too many";
    for (uint32_t k = first; k < d->n_steered; k++) {
        const dq_match *m = &d->steered[k].rule.match;
        const char *why = beyond(m);
        if (why) return why;
        for (uint32_t j = 0; j < k; j++)
            if (!apart(&d->steered[j].rule.match, m)) return "two of them may match one packet";
    }
    return NULL;
}

// ---- in the device ----------------------------------------------------------------------------------------

static void remove_all(dpdk_port *d) {
    struct rte_flow_error e;
    for (uint32_t k = 0; k < d->n_steered; k++)
        if (d->steered[k].flow) rte_flow_destroy(d->id, d->steered[k].flow, &e);
    free(d->steered);
    d->steered = NULL;
    d->n_steered = 0;
}

// Software has all of it from here on, until there are no rules.
static void give_up(dqi_port *p, dpdk_port *d, const char *why) {
    p->marks = false;
    remove_all(d);
    d->steer_off = true;
    host->note(p->iface->session, "interface %s: flows: software: %s", p->iface->conf.name, why);
}

// Puts the rule into the device: NULL, *why says why not.
static struct rte_flow *create(const dqi_port *p, const dpdk_port *d, const dq_rule *r, bool marks,
                               const char **why) {
    words w;
    struct rte_flow_error e = {0};
    const struct rte_flow_attr attr = {.ingress = 1};
    struct rte_flow *f = NULL;
    translate(p->iface, r, marks, &w);
    if (rte_flow_validate(d->id, &attr, w.items, w.actions, &e) == 0)
        f = rte_flow_create(d->id, &attr, w.items, w.actions, &e);
    if (!f) *why = e.message ? e.message : "the device refuses a rule";
    return f;
}

// Whether the device marks packets shows with the first rule.
static struct rte_flow *create_first(const dqi_port *p, dpdk_port *d, const dq_rule *r, const char **why) {
    d->marks = r->flow_id <= MARK_MAX;
    struct rte_flow *f = d->marks ? create(p, d, r, true, why) : NULL;
    if (f) return f;
    d->marks = false;
    *why = "the device can't mark packets, and there is one queue";
    return p->n_lanes > 1 ? create(p, d, r, false, why) : NULL;
}

static bool is_gone(uint64_t order, const dq_rule *gone, uint32_t n) {
    for (uint32_t k = 0; k < n; k++)
        if (gone[k].order == order) return true;
    return false;
}

static void take_out(dpdk_port *d, const dq_rule *gone, uint32_t n) {
    uint32_t kept = 0;
    struct rte_flow_error e;
    for (uint32_t k = 0; k < d->n_steered; k++) {
        if (!is_gone(d->steered[k].rule.order, gone, n))
            d->steered[kept++] = d->steered[k];
        else if (d->steered[k].flow)
            rte_flow_destroy(d->id, d->steered[k].flow, &e);
    }
    d->n_steered = kept;
}

// Puts the rules from `first` on into the device: NULL, or why not.
static const char *put_in(dqi_port *p, dpdk_port *d, uint32_t first) {
    const char *why = NULL;
    for (uint32_t k = first; k < d->n_steered; k++) {
        const dq_rule *r = &d->steered[k].rule;
        d->steered[k].flow = k == 0 ? create_first(p, d, r, &why) : create(p, d, r, d->marks, &why);
        if (!d->steered[k].flow) return why;
    }
    p->marks = d->marks;
    if (!d->steer_said)
        host->note(p->iface->session, "interface %s: flows: the device puts packets into their queues%s",
                   p->iface->conf.name, d->marks ? " and marks them" : ", software finds their ids");
    d->steer_said = true;
    return NULL;
}

static const char *take_in(dqi_port *p, dpdk_port *d, const dq_rule *add, uint32_t n) {
    uint32_t first = d->n_steered;
    steered *more = realloc(d->steered, ((size_t)first + n + 1) * sizeof *more);
    if (!more) return "no memory";
    d->steered = more;
    for (uint32_t k = 0; k < n; k++)
        d->steered[d->n_steered++] = (steered){.rule = add[k]};
    const char *why = not_for_device(p, d, first);
    return why || !d->started ? why : put_in(p, d, first);
}

void steer_change(dqi_port *p, const dq_rule *gone, uint32_t n_gone, const dq_rule *add, uint32_t n_add) {
    dpdk_port *d = dpdk_of(p);
    d->n_rules += n_add - n_gone;
    take_out(d, gone, n_gone);
    if (d->n_rules == 0) p->marks = d->steer_off = false;
    const char *why = d->steer_off || n_add == 0 ? NULL : take_in(p, d, add, n_add);
    if (why) give_up(p, d, why);
}

void steer_start(dqi_port *p) {
    dpdk_port *d = dpdk_of(p);
    const char *why = d->n_steered > 0 ? put_in(p, d, 0) : NULL;
    if (why) give_up(p, d, why);
}

void steer_end(dpdk_port *d) { remove_all(d); }
