// rule.h: flow rules in rte_flow form.
#ifndef RULE_H
#define RULE_H

#include "dpdk.h"

#include <rte_flow.h>

// Header items of a pattern.
typedef struct headers {
    struct rte_flow_item_eth eth, eth_mask;
    struct rte_flow_item_vlan vlan, vlan_mask;
    struct rte_flow_item_ipv4 ip4, ip4_mask;
    struct rte_flow_item_ipv6 ip6, ip6_mask;
    struct rte_flow_item_udp udp, udp_last, udp_mask;
    struct rte_flow_item_tcp tcp, tcp_last, tcp_mask;
} headers;

// A pattern with its actions and the storage for both.
typedef struct words {
    uint32_t n;
    uint32_t kind; // of its headers, from 0 on: tagged or not, and IP version
    struct rte_flow_item items[10];
    headers outer, inner; // inner: of a tunnel
    struct rte_flow_item_vxlan vxlan, vxlan_mask;
    struct rte_flow_item_nvgre nvgre, nvgre_mask;
    struct rte_flow_action actions[4];
    struct rte_flow_action_mark mark;
    struct rte_flow_action_queue queue;
    struct rte_flow_action_rss rss;
    uint16_t queues[DQ_RULE_MAX_QUEUES];
} words;

// A flow rule matches both IP versions, tagged or untagged; a device rule matches a single form.
typedef enum rule_form { FORM_V6 = 1, FORM_TAGGED = 2 } rule_form;

// Writes the forms of a rule in a device (all: in addition to the plain one); returns their number.
uint32_t rule_forms(const steered *r, bool all, uint8_t forms[RULE_FORMS]);
// Translates the rule in this form; `marks`: marks packets, `acts`: executes its action.
void rule_translate(const dq_iface *i, const steered *r, uint8_t form, bool marks, bool acts, words *w);
// Returns what prevents offloading a rule (text); NULL: it can be offloaded.
const char *rule_beyond(const dq_rule *r, const dqi_act *a);

// ---- async.c ----------------------------------------------------------------------------------------------

// Before the device's start: configures template rules if the device supports them (d->async).
void async_open(dpdk_port *d);
// Called after the last rule was removed.
void async_close(dpdk_port *d);
// Starts the creation of a rule; *flow must stay valid until async_wait. On failure returns false with the
// reason in *why.
bool async_create(const dpdk_port *d, const words *w, struct rte_flow **flow, const char **why);
void async_destroy(const dpdk_port *d, struct rte_flow *flow);
// Waits for all pending operations; returns NULL, or why one failed, whose *flow is NULL then.
const char *async_wait(const dpdk_port *d);

// Returns true if the rule's action removes a tunnel.
static inline bool tunnels(const steered *r) { return r->rule.n_actions > 0 && r->act.kind == DQ_ACT_DECAP; }

static inline bool any(const dq_match *m, uint32_t bits) { return (m->set & bits) != 0; }

#endif
