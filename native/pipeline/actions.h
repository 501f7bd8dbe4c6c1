// actions.h: flow actions, which modify frames: on receive selected by the packet's flow id, on transmit by
// the rule that matches. transform.h applies the actions to a single frame.
#ifndef DQI_ACTIONS_H
#define DQI_ACTIONS_H

#include "pipeline/iface.h"

// Flags in off[0] of a just received packet, cleared by dqi_rx_actions: the device has already applied the
// flow's actions (DONE); it found a wrong checksum in a removed header (BROKEN).
#define DQI_OFF_DONE   ((uint64_t)1 << 63)
#define DQI_OFF_BROKEN ((uint64_t)1 << 62)
#define DQI_OFF_FLAGS  (DQI_OFF_DONE | DQI_OFF_BROKEN)

// Rejects actions on an interface where a queue of this direction uses memory the CPU can't read: actions
// move the bytes of all segments.
int dqi_actions_possible(const dq_iface *i, dq_dir dir, dq_diag *diag);
// Registers the actions of those of the n rules that have some with i's receive queues, before the engine
// receives the rules. INVALID_PARAMETER names the flow. Control thread.
int dqi_rx_actions_add(dq_iface *i, const dq_rule *rules, uint32_t n, const dq_action *actions,
                       dq_diag *diag);
// Undoes dqi_rx_actions_add after the engine has rejected the rules.
void dqi_rx_actions_take_back(dq_iface *i, const dq_rule *rules, uint32_t n);
// Retires the actions of deleted rules, given by their orders. Packets with their flow ids may still be in
// flight, so the actions are kept for one second.
void dqi_rx_actions_retire(dq_iface *i, const uint64_t *gone, uint32_t n);
// Returns the prepared actions (transform.h) of the rule with this order, or NULL if it has none. Valid until
// the next change. Control thread.
const struct dqi_acts *dqi_rx_actions_of(const dq_iface *i, uint64_t order);
// Applies the actions to packets [first, b->n) of b, which only the caller may reference. Counts and returns
// the dropped packets.
uint32_t dqi_rx_actions(dq_queue *q, dq_burst *b, uint32_t first);

// Returns the current transmit flows with a reference for the caller, or NULL if there are none. Any thread.
dqi_tx_acts *dqi_tx_acts_hold(dq_iface *i);
void dqi_tx_acts_let_go(dqi_tx_acts *t);
// Returns a burst owned by q with the packets of b; consumes the reference to b. It is b itself if b has no
// other reference, otherwise a copy of its next part. NULL: no free buffers, or a GPU copy is in progress
// (tx_gpu.h). Queue's poller.
dq_burst *dqi_tx_own(dq_queue *q, dq_burst *b);
// Applies the actions of transmit flows to the packets of b, which q owns. Counts and returns the dropped
// packets.
uint32_t dqi_tx_actions(dq_queue *q, const dqi_tx_acts *t, dq_burst *b);

// Returns the lead (queue.h) of the interface's receive queues. Control thread.
uint32_t dqi_rx_actions_lead(const dq_iface *i);
// Free the actions of i. All pollers have ended.
void dqi_rx_actions_free(dq_iface *i);
void dqi_tx_actions_free(dq_iface *i);

#endif
