// flow_count.h: packets received by a queue, per flow.
//
// The queue's poller writes, any thread reads. The first DQ_FLOW_COUNTS flows with packets have a counter
// each, the others share one; nothing is allocated later. A counter outlives its flow.
#ifndef DQI_FLOW_COUNT_H
#define DQI_FLOW_COUNT_H

#include "pipeline/queue.h"

// Returns NULL without memory.
dqi_flow_counts *dqi_flow_counts_new(void);
void dqi_flow_counts_free(dqi_flow_counts *c);
// Counts packets [from, b->n) of b, at least one, `bytes` in all, by flow id; packets without a flow are not
// counted.
void dqi_flow_count(dqi_flow_counts *c, const dq_burst *b, uint32_t from, uint64_t bytes);

#endif
