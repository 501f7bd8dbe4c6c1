// tx_accuracy.h: how departures kept to what was asked for, and what tx.c and pace.c tell of them.
#ifndef DQI_TX_ACCURACY_H
#define DQI_TX_ACCURACY_H

#include "core/atomics.h"
#include "core/counters.h"
#include "core/dq_core.h"
#include "core/histogram.h"
#include "pipeline/dq_figures.h"

// Of one transmit queue. Its poller writes, anybody reads.
typedef struct dqi_tx_accuracy {
    dqi_count wanted_ns, took_ns; // as in dq_tx_accuracy
    dqi_gauge due_ns;             // session time at which the next paced packet is wanted; 0: none was so far
    dqi_histogram gap_error, time_error; // see DQ_HISTOGRAM_ROWS
    // the poller's own
    double wanted, step; // wanted_ns; what the last packet costs
    int64_t last_ns;     // when that left
    bool fresh;          // no gap begins with the last packet: there is none, or the pace is another since
    bool dry;            // the queue had nothing to send when the next packet was wanted
    double *cost;        // of the packets that may leave now, ns, and their send times: batch_size of them
    int64_t *asked;
} dqi_tx_accuracy;

// NULL: no memory.
dqi_tx_accuracy *dqi_tx_accuracy_new(uint32_t batch_size);
void dqi_tx_accuracy_free(dqi_tx_accuracy *t);

// n packets whose costs are in t->cost left at the pace.
void dqi_tx_accuracy_paced(dqi_tx_accuracy *t, int64_t now, uint32_t n);
// The same of a queue that follows receive times: t->cost has the gaps in front of the packets.
void dqi_tx_accuracy_followed(dqi_tx_accuracy *t, int64_t now, uint32_t n);
// A transmission ends, or the next one begins: what is overdue took its time. The queue's poller stands
// still.
void dqi_tx_accuracy_end(dq_queue *q);
// n packets whose send times are in t->asked left, or were given to a device that keeps to them; came: when
// their burst was looked at first. Counts those that had one, and those whose time had passed by then.
void dqi_tx_accuracy_timed(dqi_tx_accuracy *t, dqi_counters *c, int64_t now, int64_t came, uint32_t n);
// Whether anything was paced or timed.
bool dqi_tx_accuracy_any(const dq_queue *q);
// Fills out, but for its names.
void dqi_tx_accuracy_read(dq_queue *q, dq_tx_accuracy *out);

#endif
