// timing.h: how departures kept to what was asked for, and what tx.c and pace.c tell of them.
#ifndef DQI_TIMING_H
#define DQI_TIMING_H

#include "atomics.h"
#include "counters.h"
#include "dq.h"

// Of one transmit queue. Its poller writes, anybody reads.
typedef struct dqi_timing {
    dqi_count wanted_ns, took_ns; // as in dq_timing
    dqi_gauge due_ns;             // session time at which the next paced packet is wanted; 0: none was so far
    dqi_count gap_error[DQ_SPREAD_BUCKETS], time_error[DQ_SPREAD_BUCKETS];
    // the poller's own
    double wanted, step; // wanted_ns; what the last packet costs
    int64_t last_ns;     // when that left
    bool fresh;          // no gap begins with the last packet: there is none, or the pace is another since
    bool dry;            // the queue had nothing to send when the next packet was wanted
    double *cost;        // of the packets that may leave now, ns, and their send times: batch_size of them
    int64_t *asked;
} dqi_timing;

// NULL: no memory.
dqi_timing *dqi_timing_new(uint32_t batch_size);
void dqi_timing_free(dqi_timing *t);

// n packets whose costs are in t->cost left at the pace.
void dqi_timing_paced(dqi_timing *t, int64_t now, uint32_t n);
// The same of a queue that follows receive times: t->cost has the gaps in front of the packets.
void dqi_timing_followed(dqi_timing *t, int64_t now, uint32_t n);
// A transmission ends, or the next one begins: what is overdue took its time. The queue's poller stands
// still.
void dqi_timing_end(dq_queue *q);
// n packets whose send times are in t->asked left, or were given to a device that keeps to them; came: when
// their burst was looked at first. Counts those that had one, and those whose time had passed by then.
void dqi_timing_timed(dqi_timing *t, dqi_counters *c, int64_t now, int64_t came, uint32_t n);
// Fills out, but for its names, or only tells where it is NULL; false: nothing was paced or timed.
bool dqi_timing_read(dq_queue *q, dq_timing *out);

#endif
