// rule.h: a flow rule in the words of rte_flow.
#ifndef RULE_H
#define RULE_H

#include "dpdk.h"

#include <rte_flow.h>

// What a pattern says of the headers of a frame.
typedef struct headers {
    struct rte_flow_item_eth eth, eth_mask;
    struct rte_flow_item_vlan vlan, vlan_mask;
    struct rte_flow_item_ipv4 ip4, ip4_mask;
    struct rte_flow_item_ipv6 ip6, ip6_mask;
    struct rte_flow_item_udp udp, udp_last, udp_mask;
    struct rte_flow_item_tcp tcp, tcp_last, tcp_mask;
} headers;

// A pattern and where its parts lie.
typedef struct words {
    uint32_t n;
    uint32_t kind; // of its headers, from 0 on: with a tag or without, of which IP
    struct rte_flow_item items[10];
    headers outer, inner; // the inner ones are a tunnel's
    struct rte_flow_item_vxlan vxlan, vxlan_mask;
    struct rte_flow_item_nvgre nvgre, nvgre_mask;
    struct rte_flow_action actions[4];
    struct rte_flow_action_mark mark;
    struct rte_flow_action_queue queue;
    struct rte_flow_action_rss rss;
    uint16_t queues[DQ_RULE_MAX_QUEUES];
} words;

// A rule of ours means packets of either version of IP, with tags or without; one of a device's means one
// form.
typedef enum rule_form { FORM_V6 = 1, FORM_TAGGED = 2 } rule_form;

// The forms that a rule has in a device; all: those beside the plain one, too. Their number.
uint32_t rule_forms(const steered *r, bool all, uint8_t forms[RULE_FORMS]);
// The rule in this form; it marks packets where `marks`, and carries out its action where `acts`.
void rule_translate(const dq_iface *i, const steered *r, uint8_t form, bool marks, bool acts, words *w);
// What a device's rule can't say, or says otherwise: text, NULL: nothing.
const char *rule_beyond(const dq_rule *r, const dqi_act *a);

// ---- async.c ----------------------------------------------------------------------------------------------

// Before the device's start: prepares it for rules by templates, where it has them (d->async).
void async_open(dpdk_port *d);
// After the last rule.
void async_close(dpdk_port *d);
// Has the device take a rule in; *flow is there until async_wait at least. False: *why.
bool async_create(const dpdk_port *d, const words *w, struct rte_flow **flow, const char **why);
void async_destroy(const dpdk_port *d, struct rte_flow *flow);
// Waits for the device's word on all of these: NULL, or why one of them failed; its *flow is NULL then.
const char *async_wait(const dpdk_port *d);

// Whether the rule's action takes a tunnel off.
static inline bool tunnels(const steered *r) { return r->rule.n_actions > 0 && r->act.kind == DQ_ACT_DECAP; }

static inline bool any(const dq_match *m, uint32_t bits) { return (m->set & bits) != 0; }

#endif
