// steer.c: offloads an interface's flow rules to the device.
//
// The offload is an optimization: the device puts a packet into its queue's own device queue. Software always
// has all rules and applies them to every frame, so a rule that the device lacks, or orders differently, only
// costs a copy. Isolation is offloaded while the device accepts all rules: unmatched frames then go to the
// kernel. Otherwise a default rule delivers all frames and software isolates.
#include "core/err.h"
#include "engine/ibverbs/raw.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#define ETH   (DQ_MATCH_ETH_SRC | DQ_MATCH_ETH_DST | DQ_MATCH_ETHERTYPE | DQ_MATCH_VLAN_ID)
#define IPV4  (DQ_MATCH_IPV4_SRC | DQ_MATCH_IPV4_DST)
#define IPV6  (DQ_MATCH_IPV6_SRC | DQ_MATCH_IPV6_DST)
#define UDP   (DQ_MATCH_UDP_SRC | DQ_MATCH_UDP_DST)
#define TCP   (DQ_MATCH_TCP_SRC | DQ_MATCH_TCP_DST)
#define KNOWN (ETH | IPV4 | IPV6 | UDP | TCP)

// ---- translation of rules ---------------------------------------------------------------------------------

// A rule followed by its specs without gaps, as the call requires.
typedef struct words {
    vb_flow_attr attr;
    uint8_t specs[sizeof(vb_spec_eth) + sizeof(vb_spec_ipv6) + sizeof(vb_spec_ports)];
} words;

static bool any(const dq_match *m, uint32_t set) { return (m->set & set) != 0; }

static void add(words *w, const void *spec, size_t size) {
    memcpy((uint8_t *)w + w->attr.size, spec, size);
    w->attr.size = (uint16_t)(w->attr.size + size);
    w->attr.num_of_specs++;
}

static bool is_range(dq_port_range r) { return r.lo != r.hi; }

// Returns why the device cannot have a rule; NULL: it can.
static const char *beyond(const dq_rule *r) {
    const dq_match *m = &r->match;
    if (r->n_actions > 0) return "a flow takes headers off";
    if (r->rss || r->n_queues > 1) return "a flow is spread over queues";
    if (any(m, ~(uint32_t)KNOWN)) return "a match is none of Ethernet, IP address and port";
    if (any(m, IPV4) && any(m, IPV6)) return "IPv4 and IPv6 in one rule";
    if (any(m, UDP) && any(m, TCP)) return "UDP and TCP in one rule";
    bool range = (any(m, DQ_MATCH_UDP_SRC) && is_range(m->udp_src)) ||
                 (any(m, DQ_MATCH_UDP_DST) && is_range(m->udp_dst)) ||
                 (any(m, DQ_MATCH_TCP_SRC) && is_range(m->tcp_src)) ||
                 (any(m, DQ_MATCH_TCP_DST) && is_range(m->tcp_dst));
    return range ? "a range of ports" : NULL;
}

static void add_eth(words *w, const dq_match *m, bool v6) {
    vb_spec_eth s = {.type = VB_SPEC_ETH, .size = sizeof s};
    if (any(m, DQ_MATCH_ETH_SRC)) memcpy(s.val.src, m->eth_src, 6), memset(s.mask.src, 0xff, 6);
    if (any(m, DQ_MATCH_ETH_DST)) memcpy(s.val.dst, m->eth_dst, 6), memset(s.mask.dst, 0xff, 6);
    if (any(m, DQ_MATCH_VLAN_ID)) s.val.vlan_tag = htons(m->vlan_id), s.mask.vlan_tag = htons(0x0fff);
    bool ip = any(m, IPV4 | IPV6 | UDP | TCP);
    if (any(m, DQ_MATCH_ETHERTYPE) || ip) {
        s.val.type = htons(any(m, DQ_MATCH_ETHERTYPE) ? m->ethertype : v6 ? 0x86dd : 0x0800);
        s.mask.type = 0xffff;
    }
    add(w, &s, sizeof s);
}

static void add_ipv4(words *w, const dq_match *m) {
    vb_spec_ipv4 s = {.type = VB_SPEC_IPV4, .size = sizeof s};
    if (any(m, DQ_MATCH_IPV4_SRC)) s.val.src = htonl(m->ipv4_src), s.mask.src = htonl(m->ipv4_src_mask);
    if (any(m, DQ_MATCH_IPV4_DST)) s.val.dst = htonl(m->ipv4_dst), s.mask.dst = htonl(m->ipv4_dst_mask);
    add(w, &s, sizeof s);
}

