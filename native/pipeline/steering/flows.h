// flows.h: flow rules of an interface, changed while packets are being classified.
//
// A new table is built next to the current one and replaces it between two batches; a reader holds the old
// one until its next check. The cost per batch is one load of a rarely written pointer, so queues of one
// interface on several cores do not contend.
#ifndef DQI_FLOWS_H
#define DQI_FLOWS_H

#include "core/atomics.h"
#include "packet/match.h"

typedef struct dqi_flow_rules dqi_flow_rules; // a table with a reference count

typedef struct dqi_flows {
    dqi_spin lock; // of the pointer
    dqi_flow_rules *rules;
    _Atomic bool drop_all;
} dqi_flows;

// Returns the receive queue with this id that is alive or draining, or NULL. Any thread.
dq_queue *dqi_rx_queue(const dq_iface *i, uint32_t id);

// dqi_engine_ops.change_rules. Control thread.
int dqi_flows_change(dqi_flows *f, const dq_iface *i, const uint64_t *gone, uint32_t n_gone,
                     const dq_rule *add, uint32_t n_add, dq_diag *diag);
// Returns the current rules with a reference for the caller, or NULL if there are none. Any thread.
dqi_flow_rules *dqi_flows_hold(dqi_flows *f);
void dqi_flows_let_go(dqi_flow_rules *r);
// Returns the rule of this order, which must exist.
const dq_rule *dqi_flows_rule(const dqi_flow_rules *r, uint64_t order);
// Restores r, which the caller holds, as the current rules. Control thread.
void dqi_flows_put_back(dqi_flows *f, dqi_flow_rules *r);
static inline void dqi_flows_drop_all(dqi_flows *f, bool drop) { atomic_store(&f->drop_all, drop); }
static inline bool dqi_flows_drops(const dqi_flows *f) {
    return atomic_load_explicit(&f->drop_all, memory_order_relaxed);
}
// Whether there are any rules. Any thread.
static inline bool dqi_flows_any(const dqi_flows *f) {
    return __atomic_load_n(&f->rules, __ATOMIC_RELAXED) != NULL;
}
// Returns the current rules, or NULL if there are none. The caller holds them in *mine (initially NULL) until
// the next call or until it releases *mine. One thread at a time for each *mine.
dqi_flow_rules *dqi_flows_look(dqi_flows *f, dqi_flow_rules **mine);
// Sets flow ids and queue ids of n frames received by i (frame k: len[k] bytes at base + off[k]);
// DQI_NO_QUEUE: no rule matches and the interface is isolated. Without isolation such a frame goes to the
// first queue. Decapsulating rules are matched first (layers.h). Requests to the interface itself are
// answered (responder.h). mine: as for dqi_flows_look. Any thread.
void dqi_flows_classify(dqi_flows *f, const dq_iface *i, dqi_flow_rules **mine, const uint8_t *base,
                        const uint64_t *off, const uint32_t *len, uint32_t n, uint32_t *flow,
                        uint16_t *queue);
// Frees the table, which must have no readers.
void dqi_flows_free(dqi_flows *f);

#endif
