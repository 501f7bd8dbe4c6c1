// layers.h: receive flows that remove headers: finds the flow of a frame.
//
// The headers that a flow removes are part of its condition: a tag for vlan_pop; for tunnel_decap the
// complete outer headers (MAC and IP addresses; VXLAN: ports, VNI; GRE: protocol; NVGRE: TNI and flow id).
// Its match and the hash that distributes frames apply to the remaining frame. A tag that vlan_pop removes is
// still visible to the match.
//
// Flows that remove the same headers share a shell, found by a hash table over the frame's headers; it has a
// flow table for the inner frames, and further shells for flows that remove more. A table is immutable.
#ifndef DQI_LAYERS_H
#define DQI_LAYERS_H

#include "packet/match.h"
#include "packet/transform.h"

typedef struct dqi_layers dqi_layers;

typedef struct dqi_layered {
    dq_rule rule;
    dqi_acts acts;
} dqi_layered;

// Builds *out from a copy of n rules with distinct orders; the caller gets a reference. Errors as
// dqi_flow_table_build. Any thread; allocates.
int dqi_layers_build(const dqi_layered *rules, uint32_t n, dqi_layers **out, dq_diag *diag);
// Add and drop a reference (NULL: no effect); the last one frees it.
dqi_layers *dqi_layers_hold(dqi_layers *l);
void dqi_layers_let_go(dqi_layers *l);

// Returns the rules by order; *n is their number.
const dqi_layered *dqi_layers_rules(const dqi_layers *l, uint32_t *n);
// Returns the rule of this order, or NULL.
const dqi_layered *dqi_layers_find(const dqi_layers *l, uint64_t order);

// Writes flow id and queue of the frames that match a flow, as dqi_flow_table_classify does, and leaves the
// others unchanged. Only reads the frames. Any thread, never blocks, never allocates.
void dqi_layers_classify(const dqi_layers *l, const uint8_t *base, const uint64_t *off, const uint32_t *len,
                         uint32_t n, uint32_t *flow_id, uint16_t *queue);

// Returns the rule's condition on the outermost headers: all of it, or, for a tunnel, that without the inner
// frame; for GRE without protocol and key. For devices that see only those. Any thread.
void dqi_layers_outer(const dq_rule *r, const dqi_acts *a, dq_match *out);

#endif
