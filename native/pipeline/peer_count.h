// peer_count.h: packets received by a socket's receive queue, per peer. The queue's poller writes, any thread
// reads. The first DQ_SOURCES peers have a counter each, the others share one.
#ifndef DQI_PEER_COUNT_H
#define DQI_PEER_COUNT_H

#include "pipeline/queue.h"

// Returns NULL without memory.
dqi_peer_counts *dqi_peer_counts_new(void);
void dqi_peer_counts_free(dqi_peer_counts *c);
// Counts packets [from, b->n) of b, at least one, by peer.
void dqi_peer_count(dqi_peer_counts *c, const dq_burst *b, uint32_t from);

#endif
