// actions.h: flows that change frames: on receive by the flow id that a packet carries, on transmit by what
// it matches. What one frame undergoes is in transform.h.
#ifndef DQI_ACTIONS_H
#define DQI_ACTIONS_H

#include "pipeline/iface.h"

// What off[0] of a packet that was just received says until dqi_rx_actions has seen it: the device has
// carried out its flow's actions, and found a wrong checksum in what it took off.
#define DQI_OFF_DONE   ((uint64_t)1 << 63)
#define DQI_OFF_BROKEN ((uint64_t)1 << 62)
#define DQI_OFF_FLAGS  (DQI_OFF_DONE | DQI_OFF_BROKEN)

// Refuses actions on an interface some of whose queues of this direction have memory that the CPU can't read:
// it moves bytes of all segments.
int dqi_actions_possible(const dq_iface *i, dq_dir dir, dq_diag *diag);
// Before the engine gets rules: makes the actions of those among n that have some known to i's receive
// queues. INVALID_PARAMETER names the flow. Control thread.
int dqi_rx_actions_add(dq_iface *i, const dq_rule *rules, uint32_t n, const dq_action *actions,
                       dq_diag *diag);
// After it: the engine refused them.
void dqi_rx_actions_take_back(dq_iface *i, const dq_rule *rules, uint32_t n);
// The rules of these orders are gone. Packets that carry their flow ids may still be under way: their actions
// stay for a second.
void dqi_rx_actions_retire(dq_iface *i, const uint64_t *gone, uint32_t n);
// The actions of the rule of this order, ready (transform.h); NULL: it has none. Control thread, until its
// next change.
const struct dqi_acts *dqi_rx_actions_of(const dq_iface *i, uint64_t order);
// Carries out the actions of the packets from `first` on; b is the caller's alone. Drops are counted; how
// many.
uint32_t dqi_rx_actions(dq_queue *q, dq_burst *b, uint32_t first);

// The transmit flows of now, NULL: there are none; the caller lets them go. Any thread.
dqi_tx_acts *dqi_tx_acts_hold(dq_iface *i);
void dqi_tx_acts_let_go(dqi_tx_acts *t);
// A burst of q's own that carries what b, whose reference it takes over, does: b itself where nobody else
// holds it, else a copy of the next part of it. NULL: no buffers now, or a GPU is copying (tx_gpu.h). Queue's
// poller.
dq_burst *dqi_tx_own(dq_queue *q, dq_burst *b);
// Carries out the actions of transmit flows on the packets of b, which is q's own. Drops are counted; how
// many.
uint32_t dqi_tx_actions(dq_queue *q, const dqi_tx_acts *t, dq_burst *b);

// Free what i has; pollers have ended.
void dqi_rx_actions_free(dq_iface *i);
void dqi_tx_actions_free(dq_iface *i);

#endif
