// loop.h: types shared by the loop engine and its simulated wire.
#ifndef DQI_LOOP_H
#define DQI_LOOP_H

#include "core/burst.h"
#include "core/dq_core.h"
#include "core/dq_ledger.h"
#include "pipeline/session.h"
#include "pipeline/steering/flows.h"
#include "pipeline/steering/inbox.h"

typedef struct loop_wire loop_wire; // wire of one transmit queue

typedef struct loop_iface {
    dqi_flows flows;
    dqi_spin lock;       // protects wire_free_ns
    double wire_free_ns; // ns since the start at which the wire is idle again
    uint32_t n_peers;
    dq_iface *peers[DQI_MAX_IFACES];
} loop_iface;

typedef struct loop_rx {
    dqi_inbox box;
    bool by_reference; // the head of box is received by reference, not by copy
} loop_rx;

loop_wire *dqi_wire_new(dq_queue *tx);
void dqi_wire_free(loop_wire *w);
// Whether the wire holds no packet and no receiver holds a burst of its own.
bool dqi_wire_empty(const loop_wire *w);
// Prepares an empty wire for its queue's current regions. Returns 0 or -ENOMEM.
int dqi_wire_reopen(loop_wire *w);
int dqi_wire_send(dq_queue *tx, dq_burst *b, uint32_t first, uint32_t n); // dqi_engine_ops.tx
int dqi_wire_reap(dq_queue *tx);                                          // dqi_engine_ops.reap
void dqi_wire_drop_rest(dq_queue *tx);                                    // dqi_engine_ops.drop_rest
int dqi_wire_lines(dq_iface *i, dq_line *l, int max);                     // dqi_engine_ops.lines

#endif
