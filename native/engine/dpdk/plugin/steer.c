// steer.c: offloads an interface's flow rules to the device as rte_flow rules, if it has enough queues and
// accepts all rules.
//
// The offload is an optimization: the device puts a packet into the device queue of its queue and marks it
// with its flow id. Packets without a mark (tagged ones that the device's rule does not cover, packets in
// flight during a rule change, all packets of a device that cannot mark) are classified in software, which
// always has all rules. A rule that the device rejects therefore returns the whole interface to software
// without loss.
#include "rule.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST     4096     // limit of rules in a device
#define MARK_MAX 0x7fffef // largest flow id: marks end at 0xffffef, and one bit is MARK_DONE
#define NOTE_IDS 8        // flow ids in a note

static const char acts_alone[] = "a flow takes headers off";

// ---- which rules can be offloaded -------------------------------------------------------------------------

static bool ranges_meet(dq_port_range a, dq_port_range b) { return a.lo <= b.hi && b.lo <= a.hi; }

// Returns the IP protocol that a match implies; 0: none.
static uint8_t protocol_of(const dq_match *m) {
    return any(m, DQ_MATCH_UDP_SRC | DQ_MATCH_UDP_DST)   ? 17
           : any(m, DQ_MATCH_TCP_SRC | DQ_MATCH_TCP_DST) ? 6
           : any(m, DQ_MATCH_IP_PROTO)                   ? m->ip_proto
                                                         : 0;
}

// Returns true if no packet matches both. Overlapping rules depend on their order, which devices hardly
// support.
static bool apart(const dq_match *a, const dq_match *b) {
    uint32_t both = a->set & b->set;
    if ((both & DQ_MATCH_UDP_DST) && !ranges_meet(a->udp_dst, b->udp_dst)) return true;
    if ((both & DQ_MATCH_UDP_SRC) && !ranges_meet(a->udp_src, b->udp_src)) return true;
    if ((both & DQ_MATCH_TCP_DST) && !ranges_meet(a->tcp_dst, b->tcp_dst)) return true;
    if ((both & DQ_MATCH_TCP_SRC) && !ranges_meet(a->tcp_src, b->tcp_src)) return true;
    if (protocol_of(a) && protocol_of(b) && protocol_of(a) != protocol_of(b)) return true;
    if ((both & DQ_MATCH_IPV4_SRC) && ((a->ipv4_src ^ b->ipv4_src) & a->ipv4_src_mask & b->ipv4_src_mask))
        return true;
    if ((both & DQ_MATCH_IPV4_DST) && ((a->ipv4_dst ^ b->ipv4_dst) & a->ipv4_dst_mask & b->ipv4_dst_mask))
        return true;
    if ((both & DQ_MATCH_VLAN_ID) && a->vlan_id != b->vlan_id) return true;
    if ((both & DQ_MATCH_ETHERTYPE) && a->ethertype != b->ethertype) return true;
    if ((both & DQ_MATCH_ETH_SRC) && memcmp(a->eth_src, b->eth_src, 6) != 0) return true;
    return (both & DQ_MATCH_ETH_DST) && memcmp(a->eth_dst, b->eth_dst, 6) != 0;
}

// Compares whole rules: tunnel rules whose outer headers overlap may differ in the tunnel or the inner
// headers.
static bool rules_apart(const steered *a, const steered *b) {
    if (apart(&a->outer, &b->outer)) return true;
    if (!tunnels(a) || !tunnels(b)) return false;
    return a->act.tunnel != b->act.tunnel || a->act.id != b->act.id || apart(&a->rule.match, &b->rule.match);
}

// Returns why the rules from `first` on are not offloaded; NULL: they are.
static const char *not_for_device(const dqi_port *p, const dpdk_port *d, uint32_t first) {
    if (p->n_queues != p->iface->n_rx) return "the device has fewer queues";
    if (d->n_steered > MOST) return "there are too many";
    for (uint32_t k = first; k < d->n_steered; k++) {
        const steered *r = &d->steered[k];
        const char *why = rule_beyond(&r->rule, &r->act);
        if (why) return why;
        if (d->isolated && r->rule.n_actions > 0) return acts_alone;
        for (uint32_t j = 0; j < k; j++)
            if (!rules_apart(&d->steered[j], r)) return "two of them may match one packet";
    }
    return NULL;
}

// ---- rules in the device ----------------------------------------------------------------------------------

static void destroy(const dpdk_port *d, steered *r) {
    struct rte_flow_error e;
    for (uint32_t k = 0; k < RULE_FORMS; k++) {
        if (!r->flows[k]) continue;
        if (r->async[k])
            async_destroy(d, r->flows[k]);
        else
            rte_flow_destroy(d->id, r->flows[k], &e);
        r->flows[k] = NULL;
    }
    r->done = false;
}

static void destroy_all(dpdk_port *d) {
    async_wait(d);
    for (uint32_t k = 0; k < d->n_steered; k++)
        destroy(d, &d->steered[k]);
    async_wait(d); // marks are ignored from now on
}

