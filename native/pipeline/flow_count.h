// flow_count.h: what a receive queue received of each flow.
//
// The queue's poller writes, anybody reads. The first DQ_FLOW_COUNTS flows of which something comes have a
// counter each, those after them share one: nothing is allocated. A counter stays when its flow is deleted.
#ifndef DQI_FLOW_COUNT_H
#define DQI_FLOW_COUNT_H

#include "pipeline/queue.h"

// NULL: no memory.
dqi_flow_counts *dqi_flow_counts_new(void);
void dqi_flow_counts_free(dqi_flow_counts *c);
// Counts the packets [from, b->n) of b, at least one, of so many bytes, by their flow ids; those without a
// flow are not.
void dqi_flow_count(dqi_flow_counts *c, const dq_burst *b, uint32_t from, uint64_t bytes);

#endif
