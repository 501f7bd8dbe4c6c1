// rx_count.h: packets received by a queue, per flow, and per peer of a socket.
//
// The queue's poller writes, any thread reads. The first DQ_FLOW_COUNTS flows and the first DQ_SOURCES peers
// with packets have a counter each, the others share one; nothing is allocated later. A counter outlives its
// flow.
#ifndef DQI_RX_COUNT_H
#define DQI_RX_COUNT_H

#include "pipeline/queue.h"

// Returns NULL without memory.
dqi_flow_counts *dqi_flow_counts_new(void);
void dqi_flow_counts_free(dqi_flow_counts *c);
// Counts packets [from, b->n) of b, at least one, `bytes` in all, by flow id; packets without a flow are not
// counted.
void dqi_flow_count(dqi_flow_counts *c, const dq_burst *b, uint32_t from, uint64_t bytes);

// Returns NULL without memory.
dqi_peer_counts *dqi_peer_counts_new(void);
void dqi_peer_counts_free(dqi_peer_counts *c);
// Counts packets [from, b->n) of b, at least one, by peer.
void dqi_peer_count(dqi_peer_counts *c, const dq_burst *b, uint32_t from);

#endif
