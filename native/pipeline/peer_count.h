// peer_count.h: what a socket's receive queue received of each peer. The queue's poller writes, anybody
// reads. The first DQ_SOURCES peers have a counter each, those after them share one.
#ifndef DQI_PEER_COUNT_H
#define DQI_PEER_COUNT_H

#include "pipeline/queue.h"

// NULL: no memory.
dqi_peer_counts *dqi_peer_counts_new(void);
void dqi_peer_counts_free(dqi_peer_counts *c);
// Counts the packets [from, b->n) of b, at least one, by the peers that they tell.
void dqi_peer_count(dqi_peer_counts *c, const dq_burst *b, uint32_t from);

#endif