static void prefix(uint8_t mask[16], uint32_t bits) {
    for (uint32_t k = 0; k < 16; k++, bits -= bits < 8 ? bits : 8)
        mask[k] = (uint8_t)(0xff00u >> (bits < 8 ? bits : 8));
}

static void add_ipv6(words *w, const dq_match *m) {
    vb_spec_ipv6 s = {.type = VB_SPEC_IPV6, .size = sizeof s};
    if (any(m, DQ_MATCH_IPV6_SRC)) memcpy(s.val.src, m->ipv6_src, 16), prefix(s.mask.src, m->ipv6_src_prefix);
    if (any(m, DQ_MATCH_IPV6_DST)) memcpy(s.val.dst, m->ipv6_dst, 16), prefix(s.mask.dst, m->ipv6_dst_prefix);
    add(w, &s, sizeof s);
}

static void put_port(uint16_t *val, uint16_t *mask, dq_port_range r, bool given) {
    if (given) *val = htons(r.lo), *mask = 0xffff;
}

static void add_ports(words *w, const dq_match *m) {
    bool udp = any(m, UDP);
    vb_spec_ports s = {.type = udp ? VB_SPEC_UDP : VB_SPEC_TCP, .size = sizeof s};
    put_port(&s.val.src, &s.mask.src, udp ? m->udp_src : m->tcp_src,
             any(m, DQ_MATCH_UDP_SRC | DQ_MATCH_TCP_SRC));
    put_port(&s.val.dst, &s.mask.dst, udp ? m->udp_dst : m->tcp_dst,
             any(m, DQ_MATCH_UDP_DST | DQ_MATCH_TCP_DST));
    add(w, &s, sizeof s);
}

// Translates a rule for one IP version; returns false if it has no such form.
static bool translate(const vraw_port *v, const dq_match *m, bool v6, words *w) {
    bool ports = any(m, UDP | TCP), typed = any(m, DQ_MATCH_ETHERTYPE);
    if (v6 ? any(m, IPV4) : any(m, IPV6)) return false;
    if (v6 && !any(m, IPV6) && !ports) return false; // the other form covers both
    if (typed && (ports || any(m, IPV4 | IPV6)) && m->ethertype != (v6 ? 0x86dd : 0x0800)) return false;
    *w = (words){.attr = {.type = VB_FLOW_NORMAL, .size = offsetof(words, specs), .port = v->port_num}};
    add_eth(w, m, v6);
    if (any(m, IPV4) || (ports && !v6)) add_ipv4(w, m);
    if (any(m, IPV6) || (ports && v6)) add_ipv6(w, m);
    if (ports) add_ports(w, m);
    return true;
}

// ---- rules in the device ----------------------------------------------------------------------------------

static vb_qp *queue_pair(const dqi_port *p, uint16_t id) {
    uint32_t k = 0;
    while (k < p->iface->n_rx && p->iface->rx[k]->conf.id != id)
        k++;
    const vraw_rx *x = k < p->iface->n_rx ? p->queues[k].state : NULL;
    return x ? x->qp : NULL;
}

static void take_out(const vraw_port *v, vraw_rule *r) {
    for (int f = 0; f < VRAW_FORMS; f++) {
        if (r->flows[f]) v->calls->destroy_flow(r->flows[f]);
        r->flows[f] = NULL;
    }
}

// Creates a rule in the device; returns NULL or the reason for failure.
static const char *put_in(const dqi_port *p, vraw_rule *r) {
    const vraw_port *v = p->state;
    const char *why = beyond(&r->rule);
    words w;
    for (int f = 0; f < VRAW_FORMS && !why; f++) {
        vb_qp *qp = queue_pair(p, r->rule.queues[0]);
        if (!translate(v, &r->rule.match, f == 1, &w)) continue;
        r->flows[f] = qp ? v->calls->create_flow(qp, &w.attr) : NULL;
        if (!r->flows[f]) why = qp ? strerror(errno) : "its queue has no device queue";
    }
    if (why) take_out(v, r);
    return why;
}

