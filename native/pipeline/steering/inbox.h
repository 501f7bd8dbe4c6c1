// inbox.h: bursts from other threads for a receive queue: a ring, and the burst being consumed.
//
// Senders push bursts, each with its reference; the queue's poller takes them. A burst with buffers of the
// queue's own regions enters the current burst by reference.
#ifndef DQI_INBOX_H
#define DQI_INBOX_H

#include "core/burst.h"
#include "core/ring.h"

typedef struct dqi_inbox {
    dqi_ring in;
    dqi_gauge packets; // in the ring, and from pos on in head
    dq_burst *head;    // being consumed, from packet pos on
    uint32_t pos;
} dqi_inbox;

// Initializes the ring for at least n bursts. Returns false without memory.
bool dqi_inbox_init(dqi_inbox *x, uint32_t n);
void dqi_inbox_free(dqi_inbox *x); // when it is empty
// Whether a queue without a consumer has reached its limit: a few batches, like a NIC's ring, but at most a
// quarter of a region of num_bufs buffers. Any thread.
bool dqi_inbox_full(const dq_queue *rx, const dqi_inbox *x, uint32_t num_bufs);
// Appends b with its reference for rx, counts its packets as received and wakes rx's poller. Returns false if
// full; the caller keeps the reference. Any thread.
bool dqi_inbox_push(dq_queue *rx, dqi_inbox *x, dq_burst *b);

// Called by the poller:

// Makes the next burst the head, which must be NULL; false: the ring is empty.
bool dqi_inbox_next(dqi_inbox *x);
// Moves at most room packets of the head with their buffers to the end of *b, or replaces an empty *b with
// the whole burst; returns their number.
int dqi_inbox_take(dq_queue *q, dqi_inbox *x, dq_burst **b, uint32_t room);
// Skips n packets of the head, which the caller has taken; releases the head after its last one.
void dqi_inbox_advance(dqi_inbox *x, uint32_t n);
// Drops everything, counted as flushed or, after the stop, as stopped; returns the number of packets.
int64_t dqi_inbox_flush(dq_queue *q, dqi_inbox *x);
// Returns how many of its bursts reference `of`. The queue's poller is paused.
uint32_t dqi_inbox_holds(const dqi_inbox *x, const dq_burst *of);
static inline uint64_t dqi_inbox_held(const dqi_inbox *x) { return (uint64_t)dqi_gauge_get(&x->packets); }

#endif
