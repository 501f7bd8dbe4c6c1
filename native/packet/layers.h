// layers.h: receive flows that take headers off: which of them a frame is for.
//
// What a flow takes off is part of what it asks for: vlan_pop a tag, tunnel_decap the tunnel's outer headers,
// whole (MAC and IP addresses; VXLAN: ports, VNI; GRE: protocol; NVGRE: TNI and flow id). Its match is asked
// of the frame that is left, and so is the hash that spreads it. A tag that vlan_pop takes off is still there
// for the match.
//
// Flows that take off the same share a shell, which a hash table finds by what a frame's headers say; in it
// is a flow table for the frames inside, and more shells where flows go on. A table never changes.
#ifndef DQI_LAYERS_H
#define DQI_LAYERS_H

#include "packet/match.h"
#include "packet/transform.h"

typedef struct dqi_layers dqi_layers;

typedef struct dqi_layered {
    dq_rule rule;
    dqi_acts acts;
} dqi_layered;

// Makes *out of n rules with orders of their own, which are copied. The caller holds it. Errors as
// dqi_flow_table_build. Any thread; allocates.
int dqi_layers_build(const dqi_layered *rules, uint32_t n, dqi_layers **out, dq_diag *diag);
// One holder more, and one less (NULL: nothing); it goes with the last.
dqi_layers *dqi_layers_hold(dqi_layers *l);
void dqi_layers_let_go(dqi_layers *l);

// Its rules, by order; their number.
const dqi_layered *dqi_layers_rules(const dqi_layers *l, uint32_t *n);
// That of this order, NULL: there is none.
const dqi_layered *dqi_layers_find(const dqi_layers *l, uint64_t order);

// Writes flow id and queue of those of n frames that some flow is for, as dqi_flow_table_classify does, and
// leaves the others' alone. Reads the frames only. Any thread, never blocks, never allocates.
void dqi_layers_classify(const dqi_layers *l, const uint8_t *base, const uint64_t *off, const uint32_t *len,
                         uint32_t n, uint32_t *flow_id, uint16_t *queue);

// What the rule asks of a frame's headers as they come: all, or, of a tunnel, that without what is inside;
// of GRE neither protocol nor key. For who only sees those. Any thread.
void dqi_layers_outer(const dq_rule *r, const dqi_acts *a, dq_match *out);

#endif