// Directs all unmatched frames to the first device queue; returns 0 or an errno.
static int take_all(const dqi_port *p) {
    vraw_port *v = p->state;
    vb_flow_attr a = {.type = VB_FLOW_ALL_DEFAULT, .size = sizeof a, .port = v->port_num};
    if (v->all) return 0;
    v->all = v->calls->create_flow(((const vraw_rx *)p->queues[0].state)->qp, &a);
    return v->all ? 0 : errno;
}

static int cant_take(const dqi_port *p, int err, dq_diag *diag) {
    const vraw_port *v = p->state;
    return dqi_fail(diag, DQ_ESYS - err, "interface %s: cannot receive frames from device %s: %s%s",
                    p->iface->conf.name, v->ctx->device->name, strerror(err),
                    err == EPERM ? "; hint: run as root, or with the capability CAP_NET_RAW" : "");
}

// Moves isolation to software for the reason `why`; all frames are delivered.
static int isolate_by_software(const dqi_port *p, const char *why, dq_diag *diag) {
    vraw_port *v = p->state;
    if (!v->isolates) return DQ_OK;
    v->isolates = false;
    dqi_note(p->iface->session, "interface %s: flow_isolation by software, the kernel gets nothing: %s",
             p->iface->conf.name, why);
    int err = v->started ? take_all(p) : 0;
    return err == 0 ? DQ_OK : cant_take(p, err, diag);
}

// Creates the rules from `first` on.
static int put_all_in(dqi_port *p, uint32_t first, dq_diag *diag) {
    vraw_port *v = p->state;
    const char *why = NULL;
    int err = DQ_OK;
    for (uint32_t k = first; k < v->n_rules && err == DQ_OK; k++) {
        why = put_in(p, &v->rules[k]);
        if (!why) continue;
        err = isolate_by_software(p, why, diag);
        if (v->gave_up) continue;
        v->gave_up = true;
        dqi_note(p->iface->session, "interface %s: flow %u and maybe more by software alone: %s",
                 p->iface->conf.name, v->rules[k].rule.flow_id, why);
    }
    return err;
}

static bool is_gone(uint64_t order, const dq_rule *gone, uint32_t n) {
    bool found = false;
    for (uint32_t k = 0; k < n && !found; k++)
        found = gone[k].order == order;
    return found;
}

int vraw_steer(dqi_port *p, const dq_rule *gone, uint32_t n_gone, const dq_rule *add_, uint32_t n_add,
               dq_diag *diag) {
    vraw_port *v = p->state;
    uint32_t kept = 0;
    if (p->iface->n_rx == 0) return DQ_OK;
    for (uint32_t k = 0; k < v->n_rules; k++) {
        if (is_gone(v->rules[k].rule.order, gone, n_gone))
            take_out(v, &v->rules[k]);
        else
            v->rules[kept++] = v->rules[k];
    }
    v->n_rules = kept;
    if (kept == 0) v->gave_up = false;
    uint32_t fits = n_add < VRAW_FLOWS - kept ? n_add : VRAW_FLOWS - kept;
    for (uint32_t k = 0; k < fits; k++)
        v->rules[v->n_rules++] = (vraw_rule){.rule = add_[k]};
    int err = fits < n_add ? isolate_by_software(p, "there are too many rules", diag) : DQ_OK;
    return err == DQ_OK && v->started ? put_all_in(p, kept, diag) : err;
}

int vraw_steer_start(dqi_port *p, dq_diag *diag) {
    vraw_port *v = p->state;
    if (p->n_queues == 0) return DQ_OK;
    v->started = true;
    int err = put_all_in(p, 0, diag);
    if (err != DQ_OK) return err;
    if (v->isolates) {
        dqi_note(p->iface->session,
                 "interface %s: flow_isolation by the device: packets that match no flow go to the kernel",
                 p->iface->conf.name);
        return DQ_OK;
    }
    int no = take_all(p);
    return no == 0 ? DQ_OK : cant_take(p, no, diag);
}

void vraw_steer_stop(dqi_port *p) {
    vraw_port *v = p->state;
    v->started = false;
    for (uint32_t k = 0; k < v->n_rules; k++)
        take_out(v, &v->rules[k]);
    if (v->all) v->calls->destroy_flow(v->all);
    v->all = NULL;
}
