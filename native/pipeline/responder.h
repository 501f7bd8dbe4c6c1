// responder.h: what an interface of Ethernet frames says by itself: answers to ARP requests and neighbour
// solicitations for addresses that a script names, questions for neighbours, and, where no kernel does it,
// membership reports.
//
// It looks at frames when they are classified, whether a flow takes them or not, and sends through the
// interface's first transmit queue, whose ledger counts what it sends (DQ_EXTRA_ANSWERED). Reports that are
// due are sent by the receive queues' pollers. An interface that says nothing has no responder.
#ifndef DQI_RESPONDER_H
#define DQI_RESPONDER_H

#include "pipeline/iface.h"

static inline dqi_responder *dqi_responder_of(const dq_iface *i) {
    return atomic_load_explicit(&i->responder, memory_order_acquire);
}
// Answers what n frames that came to the interface ask (frame k is the len[k] bytes at base + off[k]). Any
// thread.
void dqi_responder_look(dqi_responder *r, const uint8_t *base, const uint64_t *off, const uint32_t *len,
                        uint32_t n);
// Sends the reports that are due, and has q, a receive queue, polled again for the next; reports sent.
// Queue's poller.
int dqi_responder_poll(dqi_responder *r, dq_queue *q);
// dqi_engine_ops.multicast of an engine that nobody reports for. Control thread.
int dqi_responder_multicast(dq_iface *i, const char *group, const char *source, bool join, dq_diag *diag);
// The Ethernet addresses of the groups that were joined so, at most max; the number that there are.
uint32_t dqi_responder_macs(const dq_iface *i, uint8_t (*macs)[6], uint32_t max);
// Leaves all groups, before the session's transmit queues are drained for good.
void dqi_responder_stop(dq_iface *i);
void dqi_responder_free(dq_iface *i);

#endif
