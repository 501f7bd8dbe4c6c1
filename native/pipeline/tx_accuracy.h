// tx_accuracy.h: transmit timing, recorded by tx.c and pace.c.
#ifndef DQI_TX_ACCURACY_H
#define DQI_TX_ACCURACY_H

#include "core/atomics.h"
#include "core/counters.h"
#include "core/dq_core.h"
#include "core/histogram.h"
#include "pipeline/dq_figures.h"

// Timing of one transmit queue. Its poller writes, any thread reads.
typedef struct dqi_tx_accuracy {
    dqi_count wanted_ns, took_ns;        // as in dq_tx_accuracy
    dqi_gauge due_ns;                    // session time at which the next paced packet is due; 0: none so far
    dqi_histogram gap_error, time_error; // see DQ_HISTOGRAM_ROWS
    // poller only
    double wanted, step; // wanted_ns as a double; cost of the last packet
    int64_t last_ns;     // departure of that packet
    bool fresh;          // no gap starts at the last packet: it is the first, or the pace has changed
    bool dry;            // the queue was empty when the next packet was due
    double *cost;        // of the packets that may leave now: costs in ns, and send times; batch_size each
    int64_t *asked;
} dqi_tx_accuracy;

// Returns NULL without memory.
dqi_tx_accuracy *dqi_tx_accuracy_new(uint32_t batch_size);
void dqi_tx_accuracy_free(dqi_tx_accuracy *t);

// Records that n packets with the costs in t->cost left at the pace.
void dqi_tx_accuracy_paced(dqi_tx_accuracy *t, int64_t now, uint32_t n);
// Records the same for a queue that follows receive times: t->cost has the gaps before the packets.
void dqi_tx_accuracy_followed(dqi_tx_accuracy *t, int64_t now, uint32_t n);
// Ends a transmission, or starts the next one: the overdue time counts as taken. The queue's poller is
// paused.
void dqi_tx_accuracy_end(dq_queue *q);
// Records that n packets with send times in t->asked left, or were passed to a device that enforces them;
// came: when the first poll saw their burst. Counts those with a send time, and those whose time had passed
// before `came`.
void dqi_tx_accuracy_timed(dqi_tx_accuracy *t, dqi_counters *c, int64_t now, int64_t came, uint32_t n);
// Whether any packet was paced or timed.
bool dqi_tx_accuracy_any(const dq_queue *q);
// Sets all fields of out except the names.
void dqi_tx_accuracy_read(dq_queue *q, dq_tx_accuracy *out);

#endif
