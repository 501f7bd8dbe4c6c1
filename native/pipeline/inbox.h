// inbox.h: the bursts that other threads put before a receive queue: its ring, and the one being taken in.
//
// Senders push, each with a reference of its own; the queue's poller takes. A burst whose buffers are of the
// queue's own regions goes into the current burst by reference.
#ifndef DQI_INBOX_H
#define DQI_INBOX_H

#include "core/burst.h"
#include "core/ring.h"

typedef struct dqi_inbox {
    dqi_ring in;
    dqi_gauge packets; // in the ring and from pos on in head
    dq_burst *head;    // being taken in, from packet pos on
    uint32_t pos;
} dqi_inbox;

// Room for at least n bursts. False: no memory.
bool dqi_inbox_init(dqi_inbox *x, uint32_t n);
void dqi_inbox_free(dqi_inbox *x); // when it is empty
// Whether a queue that nobody reads has its share of packets: few batches, as of a NIC's ring, and never more
// than a quarter of a region of num_bufs buffers. Any thread.
bool dqi_inbox_full(const dq_queue *rx, const dqi_inbox *x, uint32_t num_bufs);
// Puts b, with its reference, before rx, counts its packets in and wakes rx's poller; false: full, the
// reference stays. Any thread.
bool dqi_inbox_push(dq_queue *rx, dqi_inbox *x, dq_burst *b);

// The poller's side.

// Makes the next burst the head, which there is none of; false: there is none.
bool dqi_inbox_next(dqi_inbox *x);
// Takes at most room packets of the head, buffers and all, to the end of *b, or the whole burst in place of
// an empty *b; their number.
int dqi_inbox_take(dq_queue *q, dqi_inbox *x, dq_burst **b, uint32_t room);
// n packets of the head were taken otherwise; after the last it is let go.
void dqi_inbox_advance(dqi_inbox *x, uint32_t n);
// Drops everything, counted as flushed or, after the stop, as stopped; packets dropped.
int64_t dqi_inbox_flush(dq_queue *q, dqi_inbox *x);
// How many of its bursts hold `of`. The queue's poller stands still.
uint32_t dqi_inbox_holds(const dqi_inbox *x, const dq_burst *of);
static inline uint64_t dqi_inbox_held(const dqi_inbox *x) { return (uint64_t)dqi_gauge_get(&x->packets); }

#endif