static void remove_all(dpdk_port *d) {
    destroy_all(d);
    free(d->steered);
    d->steered = NULL;
    d->n_steered = 0;
}

// Reports, once for each kind, which flows' actions are executed by the device and which by software.
static void report_acts(const dqi_port *p, dpdk_port *d, uint32_t first, bool device) {
    char ids[12 * NOTE_IDS + 16] = "";
    uint32_t n = 0, at = 0;
    for (uint32_t k = first; k < d->n_steered; k++) {
        const steered *r = &d->steered[k];
        if (r->rule.n_actions == 0 || r->done != device || n++ >= NOTE_IDS) continue;
        at += (uint32_t)snprintf(ids + at, sizeof ids - at, "%s%u", n > 1 ? ", " : "", r->rule.flow_id);
    }
    if (n == 0 || d->acts_reported[device]) return;
    d->acts_reported[device] = true;
    host->note(p->iface->session, "interface %s: transforms of receive flows: %s: flows %s%s",
               p->iface->conf.name, device ? "the device" : "software", ids, n > NOTE_IDS ? " and more" : "");
}

// Returns all rules to software until the interface has none.
static void give_up(dqi_port *p, dpdk_port *d, const char *why) {
    p->marks = false;
    destroy_all(d);
    report_acts(p, d, 0, false);
    remove_all(d);
    d->steer_off = true;
    host->note(p->iface->session, "interface %s: flows: software: %s", p->iface->conf.name, why);
}

// Creates a rule. Rules never overlap, so priorities have no meaning; devices based on the kernel's tc
// require one for each kind of packet, while others accept only 0.
static struct rte_flow *create_at(const dpdk_port *d, const words *w, uint32_t priority, const char **why) {
    const struct rte_flow_attr attr = {.ingress = 1, .priority = priority};
    struct rte_flow_error e = {0};
    struct rte_flow *f = NULL;
    if (rte_flow_validate(d->id, &attr, w->items, w->actions, &e) == 0)
        f = rte_flow_create(d->id, &attr, w->items, w->actions, &e);
    if (!f) *why = e.message ? e.message : "the device refuses a rule";
    if (!f && priority > 0) return create_at(d, w, 0, why);
    return f;
}

// Creates the rule with its flow's action; the device marks the packets it changed. Not by a template, which
// reports a rejection too late.
static bool create_acting(dqi_port *p, const dpdk_port *d, steered *r) {
    words w;
    const char *why;
    uint8_t forms[RULE_FORMS];
    if (r->rule.n_actions == 0) return false;
    rule_forms(r, false, forms); // exactly one
    rule_translate(p->iface, r, forms[0], true, true, &w);
    p->transforms = true; // packets may arrive immediately
    r->async[0] = false;
    r->flows[0] = create_at(d, &w, w.kind, &why);
    return r->done = r->flows[0] != NULL;
}

// Creates the rule in all its forms; on failure returns false with the reason in *why.
static bool create(dqi_port *p, const dpdk_port *d, steered *r, bool marks, const char **why) {
    if (marks && r->rule.flow_id > MARK_MAX) {
        *why = "a flow id is larger than marks may be";
        return false;
    }
    if (marks && create_acting(p, d, r)) return true;
    uint8_t forms[RULE_FORMS];
    uint32_t n = rule_forms(r, d->isolated, forms);
    for (uint32_t k = 0; k < n; k++) {
        words w;
        rule_translate(p->iface, r, forms[k], marks, false, &w);
        r->async[k] = d->async && async_create(d, &w, &r->flows[k], why);
        if (!r->async[k]) r->flows[k] = create_at(d, &w, w.kind, why);
        if (r->flows[k]) continue;
        async_wait(d);
        destroy(d, r);
        return false;
    }
    return true;
}

// Creates the first rule and thereby detects whether the device can mark packets.
static bool create_first(dqi_port *p, dpdk_port *d, steered *r, const char **why) {
    d->marks = true;
    if (create(p, d, r, true, why) && !(*why = async_wait(d))) return true;
    destroy(d, r);
    d->marks = false;
    *why = "the device can't mark packets, and there is one queue";
    return (p->n_queues > 1 || d->isolated) && create(p, d, r, false, why);
}

static bool is_gone(uint64_t order, const dq_rule *gone, uint32_t n) {
    for (uint32_t k = 0; k < n; k++)
        if (gone[k].order == order) return true;
    return false;
}

// Removes rules; returns NULL, or why the device keeps one.
static const char *take_out(dpdk_port *d, const dq_rule *gone, uint32_t n) {
    uint32_t kept = 0;
    for (uint32_t k = 0; k < d->n_steered; k++) {
        if (is_gone(d->steered[k].rule.order, gone, n))
            destroy(d, &d->steered[k]);
        else
            d->steered[kept++] = d->steered[k];
    }
    d->n_steered = kept;
    return async_wait(d);
}

