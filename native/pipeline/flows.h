// flows.h: the flow rules of an interface, which change while packets are being classified.
//
// A table is built beside the one in use and put in its place between two batches; who reads the old one
// holds it until it looks again. A batch costs one look at a pointer that is hardly ever written to: queues
// of one interface that are served by several cores have nothing to wait for.
#ifndef DQI_FLOWS_H
#define DQI_FLOWS_H

#include "core/atomics.h"
#include "packet/match.h"

typedef struct dqi_flow_rules dqi_flow_rules; // a table and those who read it now

typedef struct dqi_flows {
    dqi_spin lock; // of the pointer
    dqi_flow_rules *rules;
    _Atomic bool drop_all;
} dqi_flows;

// The receive queue with this id, or NULL.
dq_queue *dqi_rx_queue(const dq_iface *i, uint32_t id);

// dqi_engine_ops.change_rules. Control thread.
int dqi_flows_change(dqi_flows *f, const dq_iface *i, const uint64_t *gone, uint32_t n_gone,
                     const dq_rule *add, uint32_t n_add, dq_diag *diag);
// The rules of now, NULL: there are none; the caller lets them go. Any thread.
dqi_flow_rules *dqi_flows_hold(dqi_flows *f);
void dqi_flows_let_go(dqi_flow_rules *r);
// The rule of this order, which there is.
const dq_rule *dqi_flows_rule(const dqi_flow_rules *r, uint64_t order);
// Makes r, which the caller holds, the rules again. Control thread.
void dqi_flows_put_back(dqi_flows *f, dqi_flow_rules *r);
static inline void dqi_flows_drop_all(dqi_flows *f, bool drop) { atomic_store(&f->drop_all, drop); }
static inline bool dqi_flows_drops(const dqi_flows *f) {
    return atomic_load_explicit(&f->drop_all, memory_order_relaxed);
}
// Whether there are rules. Any thread.
static inline bool dqi_flows_any(const dqi_flows *f) {
    return __atomic_load_n(&f->rules, __ATOMIC_RELAXED) != NULL;
}
// The rules of now, NULL: there are none, which the caller holds in *mine (NULL at first) until it calls
// again or lets *mine go. One thread at a time for each *mine.
dqi_flow_rules *dqi_flows_look(dqi_flows *f, dqi_flow_rules **mine);
// Fills flow ids and queue ids of n frames that came to i (frame k is the len[k] bytes at base + off[k]);
// DQI_NO_QUEUE: no rule wants it and the interface is isolated. Without isolation such a frame goes to the
// first queue. Rules that take headers off are asked first (layers.h). What frames ask the interface itself
// is answered (responder.h). mine: as above. Any thread.
void dqi_flows_classify(dqi_flows *f, const dq_iface *i, dqi_flow_rules **mine, const uint8_t *base,
                        const uint64_t *off, const uint32_t *len, uint32_t n, uint32_t *flow,
                        uint16_t *queue);
// Frees the table; nobody reads it any more.
void dqi_flows_free(dqi_flows *f);

#endif
