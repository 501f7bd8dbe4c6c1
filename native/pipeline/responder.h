// responder.h: ARP, ND, IGMP and MLD responder of an interface with Ethernet frames: answers ARP requests and
// neighbour solicitations for configured addresses, sends requests for neighbours, and reports multicast
// membership where no kernel does.
//
// It inspects frames during classification, whether or not a flow takes them, and sends through the
// interface's first transmit queue, whose ledger line counts its frames (DQ_EXTRA_ANSWERED). The receive
// queues' pollers send due reports. An interface without such functions has no responder.
#ifndef DQI_RESPONDER_H
#define DQI_RESPONDER_H

#include "pipeline/iface.h"

static inline dqi_responder *dqi_responder_of(const dq_iface *i) {
    return atomic_load_explicit(&i->responder, memory_order_acquire);
}
// Answers the requests among n frames received by the interface (frame k: len[k] bytes at base + off[k]). Any
// thread.
void dqi_responder_look(dqi_responder *r, const uint8_t *base, const uint64_t *off, const uint32_t *len,
                        uint32_t n);
// Sends the due reports, and schedules the next poll of receive queue q for the following one; returns the
// reports sent. Queue's poller.
int dqi_responder_poll(dqi_responder *r, dq_queue *q);
// dqi_engine_ops.multicast of an engine without a kernel that reports. Control thread.
int dqi_responder_multicast(dq_iface *i, const char *group, const char *source, bool join, dq_diag *diag);
// Writes up to max Ethernet addresses of the joined groups; returns their total.
uint32_t dqi_responder_macs(const dq_iface *i, uint8_t (*macs)[6], uint32_t max);
// Leaves all groups, before the session's transmit queues are drained for the last time.
void dqi_responder_stop(dq_iface *i);
void dqi_responder_free(dq_iface *i);

#endif