// Creates the rules from `first` on; returns NULL or the reason for failure.
static const char *put_in(dqi_port *p, dpdk_port *d, uint32_t first) {
    const char *why = NULL;
    for (uint32_t k = first; k < d->n_steered; k++) {
        steered *r = &d->steered[k];
        if (k == 0 ? create_first(p, d, r, &why) : create(p, d, r, d->marks, &why)) continue;
        async_wait(d);
        return why;
    }
    if ((why = async_wait(d)) != NULL) return why;
    p->marks = d->marks;
    if (!d->steer_reported)
        host->note(p->iface->session, "interface %s: flows: the device puts packets into their queues%s%s",
                   p->iface->conf.name, d->marks ? " and marks them" : ", software finds their ids",
                   d->steered[0].async[0] ? "; rules by templates" : "");
    d->steer_reported = true;
    report_acts(p, d, first, true);
    report_acts(p, d, first, false);
    return NULL;
}

static const char *take_in(dqi_port *p, dpdk_port *d, const dq_rule *add, uint32_t n) {
    uint32_t first = d->n_steered;
    steered *more = realloc(d->steered, ((size_t)first + n + 1) * sizeof *more);
    if (!more) return "no memory";
    d->steered = more;
    for (uint32_t k = 0; k < n; k++) {
        const dqi_acts *acts = add[k].n_actions > 0 ? host->rx_actions_of(p->iface, add[k].order) : NULL;
        steered *r = &d->steered[d->n_steered++];
        *r = (steered){.rule = add[k], .outer = add[k].match};
        if (!acts) continue;
        host->layers_outer(&add[k], acts, &r->outer);
        r->act = acts->act[0];
    }
    const char *why = not_for_device(p, d, first);
    return why || !d->started ? why : put_in(p, d, first);
}

// ---- isolation --------------------------------------------------------------------------------------------
//
// On an isolated interface with a kernel interface behind it, unmatched frames stay with the kernel: the
// device delivers only frames that its rules match. So rules are created in all their forms, and none may be
// left to software.

static const char *not_isolated(const dqi_port *p, const dpdk_port *d) {
    if (atomic_load(&p->iface->responder)) return "the program answers for the interface's addresses itself";
    if (d->steer_off || d->n_steered == 0) return "it has no rules in the device";
    for (uint32_t k = 0; k < d->n_steered; k++)
        if (d->steered[k].rule.n_actions > 0) return acts_alone;
    return NULL;
}

void steer_prepare(dqi_port *p) {
    dpdk_port *d = dpdk_of(p);
    if (p->n_queues > 0) async_open(d);
    if (!p->iface->conf.flow_isolation || d->info.if_index == 0) return;
    const char *why = not_isolated(p, d);
    struct rte_flow_error e = {0};
    if (!why && rte_flow_isolate(d->id, 1, &e) != 0) why = e.message ? e.message : "the device can't";
    p->filters = d->isolated = !why;
    host->note(p->iface->session, "interface %s: flow_isolation: %s%s", p->iface->conf.name,
               why ? "software: " : "device: what no rule wants stays with the kernel", why ? why : "");
}

// Ends isolation: the device delivers all frames again; returns false if it stays isolated.
static bool mingle(dqi_port *p, dpdk_port *d) {
    struct rte_flow_error e;
    if (d->isolated && rte_flow_isolate(d->id, 0, &e) != 0) return false;
    if (d->isolated)
        host->note(p->iface->session, "interface %s: flow_isolation: software from now on",
                   p->iface->conf.name);
    p->filters = d->isolated = false;
    return true;
}

// ---- changes ----------------------------------------------------------------------------------------------

const char *steer_change(dqi_port *p, const dq_rule *gone, uint32_t n_gone, const dq_rule *add,
                         uint32_t n_add) {
    dpdk_port *d = dpdk_of(p);
    d->n_rules += n_add - n_gone;
    const char *why = take_out(d, gone, n_gone);
    if (d->n_rules == 0) p->marks = d->steer_off = false;
    if (!why && !d->steer_off && n_add > 0) why = take_in(p, d, add, n_add);
    if (!why) return NULL;
    if (mingle(p, d)) {
        give_up(p, d, why);
        return NULL;
    }
    d->n_rules -= n_add - n_gone;
    take_out(d, add, n_add);
    return take_in(p, d, gone, n_gone) ? "the device does not take its rules back" : why;
}

int steer_start(dqi_port *p) {
    dpdk_port *d = dpdk_of(p);
    const char *why = d->n_steered > 0 ? put_in(p, d, 0) : NULL;
    if (!why) return 0;
    give_up(p, d, why);
    if (mingle(p, d)) return 0;
    int err = rte_eth_dev_stop(d->id);
    if (err != 0 || !mingle(p, d)) return err != 0 ? err : -EBUSY;
    return rte_eth_dev_start(d->id);
}

void steer_end(dpdk_port *d) {
    remove_all(d);
    async_close(d);
}
